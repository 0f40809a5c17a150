//! Dominators of a graph (Cooper, Harvey, Kennedy), used forwards and backwards.

use super::cfg::Blocks;

/// Immediate dominators by node; `None` for the root and for nodes that the root doesn't reach.
#[derive(Debug)]
pub(crate) struct Dominators {
    idom: Vec<Option<usize>>,
    root: usize,
    /// When a walk of the tree of dominators enters and leaves each node; (0, 0) for those outside of it.
    spans: Vec<(u32, u32)>,
}

impl Dominators {
    /// Computes them for a graph given by its successors.
    pub(crate) fn compute<S: AsRef<[usize]>>(succs: &[S], root: usize) -> Dominators {
        let order = post_order(succs, root);
        if order.is_empty() {
            return Dominators {
                idom: Vec::new(),
                root,
                spans: Vec::new(),
            };
        }
        let mut position = vec![usize::MAX; succs.len()];
        for (i, &node) in order.iter().enumerate() {
            position[node] = i;
        }
        let mut preds = vec![Blocks::new(); succs.len()];
        for &node in &order {
            for &to in succs[node].as_ref() {
                preds[to].push(node);
            }
        }
        let mut idom = vec![None; succs.len()];
        idom[root] = Some(root);
        let mut changed = true;
        while changed {
            changed = false;
            for &node in order.iter().rev().filter(|&&n| n != root) {
                let mut best = None;
                for &pred in preds[node].iter().filter(|&&p| idom[p].is_some()) {
                    best = Some(match best {
                        None => pred,
                        Some(other) => common(&idom, &position, pred, other),
                    });
                }
                if best.is_some() && idom[node] != best {
                    idom[node] = best;
                    changed = true;
                }
            }
        }
        idom[root] = None;
        let spans = spans(&idom, &order);
        Dominators { idom, root, spans }
    }

    /// The immediate dominator.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.idom.get(node).copied().flatten()
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

/// Numbers the tree so that a node's span lies in those of its dominators. `order`: dominators come last.
fn spans(idom: &[Option<usize>], order: &[usize]) -> Vec<(u32, u32)> {
    let mut sizes = vec![0u32; idom.len()];
    for &node in order {
        sizes[node] += 1;
        if let Some(parent) = idom[node] {
            sizes[parent] += sizes[node];
        }
    }
    // Dominators first: each hands out the numbers behind its own to the nodes below it.
    let mut next = vec![0u32; idom.len()];
    let mut out = vec![(0, 0); idom.len()];
    for &node in order.iter().rev() {
        let start = idom[node].map_or(0, |parent| {
            let start = next[parent];
            next[parent] += sizes[node];
            start
        });
        out[node] = (start, start + sizes[node]);
        next[node] = start + 1;
    }
    out
}

fn common(idom: &[Option<usize>], position: &[usize], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        while position[a] < position[b] {
            a = idom[a].unwrap_or(b);
        }
        while position[b] < position[a] {
            b = idom[b].unwrap_or(a);
        }
    }
    a
}

/// Nodes reachable from the root, each after its successors.
pub(crate) fn post_order<S: AsRef<[usize]>>(succs: &[S], root: usize) -> Vec<usize> {
    let mut seen = vec![false; succs.len()];
    let mut out = Vec::new();
    let Some(first) = seen.get_mut(root) else {
        return out;
    };
    *first = true;
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match succs[*node].as_ref().get(*next) {
            Some(&to) => {
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
