//! What changed, and how sure that is.
//!
//! Each quantity is compared by itself:
//! - Constant on both sides, it is equal or it changed. That needs no test.
//! - Otherwise it is Student's t test with pooled variance, on logarithms: a change is a factor, and times are skewed to the right.
//!   Shares, and what is 0 in some runs, are tested as they are.
//! - With one run on a side noise is unknown, and nothing is certain.
//!
//! Many comparisons find something by chance, so those that can put a line into the report are corrected together, after Holm
//! ("A simple sequentially rejective multiple test procedure", 1979). This family has, for the program and each region with at least
//! [`TESTED_SHARE`] of the time: the time, the median of the undisturbed units, the instructions, and those of the numbers of executions,
//! units and iterations that vary from run to run. Of comparisons of a build with itself at most 1 % show a line, however the quantities depend on each other. Other
//! quantities are details: they are tested where the family (or a constant count) says that something changed, corrected within the
//! region.
//!
//! The t test takes noise to be log-normal, and runs to be independent. What all regions share (a slow run) changes nothing. Skewed
//! noise cancels out with as many runs on each side. Noise with outliers or two modes is another matter: with few runs both sides
//! may lie in different modes by chance, each with hardly any noise. So a time is taken to be at least as noisy as the regions with a
//! quarter of the tested time are, and with less than [`FEW_RUNS`] runs as those with three quarters of it; the median of units likewise
//! by other medians. The tests below simulate all these.
//!
//! Drift is covered where runs of both alternate (`turns`): then each run of B is compared with the run of A beside it, and the test of
//! times is the t test of these differences. Otherwise it is not: a machine that gets warm while first all of A runs, then all of B.
//!
//! Where runs vary, changes of less than [`LEAST`] are not told, however certain: no reader would act on them. Constant counts count to
//! the last one, but for a few instructions (see `retried`).

mod compared;
mod distribution;
mod functions;
mod retried;
mod sums;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use compared::{Compared, Noisy, compared};
pub(crate) use retried::is_retried;
pub(crate) use sums::{both, each_of_both};

use super::diff::{Change, Finding, Matched, Pair};
use super::side::{Each, Quantity, Sample, Side, SideRegion};
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::student::Quantiles;
use std::collections::{BTreeMap, BTreeSet};

/// Level of the test of the whole comparison: the share of comparisons of equal builds that show something.
const LEVEL: f64 = 0.01;

/// Level of confidence of the intervals that are shown.
const CONFIDENCE: f64 = 0.95;

/// Share of the thread time of a side from which on a region takes part in the test.
pub const TESTED_SHARE: f64 = 0.01;

/// With less runs on a side there may be much more noise than was seen.
pub const FEW_RUNS: u32 = 4;

/// A change, and its noise if there is any.
type Draft = (Change, Option<Noisy>);

/// Compares two sides. `matched`: what belongs together. Gives the changes of the program, and the pairs, those first whose time
/// changed most. The pairs' slowest units are left open.
pub fn changes(a: &Side, b: &Side, matched: &[Matched<'_>]) -> (Vec<Change>, Vec<Pair>) {
    let mut quantiles = Quantiles::default();
    let is_steady = a.origin.is_steady && b.origin.is_steady;
    let mut drafts = vec![drafts(
        [&a.total, &b.total],
        [&a.each, &b.each],
        is_steady,
        &mut quantiles,
    )];
    for pair in matched {
        let [a, b] = both(&pair.a, &pair.b);
        let [each_a, each_b] = each_of_both(&pair.a, &pair.b);
        drafts.push(self::drafts(
            [&a, &b],
            [&each_a, &each_b],
            is_steady,
            &mut quantiles,
        ));
    }
    for list in &mut drafts {
        retried::forgive(list, &a.total);
    }
    let shares = |regions: &[&SideRegion]| regions.iter().map(|r| r.share).sum::<f64>();
    let largest = |pair: &Matched<'_>| shares(&pair.a).max(shares(&pair.b));
    let largest: Vec<f64> = matched.iter().map(largest).collect();
    judge(&mut drafts, &largest, &mut quantiles);

    let mut drafts = drafts
        .into_iter()
        .map(|list| list.into_iter().map(|(change, _)| change).collect());
    let total = drafts.next().unwrap_or_default();
    let is_hidden = |pair: &Matched<'_>| {
        let of = [a.uncounted_of(&pair.a), b.uncounted_of(&pair.b)];
        of.iter().flatten().any(UncountedWork::is_much)
    };
    let mut pairs: Vec<Pair> = matched
        .iter()
        .zip(drafts)
        .zip(largest)
        .map(|((matched, changes), largest)| Pair {
            a: keys(&matched.a),
            b: keys(&matched.b),
            basis: matched.basis,
            confidence: matched.confidence,
            is_group: matched.is_group,
            share: [shares(&matched.a), shares(&matched.b)],
            is_tested: largest >= TESTED_SHARE,
            changes,
            distance: distribution::distance(&matched.a, &matched.b),
            unit: None,
            is_hidden: is_hidden(matched),
            functions: vec![],
            schedules: schedules(matched),
        })
        .collect();
    for (pair, matched) in pairs.iter_mut().zip(matched) {
        pair.functions = functions::changed(pair, matched);
    }
    let order = |pair: &Pair| {
        // Executions are no seconds.
        let of = |c: &Change| {
            c.difference()
                .filter(|_| c.quantity != Quantity::Executions)
        };
        let change = pair.time_change().or_else(|| of(pair.headline()?));
        change.map_or(0.0, f64::abs)
    };
    pairs.sort_by(|x, y| {
        let by_change = order(y).total_cmp(&order(x));
        let by_share = y.share[0].total_cmp(&x.share[0]);
        by_change.then(by_share).then_with(|| x.a.cmp(&y.a))
    });
    (total, pairs)
}

fn keys(regions: &[&SideRegion]) -> Vec<RegionKey> {
    regions.iter().map(|r| r.key.clone()).collect()
}

/// The schedules, where they differ.
fn schedules(matched: &Matched<'_>) -> Option<[Option<String>; 2]> {
    let of = |regions: &[&SideRegion]| {
        let known: BTreeSet<&str> = regions
            .iter()
            .filter_map(|r| r.key.schedule.as_deref())
            .collect();
        (!known.is_empty()).then(|| known.into_iter().collect::<Vec<_>>().join(" and "))
    };
    let both = [of(&matched.a), of(&matched.b)];
    (both[0] != both[1]).then_some(both)
}

/// Everything that either side measured, in the order of the quantities.
fn drafts(
    [a, b]: [&BTreeMap<Quantity, Sample>; 2],
    each: [&Each; 2],
    is_steady: bool,
    quantiles: &mut Quantiles,
) -> Vec<Draft> {
    let quantities: BTreeSet<&Quantity> = a.keys().chain(b.keys()).collect();
    let draft = |quantity: &Quantity| {
        let samples = [a.get(quantity), b.get(quantity)];
        draft(quantity, samples, each, is_steady, quantiles)
    };
    quantities.into_iter().map(draft).collect()
}

/// One quantity, before it was tested.
fn draft(
    quantity: &Quantity,
    [a, b]: [Option<&Sample>; 2],
    each: [&Each; 2],
    is_steady: bool,
    quantiles: &mut Quantiles,
) -> Draft {
    let typical = [a.map(Sample::typical), b.map(Sample::typical)];
    let mut change = Change {
        quantity: quantity.clone(),
        a: typical[0],
        b: typical[1],
        change: difference(quantity, typical[0], typical[1]),
        interval: None,
        p: None,
        finding: Finding::NotMeasured,
        runs_needed: None,
        is_modelled: quantity.is_modelled(),
    };
    let mut noise = None;
    if let (Some(a), Some(b)) = (a, b) {
        change.finding = match compared(quantity, [a, b], is_steady).by_pairs(quantity, each) {
            Compared::Equal => Finding::Equal,
            Compared::Different => Finding::Changed,
            Compared::Unknown => Finding::NoiseUnknown,
            Compared::Noisy(noisy) => {
                (change.a, change.b) = (Some(noisy.value(0)), Some(noisy.value(1)));
                change.change = noisy.change();
                change.interval = noisy.interval(CONFIDENCE, quantiles);
                noise = Some(noisy);
                Finding::NotTested
            }
        };
    }
    (change, noise)
}

/// `b / a - 1`; of shares `b - a`.
pub(crate) fn difference(quantity: &Quantity, a: Option<f64>, b: Option<f64>) -> Option<f64> {
    let (a, b) = (a?, b?);
    match quantity.unit() {
        super::side::Unit::Share => Some(b - a),
        _ if a == b => Some(0.0),
        _ => (a != 0.0).then(|| b / a - 1.0),
    }
}

/// Tests the family, then the details below what changed. The first list is the program's, the others are regions' with these shares.
fn judge(drafts: &mut [Vec<Draft>], shares: &[f64], quantiles: &mut Quantiles) {
    let regions = drafts[1..]
        .iter()
        .map(Vec::as_slice)
        .zip(shares.iter().copied());
    let tested = || regions.clone().filter(|(_, share)| *share >= TESTED_SHARE);
    let of_times = CommonNoise::of(tested(), time);
    let of_units = CommonNoise::of(tested(), |_| Some(Quantity::MedianUnit));
    let shares = std::iter::once(&1.0).chain(shares);
    let family = drafts
        .iter_mut()
        .zip(shares)
        .filter(|(_, share)| **share >= TESTED_SHARE);
    let family = family.flat_map(|(list, _)| {
        let time = time(list);
        let is_in = move |quantity: &Quantity| {
            Some(quantity) == time.as_ref()
                || *quantity == Quantity::MedianUnit
                || quantity.is_headline()
        };
        list.iter_mut()
            .filter(move |(change, _)| is_in(&change.quantity))
    });
    let mut family: Vec<&mut Draft> = family.collect();
    for (change, own) in family.iter_mut().map(|draft| &mut **draft) {
        if let (Some(own), true) = (own, change.quantity.is_time()) {
            let common = match change.quantity {
                Quantity::MedianUnit => &of_units,
                _ => &of_times,
            };
            *own = common.raised(*own);
            change.interval = own.interval(CONFIDENCE, quantiles);
        }
    }
    holm(family, quantiles);
    for list in drafts {
        let is_certain = |(change, _): &Draft| change.finding == Finding::Changed;
        if list.iter().any(is_certain) {
            let details = list.iter_mut();
            holm(
                details.filter(|(change, _)| change.p.is_none()).collect(),
                quantiles,
            );
        }
    }
}

/// Tests those that vary from run to run, corrected for their number.
fn holm(family: Vec<&mut Draft>, quantiles: &mut Quantiles) {
    let noisy = family
        .into_iter()
        .filter_map(|(change, noise)| Some((change, *noise.as_ref()?)));
    let mut noisy: Vec<(&mut Change, Noisy, f64)> = noisy
        .map(|(change, noise)| (change, noise, noise.p()))
        .collect();
    noisy.sort_by(|x, y| x.2.total_cmp(&y.2));
    let all = noisy.len() as f64;
    let strictest = LEVEL / all;
    let mut is_certain = true;
    for (left, (change, noise, p)) in (0..).map(|done| all - f64::from(done)).zip(noisy) {
        is_certain &= p <= LEVEL / left;
        change.p = Some(p);
        change.finding = if is_certain && noise.is_worth_telling() {
            Finding::Changed
        } else {
            change.runs_needed = noise.runs_needed(strictest, quantiles);
            let could_see = noise.could_see(strictest, quantiles);
            Finding::NotSeen { could_see }
        };
    }
}

/// The time that stands for a list of changes: the wall time, where it is known on both sides.
fn time(list: &[Draft]) -> Option<Quantity> {
    let is_known = |wanted: &&Quantity| {
        let known = |c: &Change| c.a.is_some() && c.b.is_some() && c.quantity == **wanted;
        list.iter().any(|(change, _)| known(change))
    };
    [Quantity::Wall, Quantity::Time]
        .iter()
        .find(is_known)
        .cloned()
}

/// How noisy regions are, by the share of time.
struct CommonNoise {
    /// Noise, and the share of the time that is spent in regions that are as noisy at most.
    regions: Vec<(f64, f64)>,
}

impl CommonNoise {
    /// `of`: the quantity of a region that is meant.
    fn of<'d>(
        regions: impl Iterator<Item = (&'d [Draft], f64)>,
        of: impl Fn(&[Draft]) -> Option<Quantity>,
    ) -> CommonNoise {
        let noise = |(list, share): (&[Draft], f64)| {
            let quantity = of(list)?;
            let (_, noise) = list
                .iter()
                .find(|(change, _)| change.quantity == quantity)?;
            Some((noise.as_ref()?.relative()?.0, share))
        };
        let mut regions: Vec<(f64, f64)> = regions.filter_map(noise).collect();
        regions.sort_by(|x, y| x.0.total_cmp(&y.0));
        let mut all = 0.0;
        for (_, share) in &mut regions {
            all += *share;
            *share = all;
        }
        CommonNoise { regions }
    }

    /// The noise that a share of the time doesn't exceed.
    fn quantile(&self, share: f64) -> f64 {
        let all = self.regions.last().map_or(0.0, |(_, up_to)| *up_to);
        let found = self.regions.iter().find(|(_, up_to)| *up_to >= share * all);
        found.map_or(0.0, |(noise, _)| *noise)
    }

    /// A time's noise, as large as others let expect it.
    fn raised(&self, noise: Noisy) -> Noisy {
        match noise.relative() {
            Some((_, runs)) if runs < f64::from(FEW_RUNS) => noise.with_noise(self.quantile(0.75)),
            Some(_) => noise.with_noise(self.quantile(0.25)),
            None => noise,
        }
    }
}
