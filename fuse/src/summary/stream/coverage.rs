//! Time that is covered by intervals, which come in about the order of their ends.

/// Disjoint stretches of time, of which at most so many are kept; with more, neighbours become one, of which it isn't known any more
/// where in it time was covered.
const MOST: usize = 1 << 16;

/// The union of intervals.
#[derive(Debug, Default)]
pub(super) struct Coverage {
    /// In order.
    stretches: Vec<Stretch>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    begin: i64,
    end: i64,
    /// How much of it is covered.
    covered: u64,
}

impl Coverage {
    /// Adds an interval; one that ends before it begins has no length.
    pub(super) fn add(&mut self, begin: i64, end: i64) {
        let end = end.max(begin);
        self.insert(Stretch {
            begin,
            end,
            covered: end.saturating_sub(begin) as u64,
        });
    }

    /// Adds a stretch of time of which so much is covered.
    pub(super) fn add_part(&mut self, begin: i64, end: i64, covered: u64) {
        let end = end.max(begin);
        self.insert(Stretch {
            begin,
            end,
            covered: covered.min(end.saturating_sub(begin) as u64),
        });
    }

    /// Adds all of another's.
    pub(super) fn absorb(&mut self, other: Coverage) {
        other.stretches.into_iter().for_each(|s| self.insert(s));
    }

    /// Nanoseconds in all.
    pub(super) fn ns(&self) -> u64 {
        self.stretches.iter().map(|s| s.covered).sum()
    }

    fn insert(&mut self, mut new: Stretch) {
        // From the first that ends behind its begin to the last that begins before its end.
        let from = self.stretches.partition_point(|s| s.end < new.begin);
        let mut to = from;
        while let Some(other) = self.stretches.get(to).filter(|s| s.begin <= new.end) {
            new = new.with(*other);
            to += 1;
        }
        match (to == from, from == self.stretches.len()) {
            (true, true) => self.stretches.push(new),
            _ => drop(self.stretches.splice(from..to, [new])),
        }
        if self.stretches.len() >= MOST {
            let pairs = self.stretches.chunks(2);
            let one = |pair: &[Stretch]| Stretch {
                begin: pair[0].begin,
                end: pair[pair.len() - 1].end,
                covered: pair.iter().map(|s| s.covered).sum(),
            };
            self.stretches = pairs.map(one).collect();
        }
    }
}

impl Stretch {
    /// Both, if they meet. What of one lies outside of the other counts by its share, where it isn't covered as a whole.
    fn with(self, other: Stretch) -> Stretch {
        let (begin, end) = (self.begin.min(other.begin), self.end.max(other.end));
        let outside = |a: &Stretch, b: &Stretch| {
            let before = b.begin.saturating_sub(a.begin).max(0);
            let behind = a.end.saturating_sub(b.end).max(0);
            let outside = (before + behind) as u128;
            let len = a.end.saturating_sub(a.begin).max(1) as u128;
            (u128::from(a.covered) * outside / len) as u64
        };
        let (more, less) = match self.covered >= other.covered {
            true => (&self, &other),
            false => (&other, &self),
        };
        let covered = more.covered + outside(less, more);
        Stretch {
            begin,
            end,
            covered: covered.min(end.saturating_sub(begin) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_moment_counts_once(intervals in proptest::collection::vec((0i64..200, -2i64..30), 0..60)) {
            let mut coverage = Coverage::default();
            let mut other = Coverage::default();
            let mut moments = [false; 300];
            for (at, &(begin, len)) in intervals.iter().enumerate() {
                let into = if at % 3 == 0 { &mut other } else { &mut coverage };
                into.add(begin, begin + len);
                (begin..begin + len).for_each(|m| moments[m as usize] = true);
            }
            coverage.absorb(other);
            let expected = moments.iter().filter(|&&m| m).count() as u64;
            prop_assert_eq!(coverage.ns(), expected);
        }
    }

    #[test]
    fn so_many_regions_need_no_more_memory() {
        let mut coverage = Coverage::default();
        for at in 0..1_000_000 {
            coverage.add(10 * at, 10 * at + 7);
        }
        assert!(coverage.stretches.len() <= MOST);
        assert_eq!(coverage.ns(), 7_000_000);
        coverage.add(0, 10_000_000); // another root thread's, around all of them
        assert_eq!(coverage.ns(), 10_000_000);
    }
}
