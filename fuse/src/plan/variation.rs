//! What labels leave open: learnt from two executions that counted the same events.

use super::Correlations;
use crate::combine::rows_by_key;
use crate::table::{EventColumn, XuTable};
use rayon::prelude::*;

impl Correlations {
    /// How the events vary between XUs of one label in two runs that have them all: [`Correlations::get`] is the correlation of
    /// the differences, and [`Correlations::open`] the share of an event's variance that labels don't fix. XUs whose label the
    /// other run does not have count as in [`Correlations::of`].
    pub fn between(first: &XuTable, second: &XuTable) -> Correlations {
        let pairs = pairs(first, second);
        let share = pairs.len() as f64 / first.len().max(1) as f64;
        let blind = Correlations::of(first);
        let differences: Vec<Option<Vec<f64>>> = first
            .events
            .par_iter()
            .map(|e| Some(differences(first, e, second.event(&e.name)?, &pairs)))
            .collect();
        let squares: Vec<f64> = differences
            .iter()
            .map(|d| d.iter().flatten().map(|v| v * v).sum())
            .collect();
        let n = first.events.len();
        let values = (0..n * n)
            .into_par_iter()
            .map(|at| {
                let (a, b) = (at / n, at % n);
                let (Some(x), Some(y)) = (&differences[a], &differences[b]) else {
                    return blind.values[at];
                };
                let dot: f64 = x.iter().zip(y).map(|(x, y)| x * y).sum();
                let size = (squares[a] * squares[b]).sqrt();
                let of_labels = if size > 0.0 { dot / size } else { 0.0 };
                share * of_labels + (1.0 - share) * blind.values[at]
            })
            .collect();
        let open = differences
            .iter()
            .zip(&squares)
            .map(|(d, squares)| match d {
                Some(_) if !pairs.is_empty() => {
                    let of_labels = (squares / 2.0 / pairs.len() as f64).min(1.0);
                    share * of_labels + (1.0 - share)
                }
                _ => 1.0,
            })
            .collect();
        Correlations {
            names: blind.names,
            values,
            open,
        }
    }
}

/// The rows of one label; labels that a run has twice are left out.
fn pairs(first: &XuTable, second: &XuTable) -> Vec<(usize, usize)> {
    let (ours, theirs) = (rows_by_key(first), rows_by_key(second));
    let mut pairs: Vec<(usize, usize)> = ours
        .iter()
        .filter_map(|(key, row)| Some(((*row)?, (*theirs.get(key)?)?)))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// What an event differs by, in units of its deviation in the XUs' type.
fn differences(
    table: &XuTable,
    first: &EventColumn,
    second: &EventColumn,
    pairs: &[(usize, usize)],
) -> Vec<f64> {
    let count = |e: &EventColumn, row: usize| e.get(row).unwrap_or(0) as f64;
    // Number, sum and sum of the squares.
    let mut sums = vec![(0.0, 0.0, 0.0); table.sites.len()];
    for row in 0..table.len() {
        let (n, sum, squares) = &mut sums[table.site[row] as usize];
        let value = count(first, row);
        (*n, *sum, *squares) = (*n + 1.0, *sum + value, *squares + value * value);
    }
    let deviation = |site: u32| {
        let (n, sum, squares) = sums[site as usize];
        (squares / n - (sum / n).powi(2)).max(0.0).sqrt()
    };
    let deviations: Vec<f64> = (0..table.sites.len() as u32).map(deviation).collect();
    pairs
        .iter()
        .map(|&(p, c)| {
            let difference = count(second, c) - count(first, p);
            match deviations[table.site[p] as usize] {
                d if d > 0.0 => difference / d,
                _ => difference.clamp(-1.0, 1.0),
            }
        })
        .collect()
}
