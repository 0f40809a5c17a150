//! A region's distribution, from those of its sums.

use super::NS;
use crate::model::{Between, Distribution, LargestUnit, Percentiles};
use ompfuse_format::Construct;
use ompfuse_fuse::summary::distribution::{Histogram, LargeUnit};
use ompfuse_fuse::summary::{RegionStat, Summary};
use std::collections::BTreeMap;

/// Of the units of these sums, which are at one site; `None`: it has none, or they are on record by themselves.
pub(super) fn distribution(summary: &Summary, stats: &[&RegionStat]) -> Option<Distribution> {
    let units = stats
        .iter()
        .filter_map(|stat| Some((stat.construct?, stat.distribution.as_deref()?)));
    let (kind, first) = units.clone().next()?;
    let mut all = first.clone();
    for (_, other) in units.skip(1) {
        all.merge(other.clone());
    }
    let named = |(event, histogram): (&ompfuse_fuse::summary::EventOrigin, &Option<Histogram>)| {
        Some((event.name.clone(), percentiles(histogram.as_ref()?, 1.0)?))
    };
    let events: BTreeMap<String, Percentiles> = summary
        .events
        .iter()
        .zip(&all.events)
        .filter_map(named)
        .collect();
    Some(Distribution {
        time_s: percentiles(&all.own_ns, NS)?,
        events,
        largest: all.largest.iter().map(|unit| largest(kind, unit)).collect(),
        further_parts: all.further_parts,
    })
}

fn percentiles(histogram: &Histogram, unit: f64) -> Option<Percentiles> {
    let at = |percent| {
        let bucket = histogram.percentile(percent)?;
        Some(Between {
            from: bucket.from as f64 * unit,
            to: (bucket.to != u64::MAX).then_some(bucket.to as f64 * unit),
        })
    };
    Some(Percentiles {
        p50: at(50)?,
        p90: at(90)?,
        p99: at(99)?,
    })
}

fn largest(kind: Construct, unit: &LargeUnit) -> LargestUnit {
    let is_section = kind == Construct::Section;
    let has_iterations = unit.is_range && !is_section;
    LargestUnit {
        kind,
        time_s: unit.own_ns as f64 * NS,
        first_iteration: has_iterations.then_some(unit.index),
        iterations: has_iterations.then_some(unit.iterations),
        section: is_section.then_some(unit.index),
        rank: (!unit.is_range).then_some(unit.index),
        path: format!("{:016x}", unit.path),
    }
}
