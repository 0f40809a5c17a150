//! What may not be broken off in its midst. A signal handler of the program's may jump out of whatever it interrupts, or end the
//! process. A thread that is to be cancelled ends in the next call of the C library that may wait. None of ours is a point where
//! the program expects that.

use crate::syscall;
use core::ffi::c_int;
use core::ptr::null_mut;

// pthread.h; the crate of the C library has neither.
const PTHREAD_CANCEL_DISABLE: c_int = 1;
const PTHREAD_CANCEL_DEFERRED: c_int = 0;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, old: *mut c_int) -> c_int;
}

/// How this thread may be cancelled.
struct Cancellation {
    state: c_int,
    kind: c_int,
}

impl Cancellation {
    /// From now on it isn't.
    fn disable() -> Cancellation {
        let (mut state, mut kind) = (0, 0);
        // SAFETY: settings of this thread; what they were is written to local variables.
        unsafe {
            pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut state);
            pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut kind);
        }
        Cancellation { state, kind }
    }

    /// It may be as before, in calls that may wait.
    fn restore_state(&self) {
        // SAFETY: a setting of this thread. It doesn't end here, since the type is "deferred".
        unsafe { pthread_setcancelstate(self.state, null_mut()) };
    }

    /// It may be as before, anywhere: perhaps here.
    fn restore_kind(&self) {
        if self.kind != PTHREAD_CANCEL_DEFERRED {
            // SAFETY: a setting of this thread.
            unsafe { pthread_setcanceltype(self.kind, null_mut()) };
        }
    }
}

/// Does something in which this thread isn't cancelled.
pub(crate) fn uncancelled<R>(what: impl FnOnce() -> R) -> R {
    let before = Cancellation::disable();
    let result = what();
    before.restore_state();
    before.restore_kind();
    result
}

/// Does something in which this thread is neither cancelled nor interrupted. What it calls of the program's must not make threads:
/// they would not be interrupted either.
pub(crate) fn undisturbed<R>(what: impl FnOnce() -> R) -> R {
    let before = Cancellation::disable();
    let mask = mask_signals(u64::MAX);
    let result = what();
    before.restore_state(); // a handler may jump out of what comes now
    mask.map(mask_signals);
    before.restore_kind();
    result
}

/// Signals that an instruction or a system call of the thread's own brings about, such as one that a seccomp filter has trapped. Where
/// they are blocked the kernel ends the process instead.
const SYNCHRONOUS: u64 = {
    let all = [
        libc::SIGILL,
        libc::SIGTRAP,
        libc::SIGBUS,
        libc::SIGFPE,
        libc::SIGSEGV,
        libc::SIGSYS,
    ];
    let (mut set, mut nth) = (0, 0);
    while nth < all.len() {
        set |= 1 << (all[nth] - 1);
        nth += 1;
    }
    set
};

/// Does something in which this thread isn't interrupted from outside, and calls nothing of the program's.
pub(crate) fn uninterrupted<R>(what: impl FnOnce() -> R) -> R {
    let mask = mask_signals(!SYNCHRONOUS);
    let result = what();
    mask.map(mask_signals);
    result
}

/// Sets which signals this thread doesn't take, and returns which ones it didn't; `None` if that isn't allowed.
fn mask_signals(set: u64) -> Option<u64> {
    let mut before = 0u64;
    let (how, len) = (libc::SIG_SETMASK as usize, size_of::<u64>());
    let (set, old) = (&raw const set as usize, &raw mut before as usize);
    // SAFETY: the kernel reads and writes sets of signals, a word each.
    let result = unsafe { syscall::raw(libc::SYS_rt_sigprocmask, [how, set, old, len, 0, 0]) };
    (result == 0).then_some(before)
}
