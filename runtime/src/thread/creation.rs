//! KMPC's tasks are created in two steps, between which the program fills in the variables: that is a part of the creation, as
//! it is with GOMP, whose runtime copies them. So the two steps together take two readings of the clock.

use super::Thread;
use core::cell::Cell;
use ompfuse_format::abi::Probe;
use zerocopy::FromZeros;

/// Arguments that a call may have on the stack, in bytes: it lies that much deeper than one without.
const ARGUMENTS: usize = 64;

/// A task that is being created: its first step has been made, and what passes is charged to [`Thread::pending`].
#[derive(Debug, FromZeros)]
pub(super) struct Creation {
    /// Stack pointer of the first step; the largest number if there is none.
    at: Cell<usize>,
    /// When it began.
    t0: Cell<u64>,
}

impl Thread {
    /// The first step of creating a task, by a call with this stack pointer.
    #[inline(always)]
    pub(crate) fn begin_creation(&self, sp: usize) {
        self.switch(&raw const self.pending);
        self.creation.at.set(sp);
        self.creation.t0.set(self.charging.last.get());
    }

    /// Nothing is being created: initially.
    pub(super) fn no_creation(&self) {
        self.creation.at.set(usize::MAX);
    }

    /// At every call: whoever is not the second step, or has returned to a caller (by an exception), is no part of a creation.
    #[inline(always)]
    pub(crate) fn watch_creation(&self, sp: usize, probe: u8) {
        if sp >= self.creation.at.get() {
            self.leave_creation(sp, probe);
        }
    }

    #[inline(never)]
    fn leave_creation(&self, sp: usize, probe: u8) {
        const STEPS: [u8; 2] = [Probe::TaskEnqueue as u8, Probe::TaskBeginIf0 as u8];
        if sp != self.creation.at.get() || !STEPS.contains(&probe) {
            self.interrupt_creation();
        }
    }

    /// There will be no second step, or not as usual: what passed since the last boundary is the program's own time.
    pub(super) fn interrupt_creation(&self) {
        self.no_creation();
        if core::ptr::eq(self.charging.account.get(), &raw const self.pending) {
            self.charging.account.set(self.innermost_cost());
        }
    }

    /// The second step, by a call with this stack pointer: what has passed since the last boundary belongs to it too. Returns when
    /// the first one began. The account around both is current afterwards. `None` if there was something in between.
    #[inline(always)]
    pub(crate) fn go_on_with_creation(&self, sp: usize) -> Option<u64> {
        let is_creating = self.creation.at.get().wrapping_sub(sp) <= ARGUMENTS
            && core::ptr::eq(self.charging.account.get(), &raw const self.pending);
        if !is_creating {
            return None;
        }
        self.no_creation();
        self.charging.account.set(self.innermost_cost());
        Some(self.creation.t0.get())
    }
}
