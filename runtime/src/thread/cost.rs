//! Accounts.

use core::cell::Cell;
use core::mem::MaybeUninit;
use ompfuse_format::record::{MAX_COUNTERS, NOT_COUNTED};
use zerocopy::FromZeros;

/// An account: exclusive time in ticks and counts.
#[derive(Debug, FromZeros)]
pub(crate) struct Cost {
    /// Number of the event set that `counts` are of, plus 1; 0: the one that is counted when it is charged first.
    pub(super) set: Cell<u8>,
    /// Its counts are wanted even where counters are read for execution units only: it is one, and on record so far.
    pub(super) is_wanted: Cell<bool>,
    /// The thread was disturbed while it was charged ([`super::watch`]).
    pub(crate) disturbed: Cell<bool>,
    /// There is something in `counts`: they are emptied by who asks for them first, since most programs count nothing.
    has_counts: Cell<bool>,
    pub(crate) ticks: Cell<u64>,
    counts: [Cell<MaybeUninit<u64>>; MAX_COUNTERS],
}

impl Cost {
    /// An empty account.
    #[inline]
    pub(crate) fn new() -> Cost {
        Cost {
            set: Cell::new(0),
            is_wanted: Cell::new(false),
            disturbed: Cell::new(false),
            has_counts: Cell::new(false),
            ticks: Cell::new(0),
            counts: [const { Cell::new(MaybeUninit::uninit()) }; MAX_COUNTERS],
        }
    }

    /// Empties it.
    #[inline(always)]
    pub(crate) fn clear(&self) {
        self.set.set(0);
        self.is_wanted.set(false);
        self.disturbed.set(false);
        self.has_counts.set(false);
        self.ticks.set(0);
    }

    /// Its counts, one per counter.
    #[inline(always)]
    pub(crate) fn counts(&self) -> &[Cell<u64>; MAX_COUNTERS] {
        if !self.has_counts.get() {
            self.empty_counts();
        }
        // SAFETY: all of them have been written; a number's cell lies as one that need not be written yet.
        unsafe { &*(&raw const self.counts).cast() }
    }

    #[inline(never)]
    fn empty_counts(&self) {
        self.counts.iter().for_each(|c| c.set(MaybeUninit::new(0)));
        self.has_counts.set(true);
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

    /// Hands over what it has counted, and has counted nothing.
    pub(super) fn take_counts(&self, mut to: impl FnMut(usize, u64)) {
        for (at, count) in self.counts().iter().enumerate() {
            to(at, count.take());
        }
    }

    /// What it has counted is not known any more.
    #[cold]
    pub(super) fn forget(&self) {
        self.counts().iter().for_each(|c| c.set(NOT_COUNTED));
    }

    /// Moves time and mark into another account.
    #[inline(always)]
    pub(super) fn drain_time(&self, other: &Cost) {
        other.ticks.set(other.ticks.get() + self.ticks.take());
        other
            .disturbed
            .set(other.disturbed.get() | self.disturbed.take());
    }

    /// Moves everything into another account.
    #[inline]
    pub(crate) fn drain_into(&self, other: &Cost, k: usize) {
        self.drain_time(other);
        let set = self.set.take();
        if set != 0 && !other.bind(set) {
            other.forget(); // of different sets: what is known of the two together is nothing
        }
        for (from, to) in self.counts().iter().zip(other.counts()).take(k) {
            // What is not known in a part is not known of the whole: NOT_COUNTED is the largest number.
            to.set(to.get().saturating_add(from.take()));
        }
    }
}
