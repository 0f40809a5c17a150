//! The counts that patched code keeps itself: words of each thread's thread-local storage.

use crate::{syscall, tls};
use core::cell::Cell;
use ompfuse_format::event::exact;

/// Bits that tell.
const TORN: u64 = exact::TORN.cast_unsigned();

/// A thread's words, of the events that are read.
#[derive(Debug)]
pub(super) struct Sums {
    words: *const u64,
    /// Numbers of the events, in the order of their columns.
    events: Vec<u8>,
    /// The words' last values, where nobody can read them any more.
    last: [Cell<u64>; exact::COUNT],
}

impl Sums {
    /// Of the calling thread.
    pub(super) fn of_this(events: &[u8]) -> Sums {
        let words = tls::base().wrapping_add(tls::count()) as *const u64;
        Sums {
            words,
            events: events.to_vec(),
            last: [const { Cell::new(0) }; exact::COUNT],
        }
    }

    /// Numbers of the events.
    #[inline(always)]
    pub(super) fn events(&self) -> &[u8] {
        &self.events
    }

    /// The sums, read by their own thread. False if something isn't in them yet that was executed, or is that wasn't: a signal has come in a
    /// loop that counts when it is left.
    #[inline(always)]
    pub(super) fn read(&self, out: &mut [u64]) -> bool {
        let mut torn = 0;
        for (place, &event) in out.iter_mut().zip(&self.events) {
            let Some(last) = self.last.get(usize::from(event)) else {
                continue;
            };
            // SAFETY: the thread's own static thread-local storage, which has a word for each event. Its own code changes it, of which
            // nothing runs meanwhile.
            let sum = unsafe { self.words.add(usize::from(event)).read_volatile() };
            torn |= sum ^ last.replace(sum);
            *place = sum >> exact::PARTS_BITS;
        }
        torn & TORN == 0
    }

    /// Of those that are read, which have never come to have everything: a handler has left a loop that counts when it is left.
    pub(super) fn torn(&self) -> impl Iterator<Item = bool> {
        let last = self
            .events
            .iter()
            .map(|&event| self.last.get(usize::from(event)));
        last.map(|last| last.is_some_and(|last| last.get() & TORN != 0))
    }

    /// The sums, read by another thread. The own one may have ended without telling, and its storage may be gone: so the kernel reads.
    #[cold]
    #[inline(never)]
    pub(super) fn read_foreign(&self, out: &mut [u64]) -> bool {
        let mut values = [0u64; exact::COUNT];
        let to = [&raw mut values as usize, size_of_val(&values)];
        let from = [self.words as usize, size_of_val(&values)];
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
        // SAFETY: it copies into `values`, or refuses.
        let copied = unsafe { syscall::raw(libc::SYS_process_vm_readv, arguments) };
        let mut is_whole = true;
        for (place, &event) in out.iter_mut().zip(&self.events) {
            let at = usize::from(event);
            if let (Some(&sum), Some(last)) = (values.get(at), self.last.get(at)) {
                let last = last.get();
                // Nobody knows what it has executed of a loop.
                let is_torn = (sum ^ last) & TORN != 0;
                is_whole &= !is_torn;
                let sum = if is_torn { last } else { sum.max(last) };
                *place = sum >> exact::PARTS_BITS;
            }
        }
        is_whole && copied == size_of_val(&values) as isize
    }
}
