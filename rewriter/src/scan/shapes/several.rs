//! Loops that several copies of one test lead into: gcc copies the barrier before a loop, with the test behind it, where the
//! paths of threads with and without iterations of another loop don't meet again.

use super::loops::Shape;
use super::{Analysis, NaturalLoop};
use crate::scan::cfg::Exit;
use crate::scan::graph::walk;
use std::collections::BTreeSet;

impl Analysis<'_, '_> {
    /// The blocks with the tests of the loop that has these cycles, if every thread executes one of them, and only one, each
    /// time that the bounds are computed in the block `division`.
    pub(super) fn tests_before(
        &self,
        shape: &Shape,
        division: usize,
        cycles: &[&NaturalLoop],
    ) -> Option<BTreeSet<usize>> {
        let body: BTreeSet<usize> = cycles.iter().flat_map(|c| &c.blocks).copied().collect();
        let is_test = |b: &usize| shape.others.contains(b) && !body.contains(b);
        // Backwards from the loop every way comes from a test, with nothing between that ends or begins another construct.
        let mut tests = BTreeSet::new();
        let mut others = false;
        let headers = cycles.iter().map(|c| c.header);
        self.body.backwards(headers, |block| {
            if is_test(&block) {
                tests.insert(block);
                return false;
            }
            let blocks = &self.body.blocks[block];
            let begins = self.body.roots.contains(&block) || blocks.preds.is_empty();
            others |= begins || block == shape.first || self.closing_in(block).is_some();
            !others
        });
        if others {
            return None;
        }
        // A thread comes to one of them behind the first loop's test, and to none behind that one.
        let none = BTreeSet::new();
        let again = self.after(&tests, &none, division);
        let past = self.after(&BTreeSet::from([shape.first]), &tests, division);
        let leaves = |&b: &usize| {
            let exit = self.body.blocks[b].exit;
            b == division || !matches!(exit, Exit::None | Exit::Dead)
        };
        let once = again.is_disjoint(&tests) && !past.iter().any(leaves);
        once.then_some(tests)
    }

    /// Blocks that control comes to behind others (`from`), on ways that end at some (`until`) and where bounds are computed
    /// again.
    fn after(
        &self,
        from: &BTreeSet<usize>,
        until: &BTreeSet<usize>,
        division: usize,
    ) -> BTreeSet<usize> {
        let succs = |b: usize| {
            let block = &self.body.blocks[b];
            block.succs.iter().chain(&block.pads).copied()
        };
        let mut seen = BTreeSet::new();
        let from = from.iter().flat_map(|&b| succs(b));
        walk(self.body.blocks.len(), from, succs, |block| {
            !until.contains(&block) && seen.insert(block) && block != division
        });
        seen
    }
}
