//! Exact minimum-cost transport: the network simplex method on a complete bipartite graph.
//!
//! No well-kept crate solves it without bringing a C++ library, so this is our own. The basis is a spanning tree with an
//! artificial root; it is kept strongly feasible (Cunningham 1976: every tree arc without flow leads towards the root),
//! which rules out cycling. Amounts are integers, so flows are exact and only costs are rounded.

/// Entering arcs are looked for among blocks of this many times the square root of the number of arcs.
const BLOCK_FACTOR: f64 = 1.0;
/// A reduced cost above this, in units of the largest cost, counts as 0.
const TOLERANCE: f64 = 1e-14;
const NONE: usize = usize::MAX;

/// The smallest cost of moving `supply` to `demand`, where moving one unit from source `i` to sink `j` costs
/// `cost[i * demand.len() + j] >= 0`. Amounts are positive.
///
/// # Panics
/// If the amounts' sums differ, or `cost` has another length.
pub fn minimum_cost(supply: &[u64], demand: &[u64], cost: &[f64]) -> f64 {
    assert_eq!(cost.len(), supply.len() * demand.len(), "one cost per arc");
    assert_eq!(
        supply.iter().sum::<u64>(),
        demand.iter().sum::<u64>(),
        "as much supply as demand"
    );
    if supply.is_empty() {
        return 0.0;
    }
    let mut tree = Tree::new(supply, demand, cost);
    while let Some((source, sink)) = tree.entering() {
        tree.pivot(source, sink);
    }
    tree.total()
}

/// The basis. Nodes: sources, then sinks, then the root.
struct Tree<'a> {
    cost: &'a [f64],
    sources: usize,
    sinks: usize,
    root: usize,
    parent: Vec<usize>,
    /// Flow on the arc between a node and its parent.
    flow: Vec<u64>,
    /// Whether that arc leads to the parent.
    is_up: Vec<bool>,
    depth: Vec<u32>,
    /// Reduced cost of an arc: cost + potential of its tail - potential of its head. 0 on the tree.
    potential: Vec<f64>,
    /// Children as lists.
    first_child: Vec<usize>,
    next: Vec<usize>,
    previous: Vec<usize>,
    /// Where the search for an entering arc goes on.
    search: usize,
    block: usize,
    tolerance: f64,
}

impl<'a> Tree<'a> {
    fn new(supply: &[u64], demand: &[u64], cost: &'a [f64]) -> Tree<'a> {
        let (sources, sinks) = (supply.len(), demand.len());
        let root = sources + sinks;
        let largest = cost.iter().copied().fold(0.0, f64::max);
        let artificial = (largest + 1.0) * root as f64;
        let mut tree = Tree {
            cost,
            sources,
            sinks,
            root,
            parent: vec![root; root + 1],
            flow: supply.iter().chain(demand).copied().chain([0]).collect(),
            is_up: (0..=root).map(|node| node < sources).collect(),
            depth: vec![1; root + 1],
            potential: (0..root)
                .map(|node| {
                    if node < sources {
                        -artificial
                    } else {
                        artificial
                    }
                })
                .chain([0.0])
                .collect(),
            first_child: vec![NONE; root + 1],
            next: vec![NONE; root + 1],
            previous: vec![NONE; root + 1],
            search: 0,
            block: ((cost.len() as f64).sqrt() * BLOCK_FACTOR).ceil().max(16.0) as usize,
            tolerance: largest * TOLERANCE * root as f64,
        };
        tree.parent[root] = NONE;
        tree.depth[root] = 0;
        (0..root).for_each(|node| tree.link(node, root));
        tree
    }

    fn link(&mut self, node: usize, parent: usize) {
        self.parent[node] = parent;
        let first = self.first_child[parent];
        (self.next[node], self.previous[node]) = (first, NONE);
        if first != NONE {
            self.previous[first] = node;
        }
        self.first_child[parent] = node;
    }

    fn unlink(&mut self, node: usize) {
        let (next, previous) = (self.next[node], self.previous[node]);
        match previous {
            NONE => self.first_child[self.parent[node]] = next,
            _ => self.next[previous] = next,
        }
        if next != NONE {
            self.previous[next] = previous;
        }
    }

    /// The arc with the most negative reduced cost in the first block that has one.
    fn entering(&mut self) -> Option<(usize, usize)> {
        let arcs = self.cost.len();
        let (mut best, mut at) = (-self.tolerance, None);
        let mut left_in_block = self.block;
        for _ in 0..arcs {
            let (source, sink) = (self.search / self.sinks, self.search % self.sinks);
            let reduced = self.cost[self.search] + self.potential[source]
                - self.potential[self.sources + sink];
            if reduced < best {
                (best, at) = (reduced, Some((source, self.sources + sink)));
            }
            self.search += 1;
            if self.search == arcs {
                self.search = 0;
            }
            left_in_block -= 1;
            if left_in_block == 0 {
                if at.is_some() {
                    return at;
                }
                left_in_block = self.block;
            }
        }
        at
    }

    fn join(&self, mut a: usize, mut b: usize) -> usize {
        while a != b {
            if self.depth[a] >= self.depth[b] {
                a = self.parent[a];
            } else {
                b = self.parent[b];
            }
        }
        a
    }

    /// Brings the arc `source -> sink` into the basis.
    fn pivot(&mut self, source: usize, sink: usize) {
        let join = self.join(source, sink);
        // The cycle runs join .. source -> sink .. join. The last arc of those that limit the flow leaves.
        let (mut amount, mut leaving, mut on_source_side) = (u64::MAX, NONE, true);
        let mut node = source;
        while node != join {
            if self.is_up[node] && self.flow[node] < amount {
                (amount, leaving) = (self.flow[node], node);
            }
            node = self.parent[node];
        }
        let mut node = sink;
        while node != join {
            if !self.is_up[node] && self.flow[node] <= amount {
                (amount, leaving, on_source_side) = (self.flow[node], node, false);
            }
            node = self.parent[node];
        }
        if amount > 0 {
            let mut node = source;
            while node != join {
                self.flow[node] = if self.is_up[node] {
                    self.flow[node] - amount
                } else {
                    self.flow[node] + amount
                };
                node = self.parent[node];
            }
            let mut node = sink;
            while node != join {
                self.flow[node] = if self.is_up[node] {
                    self.flow[node] + amount
                } else {
                    self.flow[node] - amount
                };
                node = self.parent[node];
            }
        }
        let (inner, outer) = if on_source_side {
            (source, sink)
        } else {
            (sink, source)
        };
        self.rehang(inner, outer, leaving, amount, on_source_side);
    }

    /// Cuts the arc above `leaving` and hangs its subtree, turned so that `inner` is on top, below `outer`.
    fn rehang(&mut self, inner: usize, outer: usize, leaving: usize, amount: u64, is_up: bool) {
        let (mut node, mut new_parent) = (inner, outer);
        let (mut new_flow, mut new_up) = (amount, is_up);
        loop {
            let (old_parent, old_flow, old_up) =
                (self.parent[node], self.flow[node], self.is_up[node]);
            self.unlink(node);
            self.link(node, new_parent);
            (self.flow[node], self.is_up[node]) = (new_flow, new_up);
            if node == leaving {
                break;
            }
            // The arc between node and its old parent is the old parent's now, seen from the other end.
            (new_flow, new_up) = (old_flow, !old_up);
            (new_parent, node) = (node, old_parent);
        }
        let (source, sink) = if is_up {
            (inner, outer)
        } else {
            (outer, inner)
        };
        let cost = self.cost[source * self.sinks + sink - self.sources];
        let reduced = cost + self.potential[source] - self.potential[sink];
        let shift = if is_up { -reduced } else { reduced };
        self.depth[inner] = self.depth[outer] + 1;
        self.potential[inner] += shift;
        let mut node = inner;
        loop {
            if self.first_child[node] != NONE {
                node = self.first_child[node];
            } else {
                while node != inner && self.next[node] == NONE {
                    node = self.parent[node];
                }
                if node == inner {
                    break;
                }
                node = self.next[node];
            }
            self.depth[node] = self.depth[self.parent[node]] + 1;
            self.potential[node] += shift;
        }
    }

    fn total(&self) -> f64 {
        let cost_of = |node: usize| {
            let parent = self.parent[node];
            if parent == self.root || self.flow[node] == 0 {
                return 0.0;
            }
            let (source, sink) = if self.is_up[node] {
                (node, parent)
            } else {
                (parent, node)
            };
            self.flow[node] as f64 * self.cost[source * self.sinks + sink - self.sources]
        };
        (0..self.root).map(cost_of).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Successive shortest paths by Bellman and Ford on the residual graph: slow, and nothing like the simplex method.
    fn by_shortest_paths(supply: &[u64], demand: &[u64], cost: &[f64]) -> f64 {
        let (n, m) = (supply.len(), demand.len());
        let (mut supply, mut demand) = (supply.to_vec(), demand.to_vec());
        let mut flow = vec![0u64; n * m];
        loop {
            let mut distance = vec![f64::INFINITY; n + m];
            let mut from = vec![NONE; n + m];
            (0..n)
                .filter(|&i| supply[i] > 0)
                .for_each(|i| distance[i] = 0.0);
            if distance.iter().all(|d| d.is_infinite()) {
                return flow.iter().zip(cost).map(|(&f, c)| f as f64 * c).sum();
            }
            for _ in 0..n + m {
                for i in 0..n {
                    for j in 0..m {
                        let c = cost[i * m + j];
                        if distance[i] + c < distance[n + j] - 1e-12 {
                            (distance[n + j], from[n + j]) = (distance[i] + c, i);
                        }
                        if flow[i * m + j] > 0 && distance[n + j] - c < distance[i] - 1e-12 {
                            (distance[i], from[i]) = (distance[n + j] - c, n + j);
                        }
                    }
                }
            }
            let sink = (0..m)
                .filter(|&j| demand[j] > 0)
                .min_by(|&a, &b| distance[n + a].total_cmp(&distance[n + b]))
                .unwrap();
            let mut path = vec![n + sink];
            while from[path[path.len() - 1]] != NONE {
                path.push(from[path[path.len() - 1]]);
            }
            path.reverse();
            let mut amount = supply[path[0]].min(demand[sink]);
            for step in path.windows(2).filter(|s| s[0] >= n) {
                amount = amount.min(flow[step[1] * m + step[0] - n]);
            }
            for step in path.windows(2) {
                if step[0] < n {
                    flow[step[0] * m + step[1] - n] += amount;
                } else {
                    flow[step[1] * m + step[0] - n] -= amount;
                }
            }
            supply[path[0]] -= amount;
            demand[sink] -= amount;
        }
    }

    #[test]
    fn small_ones_by_hand() {
        assert_eq!(minimum_cost(&[], &[], &[]), 0.0);
        assert_eq!(minimum_cost(&[3], &[3], &[2.5]), 7.5);
        assert_eq!(minimum_cost(&[1, 1], &[1, 1], &[1.0, 2.0, 2.0, 4.0]), 4.0);
        assert_eq!(minimum_cost(&[4, 2], &[1, 5], &[0.0, 1.0, 9.0, 0.0]), 3.0);
    }

    proptest! {
        #[test]
        fn another_method_finds_the_same_cost(
            points in proptest::collection::vec((0u8..12, 0u8..12, 1u64..20), 2..20), split in 1usize..19,
        ) {
            let split = split.min(points.len() - 1);
            let (a, b) = points.split_at(split);
            let total = |side: &[(u8, u8, u64)]| side.iter().map(|p| p.2).sum::<u64>();
            // Shares of the sides' sums, as whole numbers.
            let (all_a, all_b) = (total(a), total(b));
            let supply: Vec<u64> = a.iter().map(|p| p.2 * all_b).collect();
            let demand: Vec<u64> = b.iter().map(|p| p.2 * all_a).collect();
            let cost: Vec<f64> = a
                .iter()
                .flat_map(|p| b.iter().map(move |q| {
                    f64::hypot(f64::from(p.0) - f64::from(q.0), f64::from(p.1) - f64::from(q.1))
                }))
                .collect();
            let (found, expected) =
                (minimum_cost(&supply, &demand, &cost), by_shortest_paths(&supply, &demand, &cost));
            prop_assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{found} {expected}");
        }
    }
}
