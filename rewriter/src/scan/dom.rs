//! Dominators of a graph (Cooper, Harvey, Kennedy), used forwards and backwards.

/// Immediate dominators by node; `None` for the root and for nodes that the root doesn't reach.
#[derive(Debug)]
pub(crate) struct Dominators {
    idom: Vec<Option<usize>>,
    root: usize,
}

impl Dominators {
    /// Computes them for a graph given by its successors.
    pub(crate) fn compute(succs: &[Vec<usize>], root: usize) -> Dominators {
        let order = post_order(succs, root);
        if order.is_empty() {
            return Dominators {
                idom: Vec::new(),
                root,
            };
        }
        let mut position = vec![usize::MAX; succs.len()];
        for (i, &node) in order.iter().enumerate() {
            position[node] = i;
        }
        let mut preds = vec![Vec::new(); succs.len()];
        for &node in &order {
            for &to in &succs[node] {
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
        Dominators { idom, root }
    }

    /// The immediate dominator.
    pub(crate) fn parent(&self, node: usize) -> Option<usize> {
        self.idom.get(node).copied().flatten()
    }

    /// Whether every path from the root to `node` goes through `over`.
    pub(crate) fn dominates(&self, over: usize, node: usize) -> bool {
        let mut at = Some(node);
        while let Some(n) = at {
            if n == over {
                return n == self.root || self.parent(n).is_some();
            }
            at = self.parent(n);
        }
        false
    }
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
pub(crate) fn post_order(succs: &[Vec<usize>], root: usize) -> Vec<usize> {
    let mut seen = vec![false; succs.len()];
    let mut out = Vec::new();
    let Some(first) = seen.get_mut(root) else {
        return out;
    };
    *first = true;
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        match succs[*node].get(*next) {
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
