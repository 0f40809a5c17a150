//! How far the result depends on which references happen to be there: a bootstrap over them.
//!
//! As many references as there are are drawn of them with replacement, [`RESAMPLES`] times, always the same ones. EPD and
//! Correlation Error are computed anew with the distances that are known: medians over the drawn references, and over the pairs of
//! drawn references that are different ones. A run is at distance 0 from itself, which says nothing about runs. Bins and their
//! bounds stay those of all references. The interval is the middle 95 % of the results. The profile itself is one, so how much
//! another recording of it would differ is not in it: that is the spread of fresh runs.

use super::{Measured, PreparedPair, median, tmd};
use rayon::prelude::*;
use serde::Serialize;

/// How often references are drawn.
pub const RESAMPLES: usize = 1000;

/// The middle 95 % of a number's resamples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// 2.5 % are below.
    pub low: f64,
    /// 2.5 % are above.
    pub high: f64,
}

/// See [`super::References::intervals`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Intervals {
    /// Of the EPD.
    pub epd: Interval,
    /// Of the Correlation Error.
    pub correlation_error: Interval,
    /// How often references were drawn.
    pub resamples: usize,
}

/// The drawn references, by resample.
fn draws(references: usize) -> Vec<Vec<usize>> {
    let mut state = 0x6f6d_7066_7573_6500_u64;
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut draw = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % references as u64) as usize
    };
    let mut all = vec![];
    while all.len() < RESAMPLES {
        let drawn: Vec<usize> = (0..references).map(|_| draw()).collect();
        // One reference alone has no distance to others.
        if drawn.iter().any(|&r| r != drawn[0]) {
            all.push(drawn);
        }
    }
    all
}

/// Position of a pair of different references in [`PreparedPair::between`].
fn position(a: usize, b: usize, references: usize) -> usize {
    let (a, b) = (a.min(b), a.max(b));
    a * (2 * references - a - 1) / 2 + b - a - 1
}

pub(super) fn intervals(pairs: &[PreparedPair], measured: &[Measured]) -> Option<Intervals> {
    let references = measured.first()?.to_references.len();
    if references < 3 {
        return None;
    }
    let resample = |drawn: &Vec<usize>| {
        let different: Vec<usize> = (0..references)
            .flat_map(|i| (i + 1..references).map(move |j| (i, j)))
            .map(|(i, j)| (drawn[i], drawn[j]))
            .filter(|(a, b)| a != b)
            .map(|(a, b)| position(a, b, references))
            .collect();
        let (mut logarithms, mut errors) = (0.0, 0.0);
        for (pair, measured) in pairs.iter().zip(measured) {
            let of_drawn = |values: &[f64]| drawn.iter().map(|&r| values[r]).collect::<Vec<_>>();
            let mut between: Vec<f64> = different.iter().map(|&at| pair.between[at]).collect();
            let uncalibrated = median(&mut of_drawn(&measured.to_references));
            logarithms += tmd(uncalibrated, median(&mut between)).ln();
            let rho = of_drawn(&pair.rho).iter().sum::<f64>() / references as f64;
            errors += (measured.rho - rho).abs();
        }
        let n = pairs.len() as f64;
        ((logarithms / n).exp(), errors / n)
    };
    let results: Vec<(f64, f64)> = draws(references).par_iter().map(resample).collect();
    let middle = |of: fn(&(f64, f64)) -> f64| {
        let mut values: Vec<f64> = results.iter().map(of).collect();
        values.sort_unstable_by(f64::total_cmp);
        let cut = values.len() / 40;
        Interval {
            low: values[cut],
            high: values[values.len() - 1 - cut],
        }
    };
    Some(Intervals {
        epd: middle(|r| r.0),
        correlation_error: middle(|r| r.1),
        resamples: RESAMPLES,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_where_they_are_counted() {
        let all = (0..6).flat_map(|a| (a + 1..6).map(move |b| (a, b)));
        let found: Vec<usize> = all.map(|(a, b)| position(b, a, 6)).collect();
        assert_eq!(found, (0..15).collect::<Vec<_>>());
    }

    #[test]
    fn equal_references_leave_nothing_open_and_others_do() {
        let of = |spread: f64| {
            let pair = PreparedPair {
                x: 0,
                y: 1,
                histograms: vec![],
                between: (0..6).map(|at| 1.0 + spread * f64::from(at)).collect(),
                rho: (0..4)
                    .map(|at| 0.5 + 0.01 * spread * f64::from(at))
                    .collect(),
            };
            let measured = Measured {
                to_references: (0..4).map(|at| 2.0 + spread * f64::from(at)).collect(),
                rho: 0.25,
            };
            intervals(&[pair], &[measured]).unwrap()
        };
        let same = of(0.0);
        assert_eq!((same.epd.low, same.epd.high), (2.0, 2.0));
        assert_eq!(same.correlation_error.low, 0.25);
        let differ = of(1.0);
        // 3.5 / 3.5 is the estimate.
        assert!(differ.epd.low < 1.0 && 1.0 < differ.epd.high, "{differ:?}");
        assert!(differ.correlation_error.low < 0.265 && 0.265 < differ.correlation_error.high);
        assert_eq!(differ, of(1.0));
    }
}
