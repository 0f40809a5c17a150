//! What label and behaviour together say about the events that the next run brings, for the XUs of one type.
//!
//! Each XU `p` of prev has a *partner* `c` in cur: the XU with the same label; without one, an XU that shows about the same
//! counts of the common events `x`. The new events `y` only `c` has. Part of what differs between `x(p)` and `x(c)` goes with a
//! difference of `y`: where a cache was colder in one run, all that comes of it differs too. How much is learnt from all pairs
//! of one label, by a ridge regression of `y(c)` on the mean of `x(p)` and `x(c)`, which holds what the label fixes, and on
//! their difference `d = x(c) - x(p)`, which holds what the run did: `y = a * mean + b * d`. In prev's place `d` has the other
//! sign, so that p's *target*, what it would have shown, is
//!
//! ```text
//! y(c) - 2 b d
//! ```
//!
//! Nothing is estimated in the result: the partners' counts are given to the XUs in the order of their targets, each once.
//! Where labels fix an event, `b` is not told from 0 and each XU gets its partner's count. Where labels mean nothing, `2b` is
//! the regression of `y` on `x` within a run, and behaviour decides. As `y(c)` brings its own share of what nothing
//! explains, targets are spread as counts are: nothing is drawn to the mean.

use super::alike::halved;

/// Relative size of the ridge.
const RIDGE: f64 = 1e-3;
/// With fewer pairs than this per coefficient a regression says nothing.
const FEW: usize = 6;
/// What explains this many times more than chance would is believed.
const BELIEVED: f64 = 6.0;

/// The counts of a type.
pub(super) struct Counts {
    /// Per common event: prev's counts and cur's.
    pub(super) common: Vec<(Vec<f64>, Vec<f64>)>,
    /// Per new event: cur's counts.
    pub(super) new: Vec<Vec<f64>>,
}

/// Who gets whose counts: positions in a type.
#[derive(Debug, Default)]
pub(super) struct Match {
    /// XUs of prev.
    pub(super) prev: Vec<u32>,
    /// Per new event, for each of `prev` the XU of cur.
    pub(super) cur: Vec<Vec<u32>>,
    /// From 0 to 1: the share of the variance that is expected to be right.
    pub(super) confidence: Vec<f32>,
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn variance(values: &[f64]) -> f64 {
    let m = mean(values);
    values.iter().map(|v| (v - m) * (v - m)).sum::<f64>() / values.len().max(1) as f64
}

/// Brings columns to mean 0 and variance 1 of `reference`; `None` if that is constant.
fn standardized(reference: &[f64], columns: [&[f64]; 2]) -> Option<[Vec<f64>; 2]> {
    let (m, v) = (mean(reference), variance(reference));
    if v <= 0.0 {
        return None;
    }
    let s = v.sqrt().recip();
    Some(columns.map(|c| c.iter().map(|x| (x - m) * s).collect()))
}

/// The coefficients of a ridge regression of `y` on `x` (columns), all of mean 0.
fn ridge(x: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let k = x.len();
    let n = y.len() as f64;
    let mut a = vec![vec![0.0; k + 1]; k];
    for i in 0..k {
        for j in i..k {
            let dot: f64 = x[i].iter().zip(&x[j]).map(|(p, q)| p * q).sum();
            a[i][j] = dot;
            a[j][i] = dot;
        }
        // Relative to the column: differences are small where labels fix the counts.
        a[i][i] += a[i][i] * RIDGE + n * 1e-6 + 1e-12;
        a[i][k] = x[i].iter().zip(y).map(|(p, q)| p * q).sum();
    }
    // Gauss; the matrix is positive definite.
    for i in 0..k {
        let (above, below) = a.split_at_mut(i + 1);
        let pivot = &above[i];
        for row in below {
            let f = row[i] / pivot[i];
            row[i..=k]
                .iter_mut()
                .zip(&pivot[i..=k])
                .for_each(|(x, p)| *x -= f * p);
        }
    }
    let mut b = vec![0.0; k];
    for i in (0..k).rev() {
        let known: f64 = (i + 1..k).map(|c| a[i][c] * b[c]).sum();
        b[i] = (a[i][k] - known) / a[i][i];
    }
    b
}

fn predict(x: &[Vec<f64>], b: &[f64], row: usize) -> f64 {
    x.iter().zip(b).map(|(column, b)| column[row] * b).sum()
}

/// Pairs' counts of the common events.
struct Pairs {
    means: Vec<Vec<f64>>,
    differences: Vec<Vec<f64>>,
}

impl Pairs {
    fn new(prev: &[Vec<f64>], cur: &[Vec<f64>], pairs: &[(u32, u32)]) -> Pairs {
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

    /// What goes with the differences: per common event the coefficient `2b`, `None` if it is not told from chance; and the
    /// share of the variance that stays unexplained.
    fn slope(&self, y: &[f64]) -> (Option<Vec<f64>>, f64) {
        let k = self.differences.len();
        let n = y.len();
        if k == 0 || n < FEW * 2 * k {
            return (None, 1.0);
        }
        let centred = |column: &[f64]| -> Vec<f64> {
            let m = mean(column);
            column.iter().map(|v| v - m).collect()
        };
        let y = centred(y);
        let columns = self.means.iter().chain(&self.differences);
        let x: Vec<Vec<f64>> = columns.map(|c| centred(c)).collect();
        let both = ridge(&x, &y);
        let (b, differences) = (&both[k..], &x[k..]);
        let unexplained = (0..n)
            .map(|r| (y[r] - predict(&x, &both, r)).powi(2))
            .sum::<f64>();
        let explained = (0..n)
            .map(|r| predict(differences, b, r).powi(2))
            .sum::<f64>();
        let by_chance = k as f64 * unexplained / n as f64;
        let all = y.iter().map(|v| v * v).sum::<f64>();
        let share = if all > 0.0 { unexplained / all } else { 0.0 };
        // Rounding alone leaves something of nothing.
        if explained <= BELIEVED * by_chance || explained <= 1e-9 * n as f64 {
            return (None, share);
        }
        let trust = 1.0 - by_chance / explained;
        (Some(b.iter().map(|b| 2.0 * b * trust).collect()), share)
    }

    /// How well the method tells the common events, each from the others: the squared error as a share of what blind pairing
    /// has. A half where that can't be said.
    fn noise(&self, prev: &[Vec<f64>]) -> f64 {
        let n = self.differences.first().map_or(0, Vec::len);
        if n < FEW {
            return 0.5;
        }
        let mut sum = 0.0;
        for (at, difference) in self.differences.iter().enumerate() {
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
            let slope = rest.slope(&y).0.unwrap_or_default();
            let error = (0..n)
                .map(|r| (difference[r] - predict(&rest.differences, &slope, r)).powi(2))
                .sum::<f64>()
                / n as f64;
            sum += (error / (1.0 + variance(&prev[at]))).min(1.0);
        }
        sum / self.differences.len() as f64
    }
}

/// Matches the XUs of a type. `partner`: for each XU of prev that of cur with the same label, of `cur_len`.
pub(super) fn matched(counts: &Counts, partner: &[Option<u32>], cur_len: usize) -> Match {
    let (mut prev, mut cur) = (vec![], vec![]);
    for (p, c) in &counts.common {
        if let Some([p, c]) = standardized(c, [p, c]) {
            prev.push(p);
            cur.push(c);
        }
    }
    let new: Vec<Option<Vec<f64>>> = counts
        .new
        .iter()
        .map(|y| standardized(y, [y, &[]]).map(|[y, _]| y))
        .collect();
    let labelled: Vec<(u32, u32)> = (0u32..)
        .zip(partner)
        .filter_map(|(p, c)| Some((p, (*c)?)))
        .collect();
    // How the new events go with the common ones within the run; nothing where it has too few XUs.
    let within: Vec<Vec<f64>> = new
        .iter()
        .map(|y| match y {
            Some(y) if cur_len >= FEW * cur.len().max(1) => ridge(&cur, y),
            _ => vec![0.0; cur.len()],
        })
        .collect();
    let alike = alike(&prev, &cur, &within, partner, cur_len);
    let (of_label, of_alike) = (
        Pairs::new(&prev, &cur, &labelled),
        Pairs::new(&prev, &cur, &alike),
    );
    let pairs: Vec<(u32, u32)> = labelled.iter().chain(&alike).copied().collect();
    let pool: Vec<u32> = pairs.iter().map(|p| p.1).collect();
    let mut missed = vec![0.0; pairs.len()];
    let (mut varying, mut unexplained) = (0, 0.0);
    let mut rows = vec![];
    for (y, within) in new.iter().zip(&within) {
        let Some(y) = y else {
            rows.push(pool.clone());
            continue;
        };
        varying += 1;
        let of_pairs: Vec<f64> = labelled.iter().map(|&(_, c)| y[c as usize]).collect();
        let (slope, share) = of_label.slope(&of_pairs);
        unexplained += share;
        if slope.is_none() && alike.is_empty() {
            rows.push(pool.clone());
            continue;
        }
        let slope = slope.unwrap_or_else(|| vec![0.0; cur.len()]);
        let shift = |at: usize| match at.checked_sub(labelled.len()) {
            None => predict(&of_label.differences, &slope, at),
            Some(at) => predict(&of_alike.differences, within, at),
        };
        let targets: Vec<f64> = (0..pairs.len())
            .map(|at| y[pool[at] as usize] - shift(at))
            .collect();
        let found = in_order(&targets, y, &pool);
        for ((missed, target), &c) in missed.iter_mut().zip(&targets).zip(&found) {
            *missed += (target - y[c as usize]).powi(2);
        }
        rows.push(found);
    }
    // Two upper limits: what the label leaves open of the common events, and what those leave open of the new ones.
    let open = unexplained / f64::from(varying.max(1));
    let noise = if varying > 0 {
        of_label.noise(&prev).min(open)
    } else {
        0.0
    };
    let blind = 2.0 * f64::from(varying.max(1));
    let confidence = |missed: &f64| (1.0 - noise - missed / blind).clamp(0.0, 1.0) as f32;
    Match {
        prev: pairs.iter().map(|p| p.0).collect(),
        cur: rows,
        confidence: missed.iter().map(confidence).collect(),
    }
}

/// Gives the counts of `pool` to the targets, the smallest to the smallest and so on; equal ones stay in their order.
fn in_order(targets: &[f64], y: &[f64], pool: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..targets.len() as u32).collect();
    order.sort_by(|&a, &b| targets[a as usize].total_cmp(&targets[b as usize]));
    let mut sorted = pool.to_vec();
    sorted.sort_by(|&a, &b| y[a as usize].total_cmp(&y[b as usize]));
    let mut found = vec![0; pool.len()];
    for (at, c) in order.into_iter().zip(sorted) {
        found[at as usize] = c;
    }
    found
}

/// Pairs of XUs of prev without a label of their own in cur, and those of cur that nobody has: alike in what the common
/// events tell of the new ones.
fn alike(
    prev: &[Vec<f64>],
    cur: &[Vec<f64>],
    within: &[Vec<f64>],
    partner: &[Option<u32>],
    cur_len: usize,
) -> Vec<(u32, u32)> {
    let mut is_free = vec![true; cur_len];
    for &c in partner.iter().flatten() {
        is_free[c as usize] = false;
    }
    let mut theirs: Vec<u32> = (0..cur_len as u32)
        .filter(|&c| is_free[c as usize])
        .collect();
    let mut ours: Vec<u32> = (0u32..)
        .zip(partner)
        .filter(|(_, c)| c.is_none())
        .map(|(p, _)| p)
        .collect();
    if ours.is_empty() || theirs.is_empty() {
        return vec![];
    }
    let tells = within.iter().any(|b| b.iter().any(|&b| b != 0.0));
    let axes = |x: &[Vec<f64>], n: usize| -> Vec<Vec<f32>> {
        if tells {
            let of = |b: &Vec<f64>| (0..n).map(|r| predict(x, b, r) as f32).collect();
            within.iter().map(of).collect()
        } else {
            x.iter()
                .map(|c| c.iter().map(|&v| v as f32).collect())
                .collect()
        }
    };
    let (of_prev, of_cur) = (axes(prev, partner.len()), axes(cur, cur_len));
    halved(&of_prev, &of_cur, &mut ours, &mut theirs)
}
