//! Exact minimum-cost transport in the plane: the network simplex method on a complete bipartite graph.
//!
//! No well-kept crate solves it without bringing a C++ library, so this is our own. What makes it fast: amounts at a place that
//! both sides have stay there (the distance is a metric); the first basis is a good one (`start.rs`); costs are whole numbers
//! first, of a source's neighbours only (`near.rs`), priced a source at a time with vector instructions; the basis is a tree of
//! bit sets, which a change touches only along its cycle (`tree.rs`). What that finds is nearly always the exact solution; it is
//! proven so, by the errors that rounding can make, or else brought to the end in double precision. Amounts are integers, so
//! flows are exact and only costs are rounded. They are perturbed (Charnes 1952) by less than half a unit in all, so that each
//! change of the basis moves something and the method ends.

mod near;
mod start;
#[cfg(test)]
mod tests;
mod tree;

use near::{Near, cheapest, unmarked};
use tree::Tree;

/// A reduced cost above this, in units of the extent, counts as 0. Doubled with every round, so that rounding can't keep the
/// search going for ever.
const TOLERANCE: f64 = 1e-13;
/// Arcs that are looked at one by one, at most; with more of them double precision throughout is faster.
const DOUBTFUL: usize = 64;
/// How often arcs that lead far are looked at in whole numbers.
const ROUNDS: usize = 30;

/// An amount at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mass {
    /// The bin that it is in. Amounts of both sides that are in one bin, and at the same place, need not be moved. It is fast if bins
    /// with nearly equal numbers are near each other.
    pub bin: u16,
    /// Place.
    pub x: f64,
    /// Place.
    pub y: f64,
    /// How much.
    pub amount: u64,
}

/// Finds the cheapest transport. It can be used again and keeps its memory.
#[derive(Debug, Default)]
pub struct Transport {
    supply: Vec<Mass>,
    demand: Vec<Mass>,
    near: Near,
    /// What sinks, then sources, have left while the first basis is made.
    left: Vec<u64>,
    start: start::Scratch,
    small: Tree<4>,
    large: Tree<5>,
}

/// What is known of a basis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It was not the best one, and has been changed.
    Changed,
    /// There is no better one.
    Best,
    /// Whole numbers don't tell.
    Doubtful,
}

impl Transport {
    /// The smallest sum of amount times Euclidean distance that makes `demand` of `supply`. Both are in ascending order of bins,
    /// each bin once.
    ///
    /// # Panics
    /// If the sums of the amounts differ, or one side has more than 150 bins.
    pub fn minimum_cost(&mut self, supply: &[Mass], demand: &[Mass]) -> f64 {
        let total = |side: &[Mass]| side.iter().map(|m| m.amount).sum::<u64>();
        assert_eq!(total(supply), total(demand), "as much supply as demand");
        assert!(supply.len().max(demand.len()) <= 150, "too many bins");
        self.cancel(supply, demand);
        let all = || self.supply.iter().chain(&self.demand);
        let least = |of: fn(&Mass) -> f64| all().map(of).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&Mass) -> f64| all().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (x, y) = (least(|m| m.x), least(|m| m.y));
        let extent = (most(|m| m.x) - x).max(most(|m| m.y) - y);
        if self.supply.is_empty() || extent <= 0.0 {
            return 0.0;
        }
        // By a power of two, which rounds nothing: places span 1 to 2 then.
        let unit = extent.log2().floor().exp2();
        for mass in self.supply.iter_mut().chain(&mut self.demand) {
            (mass.x, mass.y) = (mass.x / unit, mass.y / unit);
        }
        self.near
            .measure(&self.supply, &self.demand, (x / unit, y / unit));
        let (factor, scale) = self.perturb();
        // Taken out, as both borrow.
        let cost = if self.near.padded() + self.supply.len() <= Tree::<4>::ROOM {
            let mut tree = std::mem::take(&mut self.small);
            let cost = self.solve(&mut tree, factor);
            self.small = tree;
            cost
        } else {
            let mut tree = std::mem::take(&mut self.large);
            let cost = self.solve(&mut tree, factor);
            self.large = tree;
            cost
        };
        cost * scale * unit
    }

    fn solve<const W: usize>(&mut self, tree: &mut Tree<W>, factor: u64) -> f64 {
        tree.clear(&self.supply, &self.demand, self.near.padded());
        start::from_afar(&self.near, &mut self.left, &mut self.start, tree);
        let mut changes = 100 * (self.supply.len() + self.demand.len());
        let mut verdict = Verdict::Changed;
        for _ in 0..ROUNDS {
            if verdict == Verdict::Changed && changes > 0 {
                self.improve_nearby(tree, &mut changes);
                verdict = self.judge(tree);
            }
        }
        if verdict != Verdict::Best {
            self.improve_exactly(tree);
        }
        tree.total(factor)
    }

    /// Takes over what has to be moved.
    fn cancel(&mut self, supply: &[Mass], demand: &[Mass]) {
        self.supply.clear();
        self.demand.clear();
        let mut theirs = demand.iter().peekable();
        for &ours in supply {
            let mut left = ours.amount;
            while let Some(&&(mut their)) = theirs.peek().filter(|t| t.bin <= ours.bin) {
                theirs.next();
                if (their.bin, their.x, their.y) == (ours.bin, ours.x, ours.y) {
                    let stays = left.min(their.amount);
                    (left, their.amount) = (left - stays, their.amount - stays);
                }
                self.demand.push(their);
            }
            self.supply.push(Mass {
                amount: left,
                ..ours
            });
        }
        self.demand.extend(theirs);
        self.supply.retain(|m| m.amount > 0);
        self.demand.retain(|m| m.amount > 0);
    }

    /// Sets `left` to the amounts times a factor, each source's plus 1. Gives the factor, and what a unit is worth.
    fn perturb(&mut self) -> (u64, f64) {
        let (sources, sinks) = (self.supply.len() as u64, self.demand.len());
        let factor = 2 * (sources + 1);
        let total: u64 = self.supply.iter().map(|m| m.amount).sum();
        let most = u64::MAX / factor / 2;
        self.left.clear();
        let scale = if total <= most {
            let all = self.demand.iter().chain(&self.supply);
            self.left.extend(all.map(|m| m.amount));
            1.0
        } else {
            // Shares, as exact as the distances are; what rounding leaves is the first one's.
            for side in [&self.demand, &self.supply] {
                let share = |m: &Mass| u128::from(m.amount) * u128::from(most) / u128::from(total);
                let begin = self.left.len();
                self.left.extend(side.iter().map(|m| share(m) as u64));
                self.left[begin] += most - self.left[begin..].iter().sum::<u64>();
            }
            total as f64 / most as f64
        };
        self.left.iter_mut().for_each(|amount| *amount *= factor);
        self.left[sinks..]
            .iter_mut()
            .for_each(|amount| *amount += 1);
        self.left[sinks - 1] += sources;
        (factor, scale)
    }

    /// Changes the basis as long as an arc to a sink near its source makes it better; `changes` times at most.
    fn improve_nearby<const W: usize>(&self, tree: &mut Tree<W>, changes: &mut usize) {
        let (sources, sinks) = (self.supply.len(), self.demand.len());
        let (mut source, mut quiet) = (0, 0);
        while quiet < sources && *changes > 0 {
            let (begin, row) = self.near.row(source);
            let (cost, lane) = cheapest(row, tree.window(begin));
            let reduced = cost.wrapping_add(tree.source(source));
            if reduced < 0 && begin + lane < sinks {
                tree.enter(source, begin + lane, unmarked(row[lane]).0, reduced);
                (quiet, *changes) = (0, *changes - 1);
            } else {
                quiet += 1;
            }
            source += 1;
            if source == sources {
                source = 0;
            }
        }
    }

    /// Looks at all arcs once. What rounding leaves open is decided in double precision, by the cycle that an arc closes.
    fn judge<const W: usize>(&self, tree: &mut Tree<W>) -> Verdict {
        let (mut is_changed, mut doubtful) = (false, 0);
        let mut is_sure = tree.is_in_range();
        let open = near::error_of(self.supply.len() + self.demand.len());
        tree.count_arcs();
        for source in 0..self.supply.len() {
            let count = self
                .near
                .open(source, tree.source(source), open, tree.sinks());
            // All of them are in the basis already.
            if count == tree.arcs(source) {
                continue;
            }
            for sink in 0..self.demand.len() {
                let cost = self.near.cost(source, sink);
                let reduced = cost
                    .wrapping_add(tree.source(source))
                    .wrapping_sub(tree.sinks()[sink]);
                if reduced >= open || tree.has(source, sink) {
                    continue;
                }
                if reduced < 0 {
                    tree.enter(source, sink, cost, reduced);
                    tree.count_arcs();
                    is_changed = true;
                } else if is_sure {
                    doubtful += 1;
                    is_sure = doubtful <= DOUBTFUL && tree.around(source, sink) >= -TOLERANCE;
                }
            }
        }
        match (is_changed, is_sure) {
            (true, _) => Verdict::Changed,
            (false, true) => Verdict::Best,
            (false, false) => Verdict::Doubtful,
        }
    }

    /// Changes the basis until it is the best one, in double precision.
    fn improve_exactly<const W: usize>(&self, tree: &mut Tree<W>) {
        let mut tolerance = TOLERANCE;
        loop {
            tree.recompute();
            let mut is_best = true;
            for source in 0..self.supply.len() {
                while let Some((sink, reduced)) = tree.least(source)
                    && reduced < -tolerance
                {
                    tree.enter_exactly(source, sink, reduced);
                    is_best = false;
                }
            }
            if is_best {
                return;
            }
            tolerance *= 2.0;
        }
    }
}
