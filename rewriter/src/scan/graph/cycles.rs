//! Cycles: natural loops, and those that are entered in several places.

use super::dominators::{Dominators, post_order};
use crate::scan::cfg::Body;
use std::collections::BTreeSet;

/// A cycle of blocks with one entry ([Loops] section 9.6).
#[derive(Debug)]
pub(crate) struct NaturalLoop {
    pub header: usize,
    pub blocks: BTreeSet<usize>,
}

impl NaturalLoop {
    /// Whether it is a part of another one.
    pub(crate) fn is_inside(&self, other: &NaturalLoop) -> bool {
        self.header != other.header && other.blocks.contains(&self.header)
    }

    /// Those that are no part of others among them.
    pub(crate) fn outermost<'x>(all: &[&'x NaturalLoop]) -> Vec<&'x NaturalLoop> {
        let is_part = |cycle: &NaturalLoop| all.iter().any(|other| cycle.is_inside(other));
        all.iter().copied().filter(|c| !is_part(c)).collect()
    }
}

impl Body {
    /// Every cycle with one entry, by header. `over`: which blocks are on all ways to others.
    pub(crate) fn natural_loops(&self, over: &Dominators) -> Vec<NaturalLoop> {
        let of = |header: usize| {
            let preds = self.blocks[header].preds.iter().copied();
            let mut latches = preds.filter(|&p| over.dominates(header, p)).peekable();
            latches.peek()?;
            let mut blocks: BTreeSet<usize> =
                self.backwards(latches, |b| b != header).iter().collect();
            blocks.insert(header);
            Some(NaturalLoop { header, blocks })
        };
        (0..self.blocks.len()).filter_map(of).collect()
    }

    /// Whether all cycles are entered in one place.
    pub(crate) fn is_reducible(&self, over: &Dominators) -> bool {
        let succs: Vec<&[usize]> = self.blocks.iter().map(|b| &b.succs[..]).collect();
        let back = retreating(&succs, &self.roots);
        back.iter().all(|&(from, to)| over.dominates(to, from))
    }
}

/// By node the number of its strongly connected component: two nodes are in a cycle if they have the same one
/// (Kosaraju's algorithm, in Aho, Hopcroft, Ullman: Data Structures and Algorithms, section 6.7).
pub(crate) fn components(body: &Body) -> Vec<u32> {
    const NONE: u32 = u32::MAX;
    let blocks = &body.blocks;
    let all: Vec<usize> = (0..blocks.len()).collect();
    let mut order = post_order(blocks.len(), &all, |b, n| blocks[b].succs.get(n).copied());
    order.reverse();
    // What a walk backwards comes to from one of these is a component; that one is the last.
    let back = post_order(blocks.len(), &order, |b, n| blocks[b].preds.get(n).copied());
    let mut components = vec![NONE; blocks.len()];
    let mut roots = order.iter();
    let (mut root, mut number) = (roots.next(), 0);
    for block in back {
        components[block] = number;
        if root == Some(&block) {
            root = roots.find(|&&other| components[other] == NONE);
            number += 1;
        }
    }
    components
}

/// Edges that a walk from the roots finds to lead to a node that it is in: each cycle has one.
pub(crate) fn retreating<S: AsRef<[usize]>>(succs: &[S], roots: &[usize]) -> Vec<(usize, usize)> {
    let edge = |node: usize, n: usize| succs[node].as_ref().get(n).copied();
    let order = post_order(succs.len(), roots, edge);
    let mut place = vec![0; succs.len()];
    for (n, &node) in order.iter().enumerate() {
        place[node] = n;
    }
    let edges = order
        .iter()
        .flat_map(|&from| succs[from].as_ref().iter().map(move |&to| (from, to)));
    edges
        .filter(|&(from, to)| place[to] >= place[from])
        .collect()
}
