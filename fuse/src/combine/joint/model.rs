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
//! `a` and `b` are learnt for all pairs, then anew for halves of them, quarters and so on, as small XUs need not behave as large
//! ones. See [`super::pairs`], which also says when `b` is told from chance.
//!
//! Nothing is estimated in the result: the partners' counts are given to the XUs in the order of their targets, each once.
//! Where `b` is not told from 0 the label has the last word, and each XU keeps its partner's count. Where labels mean nothing,
//! `2b` is the regression of `y` on `x` within a run, and behaviour decides. As `y(c)` brings its own share of what nothing
//! explains, targets are spread as counts are: nothing is drawn to the mean.

use super::alike::halved;
use super::pairs::{FEW, Pairs, Shifts};
use super::regression::{predict, ridge, standardized, variance};
use rayon::prelude::*;

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
    let shifts: Vec<Option<Shifts>> = new
        .par_iter()
        .map(|y| {
            let y = y.as_ref()?;
            let of_pairs: Vec<f64> = labelled.iter().map(|&(_, c)| y[c as usize]).collect();
            Some(of_label.shifts(&of_pairs))
        })
        .collect();
    for ((shifts, counts), within) in shifts.into_iter().zip(&counts.new).zip(&within) {
        let scale = variance(counts).sqrt();
        let Some(shifts) = shifts else {
            rows.push(pool.clone());
            continue;
        };
        varying += 1;
        unexplained += shifts.unexplained;
        let of_alike = (0..alike.len()).map(|at| Some(predict(&of_alike.differences, within, at)));
        // Where nothing is told the partner's count stays.
        let mut found = pool.clone();
        let mut told = vec![];
        for (at, shift) in (0..).zip(shifts.of_pair.into_iter().chain(of_alike)) {
            let Some(shift) = shift else { continue };
            let own = counts[pool[at] as usize];
            told.push((at, (own - shift * scale, own)));
        }
        let targets: Vec<(f64, f64)> = told.iter().map(|t| t.1).collect();
        let from: Vec<u32> = told.iter().map(|t| pool[t.0]).collect();
        for (&(at, (target, _)), c) in told.iter().zip(in_order(&targets, counts, &from)) {
            missed[at] += ((target - counts[c as usize]) / scale).powi(2);
            found[at] = c;
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

/// Gives the counts of `pool` to the targets, the smallest to the smallest and so on. Each target stands beside the partner's own
/// count, which decides between equal ones.
fn in_order(targets: &[(f64, f64)], y: &[f64], pool: &[u32]) -> Vec<u32> {
    let by = |a: (f64, f64), b: (f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    // Sorted with what they are sorted by: looking that up would take longer than all else.
    let mut order: Vec<((f64, f64), u32)> = targets.iter().copied().zip(0..).collect();
    order.sort_unstable_by(|a, b| by(a.0, b.0).then(a.1.cmp(&b.1)));
    let mut sorted: Vec<(f64, u32)> = pool.iter().map(|&c| y[c as usize]).zip(0..).collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut found = vec![0; pool.len()];
    for ((_, at), (_, from)) in order.into_iter().zip(sorted) {
        found[at as usize] = pool[from as usize];
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
