//! Dominators of a graph (Cooper, Harvey, Kennedy), used forwards and backwards.

/// In place of a node: none.
const NONE: u32 = u32::MAX;

/// The tree of dominators.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// Immediate dominators by node; [`NONE`] for the root and for nodes that the root doesn't reach.
    idom: Vec<u32>,
    root: usize,
    /// When a walk of the tree of dominators enters and leaves each node; (0, 0) for those outside of it.
    spans: Vec<(u32, u32)>,
}

impl Dominators {
    /// Computes them for a graph given by its successors.
    pub(crate) fn compute<S: AsRef<[usize]>>(succs: &[S], root: usize) -> Dominators {
        let order = post_order(succs.len(), &[root], |b, n| {
            succs[b].as_ref().get(n).copied()
        });
        let mut tree = Dominators {
            idom: vec![NONE; succs.len()],
            root,
            spans: Vec::new(),
        };
        let Some(last) = order.len().checked_sub(1) else {
            return tree;
        };
        let mut position = vec![NONE; succs.len()];
        for (i, &node) in (0u32..).zip(&order) {
            position[node] = i;
        }
        // From here on nodes are named by their places in the order: dominators come last.
        let before = Predecessors::of(succs, &order, &position);
        let mut idom = vec![NONE; order.len()];
        idom[last] = last as u32;
        let mut changed = true;
        while changed {
            changed = false;
            for node in (0..last).rev() {
                let mut best = NONE;
                for &pred in before.of_node(node) {
                    if idom[pred as usize] != NONE {
                        best = match best {
                            NONE => pred,
                            other => common(&idom, pred, other),
                        };
                    }
                }
                changed |= idom[node] != best;
                idom[node] = best;
            }
        }
        idom[last] = NONE;
        let spans = spans(&idom);
        tree.spans = vec![(0, 0); succs.len()];
        for (i, &node) in order.iter().enumerate() {
            tree.spans[node] = spans[i];
            if idom[i] != NONE {
                tree.idom[node] = order[idom[i] as usize] as u32;
            }
        }
        tree
    }

    /// The immediate dominator.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        let parent = self.idom.get(node).filter(|&&n| n != NONE);
        parent.map(|&n| n as usize)
    }

    /// Whether every path from the root to `node` goes through `over`.
    pub(crate) fn dominates(&self, over: usize, node: usize) -> bool {
        let in_tree = |n| n == self.root || self.parent(n).is_some();
        let (Some(&(over_in, over_out)), Some(&(node_in, _))) =
            (self.spans.get(over), self.spans.get(node))
        else {
            return false;
        };
        in_tree(over) && in_tree(node) && over_in <= node_in && node_in < over_out
    }
}

/// The predecessors of nodes that are named by their places in an order.
struct Predecessors {
    /// Of each node, the number of the first in the list; and how many there are.
    first: Vec<u32>,
    list: Vec<u32>,
}

impl Predecessors {
    fn of<S: AsRef<[usize]>>(succs: &[S], order: &[usize], position: &[u32]) -> Predecessors {
        let mut first = vec![0u32; order.len() + 1];
        for &to in order.iter().flat_map(|&node| succs[node].as_ref()) {
            first[position[to] as usize] += 1;
        }
        let mut sum = 0;
        for count in &mut first {
            sum += *count;
            *count = sum;
        }
        // Each begins where the one before ends when all are filled in, from the end on.
        let mut list = vec![0u32; sum as usize];
        for (i, &node) in (0u32..).zip(order) {
            for &to in succs[node].as_ref() {
                let place = &mut first[position[to] as usize];
                *place -= 1;
                list[*place as usize] = i;
            }
        }
        Predecessors { first, list }
    }

    fn of_node(&self, node: usize) -> &[u32] {
        &self.list[self.first[node] as usize..self.first[node + 1] as usize]
    }
}

/// Numbers the tree so that a node's span lies in those of its dominators, which come last.
fn spans(idom: &[u32]) -> Vec<(u32, u32)> {
    let mut sizes = vec![1u32; idom.len()];
    for node in 0..idom.len() {
        if idom[node] != NONE {
            sizes[idom[node] as usize] += sizes[node];
        }
    }
    // Dominators first: each hands out the numbers behind its own to the nodes below it.
    let mut next = vec![0u32; idom.len()];
    let mut out = vec![(0, 0); idom.len()];
    for node in (0..idom.len()).rev() {
        let start = match idom[node] {
            NONE => 0,
            parent => {
                let start = next[parent as usize];
                next[parent as usize] += sizes[node];
                start
            }
        };
        out[node] = (start, start + sizes[node]);
        next[node] = start + 1;
    }
    out
}

fn common(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while a < b {
            a = idom[a as usize];
        }
        while b < a {
            b = idom[b as usize];
        }
    }
    a
}

/// Nodes, of so many, reachable from the roots, each after those that follow it (but for one in a cycle with it). `edge`: where the
/// n-th edge of a node leads to, if it has so many.
pub(crate) fn post_order(
    nodes: usize,
    roots: &[usize],
    edge: impl Fn(usize, usize) -> Option<usize>,
) -> Vec<usize> {
    let mut seen = vec![false; nodes];
    let mut out = Vec::with_capacity(nodes);
    let mut stack = Vec::new();
    for &root in roots {
        if seen.get(root) != Some(&false) {
            continue;
        }
        seen[root] = true;
        stack.push((root, 0));
        while let Some((node, next)) = stack.last_mut() {
            match edge(*node, *next) {
                Some(to) => {
                    *next += 1;
                    if !seen[to] {
                        seen[to] = true;
                        stack.push((to, 0));
                    }
                }
                None => {
                    out.push(*node);
                    stack.pop();
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diamond_with_loop_and_unreachable_node() {
        // 0 -> 1 -> {2, 3} -> 4 -> {1, 5}; 6 -> 4 unreachable
        let succs = vec![
            vec![1],
            vec![2, 3],
            vec![4],
            vec![4],
            vec![1, 5],
            vec![],
            vec![4],
        ];
        let dom = Dominators::compute(&succs, 0);
        assert_eq!(
            (0..7).map(|n| dom.parent(n)).collect::<Vec<_>>(),
            [None, Some(0), Some(1), Some(1), Some(1), Some(4), None]
        );
        assert!(dom.dominates(1, 5) && dom.dominates(0, 0) && !dom.dominates(2, 4));
        assert!(!dom.dominates(6, 6));
    }
}
