//! Where constants are added: the segments that are left when a spanning tree of the costly ones is taken away.

use super::events::Weights;

/// A segment of code, from one junction to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    pub from: usize,
    pub to: usize,
    /// What is executed on it.
    pub weights: Weights,
    /// What adding a constant there costs; `None`: nothing can be added there.
    pub cost: Option<u64>,
    /// It adds something in any case: constants cost nothing more there.
    pub adds: bool,
    /// A part of that, which no potential takes over.
    pub mark: Weights,
}

/// Junctions in groups, as trees (Tarjan 1975); of each junction, how much further its potential is than that of the one above it.
struct Groups {
    above: Vec<usize>,
    ahead: Vec<Weights>,
    /// Of roots, the junctions of the group.
    size: Vec<u32>,
}

impl Groups {
    fn new(len: usize) -> Groups {
        Groups {
            above: (0..len).collect(),
            ahead: vec![Weights::default(); len],
            size: vec![1; len],
        }
    }

    /// The root of a junction's group, and how far it is ahead of that.
    fn find(&mut self, junction: usize) -> (usize, Weights) {
        let (mut at, mut ahead) = (junction, Weights::default());
        while self.above[at] != at {
            let above = self.above[at];
            // The next search takes half as many steps.
            if self.above[above] != above {
                self.ahead[at] = self.ahead[at] + self.ahead[above];
                self.above[at] = self.above[above];
            }
            ahead = ahead + self.ahead[at];
            at = self.above[at];
        }
        (at, ahead)
    }

    /// Joins the groups of two roots, one of which is so far ahead of the other.
    fn join(&mut self, from: usize, to: usize, ahead: Weights) {
        let (root, other, ahead) = match self.size[from] >= self.size[to] {
            true => (from, to, ahead),
            false => (to, from, Weights::default() - ahead),
        };
        self.size[root] += self.size[other];
        (self.above[other], self.ahead[other]) = (root, ahead);
    }
}

/// What each way adds, so that on every path between two junctions the sum of what is added is the sum of weights and the difference of
/// potentials. The potential of a junction depends on nothing but the junction. The most costly ways add nothing.
///
/// # Errors
/// The number of a way that has to add something and can't.
pub(super) fn increments(junctions: usize, ways: &[Way]) -> Result<Vec<Weights>, usize> {
    let mut order: Vec<usize> = (0..ways.len()).collect();
    order.sort_by_key(|&n| {
        (
            ways[n].adds,
            std::cmp::Reverse(ways[n].cost.unwrap_or(u64::MAX)),
        )
    });
    let mut groups = Groups::new(junctions);
    let mut out = vec![Weights::default(); ways.len()];
    for n in order {
        let way = &ways[n];
        let (from, behind) = groups.find(way.from);
        let (to, ahead) = groups.find(way.to);
        if way.adds && way.cost.is_none() {
            return Err(n);
        }
        // The potential is what was executed and isn't in the sum yet.
        let left = behind + way.weights - ahead;
        if from != to {
            groups.join(from, to, left);
        } else if !left.is_zero() && way.cost.is_none() {
            return Err(n);
        } else {
            out[n] = left;
        }
        out[n] = out[n] + way.mark;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As many instructions, and of other events something else.
    fn weights(weight: i64) -> Weights {
        let mut all = Weights::default();
        (all.0[0], all.0[1]) = (weight, 2 * weight);
        all
    }

    fn way(from: usize, to: usize, weight: i64, cost: u64) -> Way {
        Way {
            from,
            to,
            weights: weights(weight),
            cost: Some(cost),
            adds: false,
            mark: Weights::default(),
        }
    }

    /// Sums of weights and of what is added, along a path of ways.
    fn sums(ways: &[Way], added: &[Weights], path: &[usize]) -> (Weights, Weights) {
        let sum = |of: &dyn Fn(usize) -> Weights| {
            path.iter().fold(Weights::default(), |sum, &n| sum + of(n))
        };
        (sum(&|n| ways[n].weights), sum(&|n| added[n]))
    }

    #[test]
    fn a_loop_with_two_branches_adds_in_two_places() {
        // 0: outside; header 0 -> 1, branches 1 -> 2, latch 2 -> 0, which is outside too.
        let ways = [
            way(0, 1, 3, 80),
            way(1, 2, 5, 40),
            way(1, 2, 2, 40),
            way(2, 0, 4, 80),
        ];
        let added = increments(3, &ways).unwrap();
        assert_eq!(
            added.iter().filter(|n| !n.is_zero()).count(),
            2,
            "{added:?}"
        );
        assert_eq!((added[0], added[3]), (weights(0), weights(0)));
        for path in [[0, 1, 3], [0, 2, 3]] {
            let (weights, added) = sums(&ways, &added, &path);
            assert_eq!(weights, added);
        }
    }

    #[test]
    fn what_has_no_room_is_added_elsewhere() {
        let full = |from, to, weight| Way {
            cost: None,
            ..way(from, to, weight, 0)
        };
        let ways = [full(0, 1, 3), way(1, 0, 4, 90)];
        assert_eq!(increments(2, &ways), Ok(vec![weights(0), weights(7)]));
        let ways = [full(0, 1, 3), full(1, 0, 4)];
        assert_eq!(increments(2, &ways), Err(1));
        // Two branches that execute as much.
        let ways = [full(0, 1, 3), full(0, 1, 3), way(1, 0, 1, 1)];
        assert_eq!(increments(2, &ways), Ok([0, 0, 4].map(weights).to_vec()));
    }
}
