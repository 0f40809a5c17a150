//! Accounts.

use core::cell::Cell;
use ompfuse_format::record::{MAX_COUNTERS, NOT_COUNTED};

/// An account: exclusive time in ticks and counts.
#[derive(Debug)]
pub(crate) struct Cost {
    /// Number of the event set that `counts` are of, plus 1; 0: the one that is counted when it is charged first.
    pub(super) set: Cell<u8>,
    pub(crate) ticks: Cell<u64>,
    pub(crate) counts: [Cell<u64>; MAX_COUNTERS],
}

impl Cost {
    /// An empty account.
    #[inline]
    pub(crate) fn new() -> Cost {
        Cost {
            set: Cell::new(0),
            ticks: Cell::new(0),
            counts: [const { Cell::new(0) }; MAX_COUNTERS],
        }
    }

    /// Empties it, as far as `k` counters are concerned.
    #[inline(always)]
    pub(crate) fn clear(&self, k: usize) {
        self.set.set(0);
        self.ticks.set(0);
        if k > 0 {
            self.clear_counts(k);
        }
    }

    #[inline(never)]
    fn clear_counts(&self, k: usize) {
        self.counts.iter().take(k).for_each(|c| c.set(0));
    }

    /// Says that it is counted with this set; false if it has been with another.
    #[inline(always)]
    pub(super) fn bind(&self, set: u8) -> bool {
        if self.set.get() == 0 {
            self.set.set(set);
        }
        self.set.get() == set
    }

    /// The set that it is counted with, which is this one if it was never charged.
    #[inline(always)]
    pub(super) fn bound(&self, set: u8) -> u8 {
        self.bind(set);
        self.set.get()
    }

    /// What it has counted is not known any more.
    #[cold]
    pub(super) fn forget(&self) {
        self.counts.iter().for_each(|c| c.set(NOT_COUNTED));
    }

    /// Moves everything into another account.
    #[inline]
    pub(crate) fn drain_into(&self, other: &Cost, k: usize) {
        other.ticks.set(other.ticks.get() + self.ticks.take());
        let set = self.set.take();
        if set != 0 && !other.bind(set) {
            other.forget(); // of different sets: what is known of the two together is nothing
        }
        for (from, to) in self.counts.iter().zip(&other.counts).take(k) {
            // What is not known in a part is not known of the whole: NOT_COUNTED is the largest number.
            to.set(to.get().saturating_add(from.take()));
        }
    }
}
