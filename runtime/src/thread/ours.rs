//! What recording takes for itself around and inside the program, apart from probes: preparing, modules that come, completing
//! files. It is in none of the thread's intervals; the file's header says how much it was.

use super::{Origin, Thread};
use crate::{kernel, tls};

impl Thread {
    /// Tells where the thread's totals begin, which is at the last boundary. `begun`: since when it was prepared for that.
    pub(crate) fn set_start(&self, begun: u64) {
        let counts = self.last_counts();
        self.buffer
            .set_start(begun, self.last(), &counts[..self.k()]);
    }

    /// Begins once more, outside of everything: what was done so far was preparing the recording. `begun`: since when.
    pub(crate) fn begin_anew(&self, begun: u64) {
        if !self.is_idle() || self.is_gone() {
            return; // a constructor's work goes on, which is the program's
        }
        let schedule = kernel::schedule(self.buffer.tid());
        self.buffer.begin_schedule(schedule);
        self.charge();
        self.read_now();
        self.root.cost.clear();
        self.root.t0.set(self.last());
        self.membership.synchronised.set(self.last());
        self.origin.set(Origin::new(self.index, self.last()));
        self.set_start(begun);
    }

    /// Does something of ours while the thread's account is a place of its own. What has been counted meanwhile is the
    /// root's: headers have no place for it.
    pub(crate) fn take_out<R>(&self, what: impl FnOnce() -> R) -> R {
        self.recover(tls::stack_pointer());
        let before = self.switch(&raw const self.ours);
        let result = what();
        self.charge();
        // Else the program has jumped out of something meanwhile, and what is open is charged.
        if core::ptr::eq(self.account(), &raw const self.ours) {
            self.turn(before);
        }
        if !self.is_gone() {
            self.buffer.take_out(self.ours.ticks.take());
        }
        let set = self.ours.set.get();
        if set == 0 || self.root.cost.bind(set) {
            self.drain(&self.ours, &self.root.cost);
        }
        self.ours.clear();
        result
    }

    /// Makes an end, at which the last boundary was, earlier: the root's time since is not the thread's.
    pub(super) fn end_earlier(&self, end: u64) {
        let beyond = self.last().saturating_sub(end);
        let root = &self.root.cost.ticks;
        root.set(root.get().saturating_sub(beyond));
        self.charging.last.set(self.last() - beyond);
    }
}
