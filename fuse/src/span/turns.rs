//! Waiting for turns in `ordered` blocks: whether another thread was in the block meanwhile, or all were still before it.

use super::gather::Gathered;
use ompfuse_format::Construct;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Waits at a place, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Turns {
    /// Record's site of the loop around.
    pub(super) of_loop: Option<u32>,
    pub(super) waited: u64,
    /// The part in which a thread was in a block.
    pub(super) inside: u64,
}

/// Adds the waits of a region's execution. `turns`: by record's site.
pub(super) fn add(gathered: &Gathered, recs: &[u32], turns: &mut BTreeMap<u32, Turns>) {
    let rec = |at: &u32| &gathered.recs[*at as usize];
    let blocks = || {
        let all = recs.iter().map(rec);
        all.filter(|r| r.construct == Construct::Ordered)
    };
    if blocks().next().is_none() {
        return;
    }
    let loops = recs.iter().map(rec);
    let loops = loops.filter(|r| r.construct.is_share() || r.construct.is_divided());
    let loops: FxHashMap<u32, u32> = loops.map(|r| (r.node, r.site)).collect();
    let held = blocks().map(|r| {
        let entered = r.extent.min(r.own);
        (r.t0 + entered, r.t1.saturating_sub(r.own - entered))
    });
    let held = Held::new(held.collect());
    for block in blocks() {
        let entered = block.extent.min(block.own);
        let of_site = turns.entry(block.site).or_default();
        of_site.of_loop = of_site.of_loop.or(loops.get(&block.parent).copied());
        of_site.waited += entered;
        of_site.inside += held.until(block.t0 + entered) - held.until(block.t0);
    }
}

/// When threads were in a block: intervals that don't overlap, with the time in all before each.
struct Held(Vec<(u64, u64, u64)>);

impl Held {
    fn new(mut all: Vec<(u64, u64)>) -> Held {
        all.sort_unstable();
        let (mut until, mut sum) = (0, 0);
        let mut list = vec![];
        for (begin, end) in all {
            let begin = begin.max(until);
            if begin < end {
                list.push((begin, end, sum));
                (until, sum) = (end, sum + end - begin);
            }
        }
        Held(list)
    }

    /// Time in blocks before an instant.
    fn until(&self, at: u64) -> u64 {
        let next = self.0.partition_point(|&(begin, ..)| begin < at);
        let last = next.checked_sub(1).map(|last| self.0[last]);
        last.map_or(0, |(begin, end, sum)| sum + end.min(at) - begin)
    }
}

#[cfg(test)]
mod tests {
    use super::Held;

    #[test]
    fn time_in_blocks_is_counted_once() {
        let held = Held::new(vec![(30, 40), (10, 20), (15, 25)]);
        let until = [5, 12, 25, 28, 35, 90].map(|at| held.until(at));
        assert_eq!(until, [0, 2, 15, 15, 20, 25]);
    }
}
