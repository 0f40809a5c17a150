//! A function as a graph of blocks: what control reaches, what is on all ways, and cycles.

mod block_set;
mod cycles;
mod dominators;
mod settle;
mod worklist;

pub(crate) use block_set::BlockSet;
pub(crate) use cycles::{NaturalLoop, components, retreating};
pub(crate) use dominators::{Dominators, post_order};
pub(crate) use settle::settle;
pub(crate) use worklist::Worklist;

use super::cfg::{Blocks, Body, Exit};
use std::collections::BTreeSet;

/// Follows edges from these nodes on, and comes to each node once. It goes on from those that `passes` is true of, and returns them.
pub(crate) fn walk<I: IntoIterator<Item = usize>>(
    nodes: usize,
    from: impl IntoIterator<Item = usize>,
    edges: impl Fn(usize) -> I,
    mut passes: impl FnMut(usize) -> bool,
) -> BlockSet {
    let mut seen = BlockSet::none(nodes);
    let mut passed = BlockSet::none(nodes);
    let mut work: Vec<usize> = from.into_iter().collect();
    while let Some(node) = work.pop() {
        if seen.insert(node) && passes(node) {
            passed.insert(node);
            work.extend(edges(node));
        }
    }
    passed
}

impl Body {
    /// The blocks that follow a block, landing pads included.
    pub(crate) fn following(&self, block: usize) -> impl Iterator<Item = usize> + Clone {
        let block = &self.blocks[block];
        block.succs.iter().chain(&block.pads).copied()
    }

    /// The blocks that control goes through from these on; it ends in those that `passes` isn't true of.
    pub(crate) fn forwards(
        &self,
        from: impl IntoIterator<Item = usize>,
        passes: impl FnMut(usize) -> bool,
    ) -> BlockSet {
        let succs = |b: usize| self.blocks[b].succs.iter().copied();
        walk(self.blocks.len(), from, succs, passes)
    }

    /// The blocks that control goes through on its way to these; it begins behind those that `passes` isn't true of.
    pub(crate) fn backwards(
        &self,
        to: impl IntoIterator<Item = usize>,
        passes: impl FnMut(usize) -> bool,
    ) -> BlockSet {
        let preds = |b: usize| self.blocks[b].preds.iter().copied();
        walk(self.blocks.len(), to, preds, passes)
    }

    /// Whether control comes from a block to another (or is there already) without going through one that `avoid` is true of.
    pub(crate) fn reaches(&self, from: usize, to: usize, avoid: impl Fn(usize) -> bool) -> bool {
        let mut found = false;
        self.forwards([from], |block| {
            found |= block == to;
            !found && !avoid(block)
        });
        found
    }

    /// The blocks on ways from a block back to it through blocks that are `inside`; none if it is in no such cycle.
    pub(crate) fn around(&self, block: usize, inside: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let behind = self.forwards(self.blocks[block].succs.iter().copied(), &inside);
        if !behind.contains(&block) {
            return BTreeSet::new();
        }
        let before = self.backwards([block], inside);
        behind.iter().filter(|b| before.contains(b)).collect()
    }

    /// Dominators, from the function's beginning.
    pub(crate) fn dominators(&self) -> Dominators {
        let succs: Vec<&[usize]> = self.blocks.iter().map(|b| &b.succs[..]).collect();
        Dominators::compute(&succs, self.roots.first().copied().unwrap_or(0))
    }

    /// Post-dominators. The last node, numbered `blocks.len()`, is every way out of the function.
    pub(crate) fn post_dominators(&self) -> Dominators {
        let out = self.blocks.len();
        let mut reverse = vec![Blocks::new(); out + 1];
        for (i, block) in self.blocks.iter().enumerate() {
            for &to in &block.succs {
                reverse[to].push(i);
            }
            if matches!(
                block.exit,
                Exit::Return | Exit::Tail(_) | Exit::TailIndirect
            ) {
                reverse[out].push(i);
            }
        }
        Dominators::compute(&reverse, out)
    }
}
