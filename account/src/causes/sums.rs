//! What threads waited for where only sums are on record. It is told only where one thread never waited: that one was the last each
//! time, so what it did longer than the others is what they waited for.

use super::{Found, OfRegion, units};
use crate::model::Cause;
use ompfuse_format::Construct;
use ompfuse_fuse::span::{Largest, Longest, LoopAnalysis};
use ompfuse_fuse::summary::{ParallelStat, RegionStat, ThreadColumns};
use std::collections::BTreeMap;

/// The last thread waits for at most such a share of what the others wait.
const LAST: f64 = 0.02;
/// What makes so much of the difference is the cause.
const MOST: f64 = 0.9;

/// What a thread does in a region beside waiting at its barriers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Units(u32),
    Sections(u32),
    Block(u32),
    Code,
    Other,
}

/// Of a region's barriers and end.
pub(super) fn cause(found: &Found<'_>, of: &OfRegion<'_>) -> Cause {
    longest(found, of).unwrap_or(Cause::Unknown)
}

fn longest(found: &Found<'_>, of: &OfRegion<'_>) -> Option<Cause> {
    let summary = found.summary;
    // What was left out would be taken for code.
    if !summary.left_out.is_empty() || summary.accounts.iter().any(|a| a.unrecorded_ticks > 0) {
        return None;
    }
    let [region] = summary.parallel_at(of.site?) else {
        return None;
    };
    let inside = summary.in_parallel(of.site?);
    let times = times(region, inside)?;
    let others = (times.waits.len() - 1) as f64;
    let (last, &least) = (times.waits.iter().enumerate()).min_by(|a, b| a.1.total_cmp(b.1))?;
    let mean = (times.waits.iter().sum::<f64>() - least) / others;
    if least > LAST * mean {
        return None;
    }
    let more = |of_threads: &[f64]| {
        let own = of_threads[last];
        own - (of_threads.iter().sum::<f64>() - own) / others
    };
    let parts = times.parts.iter().map(|(part, ns)| (*part, more(ns)));
    let (part, more) = parts.max_by(|a, b| a.1.total_cmp(&b.1))?;
    if more < MOST * mean {
        return None;
    }
    Some(match part {
        Part::Units(site) | Part::Sections(site) => {
            let threads = times.waits.len() as u64;
            let units = units_at(inside, site, threads, times.parts[&part][last])?;
            units::cause(found, &units, threads, false)
        }
        Part::Block(site) => Cause::OneThread { at: found.id(site) },
        Part::Code => Cause::UnevenCode,
        Part::Other => return None,
    })
}

/// Nanoseconds by thread of a team.
struct Times {
    /// At barriers and the region's end.
    waits: Vec<f64>,
    parts: BTreeMap<Part, Vec<f64>>,
}

/// `None`: more happened in the region than threads' own parts, or not all of it is known.
fn times(region: &ParallelStat, inside: &[&RegionStat]) -> Option<Times> {
    let team = &region.team_parts;
    let is_whole = region.measured == region.executions && region.left_behind_ns == 0;
    let are_equal = team.count.iter().all(|&n| n == region.executions);
    let threads = team.thread.len();
    if !is_whole || !are_equal || threads < 2 || team.task_ns.iter().any(|&ns| ns > 0) {
        return None;
    }
    let ns = |column: &[u64]| column.iter().map(|&ns| ns as f64).collect::<Vec<f64>>();
    let mut waits = ns(&team.barrier_ns);
    let mut code = ns(&team.body_ns);
    let mut parts: BTreeMap<Part, Vec<f64>> = BTreeMap::new();
    let kinds = inside.iter().filter_map(|r| Some((*r, r.construct?)));
    for (stat, construct) in kinds.filter(|(_, c)| !c.is_part()) {
        if construct.is_fork() || is_of_tasks(construct) {
            return None;
        }
        let is_barrier = construct.is_barrier();
        let part = part(stat.site?, construct);
        for (at, own) in by_thread(&stat.threads, &team.thread) {
            code[at] -= own;
            match is_barrier {
                true => waits[at] += own,
                false => parts.entry(part).or_insert_with(|| vec![0.0; threads])[at] += own,
            }
        }
    }
    parts.insert(Part::Code, code);
    let others = parts
        .entry(Part::Other)
        .or_insert_with(|| vec![0.0; threads]);
    for (sum, late) in others.iter_mut().zip(&team.startup_ns) {
        *sum += *late as f64;
    }
    Some(Times { waits, parts })
}

/// Who waits for them may execute others meanwhile.
fn is_of_tasks(construct: Construct) -> bool {
    construct.is_creation()
        || construct.is_task_wait()
        || matches!(construct, Construct::Task | Construct::Taskyield)
}

fn part(site: u32, construct: Construct) -> Part {
    match construct {
        Construct::Loop | Construct::Range => Part::Units(site),
        Construct::Sections | Construct::Section => Part::Sections(site),
        c if c.is_block() => Part::Block(site),
        c if c.is_code() || c == Construct::UserRegion => Part::Code,
        _ => Part::Other,
    }
}

/// Own times in nanoseconds, with positions in the team.
fn by_thread(of: &ThreadColumns, team: &[u32]) -> impl Iterator<Item = (usize, f64)> {
    let both = of.thread.iter().zip(&of.own_ns);
    both.filter_map(|(thread, &ns)| {
        let at = team.iter().position(|t| t == thread)?;
        Some((at, ns as f64))
    })
}

/// What is known of a loop or sections whose slowest thread took so long, all executions together.
fn units_at(
    inside: &[&RegionStat],
    site: u32,
    threads: u64,
    slowest_ns: f64,
) -> Option<LoopAnalysis> {
    let at_site = || inside.iter().filter(|r| r.site == Some(site));
    let units = at_site().find(|r| r.construct.is_some_and(Construct::is_xu))?;
    let is_whole = |c| matches!(c, Construct::Loop | Construct::Sections);
    let whole = at_site().find(|r| r.construct.is_some_and(is_whole));
    let executions = whole.map_or(1, |w| w.instances).max(1);
    let count = units.count();
    // Of several executions it isn't known how long the others' are.
    let unit = units.distribution.as_ref().and_then(|d| d.largest.first());
    let unit = unit.filter(|_| executions == 1);
    let largest = unit.map(|unit| Largest {
        first: unit.index,
        iterations: unit.iterations,
        ns: unit.own_ns,
    });
    let largest = largest.unwrap_or_default();
    Some(LoopAnalysis {
        site,
        is_sections: units.construct == Some(Construct::Section),
        executions,
        with_few_units: if count < threads * executions {
            executions
        } else {
            0
        },
        units: count,
        iterations: units.threads.extent.iter().sum(),
        units_ns: units.own_ns(),
        slowest_ns: slowest_ns as u64,
        longest: Longest {
            ns: largest.ns,
            iterations: largest.iterations,
            counts: [None; 2],
        },
        largest,
        longest_first_ns: 0,
        counts: [None; 2],
        fetch_ns: None,
        candidates: vec![],
    })
}
