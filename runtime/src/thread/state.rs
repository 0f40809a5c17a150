//! Who may use a thread's state: the thread itself while it is at work, whoever ends the recording while it is not, and
//! nobody in the child of a fork.
//!
//! The word that says so lies in a page of its own, right before the state. The kernel empties that page in the child of a
//! fork (MADV_WIPEONFORK), also of one that no handler is told of (`clone` as a system call). So the child finds a state
//! that is gone, and leaves its parent's record file alone.

use super::Thread;
use crate::buffer::Buffer;
use crate::syscall;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

pub(crate) const PAGE: usize = 4096;

/// Where in that page the end of the records is that may be written without further questions ([`Thread::quick_room`]): so who
/// has become another process asks.
const QUICK: usize = 8;

/// Nothing is recorded with it any more: it is finished, or another process's.
const GONE: u32 = 0;
/// The thread is outside of everything.
const IDLE: u32 = 1;
/// The thread is in a probe, or in something that a probe has begun.
pub(crate) const BUSY: u32 = 2;
/// Another thread finishes it.
const CLOSING: u32 = 3;

/// Zeroed memory for a thread's state, which is busy; `None` if there is none.
pub(crate) fn map() -> Option<*mut Thread> {
    let page = syscall::map_memory(PAGE + size_of::<Thread>())?;
    syscall::wipe_on_fork(page, PAGE);
    // SAFETY: a fresh mapping, larger than a page.
    let thread = unsafe {
        page.cast::<u32>().write(BUSY);
        page.add(PAGE)
    };
    Some(thread.cast())
}

/// Gives the memory back.
///
/// # Safety
/// `thread` comes from [`map`], and nothing refers to it any more.
pub(crate) unsafe fn unmap(thread: *mut Thread) {
    // SAFETY: the caller's promise.
    unsafe { syscall::unmap(thread.cast::<u8>().sub(PAGE), PAGE + size_of::<Thread>()) };
}

impl Thread {
    #[inline(always)]
    fn state(&self) -> &AtomicU32 {
        let word = core::ptr::from_ref(self).cast::<u8>().wrapping_sub(PAGE);
        // SAFETY: every thread lies where `map` has put it, one page behind its word.
        unsafe { &*word.cast::<AtomicU32>() }
    }

    /// Whether this thread, which asks, may use its state; it is at work from then on.
    #[inline(always)]
    pub(crate) fn wake(&self) -> bool {
        self.state().load(Ordering::Relaxed) == BUSY || self.take(BUSY)
    }

    /// Takes the state of a thread that is idle.
    #[cold]
    #[inline(never)]
    fn take(&self, to: u32) -> bool {
        let state = self.state();
        state
            .compare_exchange(IDLE, to, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// At the end of a probe: if nothing is open, others may finish the thread.
    #[inline(always)]
    pub(crate) fn rest(&self) {
        if self.is_idle() && !self.is_gone() {
            self.state().store(IDLE, Ordering::Release);
        }
    }

    /// Takes an idle thread from another one, to finish it.
    pub(crate) fn close(&self) -> bool {
        self.take(CLOSING)
    }

    /// Whether nothing is recorded with it any more.
    #[inline(always)]
    pub(crate) fn is_gone(&self) -> bool {
        self.state().load(Ordering::Relaxed) == GONE
    }

    #[inline(always)]
    fn quick(&self) -> &AtomicUsize {
        let word = core::ptr::from_ref(self)
            .cast::<u8>()
            .wrapping_sub(PAGE - QUICK);
        // SAFETY: as in `state`; zero at first.
        unsafe { &*word.cast::<AtomicUsize>() }
    }

    /// Where a short record of any kind can be stored, if there is room in the stage and nothing else to be asked: the thread's
    /// records are its own, it has no counters, and nothing may be left out. All that is one word.
    #[inline(always)]
    pub(super) fn quick_room(&self) -> Option<*mut u64> {
        self.buffer.room_below(self.quick().load(Ordering::Relaxed))
    }

    /// Whether records may be written without further questions from now on.
    pub(super) fn set_quick(&self, on: bool) {
        let end = if on { Buffer::QUICK } else { 0 };
        self.quick().store(end, Ordering::Relaxed);
    }

    /// Nothing is recorded with it any more.
    pub(crate) fn give_up(&self) {
        self.set_quick(false);
        self.state().store(GONE, Ordering::Release);
    }
}
