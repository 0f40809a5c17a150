//! Two samples of one quantity.

use crate::diff::Interval;
use crate::side::{Each, Quantity, Sample, Unit};
use ompfuse_account::paired::LEAST;
use ompfuse_account::student::{Quantiles, two_sided};

/// Probability with which a difference that is there shall be seen.
const POWER: f64 = 0.8;

/// Values that differ by less are the same number, computed in another order.
const ROUNDING: f64 = 1e-12;

/// More runs than that nobody records: such a difference can't be told.
const MOST_RUNS: u32 = 1 << 16;

/// `exp` of more is no number.
const LARGEST_LOG: f64 = 700.0;

/// What two samples are to each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Compared {
    /// Constant on both sides, and equal.
    Equal,
    /// Constant on both sides, in several runs each, and different.
    Different,
    /// They differ, and there is one run on a side.
    Unknown,
    /// At least one side varies.
    Noisy(Noisy),
}

/// A difference and its noise: on logarithms, or on the values where some are not positive and for shares.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Noisy {
    is_log: bool,
    is_share: bool,
    /// Of A and of B: mean of the logarithms, or of the values.
    means: [f64; 2],
    /// Pooled standard deviation of a run.
    deviation: f64,
    /// Runs of A and of B.
    runs: [f64; 2],
    /// The deviation is that of the differences in pairs of runs, divided by the root of 2: of a run without what both of a pair have in
    /// common.
    is_paired: bool,
}

/// Compares two samples. `is_steady`: both sides are ([`Origin::is_steady`](crate::side::Origin)).
pub(crate) fn compared(quantity: &Quantity, [a, b]: [&Sample; 2], is_steady: bool) -> Compared {
    let noisy = |is_log: bool, moments: [(f64, f64, f64); 2]| {
        let [(na, ma, sa), (nb, mb, sb)] = moments;
        let freedom = na + nb - 2.0;
        let squares = (na - 1.0) * sa * sa + (nb - 1.0) * sb * sb;
        Noisy {
            is_log,
            is_share: quantity.unit() == Unit::Share,
            means: [ma, mb],
            deviation: (squares / freedom).sqrt(),
            runs: [na, nb],
            is_paired: false,
        }
    };
    if let (Sample::Same(na, x), Sample::Same(nb, y)) = (a, b) {
        return match is_same(*x, *y) {
            true => Compared::Equal,
            // How many units there are may depend on timing.
            false
                if (*na < 2 || *nb < 2)
                    && (!quantity.is_told_by_one_run(is_steady)
                        || *quantity == Quantity::Units) =>
            {
                Compared::Unknown
            }
            false => Compared::Different,
        };
    }
    if a.runs() < 2 || b.runs() < 2 {
        return Compared::Unknown;
    }
    let logs = match quantity.unit() {
        Unit::Share => None,
        _ => log_moments(a).zip(log_moments(b)),
    };
    let found = match logs {
        Some((a, b)) => noisy(true, [a, b]),
        None => noisy(false, [linear_moments(a), linear_moments(b)]),
    };
    if found.deviation > ROUNDING * found.means[0].abs().max(1e-300) {
        return Compared::Noisy(found);
    }
    match is_same(found.value(0), found.value(1)) {
        true => Compared::Equal,
        false => Compared::Different,
    }
}

impl Compared {
    /// The same by pairs of runs, where these are known: of times, since what a machine does meanwhile changes no others. `each`: A's runs
    /// and B's.
    pub(crate) fn by_pairs(self, quantity: &Quantity, each: [&Each; 2]) -> Compared {
        let (Compared::Noisy(noisy), Some(a), Some(b), true) = (
            self,
            each[0].get(quantity),
            each[1].get(quantity),
            quantity.is_time(),
        ) else {
            return self;
        };
        let n = a.len() as f64;
        if a.len() != b.len() || noisy.runs != [n, n] {
            return self;
        }
        let of = |v: &f64| if noisy.is_log { v.ln() } else { *v };
        let mean = |values: &[f64]| values.iter().map(of).sum::<f64>() / n;
        let means = [mean(a), mean(b)];
        let difference = means[1] - means[0];
        let off = a.iter().zip(b).map(|(a, b)| of(b) - of(a) - difference);
        let squares: f64 = off.map(|off| off * off).sum();
        Compared::Noisy(Noisy {
            means,
            deviation: (squares / (n - 1.0) / 2.0).sqrt(),
            is_paired: true,
            ..noisy
        })
    }
}

fn is_same(x: f64, y: f64) -> bool {
    (x - y).abs() <= ROUNDING * x.abs().max(y.abs())
}

/// Number, mean and standard deviation of the logarithms; `None` if some have none.
fn log_moments(sample: &Sample) -> Option<(f64, f64, f64)> {
    match *sample {
        Sample::Same(n, value) if value > 0.0 => Some((f64::from(n), value.ln(), 0.0)),
        Sample::Log(n, mean, deviation) => Some((f64::from(n), mean, deviation)),
        _ => None,
    }
}

/// Number, mean and standard deviation of the values; those of logarithms as if the values were log-normal.
pub(super) fn linear_moments(sample: &Sample) -> (f64, f64, f64) {
    match *sample {
        Sample::Same(n, value) => (f64::from(n), value, 0.0),
        Sample::Linear(n, mean, deviation, _) => (f64::from(n), mean, deviation),
        Sample::Log(n, mean, deviation) => {
            let square = deviation * deviation;
            let value = (mean + square / 2.0).min(LARGEST_LOG).exp();
            (f64::from(n), value, value * square.exp_m1().sqrt())
        }
    }
}

impl Noisy {
    /// The noise of a run as a share of its value, and the runs on the side that has fewer; `None` if it is not one of logarithms.
    pub(super) fn relative(&self) -> Option<(f64, f64)> {
        self.is_log
            .then(|| (self.deviation, self.runs[0].min(self.runs[1])))
    }

    /// The same with at least that much noise.
    pub(super) fn with_noise(self, least: f64) -> Noisy {
        Noisy {
            deviation: self.deviation.max(least),
            ..self
        }
    }

    fn difference(&self) -> f64 {
        self.means[1] - self.means[0]
    }

    fn freedom(&self) -> f64 {
        match self.is_paired {
            true => self.runs[0] - 1.0,
            false => self.runs[0] + self.runs[1] - 2.0,
        }
    }

    /// Standard error of the difference.
    fn error(&self) -> f64 {
        self.deviation * (1.0 / self.runs[0] + 1.0 / self.runs[1]).sqrt()
    }

    /// What a run of A (0) or B (1) has.
    pub(crate) fn value(&self, side: usize) -> f64 {
        match self.is_log {
            true => self.means[side].exp(),
            false => self.means[side],
        }
    }

    /// A difference of the means as a change: a share of A, or points. `None` if A is 0.
    fn as_change(&self, difference: f64) -> Option<f64> {
        match (self.is_log, self.is_share) {
            (true, _) => Some(difference.min(LARGEST_LOG).exp_m1()),
            (false, true) => Some(difference),
            (false, false) => (self.means[0] != 0.0).then(|| difference / self.means[0].abs()),
        }
    }

    /// The change that was seen.
    pub(crate) fn change(&self) -> Option<f64> {
        self.as_change(self.difference())
    }

    /// Probability of such a difference, or a larger one, by chance.
    pub(crate) fn p(&self) -> f64 {
        two_sided(self.difference() / self.error(), self.freedom())
    }

    /// Where the change is, with this confidence.
    pub(crate) fn interval(&self, level: f64, quantiles: &mut Quantiles) -> Option<Interval> {
        let reach = self.error() * quantiles.upper((1.0 - level) / 2.0, self.freedom());
        Some(Interval {
            low: self.as_change(self.difference() - reach)?,
            high: self.as_change(self.difference() + reach)?,
            level,
        })
    }

    /// Whether it is large enough to be told.
    pub(crate) fn is_worth_telling(&self) -> bool {
        self.change().is_none_or(|change| change.abs() >= LEAST)
    }

    /// The smallest growth that would be seen with these runs, at this level of significance.
    pub(crate) fn could_see(&self, level: f64, quantiles: &mut Quantiles) -> Option<f64> {
        self.visible(1.0, level, quantiles)
    }

    /// The size of the smallest change that would be seen with these runs, at this level of significance: of a growth (1), or of what
    /// shrinks (-1).
    pub(crate) fn visible(
        &self,
        direction: f64,
        level: f64,
        quantiles: &mut Quantiles,
    ) -> Option<f64> {
        let df = self.freedom();
        let reach = quantiles.upper(level / 2.0, df) + quantiles.upper(1.0 - POWER, df);
        let change = self.as_change(direction * self.error() * reach)?;
        Some(change.abs().max(LEAST))
    }

    /// Runs on each side that tell a difference of the size that was seen; `None` if none would, or it is not worth it.
    pub(crate) fn runs_needed(&self, level: f64, quantiles: &mut Quantiles) -> Option<u32> {
        let difference = self.difference().abs();
        self.is_worth_telling()
            .then(|| self.runs_for(difference, level, quantiles))
            .flatten()
    }

    /// Runs on each side that tell a change of this size; `None` if none would.
    pub(crate) fn runs_to_see(
        &self,
        change: f64,
        level: f64,
        quantiles: &mut Quantiles,
    ) -> Option<u32> {
        let difference = match (self.is_log, self.is_share) {
            (true, _) => change.ln_1p(),
            (false, true) => change,
            (false, false) => change * self.means[0],
        };
        self.runs_for(difference.abs(), level, quantiles)
    }

    fn runs_for(&self, difference: f64, level: f64, quantiles: &mut Quantiles) -> Option<u32> {
        let effect = difference / self.deviation;
        let mut is_seen = |runs: u32| {
            let sides = if self.is_paired { 1.0 } else { 2.0 };
            let df = sides * f64::from(runs) - sides;
            let reach = quantiles.upper(level / 2.0, df) + quantiles.upper(1.0 - POWER, df);
            effect * (f64::from(runs) / 2.0).sqrt() >= reach
        };
        let (mut few, mut enough) = (1, MOST_RUNS);
        if !is_seen(enough) {
            return None;
        }
        while enough - few > 1 {
            let middle = (few + enough) / 2;
            if is_seen(middle) {
                enough = middle;
            } else {
                few = middle;
            }
        }
        Some(enough)
    }
}
