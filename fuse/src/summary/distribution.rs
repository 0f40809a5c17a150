//! How units' times and counts are distributed, where no unit is known by itself: histograms, and the largest units.

use crate::run::clock::Clock;
use ompfuse_format::record::Step;
use ompfuse_format::record::sums::{LARGEST, Unit, bounds_of};
use serde::{Deserialize, Serialize};

/// Of a region's units, all threads together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// Their exclusive times in nanoseconds.
    pub own_ns: Histogram,
    /// Per event their counts, in the order of [`super::Summary::events`]; `None` for an event that was not counted.
    pub events: Vec<Option<Histogram>>,
    /// Those with the longest times, the longest first.
    pub largest: Vec<LargeUnit>,
    /// Parts of units (untied tasks) beyond the first: each is in the histogram by itself.
    pub further_parts: u64,
}

/// Numbers by size.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// In order, those that are not empty.
    pub buckets: Vec<Bucket>,
}

/// Numbers from the least to the one before the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    /// The least.
    pub from: u64,
    /// The end; `u64::MAX`: there is none.
    pub to: u64,
    /// How many.
    pub count: u64,
}

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeUnit {
    /// Exclusive time in nanoseconds.
    pub own_ns: u64,
    /// What it is among its siblings: a range's first iteration, a section's number (from 0), a task's rank.
    pub index: i64,
    /// It is a range or section (or a task of a taskloop), whose index is that of its first iteration.
    pub is_range: bool,
    /// Iterations; 0: none.
    pub iterations: u64,
    /// A hash of its path from the root, equal in all runs.
    pub path: u64,
}

impl LargeUnit {
    pub(super) fn new(unit: &Unit, clock: &Clock) -> LargeUnit {
        LargeUnit {
            own_ns: clock.length(unit.own_ticks),
            index: unit.index,
            is_range: Step::from_number(unit.step) == Some(Step::Range),
            iterations: unit.extent,
            path: unit.path,
        }
    }
}

impl Histogram {
    pub(super) fn of_numbers(buckets: &[(usize, u64)]) -> Histogram {
        let bucket = |&(at, count): &(usize, u64)| {
            let (from, to) = bounds_of(at);
            Bucket { from, to, count }
        };
        Histogram {
            buckets: buckets.iter().map(bucket).collect(),
        }
    }

    /// Of times in ticks.
    pub(super) fn of_ticks(buckets: &[(usize, u64)], clock: &Clock) -> Histogram {
        let mut histogram = Histogram::of_numbers(buckets);
        for bucket in &mut histogram.buckets {
            bucket.from = clock.length(bucket.from);
            if bucket.to != u64::MAX {
                bucket.to = clock.length(bucket.to);
            }
        }
        histogram
    }

    /// Numbers in all.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|b| b.count).sum()
    }

    /// The bucket with the number below which (or equal to which) so many in a hundred lie; `None`: it is empty.
    pub fn percentile(&self, percent: u64) -> Option<Bucket> {
        let wanted = (u128::from(self.count()) * u128::from(percent))
            .div_ceil(100)
            .max(1);
        let mut below = 0;
        let mut buckets = self.buckets.iter();
        let found = buckets.find(|bucket| {
            below += u128::from(bucket.count);
            below >= wanted
        });
        found.copied()
    }

    fn merge(&mut self, other: Histogram) {
        for bucket in other.buckets {
            let key = |b: &Bucket| (b.from, b.to);
            match self.buckets.binary_search_by_key(&key(&bucket), key) {
                Ok(at) => self.buckets[at].count += bucket.count,
                Err(at) => self.buckets.insert(at, bucket),
            }
        }
    }
}

impl Distribution {
    /// Takes over other units of the same region.
    pub fn merge(&mut self, other: Distribution) {
        let Distribution {
            own_ns,
            events,
            largest,
            further_parts,
        } = other;
        self.own_ns.merge(own_ns);
        for (known, new) in self.events.iter_mut().zip(events) {
            match (known.as_mut(), new) {
                (Some(known), Some(new)) => known.merge(new),
                _ => *known = None, // not known of all
            }
        }
        self.largest.extend(largest);
        self.largest
            .sort_by_key(|unit| core::cmp::Reverse(unit.own_ns));
        self.largest.truncate(LARGEST);
        self.further_parts += further_parts;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_the_buckets_that_hold_them() {
        let bucket = |from, to, count| Bucket { from, to, count };
        let mut all = Histogram {
            buckets: vec![bucket(8, 9, 50), bucket(16, 18, 49)],
        };
        all.merge(Histogram {
            buckets: vec![bucket(8, 9, 0), bucket(1024, 1152, 1)],
        });
        assert_eq!(all.percentile(50), Some(bucket(8, 9, 50)));
        assert_eq!(all.percentile(51), Some(bucket(16, 18, 49)));
        assert_eq!(all.percentile(99), Some(bucket(16, 18, 49)));
        assert_eq!(all.percentile(100), Some(bucket(1024, 1152, 1)));
        assert_eq!(Histogram::default().percentile(50), None);
    }
}
