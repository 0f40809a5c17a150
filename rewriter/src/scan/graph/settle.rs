//! Values that are followed from block to block until nothing changes (Kildall's algorithm).

use std::collections::{BTreeMap, BTreeSet};

/// Completes what is known at the beginnings of blocks. `step` takes what is known through a block, and says which blocks follow;
/// `join` makes one of what two ways bring.
pub(crate) fn settle<S: Clone + PartialEq, I: IntoIterator<Item = usize>>(
    mut starts: BTreeMap<usize, S>,
    mut step: impl FnMut(usize, &mut S) -> I,
    join: impl Fn(&S, &S) -> S,
) -> BTreeMap<usize, S> {
    let mut work: BTreeSet<usize> = starts.keys().copied().collect();
    while let Some(block) = work.pop_first() {
        let mut state = starts[&block].clone();
        for to in step(block, &mut state) {
            let known = starts.get(&to);
            let all = known.map_or_else(|| state.clone(), |known| join(known, &state));
            if known != Some(&all) {
                starts.insert(to, all);
                work.insert(to);
            }
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_way_brings_stays() {
        // 0 -> {1, 2} -> 3 -> 1: bits that blocks set; what all ways have set is known.
        let succs = [vec![1, 2], vec![3], vec![3], vec![1]];
        let sets = [0b1, 0b10, 0b110, 0];
        let starts = BTreeMap::from([(0, 0)]);
        let step = |block: usize, known: &mut u32| {
            *known |= sets[block];
            succs[block].clone()
        };
        let known = settle(starts, step, |x, y| x & y);
        assert_eq!(known.into_values().collect::<Vec<_>>(), [0, 1, 1, 0b11]);
    }
}
