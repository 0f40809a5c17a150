//! The basis of the simplex method: a spanning tree.
//!
//! Nodes are sinks, their padding, then sources. Each has the set of what is below it, itself included: a change of the basis is
//! then an exclusive or along its cycle, and all that gets another potential is one set. The root is a sink, so each source has a
//! sink above it; sources' potentials follow from theirs and aren't kept.

use super::Mass;
use super::near::{LANES, NEVER, Row, WINDOW};
use std::hint::select_unpredictable;

#[derive(Debug, Clone, Copy)]
struct Node<const W: usize> {
    /// Itself and what is below it.
    below: [u64; W],
    /// Flow on the arc between it and its parent; never 0, as amounts are perturbed.
    flow: u64,
    /// That arc's cost.
    cost: i32,
    parent: u16,
}

/// A tree of up to [`Tree::ROOM`] nodes, with `W` words per set.
#[derive(Debug, Default)]
pub(super) struct Tree<const W: usize> {
    sinks: usize,
    /// The first source.
    base: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    root: usize,
    nodes: Vec<Node<W>>,
    /// Nodes in the order in which they were hung.
    hung: Vec<u16>,
    /// Potentials of the sinks. Reduced cost of an arc: cost + potential of its source - potential of its sink. 0 on the tree.
    potential: Vec<i32>,
    /// Potentials of all nodes in double precision, where somebody asked for them.
    exact: Vec<f64>,
    /// Each source's arcs in the tree.
    arcs: Vec<i32>,
    /// The nodes of a cycle: from the middle to the left those above its source, to the right those above its sink.
    cycle: Vec<u16>,
}

impl<const W: usize> Tree<W> {
    /// Most sinks, padded, and sources.
    pub(super) const ROOM: usize = 64 * W;

    /// Starts anew, without arcs. `padded`: the number of sinks with their padding.
    pub(super) fn clear(&mut self, supply: &[Mass], demand: &[Mass], padded: usize) {
        (self.sinks, self.base) = (demand.len(), padded);
        let nodes = padded + supply.len();
        assert!(nodes <= Self::ROOM, "too many bins");
        for (column, of) in [
            (&mut self.x, (|m| m.x) as fn(&Mass) -> f64),
            (&mut self.y, |m| m.y),
        ] {
            column.clear();
            column.extend(demand.iter().map(of));
            column.resize(padded, f64::INFINITY);
            column.extend(supply.iter().map(of));
        }
        self.nodes.clear();
        self.nodes.extend((0..nodes).map(|node| {
            let mut below = [0; W];
            below[node / 64] = 1 << (node % 64);
            Node {
                below,
                flow: 0,
                cost: 0,
                parent: node as u16,
            }
        }));
        self.hung.clear();
        self.potential.clear();
        self.potential.resize(self.sinks, 0);
        // Arcs to them are dear.
        self.potential.resize(padded, -NEVER);
        self.cycle.resize(2 * Self::ROOM, 0);
    }

    /// Adds an arc. If `is_source`, the source hangs from the sink, else the other way round; what hangs gets no more arcs.
    pub(super) fn hang(
        &mut self,
        source: usize,
        sink: usize,
        is_source: bool,
        flow: u64,
        cost: i32,
    ) {
        let source = self.base + source;
        let (leaf, parent) = if is_source {
            (source, sink)
        } else {
            (sink, source)
        };
        let node = &mut self.nodes[leaf];
        (node.flow, node.cost, node.parent) = (flow, cost, parent as u16);
        let below = node.below;
        flip(&mut self.nodes[parent].below, &below);
        self.hung.push(leaf as u16);
    }

    /// After the last arc, which hung a source.
    pub(super) fn stand(&mut self) {
        let last = self.hung.last().copied().map_or(0, usize::from);
        self.root = usize::from(self.nodes[last].parent);
        for &number in self.hung.iter().rev() {
            let sink = usize::from(number);
            if sink < self.base {
                let node = &self.nodes[sink];
                let source = usize::from(node.parent) - self.base;
                self.potential[sink] = self.source(source).wrapping_add(node.cost);
            }
        }
    }

    /// The potentials of the sinks, padded.
    #[inline]
    pub(super) fn sinks(&self) -> &[i32] {
        &self.potential
    }

    /// Those of a window.
    #[inline]
    pub(super) fn window(&self, begin: usize) -> &Row {
        let window = &self.potential[begin..][..WINDOW];
        window.try_into().expect("a window")
    }

    /// The potential of a source.
    #[inline]
    pub(super) fn source(&self, source: usize) -> i32 {
        let node = &self.nodes[self.base + source];
        self.potential[usize::from(node.parent)].wrapping_sub(node.cost)
    }

    /// Whether all potentials are so small that none of them, and no sum of two and a cost, has wrapped.
    pub(super) fn is_in_range(&self) -> bool {
        let is_small = |p: i32| (-NEVER..NEVER).contains(&p);
        self.potential.iter().all(|&p| is_small(p))
            && (0..self.nodes.len() - self.base).all(|s| is_small(self.source(s)))
    }

    /// Counts the arcs of each source, for [`Tree::arcs`].
    pub(super) fn count_arcs(&mut self) {
        self.arcs.clear();
        self.arcs.resize(self.nodes.len() - self.base, 1);
        for (sink, node) in self.nodes[..self.sinks].iter().enumerate() {
            if sink != self.root {
                self.arcs[usize::from(node.parent) - self.base] += 1;
            }
        }
    }

    /// How many arcs of a source were in the tree when they were counted.
    #[inline]
    pub(super) fn arcs(&self, source: usize) -> i32 {
        self.arcs[source]
    }

    /// Whether an arc is in the tree.
    pub(super) fn has(&self, source: usize, sink: usize) -> bool {
        let source = self.base + source;
        let parent = |node: usize| usize::from(self.nodes[node].parent);
        parent(source) == sink || parent(sink) == source
    }

    #[inline]
    fn distance(&self, a: usize, b: usize) -> f64 {
        let (dx, dy) = (self.x[a] - self.x[b], self.y[a] - self.y[b]);
        (dx * dx + dy * dy).sqrt()
    }

    #[inline]
    fn is_above(&self, node: usize, other: usize) -> bool {
        self.nodes[node].below[other / 64] >> (other % 64) & 1 != 0
    }

    /// The reduced cost of an arc in double precision, from the cycle that it closes.
    pub(super) fn around(&self, source: usize, sink: usize) -> f64 {
        let source = self.base + source;
        let mut sum = self.distance(source, sink);
        let mut top = source;
        while !self.is_above(top, sink) {
            top = usize::from(self.nodes[top].parent);
        }
        for end in [source, sink] {
            let (mut node, mut sign) = (end, -1.0);
            while node != top {
                let parent = usize::from(self.nodes[node].parent);
                sum += sign * self.distance(node, parent);
                (node, sign) = (parent, -sign);
            }
        }
        sum
    }

    /// Brings the arc `source -> sink` into the basis; the arc on its cycle that limits the flow leaves. `reduced`: its reduced cost.
    #[inline]
    pub(super) fn enter(&mut self, source: usize, sink: usize, cost: i32, reduced: i32) {
        let (moved, is_source_side) = self.exchange(self.base + source, sink, cost);
        let shift = if is_source_side {
            reduced.wrapping_neg()
        } else {
            reduced
        };
        // All of them, moved or not: which ones, nobody can foresee.
        for (potentials, word) in self.potential.chunks_mut(64).zip(moved) {
            let quarters = [word, word >> 16, word >> 32, word >> 48];
            for (potentials, bits) in potentials.chunks_exact_mut(LANES).zip(quarters) {
                let bits = i32::from(bits as u16);
                for (lane, potential) in potentials.iter_mut().enumerate() {
                    let by = if bits & 1 << lane == 0 { 0 } else { shift };
                    *potential = potential.wrapping_add(by);
                }
            }
        }
    }

    /// Exchanges an arc. Gives the nodes that are no longer joined to the root as they were, and whether the source is one of them.
    fn exchange(&mut self, source: usize, sink: usize, cost: i32) -> ([u64; W], bool) {
        let (nodes, cycle) = (&mut self.nodes[..], &mut self.cycle[..]);
        let middle = cycle.len() / 2;
        let (word, bit) = (sink / 64, sink % 64);
        let is_above_sink = |node: &Node<W>| node.below[word] >> bit & 1 != 0;
        // On the way up, from both ends, every second arc loses what the new one gets, beginning with the first; the others gain it.
        let (mut amount, mut leaving) = (u64::MAX, middle);
        let (mut at, mut begin) = (source, middle);
        loop {
            let node = &nodes[at];
            if is_above_sink(node) {
                break;
            }
            begin -= 1;
            cycle[begin] = at as u16;
            let is_less = node.flow < amount;
            amount = select_unpredictable(is_less, node.flow, amount);
            leaving = select_unpredictable(is_less, begin, leaving);
            at = usize::from(node.parent);
            let node = &nodes[at];
            if is_above_sink(node) {
                break;
            }
            begin -= 1;
            cycle[begin] = at as u16;
            at = usize::from(node.parent);
        }
        let top = at;
        let (mut at, mut end) = (sink, middle);
        while at != top {
            let node = &nodes[at];
            cycle[end] = at as u16;
            let is_less = node.flow < amount;
            amount = select_unpredictable(is_less, node.flow, amount);
            leaving = select_unpredictable(is_less, end, leaving);
            end += 1;
            at = usize::from(node.parent);
            if at == top {
                break;
            }
            cycle[end] = at as u16;
            end += 1;
            at = usize::from(nodes[at].parent);
        }
        let moved = nodes[usize::from(cycle[leaving])].below;
        let lost = amount.wrapping_neg();
        let (up, down) = cycle[begin..end].split_at(middle - begin);
        let first = if up.len().is_multiple_of(2) {
            amount
        } else {
            lost
        };
        for (side, first) in [(up, first), (down, lost)] {
            let mut change = first;
            for &number in side {
                let node = &mut nodes[usize::from(number)];
                node.flow = node.flow.wrapping_add(change);
                flip(&mut node.below, &moved);
                change = change.wrapping_neg();
            }
        }
        // Between the new arc and the one that leaves, all hang the other way round: each gets its arc from the one before it, and what
        // is below it is what was not below that.
        let mut next = Node {
            below: moved,
            flow: amount,
            cost,
            parent: 0,
        };
        let mut turn = |number: u16| {
            let old = std::mem::replace(&mut nodes[usize::from(number)], next);
            next = Node {
                parent: number,
                ..old
            };
        };
        let is_source_side = leaving < middle;
        if is_source_side {
            cycle[leaving..middle].iter().rev().for_each(|&n| turn(n));
        } else {
            cycle[middle..=leaving].iter().for_each(|&n| turn(n));
        }
        let (end, other) = if is_source_side {
            (source, sink)
        } else {
            (sink, source)
        };
        nodes[end].parent = other as u16;
        (moved, is_source_side)
    }

    /// Potentials in double precision, from the root.
    pub(super) fn recompute(&mut self) {
        self.exact.clear();
        self.exact.resize(self.nodes.len(), f64::NAN);
        self.exact[self.root] = 0.0;
        let mut way = vec![];
        for start in (0..self.sinks).chain(self.base..self.nodes.len()) {
            let mut node = start;
            while self.exact[node].is_nan() {
                way.push(node);
                node = usize::from(self.nodes[node].parent);
            }
            while let Some(child) = way.pop() {
                let distance = self.distance(child, node);
                let sign = if child < self.base { 1.0 } else { -1.0 };
                self.exact[child] = self.exact[node] + sign * distance;
                node = child;
            }
        }
    }

    /// The arc of a source with the least reduced cost in double precision: the sink, and that.
    pub(super) fn least(&self, source: usize) -> Option<(usize, f64)> {
        let source = self.base + source;
        let reduced = |sink: usize| self.distance(source, sink) - self.exact[sink];
        let mut least: Option<(usize, f64)> = None;
        for sink in 0..self.sinks {
            let reduced = reduced(sink);
            if least.is_none_or(|(_, least)| reduced < least) {
                least = Some((sink, reduced));
            }
        }
        least.map(|(sink, reduced)| (sink, reduced + self.exact[source]))
    }

    /// As [`Tree::enter`], with the reduced cost and the potentials in double precision; whole ones are of no use any more.
    pub(super) fn enter_exactly(&mut self, source: usize, sink: usize, reduced: f64) {
        let (moved, is_source_side) = self.exchange(self.base + source, sink, 0);
        let shift = if is_source_side { -reduced } else { reduced };
        for (number, &word) in moved.iter().enumerate() {
            let mut bits = word;
            while bits != 0 {
                self.exact[64 * number + bits.trailing_zeros() as usize] += shift;
                bits &= bits - 1;
            }
        }
    }

    /// Sum of flow times distance, the flow without its perturbation.
    pub(super) fn total(&self, factor: u64) -> f64 {
        let cost_of = |&number: &u16| {
            let node = &self.nodes[usize::from(number)];
            let flow = (node.flow + factor / 2) / factor;
            flow as f64 * self.distance(usize::from(number), usize::from(node.parent))
        };
        self.hung.iter().map(cost_of).sum()
    }
}

/// An exclusive or.
#[inline]
fn flip<const W: usize>(set: &mut [u64; W], by: &[u64; W]) {
    for (set, by) in set.iter_mut().zip(by) {
        *set ^= by;
    }
}
