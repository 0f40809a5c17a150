//! Boundaries: the account that was charged gets what has passed, another one is charged from then on.

use super::watch::Watch;
use super::{Choice, Cost, FIRST_SET, Thread, now};
use core::cell::Cell;
use ompfuse_format::record::{MAX_COUNTERS, NOT_COUNTED};
use zerocopy::FromZeros;

/// What is charged, and since when.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub(super) struct Charging {
    /// Clock at the last boundary.
    pub(super) last: Cell<u64>,
    pub(super) account: Cell<*const Cost>,
    pub(super) watch: Watch,
}

impl Thread {
    /// Clock at the last boundary, in ticks.
    #[inline(always)]
    pub(crate) fn last(&self) -> u64 {
        self.charging.last.get()
    }

    /// Counter values at the last boundary.
    pub(crate) fn last_counts(&self) -> [u64; MAX_COUNTERS] {
        core::array::from_fn(|i| self.last_counts[i].get())
    }

    /// Hands what has been counted since the last boundary to `add`, counter by counter.
    #[inline]
    pub(super) fn read_counters(&self, mut add: impl FnMut(usize, u64)) {
        let mut values = [0; MAX_COUNTERS];
        let counters = self.choices.counters();
        let is_read = counters.read(&mut values);
        let is_known = is_read && !self.stale.get();
        self.stale.set(!is_read);
        for (at, &value) in values.iter().enumerate().take(counters.len()) {
            let passed = value.wrapping_sub(self.last_counts[at].replace(value));
            add(at, if is_known { passed } else { NOT_COUNTED });
        }
    }

    /// Charges what has passed since the last boundary to the current account.
    #[inline]
    pub(crate) fn charge(&self) {
        let account = self.charge_ticks();
        if self.has_sets() {
            self.charge_counts(account);
        }
    }

    /// As [`Thread::charge`], without the counters. Returns the account.
    #[inline(always)]
    fn charge_ticks(&self) -> &Cost {
        let now = now();
        // SAFETY: the current account belongs to an open frame, work entry or probe of this thread, which outlives it.
        let account = unsafe { &*self.charging.account.get() };
        let passed = now.saturating_sub(self.charging.last.get());
        account.ticks.set(account.ticks.get() + passed);
        self.charging.last.set(self.charging.last.get() + passed);
        if self.charging.watch.has_changed() {
            self.was_disturbed(account);
        }
        account
    }

    /// Apart, since it needs room on the stack.
    #[inline(never)]
    fn charge_counts(&self, account: &Cost) {
        if self.reads_for_units() {
            return self.charge_for_units(account);
        }
        if !account.bind(self.choices.set()) {
            account.forget(); // counted with another set before: what is in it now is of neither
        }
        if self.choices.counters().len() == 0 {
            return;
        }
        self.read_counters(|at, delta| {
            if let Some(count) = account.counts().get(at) {
                count.set(count.get().saturating_add(delta));
            }
        });
    }

    /// A boundary: charges the current account, then makes `to` current. Returns the former one.
    #[inline(always)]
    pub(crate) fn switch(&self, to: *const Cost) -> *const Cost {
        let account = self.charge_ticks();
        self.charging.account.set(to);
        // SAFETY: as in `charge_ticks`.
        let next = unsafe { &*to };
        if self.has_sets() {
            self.switch_sets(account, next);
        } else {
            next.set.set(FIRST_SET);
        }
        account
    }

    #[inline(never)]
    fn switch_sets(&self, from: &Cost, to: &Cost) {
        self.charge_counts(from);
        self.turn_set(to);
    }

    /// Makes `to` the current account, at a boundary that has charged already, and the event set that it is counted with.
    /// Returns the former one.
    #[inline(always)]
    pub(crate) fn turn(&self, to: *const Cost) -> *const Cost {
        let before = self.charging.account.replace(to);
        // SAFETY: as in `charge_ticks`.
        let account = unsafe { &*to };
        if !self.has_sets() {
            account.set.set(FIRST_SET);
        } else {
            self.turn_set(account);
        }
        before
    }

    /// As [`Thread::turn`], of an account that begins, with the set that was chosen for it.
    /// `is_unit`: of an execution unit.
    #[inline(always)]
    pub(super) fn begin_account(&self, account: &Cost, choice: Choice, is_unit: bool) {
        self.charging.account.set(account);
        if !self.has_sets() {
            account.set.set(FIRST_SET);
        } else {
            account.set.set(choice.set());
            account.is_wanted.set(is_unit && !choice.is_off());
            self.turn_set(account);
        }
    }

    /// Has the set of an account counted.
    #[inline(never)]
    fn turn_set(&self, account: &Cost) {
        let set = account.set.get();
        if self.reads_for_units() {
            self.settle();
        }
        if set != self.choices.set() && set != 0 {
            self.change_set(account);
        }
        if self.reads_for_units() && account.is_wanted.get() {
            self.catch_up();
        }
    }

    /// Moves everything that was charged to an account into another one.
    #[inline(always)]
    pub(crate) fn drain(&self, from: &Cost, to: &Cost) {
        if self.has_sets() {
            return self.drain_counts(from, to);
        }
        from.drain_time(to);
        to.set.set(FIRST_SET);
        from.set.set(0);
    }

    #[inline(never)]
    fn drain_counts(&self, from: &Cost, to: &Cost) {
        if self.reads_for_units() && to.is_wanted.get() && !from.is_wanted.get() {
            self.unattribute(to);
            to.forget(); // its time holds what was not read
        }
        from.drain_into(to, self.k());
    }

    /// The account that is being charged.
    #[inline(always)]
    pub(crate) fn account(&self) -> *const Cost {
        self.charging.account.get()
    }
}
