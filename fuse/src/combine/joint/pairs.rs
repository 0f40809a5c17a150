//! Pairs of XUs of two runs, and what goes with a difference between them.

use super::regression::{Normal, centre, predict, predictions, ridge, squares, variance};
use rayon::prelude::*;

/// With fewer pairs than this per coefficient a regression says nothing.
pub(super) const FEW: usize = 6;
/// What explains a smaller share of what is open is left alone: it is not worth moving a count that the label may fix.
const WORTH: f64 = 0.1;
/// A group keeps what larger ones learnt if it leaves at least this much less open, in units of a pair's share.
const KEPT: f64 = 3.0;

/// Pairs' counts of the common events.
pub(super) struct Pairs {
    pub(super) means: Vec<Vec<f64>>,
    /// The later run's less the earlier one's.
    pub(super) differences: Vec<Vec<f64>>,
}

/// How an event differs within pairs.
pub(super) struct Shifts {
    /// Per pair how much of the later run's count comes of what its run did and the earlier one did not, `2 b d`; `None` where it
    /// can't be told from chance.
    pub(super) of_pair: Vec<Option<f64>>,
    /// The share of the variance that stays unexplained.
    pub(super) unexplained: f64,
}

/// How far the differences' part in a regression of `y` on `x`, with coefficients `both`, is to be believed, from 0 to 1; `None` if not at all. The
/// first columns say what labels fix, and `expected` what they let expect; `depth`: how often the pairs were halved before.
fn trust(
    y: &[f64],
    x: &[Vec<f64>],
    (sums, both): (&Normal, &[f64]),
    (fixed, expected): (usize, &[f64]),
    depth: u32,
) -> Option<f64> {
    let n = y.len();
    let differences = &x[fixed..];
    let moved = predictions(differences, &both[fixed..], n);
    let unexplained = squares(n, |r| y[r] - expected[r] - moved[r]);
    let explained = squares(n, |r| moved[r]);
    // Rounding alone leaves something of nothing.
    if explained <= WORTH * (explained + unexplained) || explained <= 1e-9 * n as f64 {
        return None;
    }
    let labels = sums.solve(fixed);
    let fixed_part = predictions(&x[..fixed], &labels, n);
    let open: Vec<f64> = y.iter().zip(fixed_part).map(|(y, f)| y - f).collect();
    let evidence = evidence(&open, differences);
    let varies = |d: &&Vec<f64>| d.iter().any(|v| v.abs() > 1e-9);
    // What chi square exceeds once in a thousand times, with as many degrees; and as there are twice as many groups at each depth.
    let varying = differences.iter().filter(varies).count() as f64;
    let limit = 8.5 + 2.5 * varying + 1.4 * f64::from(depth);
    // Few large differences can't be told from chance in this way; those that explain most of what is open need less.
    let limit = if explained > unexplained {
        limit / 2.0
    } else {
        limit
    };
    let by_chance = differences.len() as f64 * unexplained / n as f64;
    (evidence > limit).then_some(1.0 - by_chance / explained)
}

/// How much speaks against it that labels alone fix what is `open` of an event. If they did it would be chance which run of a
/// pair is the later one: the differences could as well have the other sign, each for itself. Then this is distributed about
/// as chi square, whatever the distribution of either: the square of their covariance in units of its own variance.
fn evidence(open: &[f64], differences: &[Vec<f64>]) -> f64 {
    let product = |d: &Vec<f64>| -> Option<Vec<f64>> {
        let of_pair: Vec<f64> = open.iter().zip(d).map(|(o, d)| o * d).collect();
        let size = (squares(open.len(), |r| of_pair[r]) / open.len() as f64).sqrt();
        (size > 0.0).then(|| of_pair.iter().map(|p| p / size).collect())
    };
    let products: Vec<Vec<f64>> = differences.iter().filter_map(product).collect();
    // The regression of 1 on the products.
    let b = ridge(&products, &vec![1.0; open.len()]);
    let parts = products.iter().zip(&b);
    parts.map(|(p, b)| b * p.iter().sum::<f64>()).sum()
}

impl Pairs {
    pub(super) fn new(prev: &[Vec<f64>], cur: &[Vec<f64>], pairs: &[(u32, u32)]) -> Pairs {
        let of = |f: fn(f64, f64) -> f64| -> Vec<Vec<f64>> {
            let columns = prev.iter().zip(cur);
            columns
                .map(|(x_p, x_c)| {
                    let of_pair = |&(p, c): &(u32, u32)| f(x_p[p as usize], x_c[c as usize]);
                    pairs.iter().map(of_pair).collect()
                })
                .collect()
        };
        Pairs {
            means: of(|p, c| (p + c) / 2.0),
            differences: of(|p, c| c - p),
        }
    }

    fn len(&self) -> usize {
        self.differences.first().map_or(0, Vec::len)
    }

    /// What goes with the differences. What holds for all pairs is looked for first, then what holds for those half of them where
    /// the label lets expect less, and for the others, and so on. Small XUs need not behave as large ones.
    pub(super) fn shifts(&self, y: &[f64]) -> Shifts {
        let (k, n) = (self.differences.len(), y.len());
        let mut found = Shifts {
            of_pair: vec![None; n],
            unexplained: 1.0,
        };
        if k == 0 || n < FEW * 2 * k {
            return found;
        }
        let mut search = Search {
            fixed: self.means.len(),
            differences: &self.differences,
            y,
            rest: y.to_vec(),
            shifts: &mut found.of_pair,
        };
        let columns = self.means.iter().chain(&self.differences);
        let left = search.divide((0..n as u32).collect(), columns.cloned().collect(), 0);
        let all = variance(y) * n as f64;
        found.unexplained = if all > 0.0 { left / all } else { 0.0 };
        found
    }

    /// How well the method tells the common events, each from the others: the squared error as a share of what blind pairing
    /// has. A half where that can't be said.
    pub(super) fn noise(&self, prev: &[Vec<f64>]) -> f64 {
        let n = self.len();
        if n < FEW {
            return 0.5;
        }
        let error_of = |at: usize| -> f64 {
            let difference = &self.differences[at];
            let others = |columns: &[Vec<f64>]| -> Vec<Vec<f64>> {
                let rest = columns.iter().enumerate().filter(|(i, _)| *i != at);
                rest.map(|(_, c)| c.clone()).collect()
            };
            let rest = Pairs {
                means: others(&self.means),
                differences: others(&self.differences),
            };
            // The count in cur.
            let means = self.means[at].iter();
            let y: Vec<f64> = means.zip(difference).map(|(m, d)| m + d / 2.0).collect();
            let shifts = rest.shifts(&y).of_pair;
            let error = squares(n, |r| difference[r] - shifts[r].unwrap_or(0.0)) / n as f64;
            (error / (1.0 + variance(&prev[at]))).min(1.0)
        };
        let k = self.differences.len();
        let errors: Vec<f64> = (0..k).into_par_iter().map(error_of).collect();
        errors.iter().sum::<f64>() / k as f64
    }
}

/// A search for what goes with differences.
struct Search<'a> {
    /// Columns that say what the label fixes.
    fixed: usize,
    differences: &'a [Vec<f64>],
    y: &'a [f64],
    /// What the differences leave of `y`, as far as they were found in larger groups.
    rest: Vec<f64>,
    shifts: &'a mut [Option<f64>],
}

impl Search<'_> {
    /// Looks at the pairs `rows`, then at each half of them. `x`: their columns, those of what labels fix first, and then the
    /// differences. Returns the sum of the squares that stay unexplained.
    fn divide(&mut self, rows: Vec<u32>, mut x: Vec<Vec<f64>>, depth: u32) -> f64 {
        let (n, k, fixed) = (rows.len(), self.differences.len(), self.fixed);
        let target = of(&self.rest, &rows);
        x.iter_mut().for_each(|column| centre(column));
        let sums = Normal::of(&x, &target);
        let both = sums.solve(x.len());
        let expected = predictions(&x[..fixed], &both[..fixed], n);
        if let Some(trust) = trust(&target, &x, (&sums, &both), (fixed, &expected), depth) {
            for &row in &rows {
                let row = row as usize;
                let shift = trust * predict(self.differences, &both[fixed..], row);
                self.rest[row] -= shift;
                *self.shifts[row].get_or_insert(0.0) += 2.0 * shift;
            }
        }
        if n < FEW * 4 * (k + fixed) {
            return self.freeze(&rows, &x[..fixed]);
        }
        drop(target);
        let is_low = lower_half(expected);
        let [low, high] = parted(&rows, &is_low);
        let (mut x_low, mut x_high) = (vec![], vec![]);
        for column in x.drain(..) {
            let [low, high] = parted(&column, &is_low);
            x_low.push(low);
            x_high.push(high);
        }
        drop((rows, is_low));
        self.divide(low, x_low, depth + 1) + self.divide(high, x_high, depth + 1)
    }

    /// Leaves all as it is where differences that were learnt from larger groups explain nothing in this one.
    fn freeze(&mut self, rows: &[u32], fixed: &[Vec<f64>]) -> f64 {
        let left = |y: &[f64]| {
            let y = of(y, rows);
            let a = ridge(fixed, &y);
            squares(rows.len(), |r| y[r] - predict(fixed, &a, r))
        };
        let (before, after) = (left(self.y), left(&self.rest));
        if after < before * (1.0 - KEPT / rows.len() as f64) {
            return after;
        }
        for &row in rows {
            self.shifts[row as usize] = None;
        }
        before
    }
}

/// Some rows of a column, at mean 0.
fn of(column: &[f64], rows: &[u32]) -> Vec<f64> {
    let mut some: Vec<f64> = rows.iter().map(|&r| column[r as usize]).collect();
    centre(&mut some);
    some
}

/// Which values are among the lower half; of equal ones the earlier.
fn lower_half(values: Vec<f64>) -> Vec<bool> {
    let half = values.len() / 2;
    let mut is_low = vec![false; values.len()];
    let mut ranked: Vec<(f64, u32)> = values.into_iter().zip(0..).collect();
    ranked.select_nth_unstable_by(half, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    for &(_, at) in &ranked[..half] {
        is_low[at as usize] = true;
    }
    is_low
}

/// The elements that are low, and the others, both in their order: what lies together in memory stays together.
fn parted<T: Copy + Default>(all: &[T], is_low: &[bool]) -> [Vec<T>; 2] {
    let half = all.len() / 2;
    // Which one it is can't be foreseen: each is written to both, and stays in one.
    let mut low = vec![T::default(); half + 1];
    let mut high = vec![T::default(); all.len() - half + 1];
    let (mut lows, mut highs) = (0, 0);
    for (&one, &is_low) in all.iter().zip(is_low) {
        (low[lows], high[highs]) = (one, one);
        lows += usize::from(is_low);
        highs += usize::from(!is_low);
    }
    low.truncate(lows);
    high.truncate(highs);
    [low, high]
}
