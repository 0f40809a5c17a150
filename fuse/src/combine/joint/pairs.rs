//! Pairs of XUs of two runs, and what goes with a difference between them.

use super::regression::{centred, predict, ridge, squares, variance};
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

/// How far the differences' part in a regression `both` of `y` on `x` is to be believed, from 0 to 1; `None` if not at all. The
/// first `fixed` columns say what labels fix; `depth`: how often the pairs were halved before.
fn trust(y: &[f64], x: &[Vec<f64>], both: &[f64], fixed: usize, depth: u32) -> Option<f64> {
    let n = y.len();
    let (b, differences) = (&both[fixed..], &x[fixed..]);
    let unexplained = squares(n, |r| y[r] - predict(x, both, r));
    let explained = squares(n, |r| predict(differences, b, r));
    // Rounding alone leaves something of nothing.
    if explained <= WORTH * (explained + unexplained) || explained <= 1e-9 * n as f64 {
        return None;
    }
    let labels = ridge(&x[..fixed], y);
    let open: Vec<f64> = (0..n)
        .map(|r| y[r] - predict(&x[..fixed], &labels, r))
        .collect();
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
    /// the label lets expect less, and for the others, and so on: small XUs need not behave as large ones.
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
            fixed: self.means.iter().map(Vec::as_slice).collect(),
            differences: &self.differences,
            y,
            rest: y.to_vec(),
            shifts: &mut found.of_pair,
        };
        let left = search.divide(&mut (0..n as u32).collect::<Vec<_>>(), 0);
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
    /// What the label fixes.
    fixed: Vec<&'a [f64]>,
    differences: &'a [Vec<f64>],
    y: &'a [f64],
    /// What the differences leave of `y`, as far as they were found in larger groups.
    rest: Vec<f64>,
    shifts: &'a mut [Option<f64>],
}

impl Search<'_> {
    /// Looks at the pairs `rows`, then at each half of them. Returns the sum of the squares that stay unexplained.
    fn divide(&mut self, rows: &mut [u32], depth: u32) -> f64 {
        let (n, k, fixed) = (rows.len(), self.differences.len(), self.fixed.len());
        let target = of(&self.rest, rows);
        let columns = self.fixed.iter().copied();
        let columns = columns.chain(self.differences.iter().map(Vec::as_slice));
        let x: Vec<Vec<f64>> = columns.map(|c| of(c, rows)).collect();
        let both = ridge(&x, &target);
        let b = &both[fixed..];
        if let Some(trust) = trust(&target, &x, &both, fixed, depth) {
            for &row in &*rows {
                let row = row as usize;
                let shift = trust * predict(self.differences, b, row);
                self.rest[row] -= shift;
                *self.shifts[row].get_or_insert(0.0) += 2.0 * shift;
            }
        }
        if n < FEW * 4 * (k + fixed) {
            return self.freeze(rows, &x[..fixed]);
        }
        let expected = |at: u32| predict(&x[..fixed], &both[..fixed], at as usize);
        let mut order: Vec<u32> = (0..n as u32).collect();
        order.sort_by(|&a, &b| expected(a).total_cmp(&expected(b)));
        let sorted: Vec<u32> = order.iter().map(|&at| rows[at as usize]).collect();
        rows.copy_from_slice(&sorted);
        let (low, high) = rows.split_at_mut(n / 2);
        self.divide(low, depth + 1) + self.divide(high, depth + 1)
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
    centred(&rows.iter().map(|&r| column[r as usize]).collect::<Vec<_>>())
}
