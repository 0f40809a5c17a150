//! Where the sides of a branch lead: asked of many branches for each of many cycles.

use super::Analysis;
use crate::scan::graph::{BlockSet, Dominators, components};
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
        let components = self.ways.components.get_or_init(|| components(self.body));
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
}
