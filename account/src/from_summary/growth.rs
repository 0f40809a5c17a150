//! From sums over time to a [`GrowthReport`].
//!
//! The whole run's numbers are those of its [`Report`]; sums over time say which share of each lies in which interval. So all
//! intervals add up to the report, whatever is known of the whole only.

use super::overhead::class_shares;
use super::{NS, region_ids};
use crate::Report;
use crate::model::Class;
use crate::model::growth::{
    GROWTH_VERSION, GrowthInterval, GrowthRegion, GrowthReport, GrowthUnit,
};
use crate::model::series::SeriesPlace;
use crate::phases::{DISTANCE, phases};
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_fuse::Summary;
use ompfuse_fuse::summary::growth::{AroundKind, Growth};
use std::collections::BTreeMap;

/// Regions that are listed.
const LISTED: usize = 50;

/// A run over time. `by`: where its intervals end.
pub fn growth(summary: &Summary, growth: &Growth, by: GrowthUnit) -> GrowthReport {
    let report = Report::new(summary);
    let count = growth.edges.len().saturating_sub(1);
    let ids = region_ids(summary);
    let time = thread_time(growth, count);
    let mut intervals: Vec<GrowthInterval> = (growth.edges.windows(2))
        .zip(&time)
        .map(|(edges, &thread_time_s)| GrowthInterval {
            begin_s: edges[0] as f64 * NS,
            end_s: edges[1] as f64 * NS,
            thread_time_s,
            ..GrowthInterval::nothing()
        })
        .collect();
    // What is known of the whole only is where the threads were.
    let mut spread = |whole: f64, weights: Vec<f64>, put: &dyn Fn(&mut GrowthInterval, f64)| {
        for (interval, part) in intervals.iter_mut().zip(divided(whole, &weights, &time)) {
            put(interval, part);
        }
    };
    for class in Class::ALL {
        let classes = report
            .overheads
            .iter()
            .filter_map(|o| o.overhead.get(class));
        let Some(whole) = classes.reduce(|a, b| a + b) else {
            continue;
        };
        let weights = class_weights(summary, growth, class, count);
        spread(whole, weights, &|i, s| i.overhead.add(class, s));
    }
    let serial = &report.serial;
    let (program, workers) = outside(summary, growth, count);
    spread(serial.program_s, program, &|i, s| i.serial_s = s);
    spread(serial.idle_s, workers, &|i, s| i.idle_s = s);
    let unknown = sums(growth, count, |site, c, _| {
        site.is_none() && c != Construct::Program
    });
    spread(serial.unknown_s, unknown, &|i, s| i.unknown_s = s);
    let mut by_id: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for own in &growth.own {
        let Some(site) = own.site else { continue };
        let nothing = || (vec![0.0; count], vec![0.0; count]);
        let (all, work) = by_id.entry(ids[site as usize]).or_insert_with(nothing);
        add(all, &own.ns);
        if own.construct.charges_to() == Charge::Work {
            add(work, &own.ns);
        }
    }
    for around in growth
        .around
        .iter()
        .filter(|a| a.kind == AroundKind::Workers)
    {
        let Some(site) = around.site else { continue };
        if let Some((all, _)) = by_id.get_mut(&ids[site as usize]) {
            add(all, &around.ns);
        }
    }
    let mut regions = vec![];
    for (at, region) in report.regions.iter().enumerate() {
        let (all, work) = by_id.remove(&region.id).unwrap_or_default();
        spread(region.work_s, work.clone(), &|i, s| i.work_s += s);
        if at < LISTED {
            regions.push(GrowthRegion {
                place: SeriesPlace::of(region),
                time_s: region.time_s,
                interval_s: divided(region.time_s, &all, &time),
                interval_work_s: divided(region.work_s, &work, &time),
            });
        } else {
            spread(region.time_s, all, &|i, s| i.other_s += s);
        }
    }
    // The parts say it: each is divided for itself, and a wait's place in time is not always known to the nanosecond.
    for (at, interval) in intervals.iter_mut().enumerate() {
        let listed: f64 = regions.iter().map(|r| r.interval_s[at]).sum();
        let outside = interval.serial_s + interval.idle_s + interval.unknown_s;
        interval.thread_time_s = listed + interval.other_s + outside;
    }
    let phases = phases(&intervals, &regions);
    GrowthReport {
        version: GROWTH_VERSION,
        program: report.program,
        args: report.args,
        run: report
            .runs
            .first()
            .map_or_else(String::new, |r| r.name.clone()),
        threads: report.threads,
        by,
        folded: growth.folded,
        intervals,
        regions,
        phases,
        phase_distance: DISTANCE,
        shortcomings: report.shortcomings,
    }
}

fn add(to: &mut [f64], ns: &[u64]) {
    to.iter_mut().zip(ns).for_each(|(to, &ns)| *to += ns as f64);
}

/// A whole in parts as large as weights, or, where there are none, as others.
fn divided(whole: f64, weights: &[f64], others: &[f64]) -> Vec<f64> {
    let sum: f64 = weights.iter().sum();
    let (weights, sum) = match sum > 0.0 {
        true => (weights, sum),
        false => (others, others.iter().sum()),
    };
    if sum <= 0.0 {
        return vec![0.0; others.len()];
    }
    weights.iter().map(|w| whole * w / sum).collect()
}

/// Nanoseconds of some own times.
fn sums(
    growth: &Growth,
    count: usize,
    wanted: impl Fn(Option<u32>, Construct, Option<u32>) -> bool,
) -> Vec<f64> {
    let mut sums = vec![0.0; count];
    for own in &growth.own {
        if wanted(own.site, own.construct, own.account) {
            add(&mut sums, &own.ns);
        }
    }
    sums
}

/// All threads' time in seconds.
fn thread_time(growth: &Growth, count: usize) -> Vec<f64> {
    let all = sums(growth, count, |_, _, _| true);
    all.into_iter().map(|ns| ns * NS).collect()
}

/// The program's own code on threads that start regions, and what workers wait outside of regions, in nanoseconds.
fn outside(summary: &Summary, growth: &Growth, count: usize) -> (Vec<f64>, Vec<f64>) {
    let root = |account: Option<u32>| {
        let account = account.and_then(|at| summary.accounts.get(at as usize));
        account.is_some_and(|a| a.root)
    };
    let program = sums(growth, count, |site, c, account| {
        site.is_none() && c == Construct::Program && root(account)
    });
    let mut workers = sums(growth, count, |site, c, account| {
        site.is_none() && c == Construct::Program && !root(account)
    });
    for around in growth
        .around
        .iter()
        .filter(|a| a.kind == AroundKind::Workers)
    {
        let less = workers.iter_mut().zip(&around.ns);
        less.for_each(|(all, &ns)| *all = (*all - ns as f64).max(0.0));
    }
    (program, workers)
}

/// Where a class of overhead lies, in nanoseconds.
fn class_weights(summary: &Summary, growth: &Growth, class: Class, count: usize) -> Vec<f64> {
    let mut weights = vec![0.0; count];
    let shares = class_shares(summary, class);
    for own in &growth.own {
        let Some(&share) = own.site.and_then(|site| shares.get(&(site, own.construct))) else {
            continue;
        };
        let to = weights.iter_mut().zip(&own.ns);
        to.for_each(|(to, &ns)| *to += share * ns as f64);
    }
    for around in &growth.around {
        let is_of_class = match around.kind {
            AroundKind::Startup | AroundKind::Shutdown => class == Class::Management,
            AroundKind::Imbalance => class == Class::Imbalance,
            AroundKind::Limited => class == Class::LimitedParallelism,
            AroundKind::Workers => false,
        };
        if is_of_class {
            add(&mut weights, &around.ns);
        }
    }
    weights
}
