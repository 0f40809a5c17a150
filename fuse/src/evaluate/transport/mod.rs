//! Exact minimum-cost transport in the plane: the network simplex method on a complete bipartite graph.
//!
//! No well-kept crate solves it without bringing a C++ library, so this is our own. What makes it fast: amounts at a place that
//! both sides have stay there (the distance is a metric); the first basis is a good one (`start.rs`); arcs are priced a source at
//! a time, in single precision and with vector instructions, and only what that leaves open is decided in double precision; the
//! basis needs few, predictable steps per change (`tree.rs`). Amounts are integers, so flows are exact and only costs are
//! rounded. They are perturbed (Charnes 1952) by less than half a unit in all, so that each change of the basis moves something and
//! the method ends.

mod start;
#[cfg(test)]
mod tests;
mod tree;

use tree::Tree;

/// Costs that are computed together; rows of the cost matrix are padded to a multiple.
const LANES: usize = 16;
/// What single precision makes of a reduced cost of 0, at most, in units of the largest potential or distance.
const SINGLE: f64 = 2e-6;
/// Beyond all places; its square is a number yet.
const FAR: f32 = 1e18;
/// A reduced cost above this, in units of the extent, counts as 0. Doubled with every round, so that rounding can't keep the
/// search going for ever.
const TOLERANCE: f64 = 1e-13;

/// An amount at a place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mass {
    /// The bin that it is in. Amounts of both sides that are in one bin, and at the same place, need not be moved.
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
    /// Distances in single precision, a padded row per source.
    distances: Vec<f32>,
    /// Elements in a row.
    stride: usize,
    sink_x: Vec<f32>,
    sink_y: Vec<f32>,
    sink_share: Vec<f32>,
    /// What sources, then sinks, have left while the first basis is made.
    left: Vec<u64>,
    start: start::Scratch,
    tree: Tree,
}

impl Transport {
    /// The smallest sum of amount times Euclidean distance that makes `demand` of `supply`. Both are in ascending order of bins,
    /// each bin once.
    ///
    /// # Panics
    /// If the sums of the amounts differ, or one side has more than 30,000 bins.
    pub fn minimum_cost(&mut self, supply: &[Mass], demand: &[Mass]) -> f64 {
        let total = |side: &[Mass]| side.iter().map(|m| m.amount).sum::<u64>();
        assert_eq!(total(supply), total(demand), "as much supply as demand");
        assert!(supply.len().max(demand.len()) <= 30_000, "too many bins");
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
        self.measure(x / unit, y / unit);
        let (factor, scale) = self.perturb();
        start::from_afar(
            &self.distances,
            &mut self.left,
            self.stride,
            &mut self.start,
        );
        self.tree
            .build(&self.supply, &self.demand, self.stride, &mut self.start);
        self.improve_roughly();
        self.improve_exactly();
        self.tree.total(factor) * scale * unit
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

    /// The distances, and what it costs on average to or from each place; `x` and `y` are the smallest coordinates.
    fn measure(&mut self, x: f64, y: f64) {
        self.stride = self.demand.len().next_multiple_of(LANES);
        for column in [&mut self.sink_x, &mut self.sink_y, &mut self.sink_share] {
            column.clear();
        }
        let total: f64 = self.supply.iter().map(|m| m.amount as f64).sum();
        let share = |m: &Mass| (m.amount as f64 / total) as f32;
        self.sink_x
            .extend(self.demand.iter().map(|m| (m.x - x) as f32));
        self.sink_y
            .extend(self.demand.iter().map(|m| (m.y - y) as f32));
        self.sink_share.extend(self.demand.iter().map(share));
        // What is so far away never enters.
        self.sink_x.resize(self.stride, FAR);
        self.sink_y.resize(self.stride, 0.0);
        self.sink_share.resize(self.stride, 0.0);
        self.start.from.clear();
        self.start.to.clear();
        self.start.to.resize(self.stride, 0.0);
        self.distances.clear();
        self.distances.reserve(self.supply.len() * self.stride);
        for source in &self.supply {
            let (x, y) = ((source.x - x) as f32, (source.y - y) as f32);
            let own = share(source);
            let chunks = self
                .sink_x
                .chunks_exact(LANES)
                .zip(self.sink_y.chunks_exact(LANES));
            let chunks = chunks
                .zip(self.sink_share.chunks_exact(LANES))
                .zip(self.start.to.chunks_exact_mut(LANES));
            let mut sums = [0.0; LANES];
            for (((to_x, to_y), share), to) in chunks {
                let mut row = [0.0; LANES];
                for lane in 0..LANES {
                    let (dx, dy) = (to_x[lane] - x, to_y[lane] - y);
                    let distance = (dx * dx + dy * dy).sqrt();
                    row[lane] = distance;
                    sums[lane] += share[lane] * distance;
                    to[lane] += own * distance;
                }
                self.distances.extend_from_slice(&row);
            }
            self.start.from.push(sums.iter().sum());
        }
    }

    /// Sets `left` to the amounts times a factor, each source's plus 1. Gives the factor, and what a unit is worth.
    fn perturb(&mut self) -> (u64, f64) {
        let sources = self.supply.len() as u64;
        let factor = 2 * (sources + 1);
        let total: u64 = self.supply.iter().map(|m| m.amount).sum();
        let most = u64::MAX / factor / 2;
        self.left.clear();
        let scale = if total <= most {
            let all = self.supply.iter().chain(&self.demand);
            self.left.extend(all.map(|m| m.amount));
            1.0
        } else {
            // Shares, as exact as the distances are; what rounding leaves is the first one's.
            for side in [&self.supply, &self.demand] {
                let share = |m: &Mass| u128::from(m.amount) * u128::from(most) / u128::from(total);
                let begin = self.left.len();
                self.left.extend(side.iter().map(|m| share(m) as u64));
                self.left[begin] += most - self.left[begin..].iter().sum::<u64>();
            }
            total as f64 / most as f64
        };
        self.left.iter_mut().for_each(|amount| *amount *= factor);
        self.left[..self.supply.len()]
            .iter_mut()
            .for_each(|amount| *amount += 1);
        *self.left.last_mut().expect("sinks") += sources;
        (factor, scale)
    }

    /// Changes the basis as long as single precision shows that it gets better.
    fn improve_roughly(&mut self) {
        let sources = self.supply.len();
        let (mut source, mut quiet) = (0, 0);
        let mut left = 100 * (sources + self.demand.len());
        while quiet < sources && left > 0 {
            if let Some(sink) = self.best(source) {
                self.tree.enter(source, sources + sink);
                (quiet, left) = (0, left - 1);
            } else {
                quiet += 1;
            }
            source += 1;
            if source == sources {
                source = 0;
            }
        }
    }

    /// The sink whose arc from `source` has the least reduced cost, if that is below 0 for sure.
    #[inline]
    fn best(&self, source: usize) -> Option<usize> {
        let row = &self.distances[source * self.stride..][..self.stride];
        let potentials = self.tree.sinks();
        let own = self.tree.source(source);
        let chunks = || row.chunks_exact(LANES).zip(potentials.chunks_exact(LANES));
        let mut lanes = [f32::INFINITY; LANES];
        for (row, potentials) in chunks() {
            for lane in 0..LANES {
                lanes[lane] = least(lanes[lane], row[lane] - potentials[lane]);
            }
        }
        let least = least_of(lanes);
        if least + own >= -(SINGLE as f32) * (1.0 + own.abs()) {
            return None;
        }
        for (number, (row, potentials)) in chunks().enumerate() {
            let is_it = |lane: usize| row[lane] - potentials[lane] == least;
            if (0..LANES).fold(false, |any, lane| any | is_it(lane)) {
                return (0..LANES)
                    .find(|&lane| is_it(lane))
                    .map(|lane| number * LANES + lane);
            }
        }
        None
    }

    /// Looks at all arcs that single precision leaves open, until none makes it better.
    fn improve_exactly(&mut self) {
        let sources = self.supply.len();
        let mut tolerance = TOLERANCE;
        loop {
            self.tree.recompute();
            let open = (SINGLE * (1.0 + self.tree.largest_potential())) as f32;
            let mut is_best = true;
            for source in 0..sources {
                while let Some(sink) = self.better(source, open, tolerance) {
                    self.tree.enter(source, sources + sink);
                    is_best = false;
                }
            }
            if is_best {
                return;
            }
            tolerance *= 2.0;
        }
    }

    /// A sink whose arc from `source` has a reduced cost below -`tolerance`.
    fn better(&self, source: usize, open: f32, tolerance: f64) -> Option<usize> {
        let row = &self.distances[source * self.stride..][..self.stride];
        let potentials = self.tree.sinks();
        let bound = open - self.tree.source(source);
        let chunks = row.chunks_exact(LANES).zip(potentials.chunks_exact(LANES));
        for (number, (row, potentials)) in chunks.enumerate() {
            let is_open = |lane: usize| row[lane] - potentials[lane] < bound;
            if !(0..LANES).fold(false, |any, lane| any | is_open(lane)) {
                continue;
            }
            let is_better = |sink: &usize| {
                is_open(sink % LANES)
                    && self.tree.reduced(source, self.supply.len() + sink) < -tolerance
            };
            let mut sinks = number * LANES..(number + 1) * LANES;
            if let Some(sink) = sinks.find(is_better) {
                return Some(sink);
            }
        }
        None
    }
}

/// The smaller of two numbers that are numbers.
#[inline]
fn least(a: f32, b: f32) -> f32 {
    if b < a { b } else { a }
}

/// The smallest of them.
#[inline]
fn least_of(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = least(lanes[lane], lanes[lane + half]);
        }
        half /= 2;
    }
    lanes[0]
}
