//! Waiting: at barriers and ends of regions, for tasks, and for what one thread at a time may enter.

use super::{Found, OfRegion, units};
use crate::from_summary::NS;
use crate::model::{Cause, Class, LossKind};
use ompfuse_format::Construct;
use ompfuse_fuse::span::{RegionAnalysis, WaitedFor};
use std::collections::BTreeMap;

/// The parts of the classes that are waiting for tasks.
const FOR_TASKS: [&str; 2] = [Construct::Taskwait.name(), Construct::Taskgroup.name()];

/// Parallelism of tasks below so many times the threads is too little (Cilkview recommends ten).
const ENOUGH: f64 = 2.0;
/// A task that is shorter than this share of a thread's waiting is not what it waited for.
const SHORT: f64 = 0.25;
/// From this share of the time on, creating tasks holds all else up.
const CREATING: f64 = 0.6;

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let (mut at_ends, mut for_tasks) = (0.0, 0.0);
    for part in &of.overhead.parts {
        let is_end = matches!(part.class, Class::Imbalance | Class::LimitedParallelism);
        match part.what.as_str() {
            what if FOR_TASKS.contains(&what) => for_tasks += part.seconds,
            what if is_end || what == Construct::Barrier.name() => at_ends += part.seconds,
            _ => {}
        }
    }
    ends(found, of, at_ends);
    tasks(found, of, for_tasks);
    exclusion(found, of);
}

/// What threads waited for at barriers and the region's end, in the proportions of the executions that were looked at.
fn ends(found: &mut Found<'_>, of: &OfRegion<'_>, seconds: f64) {
    let mut by_cause: BTreeMap<WaitedFor, u64> = BTreeMap::new();
    let waiting = of.analysed.map_or(&[][..], |a| &a.waiting);
    for waited in waiting {
        *by_cause.entry(waited.waited_for).or_default() += waited.ns;
    }
    let all: u64 = by_cause.values().sum();
    let (Some(analysed), true) = (of.analysed, all > 0) else {
        return found.add(LossKind::Waiting, Some(of), seconds, Cause::Unknown);
    };
    for (waited_for, ns) in by_cause {
        let seconds = seconds * ns as f64 / all as f64;
        // What one thread waited in an execution.
        let each = seconds
            / of.overhead.executions.max(1) as f64
            / of.overhead.team.saturating_sub(1).max(1) as f64;
        let cause = waited(found, analysed, waited_for, (of, each));
        found.add(LossKind::Waiting, Some(of), seconds, cause);
    }
}

fn waited(
    found: &Found<'_>,
    analysed: &RegionAnalysis,
    waited_for: WaitedFor,
    (of, each_s): (&OfRegion<'_>, f64),
) -> Cause {
    match waited_for {
        WaitedFor::Units(site) => match analysed.loops.iter().find(|l| l.site == site) {
            Some(stat) => units::cause(found, stat, analysed.team),
            None => Cause::Unknown,
        },
        WaitedFor::Block(site) => Cause::OneThread { at: found.id(site) },
        WaitedFor::Tasks(site) => few_tasks(found, analysed, site, each_s),
        WaitedFor::Code => Cause::UnevenCode,
        WaitedFor::Nested(site) => Cause::Nested { at: found.id(site) },
        WaitedFor::Late => Cause::Late,
        WaitedFor::Entering(site) => held(found, of, site),
        WaitedFor::Runtime => Cause::Unknown,
    }
}

/// `each_s`: how long a thread waited in an execution.
fn few_tasks(found: &Found<'_>, analysed: &RegionAnalysis, site: u32, each_s: f64) -> Cause {
    let at = found.id(site);
    let parallelism = analysed.work_ns as f64 / analysed.span_ns.max(1) as f64;
    let creating = analysed.creating_ns as f64 / analysed.wall_ns.max(1) as f64;
    let mean_s = found.mean(site, |c| c == Construct::Task).map(|m| m.0);
    let stats = found.summary.at_site(site).iter();
    let tasks = stats.filter(|r| r.construct == Some(Construct::Task));
    let longest = tasks.flat_map(|r| &r.threads.max_ns).max();
    let longest_s = longest.map(|&ns| ns as f64 * NS);
    if parallelism < ENOUGH * analysed.team as f64 {
        return Cause::FewTasks {
            at,
            parallelism,
            mean_s,
            longest_s,
        };
    }
    let is_short = longest_s.is_some_and(|longest| longest < SHORT * each_s);
    if creating < CREATING && is_short {
        return Cause::UntakenTasks { at, parallelism };
    }
    match creating >= CREATING {
        true => Cause::SlowCreation {
            at,
            share: creating.min(1.0),
        },
        false => Cause::UnevenTasks {
            at,
            parallelism,
            mean_s,
            longest_s,
        },
    }
}

/// What threads waited for in `taskwait` and `taskgroup`.
fn tasks(found: &mut Found<'_>, of: &OfRegion<'_>, seconds: f64) {
    let waits = of.analysed.map_or(&[][..], |a| &a.task_waits);
    // The analysis has all regions' waits together: only those of this one's constructs count.
    let here = |site: u32| {
        let stats = found.summary.in_parallel(of.site);
        stats.iter().any(|r| r.site == Some(site))
    };
    let mut by_task: BTreeMap<u32, u64> = BTreeMap::new();
    for wait in waits.iter().filter(|w| here(w.site)) {
        *by_task.entry(wait.tasks).or_default() += wait.ns;
    }
    let all: u64 = by_task.values().sum();
    if all == 0 {
        return found.add(LossKind::TaskWait, Some(of), seconds, Cause::Unknown);
    }
    for (site, ns) in by_task {
        let cause = match found.mean(site, |c| c == Construct::Task) {
            Some((task_s, _)) => Cause::WaitsForTasks {
                at: found.id(site),
                task_s,
            },
            None => Cause::Unknown,
        };
        let seconds = seconds * ns as f64 / all as f64;
        found.add(LossKind::TaskWait, Some(of), seconds, cause);
    }
}

/// Waiting to enter what one thread at a time may be in.
fn exclusion(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let mut by_site: BTreeMap<u32, u64> = BTreeMap::new();
    for stat in found.summary.in_parallel(of.site) {
        let is_exclusive = stat.construct.is_some_and(Construct::is_exclusive);
        if let (true, Some(site)) = (is_exclusive, stat.site) {
            let waited = (stat.threads.own_ns.iter()).zip(&stat.threads.extent);
            *by_site.entry(site).or_default() += waited.map(|(own, e)| own.min(e)).sum::<u64>();
        }
    }
    for (site, ns) in by_site {
        let cause = held(found, of, site);
        found.add(LossKind::Exclusion, Some(of), ns as f64 * NS, cause);
    }
}

fn held(found: &Found<'_>, of: &OfRegion<'_>, site: u32) -> Cause {
    let at = found.id(site);
    let stats = found.summary.in_parallel(of.site).iter();
    let stats: Vec<_> = stats
        .filter(|r| r.site == Some(site) && r.construct.is_some_and(Construct::is_exclusive))
        .copied()
        .collect();
    let mutex = crate::from_summary::mutex_of(&stats);
    let held_s = mutex.and_then(|m| m.held_s);
    Cause::Held {
        at,
        held_s,
        of_wall: held_s
            .filter(|_| of.overhead.wall_s > 0.0)
            .map(|h| h / of.overhead.wall_s),
        entries: stats.iter().map(|r| r.count()).sum(),
    }
}
