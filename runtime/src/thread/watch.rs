//! Whether the kernel has come between two boundaries: it took the processor from the thread, moved it to another one, or delivered a
//! signal.
//!
//! A thread's `rseq_cs` (rseq(2)) points to a description of a sequence of instructions that may be restarted. Where the kernel disturbs
//! a thread outside of that sequence, it empties the pointer. So the thread keeps a pointer to a sequence that nobody executes, and
//! looks at each boundary whether it is still there: that is one load.
//!
//! Where the program's own sequences are (some allocators have them), theirs is there. Then nothing is stored any more, and nothing
//! known of the thread. Without registration (old C libraries, emulators, a tunable of glibc's) nothing is known either.

use super::{Cost, Thread};
use crate::host;
use core::arch::global_asm;
use core::cell::Cell;
use zerocopy::FromZeros;

global_asm!(
    // The sequence, and where the kernel would go on if it interrupted it. In front of that must stand what glibc has registered
    // (`RSEQ_SIG`); two bytes more make an instruction of it.
    ".pushsection .text.ompfuse_sequence,\"ax\",@progbits",
    ".hidden ompfuse_sequence",
    ".globl ompfuse_sequence",
    "ompfuse_sequence:",
    "nop",
    "ud2",
    ".byte 0x0f, 0xb9, 0x3d",
    ".long 0x53053053",
    ".hidden ompfuse_interrupted",
    ".globl ompfuse_interrupted",
    "ompfuse_interrupted:",
    "ud2",
    ".popsection",
);

unsafe extern "C" {
    fn ompfuse_sequence();
    fn ompfuse_interrupted();
}

/// `struct rseq_cs`. The kernel reads it where it disturbs a thread; this library stays loaded.
#[repr(C, align(32))]
struct Sequence {
    version: u32,
    flags: u32,
    start: unsafe extern "C" fn(),
    len: u64,
    interrupted: unsafe extern "C" fn(),
}

static SEQUENCE: Sequence = Sequence {
    version: 0,
    flags: 0,
    start: ompfuse_sequence,
    len: 1,
    interrupted: ompfuse_interrupted,
};

/// What a thread looks at.
#[derive(Debug, FromZeros)]
pub(super) struct Watch {
    /// The thread's `rseq_cs`, or `nothing`.
    at: Cell<*mut u64>,
    /// What is there unless the kernel has come.
    expected: Cell<u64>,
    nothing: Cell<u64>,
}

impl Watch {
    /// From now on there is nothing to be seen.
    pub(super) fn stop(&self) {
        self.at.set(self.nothing.as_ptr());
        self.expected.set(0);
    }

    #[inline(always)]
    fn found(&self) -> u64 {
        // SAFETY: the calling thread's `rseq_cs`, which is there as long as the thread (others stop first), or a word beside. The
        // kernel may write it at any moment, so it is read here and now.
        unsafe { self.at.get().read_volatile() }
    }

    /// Whether the kernel has come, or somebody else uses the pointer.
    #[inline(always)]
    pub(super) fn has_changed(&self) -> bool {
        self.found() != self.expected.get()
    }

    /// The pointer is ours.
    fn set(&self) {
        // SAFETY: as in `found`. The kernel takes any description that is valid, which this is.
        unsafe { self.at.get().write_volatile(ours()) };
    }
}

/// What the pointer is while nobody has come.
fn ours() -> u64 {
    &raw const SEQUENCE as u64
}

impl Thread {
    /// Begins to look, if it can be seen. Called by the thread itself.
    pub(super) fn watch_out(&self) {
        self.charging.watch.stop();
        let Some(at) = host::rseq_sequence() else {
            return;
        };
        self.charging.watch.at.set(at);
        // It may be left from what this thread has recorded before.
        let is_free = [0, ours()].contains(&self.charging.watch.found());
        if !is_free {
            return self.charging.watch.stop();
        }
        self.charging.watch.expected.set(ours());
        self.charging.watch.set();
        self.buffer.set_marks(true);
    }

    /// The pointer is not what it was, while this account was charged.
    #[cold]
    #[inline(never)]
    pub(super) fn was_disturbed(&self, account: &Cost) {
        if self.charging.watch.found() == 0 {
            account.disturbed.set(true);
            self.charging.watch.set();
        } else {
            // Somebody else's: of what is in nobody's record yet nothing is known, nor of all that comes.
            self.charging.watch.stop();
            self.buffer.set_marks(false);
        }
    }

    /// Leaves the pointer empty, as it was. Called by the thread itself.
    pub(crate) fn unwatch(&self) {
        if self.charging.watch.expected.get() != 0 && !self.charging.watch.has_changed() {
            // SAFETY: as in `Watch::found`.
            unsafe { self.charging.watch.at.get().write_volatile(0) };
        }
        self.charging.watch.stop();
    }
}
