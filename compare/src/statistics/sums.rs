//! Several regions of a side as one.

use super::compared::linear_moments;
use crate::matching::may_be_empty;
use crate::side::{Each, Quantity, Sample, SideRegion, Unit};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What was measured of regions together.
///
/// Times and counts are sums, the longest unit is the longest of all, and means are weighted: those of units by the number of units,
/// imbalances by time. What is not known of a region is not known of the sum. A sum's mean is exact for constants, and for others as
/// good as a log-normal distribution describes them. Its deviation can't be told from those of the parts: they are added, which is
/// what it is if a slow run is slow everywhere, and the most that it can be.
fn values<'r>(regions: &[&'r SideRegion]) -> Cow<'r, BTreeMap<Quantity, Sample>> {
    if let [one] = regions {
        return Cow::Borrowed(&one.values);
    }
    let mut sums = BTreeMap::new();
    for quantity in regions.iter().flat_map(|r| r.values.keys()) {
        if sums.contains_key(quantity) {
            continue;
        }
        let parts: Vec<&Sample> = regions
            .iter()
            .filter_map(|r| r.values.get(quantity))
            .collect();
        if parts.len() < regions.len() {
            continue;
        }
        let weights = |by: &Quantity| -> Vec<f64> {
            let of = |r: &&SideRegion| r.values.get(by).map_or(0.0, Sample::typical);
            let weights: Vec<f64> = regions.iter().map(of).collect();
            let all: f64 = weights.iter().sum();
            match all > 0.0 {
                true => weights.iter().map(|w| w / all).collect(),
                false => vec![1.0 / regions.len() as f64; regions.len()],
            }
        };
        let found = match quantity {
            Quantity::MaxUnit => parts
                .iter()
                .max_by(|a, b| a.typical().total_cmp(&b.typical()))
                .map(|longest| **longest),
            Quantity::MeanUnit | Quantity::MedianUnit | Quantity::EventPerUnit(_) => {
                Some(weighted(&parts, &weights(&Quantity::Units)))
            }
            shared if shared.unit() == Unit::Share => {
                Some(weighted(&parts, &weights(&Quantity::Time)))
            }
            _ => Some(weighted(&parts, &vec![1.0; parts.len()])),
        };
        sums.extend(found.map(|sample| (quantity.clone(), sample)));
    }
    Cow::Owned(sums)
}

/// Run by run what was measured of regions together: quantities that add up.
fn each<'r>(regions: &[&'r SideRegion]) -> Cow<'r, Each> {
    if let [one] = regions {
        return Cow::Borrowed(&one.each);
    }
    let Some((first, others)) = regions.split_first() else {
        return Cow::Owned(Each::new());
    };
    let mut sums = first.each.clone();
    sums.retain(|quantity, values| {
        let adds_up = !matches!(
            quantity,
            Quantity::MaxUnit
                | Quantity::MeanUnit
                | Quantity::MedianUnit
                | Quantity::EventPerUnit(_)
        ) && quantity.unit() != Unit::Share;
        let of_others = others.iter().map(|r| r.each.get(quantity));
        let of_others: Option<Vec<&Vec<f64>>> = of_others.collect();
        for more in of_others.iter().flatten() {
            values
                .iter_mut()
                .zip(*more)
                .for_each(|(sum, more)| *sum += more);
        }
        adds_up && of_others.is_some_and(|all| all.iter().all(|more| more.len() == values.len()))
    });
    Cow::Owned(sums)
}

/// The same of both sides.
pub(crate) fn each_of_both<'r>(a: &[&'r SideRegion], b: &[&'r SideRegion]) -> [Cow<'r, Each>; 2] {
    [each(a), each(b)]
}

/// What was measured of regions on both sides, without what can't be compared.
pub(crate) fn both<'r>(
    a: &[&'r SideRegion],
    b: &[&'r SideRegion],
) -> [Cow<'r, BTreeMap<Quantity, Sample>>; 2] {
    let mut both = [values(a), values(b)];
    if let ([a], [b]) = (a, b)
        && may_be_empty(a, b)
    {
        for side in &mut both {
            side.to_mut().remove(&Quantity::Executions);
        }
    }
    both
}

/// The weighted sum.
fn weighted(parts: &[&Sample], weights: &[f64]) -> Sample {
    let runs = parts.iter().map(|p| p.runs()).min().unwrap_or(0);
    let moments = parts.iter().zip(weights).map(|(part, weight)| {
        let (_, mean, deviation) = linear_moments(part);
        (mean * weight, deviation * weight)
    });
    let (mean, deviation) = moments.fold((0.0, 0.0), |sum, part| (sum.0 + part.0, sum.1 + part.1));
    if deviation == 0.0 {
        return Sample::Same(runs, mean);
    }
    if mean > 0.0 && !parts.iter().any(|p| matches!(p, Sample::Linear(..))) {
        let square = (deviation / mean).powi(2).ln_1p();
        return Sample::Log(runs, mean.ln() - square / 2.0, square.sqrt());
    }
    Sample::Linear(runs, mean, deviation, 0)
}
