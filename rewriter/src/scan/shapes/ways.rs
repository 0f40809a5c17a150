//! Where the sides of a branch lead: asked of many branches for each of many cycles.

use super::Analysis;
use super::block_set::BlockSet;
use crate::scan::dom::{Dominators, post_order};
use std::cell::{OnceCell, RefCell};

/// What is found out once for all questions, or for all about one block.
#[derive(Default)]
pub(super) struct Ways {
    components: OnceCell<Vec<u32>>,
    last: RefCell<Option<Target>>,
}

/// The block that was asked about last.
struct Target {
    block: usize,
    /// All that lead to it.
    leading: BlockSet,
    /// Which blocks all ways to it from another go through; found when first asked for.
    passed: OnceCell<Dominators>,
}

impl Analysis<'_, '_> {
    /// Whether control comes from `side`, which follows the branch at the end of block `branch`, to another block without
    /// coming to the branch again. The same as [`Analysis::leads_to`], without a walk for each question.
    pub(super) fn leads_past(&self, branch: usize, side: usize, to: usize) -> bool {
        debug_assert!(branch != to && self.body.blocks[branch].succs.contains(&side));
        let mut last = self.ways.last.borrow_mut();
        let target = match last.take() {
            Some(known) if known.block == to => last.insert(known),
            _ => last.insert(Target {
                block: to,
                leading: self.leading_to([to], |_| false),
                passed: OnceCell::new(),
            }),
        };
        if side == to || !target.leading.contains(&side) {
            return side == to;
        }
        // What is in no cycle with the branch doesn't come to it: every way from there will do.
        let components = self.components();
        if components[side] != components[branch] {
            return true;
        }
        let passed = target.passed.get_or_init(|| {
            let blocks = self.body.blocks.iter();
            let before: Vec<&[usize]> = blocks.map(|b| &b.preds[..]).collect();
            Dominators::compute(&before, to)
        });
        !passed.dominates(branch, side)
    }

    /// By block the number of its strongly connected component: two blocks are in a cycle if they have the same one
    /// (Kosaraju's algorithm, in Aho, Hopcroft, Ullman: Data Structures and Algorithms, section 6.7).
    fn components(&self) -> &[u32] {
        self.ways.components.get_or_init(|| {
            const NONE: u32 = u32::MAX;
            let blocks = &self.body.blocks;
            let all: Vec<usize> = (0..blocks.len()).collect();
            let order = post_order(blocks.len(), &all, |b, n| blocks[b].succs.get(n).copied());
            let mut components = vec![NONE; blocks.len()];
            for (&first, number) in order.iter().rev().zip(0..) {
                let mut work = vec![first];
                while let Some(block) = work.pop() {
                    if components[block] == NONE {
                        components[block] = number;
                        work.extend_from_slice(&blocks[block].preds);
                    }
                }
            }
            components
        })
    }
}
