//! The count of instructions that patched code keeps itself: a word of each thread's thread-local storage.

use crate::{syscall, tls};
use core::cell::Cell;

/// A thread's word.
#[derive(Debug)]
pub(super) struct Sum {
    word: *const u64,
    /// Its last value, where nobody can read it any more.
    last: Cell<u64>,
}

impl Sum {
    /// Of the calling thread.
    pub(super) fn of_this() -> Sum {
        let word = tls::base().wrapping_add(tls::count()) as *const u64;
        Sum {
            word,
            last: Cell::new(0),
        }
    }

    /// The sum, read by its own thread.
    #[inline(always)]
    pub(super) fn read(&self) -> u64 {
        // SAFETY: the thread's own static thread-local storage. Its own code changes it, of which nothing runs meanwhile.
        let value = unsafe { self.word.read_volatile() };
        self.last.set(value);
        value
    }

    /// The sum, read by another thread. The own one may have ended without telling, and its storage may be gone: so the kernel reads.
    #[cold]
    #[inline(never)]
    pub(super) fn read_foreign(&self) -> Option<u64> {
        let mut value = 0u64;
        let to = [&raw mut value as usize, size_of::<u64>()];
        let from = [self.word as usize, size_of::<u64>()];
        // SAFETY: it asks the kernel for a number.
        let process = unsafe { syscall::raw(libc::SYS_getpid, [0; 6]) };
        let arguments = [
            process as usize,
            to.as_ptr() as usize,
            1,
            from.as_ptr() as usize,
            1,
            0,
        ];
        // SAFETY: it copies into `value`, or refuses.
        let copied = unsafe { syscall::raw(libc::SYS_process_vm_readv, arguments) };
        let is_read = copied == size_of::<u64>() as isize;
        is_read.then(|| value.max(self.last.get()))
    }
}
