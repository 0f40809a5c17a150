//! Whether two builds whose runs alternate differ in time, asked again and again as runs come in.

use crate::student::Quantiles;
use schemars::JsonSchema;

/// Probability that any of the looks is wrong.
pub const ERROR: f64 = 0.01;

/// Changes below this are no news where runs vary: a clock's drift, an alignment, a page more. As a share of A; of shares in points.
pub const LEAST: f64 = 1e-3;

/// Fewer turns tell nothing.
const FIRST_LOOK: u32 = 4;

/// A change that is certain to be smaller is none.
const NOTHING: f64 = 0.01;

/// The change by pairs of runs: each of B by the run of A beside it. What slows a machine down for a while is in both of a pair.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize, JsonSchema)]
pub struct Paired {
    /// Geometric mean of `b / a`, less 1.
    pub change: f64,
    /// Where the change is, at `level`.
    pub low: f64,
    /// Likewise.
    pub high: f64,
    /// Confidence level from 0 to 1: 1 less [`ERROR`] divided by the number of looks (Bonferroni), so that all of them together err with
    /// this probability at most.
    pub level: f64,
    /// Whether it is known: the interval has no 0 in it, or nothing beyond 1 % on either side.
    pub is_decided: bool,
}

/// Whether one looks after so many turns: after 4, 6, 8, 12, 16, 24, 32 ..., and after the last one.
pub fn is_look(turns: u32, most: u32) -> bool {
    let is_half_way =
        |n: u32| n.is_power_of_two() || (n.is_multiple_of(3) && (n / 3).is_power_of_two());
    turns == most || (turns >= FIRST_LOOK && is_half_way(turns))
}

/// Compares times in seconds, all above 0, of as many runs of A and B. `most`: the turns at which it ends in any case. `None`: there are
/// less than two.
pub fn paired(a: &[f64], b: &[f64], most: u32) -> Option<Paired> {
    let logs: Vec<f64> = a.iter().zip(b).map(|(a, b)| (b / a).ln()).collect();
    let n = logs.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n;
    let squares: f64 = logs.iter().map(|l| (l - mean) * (l - mean)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    let looks = (1..=most)
        .filter(|&turns| is_look(turns, most))
        .count()
        .max(1);
    let level = 1.0 - ERROR / looks as f64;
    let reach = error * Quantiles::default().upper((1.0 - level) / 2.0, n - 1.0);
    let [low, change, high] = [mean - reach, mean, mean + reach].map(f64::exp_m1);
    let is_change = (low > 0.0 || high < 0.0) && change.abs() >= LEAST;
    let is_nothing = low > -NOTHING && high < NOTHING;
    Some(Paired {
        change,
        low,
        high,
        level,
        is_decided: is_change || is_nothing,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_both_have_is_no_difference() {
        // The machine gets twice as slow meanwhile; B takes 10 % more each time, give or take 1 %.
        let a = [1.0, 1.2, 1.5, 1.7, 1.9, 2.0];
        let off = [0.01, -0.01, 0.0, 0.01, -0.01, 0.0];
        let b: Vec<f64> = a
            .iter()
            .zip(off)
            .map(|(a, off)| a * (0.1f64 + off).exp())
            .collect();
        let found = paired(&a, &b, 6).unwrap();
        // By hand: a deviation of 0.00894, an error of 0.00365; two looks (4 and 6), so 0.0025 on each side: t = 4.773.
        assert!(
            (found.change - 0.1f64.exp_m1()).abs() < 1e-12 && found.is_decided,
            "{found:?}"
        );
        assert!(
            (found.low - (0.1 - 4.773 * 0.003651f64).exp_m1()).abs() < 1e-4,
            "{found:?}"
        );
        assert!((found.level - 0.995).abs() < 1e-12);
        let same = paired(&a, &a, 6).unwrap();
        assert!(same.is_decided && same.change == 0.0, "{same:?}");
        assert_eq!(paired(&a[..1], &b[..1], 6), None);
    }

    #[test]
    fn looks_become_rare() {
        let looks: Vec<u32> = (1..=40).filter(|&n| is_look(n, 40)).collect();
        assert_eq!(looks, [4, 6, 8, 12, 16, 24, 32, 40]);
    }

    /// Of series without a difference, looked at whenever one looks, about one in a hundred may be decided wrongly.
    #[test]
    fn looking_often_errs_seldom() {
        let mut state = 7u64;
        let mut noise = || {
            // The sum of twelve uniform numbers is nearly normal.
            let mut sum = -6.0;
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                sum += (state >> 11) as f64 / (1u64 << 53) as f64;
            }
            (0.1 * sum).exp()
        };
        let mut wrong = 0;
        for _ in 0..2000 {
            let (mut a, mut b) = (vec![], vec![]);
            for turns in 1..=24 {
                a.push(noise());
                b.push(noise());
                let found = paired(&a, &b, 24).filter(|f| is_look(turns, 24) && f.is_decided);
                if let Some(found) = found {
                    wrong += u32::from(found.low > 0.0 || found.high < 0.0);
                    break;
                }
            }
        }
        assert!(wrong <= 30, "{wrong} of 2000");
    }
}
