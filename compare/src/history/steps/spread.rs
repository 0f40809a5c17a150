//! Whether two levels are as far apart as their own values allow.
//!
//! The likelihood takes all values to be equally noisy. On a machine whose noise changes, or where a part of the commits ran on a slower
//! one, the noisy ones look like levels of their own. So each step is tested once more, by what its two levels vary (Welch's t). Values that
//! stand alone count here: many of them are noise. A level isn't taken to vary less than both together, because a few values lie close
//! together by chance.

use super::limits;
use super::model::Model;

/// The ratio that a step must have here, as a part of the one that the likelihood asks for: few values tell little of their own noise.
const PART: f64 = 0.6;

/// The step that is least certain, if it isn't certain enough. `raw`: with values that stand alone; `values`: without.
pub(super) fn weakest(raw: &[f64], values: &[f64], at: &[usize], level: f64) -> Option<usize> {
    let (_, found) = Model::new(values, at).likelihood();
    // Levels that are fitted take some of the correlation away.
    let lost = (1.0 + 3.0 * found) * (at.len() + 1) as f64 / values.len() as f64;
    let correlation = (found + lost).min(0.95);
    let least = PART * limits(values.len(), correlation, level)[0];
    let ratio = |n: usize| {
        let begin = n.checked_sub(1).map_or(0, |n| at[n]);
        let end = at.get(n + 1).copied().unwrap_or(raw.len());
        ratio(&raw[begin..at[n]], &raw[at[n]..end], correlation)
    };
    let weak = (0..at.len())
        .map(|n| (n, ratio(n)))
        .filter(|(_, r)| *r < least);
    weak.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(n, _)| n)
}

/// The square of the normal deviate that is as rare as Welch's t of two levels (Wallace 1959), which is about twice the logarithm of the
/// ratio of two likelihoods.
fn ratio(before: &[f64], after: &[f64], correlation: f64) -> f64 {
    let [(n, x, v), (m, y, w)] = [before, after].map(moments);
    let pooled = ((n - 1.0) * v + (m - 1.0) * w) / (n + m - 2.0).max(1.0);
    let (p, q) = (
        v.max(pooled) * remembered(n, correlation) / n,
        w.max(pooled) * remembered(m, correlation) / m,
    );
    let squared = (x - y) * (x - y) / (p + q).max(f64::MIN_POSITIVE);
    let spread = p * p / (n - 1.0).max(1.0) + q * q / (m - 1.0).max(1.0);
    let freedom = match spread > 0.0 {
        true => (p + q) * (p + q) / spread,
        // Nothing varies: any difference is one.
        false => n + m - 2.0,
    };
    let deviate = (8.0 * freedom + 1.0) / (8.0 * freedom + 3.0);
    deviate * deviate * freedom * (squared / freedom).ln_1p()
}

/// How much more the mean of so many correlated values varies than that of independent ones.
fn remembered(n: f64, correlation: f64) -> f64 {
    let pairs = (1..n as i32).map(|k| (1.0 - f64::from(k) / n) * correlation.powi(k));
    1.0 + 2.0 * pairs.sum::<f64>()
}

/// Number, mean and variance.
fn moments(values: &[f64]) -> (f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (n, mean, squares / (n - 1.0).max(1.0))
}
