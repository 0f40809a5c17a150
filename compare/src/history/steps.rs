//! Where a series of measurements changes its level, and how sure that is.
//!
//! The noise of a machine remembers: a commit that is measured on a slow day has neighbours that were measured on slow days. Who takes
//! such values to be independent finds steps where there are none. So the noise is an autoregression of order 1 here, and a step is
//! told by the ratio of two likelihoods: that of the series with one more step, and that without; each with the correlation that suits it
//! best (docs/references.md, "Shifts"). Steps are added one after the other until none is significant. Two at once are tried, too: a
//! series that comes back to its old level is hardly like one with a single step.
//!
//! The limits of the ratio come from simulations ([`LIMITS`]). They are such that at most 1 % of constant series show a step, for every
//! correlation up to 0.7. They grow with the correlation that the series seems to have without a step. A few values can't tell a
//! step from correlated noise: with less than [`FEWEST`] there is no answer.
//!
//! Each step must also stand out of what its own levels vary ([`spread`]), since noise changes.
//!
//! Values that differ from all their neighbours, up to three in a row, are taken out of the way first
//! ([`lone`]): a machine that was busy is no step, however large.

mod lone;
mod model;
mod spread;
#[cfg(test)]
mod tests;

use model::Model;

/// With fewer values there is no answer.
pub const FEWEST: usize = 10;

/// So many of the newest values are looked at.
pub const MOST: usize = 200;

/// Level of one series that is tested: the share of constant ones that show a step.
pub const LEVEL: f64 = 0.01;

/// A step, with 95 % confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    /// The first value of the new level.
    pub(super) at: usize,
    /// It may begin here already.
    pub(super) earliest: usize,
    /// It may begin as late as here.
    pub(super) latest: usize,
    /// The new level less the old one.
    pub(super) size: f64,
    /// The least it may be.
    pub(super) low: f64,
    /// The most it may be.
    pub(super) high: f64,
}

/// What a series tells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Steps {
    /// From the first to the last.
    pub(super) steps: Vec<Step>,
    /// Values that stand alone.
    pub(super) lone: Vec<usize>,
    /// Deviation of a value from its level.
    pub(super) deviation: f64,
    /// The correlation of neighbours.
    pub(super) correlation: f64,
    /// The smallest step that the newest five values would show in 95 % of all cases. `None`: they would show none.
    pub(super) smallest: Option<f64>,
}

/// Limits of the ratios at [`LEVEL`]: number of values; of a step, the limit without correlation, and what a correlation of 1 adds; of two
/// steps the same.
const LIMITS: [(f64, [f64; 2], [f64; 2]); 10] = [
    (10.0, [8.2, 17.0], [12.5, 30.0]),
    (12.0, [8.9, 15.0], [14.9, 20.0]),
    (15.0, [9.3, 14.0], [15.3, 22.0]),
    (20.0, [10.4, 12.0], [16.8, 20.0]),
    (30.0, [11.3, 11.0], [19.3, 16.0]),
    (40.0, [12.5, 8.0], [21.3, 14.0]),
    (60.0, [12.6, 8.5], [24.1, 10.0]),
    (100.0, [13.1, 7.0], [28.0, 4.0]),
    (150.0, [13.6, 6.0], [29.9, 0.0]),
    (200.0, [13.8, 6.0], [31.0, 0.0]),
];

/// Where a series changes its level; `None`: there are too few values. `level`: share of constant series that may show a step.
pub(super) fn steps(values: &[f64], level: f64) -> Option<Steps> {
    if values.len() < FEWEST {
        return None;
    }
    let skipped = values.len().saturating_sub(MOST);
    let raw = &values[skipped..];
    let (values, lone) = lone::without(raw);
    let mut at: Vec<usize> = vec![];
    while let Some(more) = more(&values, &at, level) {
        at.extend(more);
        at.sort_unstable();
    }
    settle(&values, &mut at);
    while let Some(weakest) = spread::weakest(raw, &values, &at, level) {
        at.remove(weakest);
        settle(&values, &mut at);
    }
    let model = Model::new(&values, &at);
    let (deviation, correlation) = (model.deviation(), model.likelihood().1);
    let one = |&step: &usize| {
        let others: Vec<usize> = at.iter().copied().filter(|&k| k != step).collect();
        let without = Model::new(&values, &others);
        let (earliest, latest) = without.range(step, RANGE);
        let (size, low, high) = without.size(step, INTERVAL);
        Step {
            at: step + skipped,
            earliest: earliest + skipped,
            latest: latest + skipped,
            size,
            low,
            high,
        }
    };
    Some(Steps {
        steps: at.iter().map(one).collect(),
        lone: lone.into_iter().map(|k| k + skipped).collect(),
        deviation,
        correlation,
        smallest: smallest(values.len(), correlation, level).map(|s| s * deviation),
    })
}

/// Below the best likelihood by less than this is where a step may be as well: in 95 % of all cases it is there.
const RANGE: f64 = 7.0;

/// The same of its size. More than the 3.84 of a chi-squared distribution: the correlation is estimated, too.
const INTERVAL: f64 = 5.0;

/// One more step, or two; none if that is not significant.
fn more(values: &[f64], at: &[usize], level: f64) -> Option<Vec<usize>> {
    let model = Model::new(values, at);
    let (_, correlation) = model.likelihood();
    let [one, two] = limits(values.len(), correlation, level);
    let step = model.step().filter(|best| best.ratio > one);
    let pair = || model.pair().filter(|best| best.ratio > two);
    match step {
        Some(best) => Some(vec![best.at]),
        None => pair().map(|best| vec![best.at.0, best.at.1]),
    }
}

/// The limits of the ratios for one more step and for two.
fn limits(n: usize, correlation: f64, level: f64) -> [f64; 2] {
    let n = n as f64;
    let above = LIMITS
        .partition_point(|(m, ..)| *m < n)
        .clamp(1, LIMITS.len() - 1);
    let (low, high) = (&LIMITS[above - 1], &LIMITS[above]);
    let share = ((n / low.0).ln() / (high.0 / low.0).ln()).clamp(0.0, 1.0);
    let at = |limit: [f64; 2]| limit[0] + limit[1] * correlation;
    // The ratio's tail is about that of a chi-squared distribution.
    let rarer = 2.0 * (LEVEL / level).ln().max(0.0);
    [(low.1, high.1), (low.2, high.2)].map(|(l, h)| at(l) * (1.0 - share) + at(h) * share + rarer)
}

/// The smallest step that the newest five values show in 95 % of all cases, in standard deviations: by number of values, and with
/// correlations of 0, 0.2, 0.4 and 0.6.
const SMALLEST: [(f64, [f64; 4]); 9] = [
    (10.0, [11.1, 10.6, 10.8, 10.5]),
    (12.0, [8.8, 9.0, 9.9, 9.9]),
    (15.0, [7.8, 8.4, 8.7, 9.3]),
    (20.0, [6.8, 7.2, 7.5, 8.8]),
    (30.0, [4.7, 6.0, 6.9, 8.2]),
    (40.0, [4.4, 5.1, 6.3, 7.5]),
    (60.0, [4.4, 5.3, 6.6, 7.8]),
    (100.0, [4.4, 5.4, 6.9, 8.1]),
    (200.0, [4.5, 5.6, 6.8, 7.8]),
];

/// The same for any number of values, correlation and level; `None` if nothing is known of that.
fn smallest(n: usize, correlation: f64, level: f64) -> Option<f64> {
    if correlation > 0.6 {
        return None;
    }
    let n_or_more = SMALLEST.iter().rev().find(|(m, _)| *m <= n as f64)?;
    let [usual, wanted] = [LEVEL, level].map(|level| limits(n, correlation, level)[0]);
    let of = n_or_more.1;
    let (low, high) = (
        (correlation / 0.2).floor() as usize,
        (correlation / 0.2).ceil() as usize,
    );
    Some(of[low.min(3)].max(of[high.min(3)]) * (wanted / usual).sqrt())
}

/// Moves each step to its best place between the others: the first was put where no other was known.
fn settle(values: &[f64], at: &mut [usize]) {
    for n in 0..at.len() {
        let others: Vec<usize> = at.iter().copied().filter(|&k| k != at[n]).collect();
        if let Some(best) = Model::new(values, &others).step() {
            at[n] = best.at;
        }
    }
    at.sort_unstable();
}
