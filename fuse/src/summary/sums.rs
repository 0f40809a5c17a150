//! What sums are made of: those of a finished run, from tables or streaming, and those of one that goes on.

use crate::run::nodes::NodeSet;
use ompfuse_format::Construct;
use ompfuse_format::construct::trips;
use ompfuse_format::record::Interval;

/// From begin to end, 0 if they are out of order.
pub(super) fn length(begin: i64, end: i64) -> u64 {
    end.checked_sub(begin).unwrap_or(0).max(0) as u64
}

/// One interval's numbers. Times are nanoseconds, or ticks while the run goes on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbers {
    /// Exclusive time.
    pub(super) own: u64,
    /// Begin to end.
    pub(super) wall: u64,
    /// See [`super::ThreadColumns::extent`].
    pub(super) extent: u64,
}

impl Numbers {
    /// Of an interval. `length`: what ticks are in the unit of the sums.
    #[inline]
    pub(super) fn of(i: &Interval<'_>, wall: u64, length: impl Fn(u64) -> u64) -> Numbers {
        if i.construct.is_code() {
            return Numbers::of_code(i.construct, length(i.own_ticks), wall, i.extent);
        }
        Numbers {
            own: length(i.own_ticks),
            wall,
            extent: match i.construct {
                c if c.is_exclusive() => length(i.extent),
                // A task has iterations if a taskloop made it.
                Construct::Section => 0,
                _ => i.extent,
            },
        }
    }
}

impl Numbers {
    /// Of a function's call, or a loop's execution. If another one of it was going on, that one's time from begin to end has the
    /// time of this one.
    pub(super) fn of_code(construct: Construct, own: u64, wall: u64, extent: u64) -> Numbers {
        let (is_inner, iterations) = match construct {
            Construct::NaturalLoop => (trips::is_inner(extent), trips::iterations(extent)),
            _ => (extent != 0, 0),
        };
        Numbers {
            own,
            wall: if is_inner { 0 } else { wall },
            extent: iterations,
        }
    }
}

/// Whether an interval of an execution unit counts as one: of a unit in several parts only the first that is met.
#[inline]
pub(super) fn is_first_part(met: &mut NodeSet, node: u64) -> bool {
    node == 0 || met.insert(node)
}

/// Sums over intervals of one kind and thread, of which a part can be taken away again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// Intervals; units with several parts count once.
    pub(super) count: u64,
    pub(super) own: u64,
    pub(super) wall: u64,
    pub(super) extent: u64,
}

impl Totals {
    /// One interval more, or a further part of a unit.
    #[inline]
    pub(super) fn add(&mut self, numbers: &Numbers, is_first: bool) {
        self.merge(&Totals {
            count: u64::from(is_first),
            own: numbers.own,
            wall: numbers.wall,
            // All parts of a unit have that of the whole.
            extent: if is_first { numbers.extent } else { 0 },
        });
    }

    #[inline]
    pub(super) fn merge(&mut self, other: &Totals) {
        let Totals {
            count,
            own,
            wall,
            extent,
        } = *other;
        self.count += count;
        self.own += own;
        self.wall += wall;
        self.extent = self.extent.saturating_add(extent);
    }

    /// What came since an earlier state.
    pub(super) fn since(&self, before: &Totals) -> Totals {
        Totals {
            count: self.count.saturating_sub(before.count),
            own: self.own.saturating_sub(before.own),
            wall: self.wall.saturating_sub(before.wall),
            extent: self.extent.saturating_sub(before.extent),
        }
    }
}

/// The same, with the extremes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) totals: Totals,
    /// The shortest interval's own time.
    pub(super) min: u64,
    /// The longest one's.
    pub(super) max: u64,
    /// The largest extent of one.
    pub(super) largest: u64,
}

impl Sums {
    /// Of no interval.
    pub(super) const NONE: Sums = Sums {
        totals: Totals {
            count: 0,
            own: 0,
            wall: 0,
            extent: 0,
        },
        min: u64::MAX,
        max: 0,
        largest: 0,
    };

    /// One interval more.
    #[inline]
    pub(super) fn add(&mut self, numbers: &Numbers) {
        self.totals.add(numbers, true);
        self.min = self.min.min(numbers.own);
        self.max = self.max.max(numbers.own);
        self.largest = self.largest.max(numbers.extent);
    }

    /// Others of the same thread.
    #[inline]
    pub(super) fn merge(&mut self, other: &Sums) {
        let Sums {
            totals,
            min,
            max,
            largest,
        } = other;
        self.totals.merge(totals);
        self.min = self.min.min(*min);
        self.max = self.max.max(*max);
        self.largest = self.largest.max(*largest);
    }
}
