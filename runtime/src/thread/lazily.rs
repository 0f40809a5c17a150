//! Where not everything is recorded, counters that take a system call are read for recorded execution units only: where one
//! begins, ends, or is interrupted. What is counted in between is nobody's; the thread says how much that is.
//!
//! So neither a unit that is left out nor a wait costs a call. Of a unit that may turn out to be too short for the record the
//! counters are read at its begin, and at its end only if it wasn't.

use super::{Cost, Thread, sample};
use core::cell::Cell;
use zerocopy::FromZeros;

/// Whether that is so on a thread, and what was put off.
#[derive(Debug, FromZeros)]
#[repr(C)]
pub(super) struct Lazily {
    is_on: Cell<bool>,
    /// Something was counted and not read.
    pub(super) behind: Cell<bool>,
    /// The account whose end is to be read; null: none.
    unsettled: Cell<*const Cost>,
}

impl Thread {
    /// Whether counters are read for recorded execution units only.
    #[inline(always)]
    pub(super) fn reads_for_units(&self) -> bool {
        self.lazily.is_on.get()
    }

    /// Finds out whether that is so with the set that is counted.
    pub(super) fn decide_on_reading(&self) {
        let was_so = self.lazily.is_on.get();
        let counters = self.choices.counters();
        let is_so = sample::is_on() && counters.len() > 0 && counters.needs_calls();
        self.lazily.is_on.set(is_so);
        if is_so && !was_so {
            self.buffer.set_reads_for_units();
            // What the account that is charged has counted so far stays nobody's, as all that will come.
            self.lazily.behind.set(true);
        }
    }

    /// As `charge_counts`: reads if the account's counts are wanted.
    pub(super) fn charge_for_units(&self, account: &Cost) {
        if !account.bind(self.choices.set()) {
            self.unattribute(account);
            account.forget();
        }
        if !account.is_wanted.get() {
            return self.lazily.behind.set(true);
        }
        self.lazily.unsettled.set(account);
        if !sample::may_turn_out_short(account.ticks.get()) {
            self.settle();
        }
    }

    /// Reads for the account that was charged last, if that was put off.
    pub(super) fn settle(&self) {
        // SAFETY: set in the same probe, which the account outlives.
        let Some(account) = (unsafe { self.lazily.unsettled.replace(core::ptr::null()).as_ref() })
        else {
            return;
        };
        if self.lazily.behind.replace(false) {
            // What was counted before it became current would be in its counts.
            self.read_counters(|at, delta| self.buffer.unattribute(at, delta));
            return account.forget();
        }
        self.read_counters(|at, delta| {
            if let Some(count) = account.counts().get(at) {
                count.set(count.get().saturating_add(delta));
            }
        });
    }

    /// What was charged last turns out not to be on record: nothing is read for it.
    pub(super) fn give_up_reading(&self, account: &Cost) {
        if core::ptr::eq(self.lazily.unsettled.get(), account) {
            self.lazily.unsettled.set(core::ptr::null());
            self.lazily.behind.set(true);
        }
        self.unattribute(account);
    }

    /// The account that was charged last may be gone.
    pub(super) fn forget_reading(&self) {
        if !self.lazily.unsettled.replace(core::ptr::null()).is_null() {
            self.lazily.behind.set(true);
        }
    }

    /// Reads what nobody has wanted to know yet: the program asks.
    pub(crate) fn read_now(&self) {
        if self.reads_for_units() {
            self.settle();
            self.catch_up();
        }
    }

    /// A wanted account is current from now on: what was counted until now, and not read, is nobody's.
    pub(super) fn catch_up(&self) {
        if self.lazily.behind.replace(false) {
            self.read_counters(|at, delta| self.buffer.unattribute(at, delta));
        }
    }

    /// What an account has counted is nobody's.
    pub(super) fn unattribute(&self, account: &Cost) {
        let k = self.choices.counters().len();
        account.take_counts(|at, count| {
            if at < k {
                self.buffer.unattribute(at, count);
            }
        });
    }

    /// The counts of an account that is written: not known where nothing was read for it.
    pub(super) fn are_known(&self, account: &Cost) -> bool {
        !self.reads_for_units() || account.is_wanted.get()
    }
}
