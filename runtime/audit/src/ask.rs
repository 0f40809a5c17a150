//! Starts the command that patches a file, and waits for it.

use core::ffi::CStr;
use core::ptr::null;

/// Runs `COMMAND patch-cached FOLDER KEY PATH` with no more environment than a bar needs. Its result is in the folder.
pub(crate) fn patch(command: &CStr, folder: &CStr, key: &CStr, path: &CStr) {
    let arguments = [
        command.as_ptr(),
        c"patch-cached".as_ptr(),
        folder.as_ptr(),
        key.as_ptr(),
        path.as_ptr(),
        null(),
    ];
    // Bars are drawn only on terminals that have a name; all have the few sequences that a bar needs.
    let environment = [c"TERM=ansi".as_ptr(), null()];
    let all = u64::MAX;
    let mut before = 0u64;
    // With all signals blocked: the handlers of the program are not for its copies.
    // SAFETY: two masks of the kernel's size.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &all,
            &mut before,
            8,
        )
    };
    // A child that sends no signal at its end is noticed neither by a handler nor by a `wait` of the program. But who executes
    // another program sends one from then on, so the child leaves that to a child of its own.
    let is_sent = signal_is_pending();
    let middle = match fork(0) {
        // qemu-user has no children but those that send SIGCHLD.
        Some(..0) => fork(libc::SIGCHLD),
        other => other,
    };
    if let Some(middle) = middle {
        wait(middle);
        if !is_sent {
            take_signal();
        }
    } else {
        match fork(libc::SIGCHLD) {
            Some(patching) => wait(patching),
            // SAFETY: both lists end with a null pointer, and their strings outlive the call.
            None => unsafe {
                libc::execve(command.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            },
        }
        // SAFETY: a copy of the program ends, without anything that the program does at its end.
        unsafe { libc::_exit(0) };
    }
    // SAFETY: as above.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigprocmask,
            libc::SIG_SETMASK,
            &before,
            null::<u64>(),
            8,
        )
    };
}

/// A child with a copy of the memory, in which only this thread exists; `None` there. A negative number: there is none.
fn fork(signal: i32) -> Option<libc::c_long> {
    // SAFETY: as fork; the child makes system calls only.
    let pid = unsafe { libc::syscall(libc::SYS_clone, signal as libc::c_ulong, 0, 0, 0, 0) };
    (pid != 0).then_some(pid)
}

/// The mask of SIGCHLD alone.
const CHILDREN: u64 = 1 << (libc::SIGCHLD - 1);

/// Whether a child of the program has ended and the program has not taken notice.
fn signal_is_pending() -> bool {
    let mut pending = 0u64;
    // SAFETY: a mask of the kernel's size.
    unsafe { libc::syscall(libc::SYS_rt_sigpending, &mut pending, 8) };
    pending & CHILDREN != 0
}

/// Takes a SIGCHLD that our child has sent, so that no handler of the program sees it.
fn take_signal() {
    let now = [0u64; 2];
    // SAFETY: a mask of the kernel's size and a time; no details are wanted.
    unsafe { libc::syscall(libc::SYS_rt_sigtimedwait, &CHILDREN, null::<u8>(), &now, 8) };
}

/// Waits for a child; __WALL includes those that send no signal.
fn wait(pid: libc::c_long) {
    let mut status = 0;
    // SAFETY: the status is a local variable; no usage is wanted.
    let again = |status: &mut i32| unsafe {
        pid > 0
            && libc::syscall(libc::SYS_wait4, pid, status, libc::__WALL, null::<u8>()) < 0
            && *libc::__errno_location() == libc::EINTR
    };
    while again(&mut status) {}
}
