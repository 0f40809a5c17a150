//! Accounts.

use core::cell::Cell;
use ompfuse_format::record::MAX_COUNTERS;

/// An account: exclusive time in ticks and counts.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) ticks: Cell<u64>,
    pub(crate) counts: [Cell<u64>; MAX_COUNTERS],
}

impl Cost {
    /// An empty account.
    #[inline]
    pub(crate) fn new() -> Cost {
        Cost {
            ticks: Cell::new(0),
            counts: [const { Cell::new(0) }; MAX_COUNTERS],
        }
    }

    /// Empties it, as far as `k` counters are concerned.
    #[inline]
    pub(crate) fn clear(&self, k: usize) {
        self.ticks.set(0);
        self.counts.iter().take(k).for_each(|c| c.set(0));
    }

    /// Moves everything into another account.
    #[inline]
    pub(crate) fn drain_into(&self, other: &Cost, k: usize) {
        other.ticks.set(other.ticks.get() + self.ticks.take());
        for (from, to) in self.counts.iter().zip(&other.counts).take(k) {
            // What is not known in a part is not known of the whole: NOT_COUNTED is the largest number.
            to.set(to.get().saturating_add(from.take()));
        }
    }
}
