//! The basis of the simplex method: a spanning tree.
//!
//! Nodes are sources, then sinks. They are also listed in preorder, with the sizes of their subtrees: so each subtree is a
//! contiguous piece of the list, and what has to be done to all its nodes is a loop without jumps.

use super::Mass;
use super::start::Scratch;

#[derive(Debug, Default)]
pub(super) struct Tree {
    sources: usize,
    x: Vec<f64>,
    y: Vec<f64>,
    root: usize,
    parent: Vec<u16>,
    /// Flow on the arc between a node and its parent; never 0, as amounts are perturbed.
    flow: Vec<u64>,
    /// Nodes in preorder, and where each is.
    order: Vec<u16>,
    at: Vec<u16>,
    /// Nodes in the subtree.
    size: Vec<u16>,
    /// Reduced cost of an arc: distance + potential of its source - potential of its sink. 0 on the tree.
    potential: Vec<f64>,
    /// The same in single precision, padded.
    rounded: Vec<f32>,
    /// A piece of the list that is put together anew.
    piece: Vec<u16>,
}

impl Tree {
    /// Starts with the arcs in `scratch`. `padded`: the number of sinks with their padding.
    pub(super) fn build(
        &mut self,
        supply: &[Mass],
        demand: &[Mass],
        padded: usize,
        scratch: &mut Scratch,
    ) {
        let nodes = supply.len() + demand.len();
        self.sources = supply.len();
        self.x.clear();
        self.y.clear();
        self.x.extend(supply.iter().chain(demand).map(|m| m.x));
        self.y.extend(supply.iter().chain(demand).map(|m| m.y));
        for numbers in [&mut self.parent, &mut self.at, &mut self.size] {
            numbers.clear();
            numbers.resize(nodes, 1);
        }
        self.flow.clear();
        self.flow.resize(nodes, 0);
        self.potential.clear();
        self.potential.resize(nodes, 0.0);
        self.rounded.clear();
        self.rounded.resize(supply.len() + padded, 0.0);

        let Scratch {
            arcs,
            neighbours,
            begin,
            stack,
            ..
        } = scratch;
        // Counting sort: `begin` has the degrees, then where each node's neighbours begin, then where they end.
        begin.clear();
        begin.resize(nodes + 1, 0);
        for &(source, sink, _) in &*arcs {
            begin[usize::from(source)] += 1;
            begin[usize::from(sink)] += 1;
        }
        // A node in the middle keeps paths short.
        self.root = (0..nodes).max_by_key(|&n| begin[n]).unwrap_or(0);
        let mut sum = 0;
        for entry in begin.iter_mut() {
            (*entry, sum) = (sum, sum + *entry);
        }
        neighbours.clear();
        neighbours.resize(2 * arcs.len(), (0, 0));
        for &(source, sink, flow) in &*arcs {
            for (from, to) in [(source, sink), (sink, source)] {
                let next = &mut begin[usize::from(from)];
                neighbours[usize::from(*next)] = (to, flow);
                *next += 1;
            }
        }
        self.order.clear();
        self.parent[self.root] = self.root as u16;
        stack.clear();
        stack.push(self.root as u16);
        while let Some(number) = stack.pop() {
            let node = usize::from(number);
            self.at[node] = self.order.len() as u16;
            self.order.push(number);
            let first = if node == 0 { 0 } else { begin[node - 1] };
            for &(other, flow) in &neighbours[usize::from(first)..usize::from(begin[node])] {
                if other != self.parent[node] {
                    self.parent[usize::from(other)] = number;
                    self.flow[usize::from(other)] = flow;
                    stack.push(other);
                }
            }
        }
        for &number in self.order[1..].iter().rev() {
            let node = usize::from(number);
            self.size[usize::from(self.parent[node])] += self.size[node];
        }
        self.recompute();
    }

    /// The potentials of the sinks in single precision, padded.
    #[inline]
    pub(super) fn sinks(&self) -> &[f32] {
        &self.rounded[self.sources..]
    }

    /// The potential of a source in single precision.
    #[inline]
    pub(super) fn source(&self, source: usize) -> f32 {
        self.rounded[source]
    }

    pub(super) fn largest_potential(&self) -> f64 {
        self.potential.iter().fold(0.0, |most, p| most.max(p.abs()))
    }

    #[inline]
    fn distance(&self, a: usize, b: usize) -> f64 {
        let (dx, dy) = (self.x[a] - self.x[b], self.y[a] - self.y[b]);
        (dx * dx + dy * dy).sqrt()
    }

    /// Reduced cost of an arc.
    #[inline]
    pub(super) fn reduced(&self, source: usize, sink: usize) -> f64 {
        self.distance(source, sink) + self.potential[source] - self.potential[sink]
    }

    /// The potential that a node has next to `parent` on the tree.
    #[inline]
    fn potential_below(&self, node: usize, parent: usize) -> f64 {
        let distance = self.distance(node, parent);
        let sign = if node < self.sources { -1.0 } else { 1.0 };
        self.potential[parent] + sign * distance
    }

    /// Potentials anew from the root, without the rounding of many changes.
    pub(super) fn recompute(&mut self) {
        (self.potential[self.root], self.rounded[self.root]) = (0.0, 0.0);
        for at in 1..self.order.len() {
            let node = usize::from(self.order[at]);
            let potential = self.potential_below(node, usize::from(self.parent[node]));
            self.potential[node] = potential;
            self.rounded[node] = potential as f32;
        }
    }

    /// Whether `node` is, or is above, what is at `at` in the list.
    #[inline]
    fn is_above(&self, node: usize, at: u16) -> bool {
        at.wrapping_sub(self.at[node]) < self.size[node]
    }

    /// Brings the arc `source -> sink` into the basis; the arc on its cycle that limits the flow leaves.
    pub(super) fn enter(&mut self, source: usize, sink: usize) {
        let (mut amount, mut leaving, mut is_source_side) = (u64::MAX, source, true);
        let sink_at = self.at[sink];
        // On the way up every second arc loses what the new one gets, the others gain it.
        let (mut node, mut loses) = (source, true);
        while !self.is_above(node, sink_at) {
            if loses && self.flow[node] < amount {
                (amount, leaving) = (self.flow[node], node);
            }
            loses = !loses;
            node = usize::from(self.parent[node]);
        }
        let top = node;
        (node, loses) = (sink, true);
        while node != top {
            if loses && self.flow[node] < amount {
                (amount, leaving, is_source_side) = (self.flow[node], node, false);
            }
            loses = !loses;
            node = usize::from(self.parent[node]);
        }
        let (inner, outer) = if is_source_side {
            (source, sink)
        } else {
            (sink, source)
        };
        self.rehang(inner, outer, leaving, top, amount);
    }

    /// Cuts the arc above `leaving` and hangs its subtree, turned so that `inner` is on top, below `outer`. `top`: the node above
    /// both, where sizes stay.
    fn rehang(&mut self, inner: usize, outer: usize, leaving: usize, top: usize, amount: u64) {
        let shift = self.potential_below(inner, outer) - self.potential[inner];
        let (from, len) = (self.at[leaving], self.size[leaving]);
        let (after, end) = (
            self.at[outer] + 1,
            self.at[outer] + self.size[outer], // before it changes
        );
        // Arcs on the cycle lose and gain in turn, beginning at both ends of the new one.
        let (mut node, mut change) = (outer, amount.wrapping_neg());
        while node != top {
            self.flow[node] = self.flow[node].wrapping_add(change);
            self.size[node] += len;
            change = change.wrapping_neg();
            node = usize::from(self.parent[node]);
        }

        // The subtree's nodes in their new order: what was below a node on the way up, without what is listed already.
        let piece = |begin: u16, end: u16| usize::from(begin)..usize::from(end);
        self.piece.clear();
        let mut listed = (self.at[inner], self.at[inner]);
        let (mut node, mut parent, mut flow, mut size) = (inner, outer, amount, len);
        change = amount.wrapping_neg();
        loop {
            let all = (self.at[node], self.at[node] + self.size[node]);
            self.piece
                .extend_from_slice(&self.order[piece(all.0, listed.0)]);
            self.piece
                .extend_from_slice(&self.order[piece(listed.1, all.1)]);
            listed = all;
            let next = usize::from(self.parent[node]);
            self.parent[node] = parent as u16;
            let old = self.flow[node].wrapping_add(change);
            self.flow[node] = std::mem::replace(&mut flow, old);
            change = change.wrapping_neg();
            size = len - std::mem::replace(&mut self.size[node], size);
            (parent, node) = (node, next);
            if parent == leaving {
                break;
            }
        }
        while node != top {
            self.flow[node] = self.flow[node].wrapping_add(change);
            self.size[node] -= len;
            change = change.wrapping_neg();
            node = usize::from(self.parent[node]);
        }

        // Its new place: right behind `outer`, or behind all that is below that, whichever is nearer.
        let behind = from + len;
        let place = if after > from {
            self.shift_left(behind, after, len)
        } else if end <= from {
            self.shift_right(end, from, len)
        } else if from - after <= end - behind {
            self.shift_right(after, from, len)
        } else {
            self.shift_left(behind, end, len)
        };
        for (at, &number) in (place..).zip(&self.piece) {
            let node = usize::from(number);
            self.order[usize::from(at)] = number;
            self.at[node] = at;
            let potential = self.potential[node] + shift;
            self.potential[node] = potential;
            self.rounded[node] = potential as f32;
        }
    }

    /// Moves what is listed between two positions; gives the position of the room behind it.
    fn shift_left(&mut self, begin: u16, end: u16, by: u16) -> u16 {
        for at in begin..end {
            let number = self.order[usize::from(at)];
            self.order[usize::from(at - by)] = number;
            self.at[usize::from(number)] = at - by;
        }
        end - by
    }

    /// Likewise; gives the position of the room in front of it.
    fn shift_right(&mut self, begin: u16, end: u16, by: u16) -> u16 {
        for at in (begin..end).rev() {
            let number = self.order[usize::from(at)];
            self.order[usize::from(at + by)] = number;
            self.at[usize::from(number)] = at + by;
        }
        begin
    }

    /// Sum of flow times distance, the flow without its perturbation.
    pub(super) fn total(&self, factor: u64) -> f64 {
        let cost_of = |&number: &u16| {
            let node = usize::from(number);
            let flow = (self.flow[node] + factor / 2) / factor;
            flow as f64 * self.distance(node, usize::from(self.parent[node]))
        };
        self.order[1..].iter().map(cost_of).sum()
    }
}
