//! Functions of a region that changed, by samples of both sides.

use crate::diff::{Finding, FunctionChange, Matched, Pair};
use crate::functions::FunctionSamples;
use crate::side::{Quantity, Sample, SideRegion};
use statrs::distribution::{ContinuousCDF, Normal};
use std::collections::BTreeSet;

/// A function with a smaller share on both sides explains nothing.
const LEAST_SHARE: f64 = 0.05;
/// A function that makes less of the region's change is no cause of it.
const PART: f64 = 0.25;
/// Of a hundred regions in which no share changed one may be told.
const LEVEL: f64 = 0.01;

/// The functions whose time changed with a region's, those with the largest change first. Nothing is told of a region whose own change is
/// not certain.
pub(super) fn changed(pair: &Pair, matched: &Matched<'_>) -> Vec<FunctionChange> {
    let time = pair.get(&Quantity::Time);
    let time = time.filter(|change| change.finding == Finding::Changed);
    let of = |regions: &[&SideRegion]| {
        FunctionSamples::sum(regions.iter().map(|r| r.functions.as_ref()))
    };
    let (Some(time), Some(a), Some(b)) = (time, of(&matched.a), of(&matched.b)) else {
        return vec![];
    };
    let seconds = |regions: &[&SideRegion]| {
        let work = regions.iter().filter_map(|r| r.values.get(&Quantity::Work));
        work.map(Sample::typical).sum::<f64>()
    };
    let work = [seconds(&matched.a), seconds(&matched.b)];
    let difference = time.difference().unwrap_or(0.0);
    let names: BTreeSet<&String> = a.by_name.keys().chain(b.by_name.keys()).collect();
    let is_large = |name: &&&String| a.share(name).max(b.share(name)) >= LEAST_SHARE;
    let names: Vec<&&String> = names.iter().filter(is_large).collect();
    let level = LEVEL / names.len().max(1) as f64; // Bonferroni's
    let change = |name: &&&String| {
        let share = [a.share(name), b.share(name)];
        let time_s = [work[0] * share[0], work[1] * share[1]];
        let by = time_s[1] - time_s[0];
        let is_told = by * difference > 0.0 && by.abs() >= PART * difference.abs();
        (is_told && by_chance(share, [a.work, b.work]) < level).then(|| FunctionChange {
            name: (**name).clone(),
            share,
            time_s,
        })
    };
    let mut changes: Vec<FunctionChange> = names.iter().filter_map(change).collect();
    let size = |c: &FunctionChange| (c.time_s[1] - c.time_s[0]).abs();
    changes.sort_by(|x, y| size(y).total_cmp(&size(x)));
    changes
}

/// Probability that two shares of so many samples differ by chance as much.
fn by_chance(share: [f64; 2], of: [u64; 2]) -> f64 {
    let of = of.map(|n| n as f64);
    let pooled = (share[0] * of[0] + share[1] * of[1]) / (of[0] + of[1]);
    let error = (pooled * (1.0 - pooled) * (1.0 / of[0] + 1.0 / of[1])).sqrt();
    match error > 0.0 {
        true => 2.0 * Normal::standard().sf(((share[1] - share[0]) / error).abs()),
        false => 1.0,
    }
}
