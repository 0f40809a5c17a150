//! The most of something at once, from intervals that come in about the order of their ends.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Intervals that wait until they are counted, so that they may come a little out of order.
const WAITING: usize = 64;

/// How much there is at once at most. Memory is what the peak needs, however many intervals there are. A moment can be forgotten when a
/// later one has as much, since an interval that is still to come covers all time from its begin to now.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    /// Moments and how much there is: both in order, the later the less.
    moments: Vec<(i64, u64)>,
    waiting: BinaryHeap<Reverse<(i64, i64, u64)>>,
    most: u64,
}

impl Peak {
    /// From `begin` to before `end` there is so much more.
    pub(crate) fn add(&mut self, begin: i64, end: i64, more: u64) {
        if more == 0 || end <= begin {
            return;
        }
        self.waiting.push(Reverse((end, begin, more)));
        if self.waiting.len() > WAITING {
            self.take_next();
        }
    }

    /// The most there was at once.
    pub(crate) fn most(&mut self) -> u64 {
        while !self.waiting.is_empty() {
            self.take_next();
        }
        self.most
    }

    fn take_next(&mut self) {
        let Some(Reverse((end, begin, more))) = self.waiting.pop() else {
            return;
        };
        // A moment is the last one of a stretch: the interval covers it if it begins before.
        let from = self.moments.partition_point(|(at, _)| *at < begin);
        let to = self.moments.partition_point(|(at, _)| *at < end);
        for (_, level) in &mut self.moments[from..to] {
            *level += more;
        }
        if to == self.moments.len() {
            self.moments.push((end - 1, more));
        }
        let highest = self.moments[from..].first().map_or(0, |m| m.1);
        self.most = self.most.max(highest);
        // What came before and is no more than what came later says nothing any more.
        let mut kept: Vec<(i64, u64)> = Vec::with_capacity(self.moments.len());
        for &moment in &self.moments {
            while kept.last().is_some_and(|last| last.1 <= moment.1) {
                kept.pop();
            }
            kept.push(moment);
        }
        self.moments = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_that_of_every_moment(
            mut intervals in proptest::collection::vec((0i64..100, 1i64..40, 0u64..5), 0..300)
        ) {
            intervals.sort_by_key(|&(begin, len, _)| begin + len);
            let mut peak = Peak::default();
            let mut levels = [0; 140];
            for &(begin, len, more) in &intervals {
                peak.add(begin, begin + len, more);
                (begin..begin + len).for_each(|at| levels[at as usize] += more);
            }
            prop_assert_eq!(peak.most(), levels.into_iter().max().unwrap());
            prop_assert!(peak.moments.len() <= peak.most as usize + 1);
        }
    }

    #[test]
    fn neighbours_are_not_at_once() {
        let mut peak = Peak::default();
        (0..1000).for_each(|at| peak.add(at * 10, at * 10 + 10, 3));
        assert_eq!(peak.most(), 3);
        assert_eq!(peak.moments.len(), 1);
    }

    #[test]
    fn a_little_disorder_is_allowed() {
        let mut peak = Peak::default();
        peak.add(0, 100, 1);
        peak.add(40, 60, 2);
        peak.add(0, 50, 4);
        assert_eq!(peak.most(), 7);
    }
}
