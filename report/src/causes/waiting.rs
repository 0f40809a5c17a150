//! Waiting: at barriers and ends of regions, for tasks, and for what one thread at a time may enter.

use super::{Found, OfRegion, managing, sums, units};
use crate::from_summary::NS;
use crate::model::{Cause, LossKind, State};
use ompfuse_format::Construct;
use ompfuse_fuse::span::{LoopAnalysis, LowerBound, RegionAnalysis, WaitedFor};
use std::collections::BTreeMap;

/// The parts of the classes that are waiting for tasks.
const FOR_TASKS: [&str; 2] = [Construct::Taskwait.name(), Construct::Taskgroup.name()];

/// Parallelism of tasks below so many times the threads is too little (Cilkview recommends ten).
const ENOUGH: f64 = 2.0;
/// A task that is shorter than this share of a thread's waiting is not what it waited for.
const SHORT: f64 = 0.25;
/// From this share of the time on, creating tasks holds all else up.
const CREATING: f64 = 0.6;

/// What parts are called that hand a construct over which one thread at a time is in.
pub(super) const EXIT: &str = "-exit";

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    exclusion(found, of);
    tasks(found, of);
    ends(found, of);
}

/// Whether a part is waiting to enter something, or leaving it.
fn is_exclusion(what: &str) -> bool {
    let name = what.strip_suffix(EXIT).unwrap_or(what);
    Construct::ALL
        .iter()
        .any(|c| c.is_exclusive() && c.name() == name)
}

/// What threads waited for at barriers and the region's end, in the proportions of the executions that were looked at.
fn ends(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let is_end = |what: &str| {
        what != Construct::Flush.name() && !FOR_TASKS.contains(&what) && !is_exclusion(what)
    };
    let mut by_site: BTreeMap<Option<u32>, (f64, u64)> = BTreeMap::new();
    let parts = of.parts.iter().filter(|p| p.state != State::Management);
    for part in parts.filter(|p| is_end(&p.what)) {
        let barrier = part.site.filter(|_| part.what != "region-end");
        let sum = by_site.entry(barrier).or_default();
        sum.0 += part.seconds;
        sum.1 += part.count;
    }
    let flush = of.by_site(|what| what == Construct::Flush.name());
    let flush: f64 = flush.values().map(|s| s.0).sum();
    found.add(LossKind::Runtime, of.region, flush, Cause::Unknown);
    for (barrier, (seconds, count)) in by_site {
        let id = barrier.map(|site| found.id(site));
        match many(of, id, seconds, count).filter(|_| barrier.is_some()) {
            Some(cause) => found.add(LossKind::Waiting, of.region, seconds, cause),
            None => at_barrier(found, of, barrier, seconds),
        }
    }
}

fn at_barrier(found: &mut Found<'_>, of: &OfRegion<'_>, barrier: Option<u32>, seconds: f64) {
    let waiting = of.analysed.map_or(&[][..], |a| &a.waiting);
    let is_here = waiting.iter().any(|w| w.barrier == barrier);
    let mut by_cause: BTreeMap<WaitedFor, (u64, u64)> = BTreeMap::new();
    for waited in waiting.iter().filter(|w| w.barrier == barrier || !is_here) {
        let sum = by_cause.entry(waited.waited_for).or_default();
        sum.0 += waited.ns;
        sum.1 += waited.disturbed_ns;
    }
    let all: u64 = by_cause.values().map(|(ns, _)| ns).sum();
    let (Some(analysed), true) = (of.analysed, all > 0) else {
        let cause = sums::cause(found, of);
        return found.add(LossKind::Waiting, of.region, seconds, cause);
    };
    let mut unequal_s = found.unequal_s(of);
    for (waited_for, (ns, disturbed_ns)) in by_cause {
        let share = |ns: u64| seconds * ns as f64 / all as f64;
        let seconds = share(ns);
        // What one thread waited in an execution.
        let others = of.team().saturating_sub(1).max(1) as f64;
        let each = seconds / of.executions() as f64 / others;
        let cause = waited(found, analysed, waited_for, (of, each));
        let is_late = matches!(waited_for, WaitedFor::Late | WaitedFor::Runtime);
        let may_be_s = match cause {
            _ if is_late => seconds,
            // What the slowest computes longer isn't because it had no processor.
            Cause::UnevenUnits { .. } | Cause::UnevenDistribution { .. } | Cause::UnevenCode => {
                share(disturbed_ns).min(seconds - unequal_s.min(seconds))
            }
            _ => 0.0,
        };
        unequal_s -= seconds.min(unequal_s);
        let seconds = found.without_delays(may_be_s, of, seconds);
        found.add(LossKind::Waiting, of.region, seconds, cause);
    }
}

/// Shorter waits at so many barriers cost by being many.
const SHORT_WAIT_S: f64 = 50e-6;
const MANY: u64 = 100;

/// Whether it is the number of barriers that costs. `count`: by threads.
fn many(of: &OfRegion<'_>, at: Option<u32>, seconds: f64, count: u64) -> Option<Cause> {
    let wait_s = seconds / count.max(1) as f64;
    let times = count / of.team();
    let each = times / of.executions();
    (each >= MANY && wait_s < SHORT_WAIT_S).then_some(Cause::ManyBarriers {
        at,
        count: times,
        wait_s,
    })
}

fn waited(
    found: &Found<'_>,
    analysed: &RegionAnalysis,
    waited_for: WaitedFor,
    (of, each_s): (&OfRegion<'_>, f64),
) -> Cause {
    match waited_for {
        WaitedFor::Units(site) => match units_at(found, analysed, site) {
            Some(stat) => units::cause(found, stat, of.team()),
            None => Cause::Unknown,
        },
        WaitedFor::Block(site) => Cause::OneThread { at: found.id(site) },
        // Of tasks inside inner regions work and span are the outermost's.
        WaitedFor::Tasks(_) if analysed.executions == 0 => Cause::Unknown,
        WaitedFor::Tasks(site) => few_tasks(found, analysed, site, each_s),
        WaitedFor::Code => Cause::UnevenCode,
        WaitedFor::Nested(site) => Cause::Nested { at: found.id(site) },
        WaitedFor::Late => Cause::Late,
        WaitedFor::Entering(site) => held(found, of, site),
        WaitedFor::Runtime => Cause::Unknown,
    }
}

/// The units of a region inside another are found at the outermost.
fn units_at<'a>(
    found: &Found<'a>,
    region: &'a RegionAnalysis,
    site: u32,
) -> Option<&'a LoopAnalysis> {
    let analysis = found.summary.whole().analysis.as_ref()?;
    let everywhere = analysis.regions.iter().flat_map(|r| &r.loops);
    let mut loops = region.loops.iter().chain(everywhere);
    loops.find(|l| l.site == site)
}

fn parallelism(analysed: &RegionAnalysis) -> f64 {
    analysed.work_ns as f64 / analysed.span_ns.max(1) as f64
}

/// Whether a region's tasks can't keep its threads busy.
fn is_few(analysed: &RegionAnalysis) -> bool {
    analysed.executions > 0 && parallelism(analysed) < ENOUGH * analysed.team as f64
}

/// `each_s`: how long a thread waited in an execution.
fn few_tasks(found: &Found<'_>, analysed: &RegionAnalysis, site: u32, each_s: f64) -> Cause {
    let at = found.id(site);
    let parallelism = parallelism(analysed);
    let creating = analysed.creating_ns as f64 / analysed.wall_ns.max(1) as f64;
    let mean_s = found.mean(site, |c| c == Construct::Task).map(|m| m.0);
    let stats = found.summary.at_site(site).iter();
    let tasks = stats.filter(|r| r.construct == Some(Construct::Task));
    let longest = tasks.flat_map(|r| &r.threads.max_ns).max();
    let longest_s = longest.map(|&ns| ns as f64 * NS);
    let is_open = analysed.lower_bound.contains(&LowerBound::TaskDependences);
    if is_open || analysed.dependent > 0 && is_few(analysed) {
        let count = found.mean(site, |c| c == Construct::Task);
        return Cause::Dependences {
            at,
            count: count.map_or(0, |(_, count)| count),
            parallelism: (!is_open).then_some(parallelism),
        };
    }
    if is_few(analysed) {
        if let Some(one_by_one) = one_by_one(found, analysed, site) {
            return one_by_one;
        }
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

/// Waits for so many of the tasks that each is waited for by itself.
const EACH_TASK: f64 = 0.9;

/// Whether the tasks of a place are waited for one by one.
fn one_by_one(found: &Found<'_>, analysed: &RegionAnalysis, tasks: u32) -> Option<Cause> {
    let (_, count) = found.mean(tasks, |c| c == Construct::Task)?;
    let inside = found.summary.in_parallel(analysed.site?).iter();
    let is_wait = |c: Construct| FOR_TASKS.contains(&c.name());
    let waits = inside.filter(|r| r.construct.is_some_and(is_wait));
    let wait = waits.max_by_key(|r| r.count())?;
    (count > 1 && wait.count() as f64 >= EACH_TASK * count as f64).then_some(Cause::OneByOne {
        at: found.id(wait.site?),
        tasks: found.id(tasks),
        count: wait.count(),
    })
}

/// What threads waited for in `taskwait` and `taskgroup`.
fn tasks(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let waits = of.analysed.map_or(&[][..], |a| &a.task_waits);
    for (site, (seconds, _)) in of.by_site(|what| FOR_TASKS.contains(&what)) {
        let mut by_task: BTreeMap<u32, u64> = BTreeMap::new();
        for wait in waits.iter().filter(|w| Some(w.site) == site) {
            *by_task.entry(wait.tasks).or_default() += wait.ns;
        }
        let all: u64 = by_task.values().sum();
        if all == 0 {
            found.add(LossKind::TaskWait, of.region, seconds, Cause::Unknown);
            continue;
        }
        for (tasks, ns) in by_task {
            let few = of.analysed.filter(|a| is_few(a));
            let one_by_one = few.and_then(|analysed| one_by_one(found, analysed, tasks));
            let seconds = seconds * ns as f64 / all as f64;
            if let Some(cause) = one_by_one {
                found.add(LossKind::TaskWait, of.region, seconds, cause);
                continue;
            }
            let tiny = managing::tiny_tasks(found, tasks);
            if let Some(cause) = tiny {
                found.add(LossKind::Creation, of.region, seconds, cause);
                continue;
            }
            let cause = match found.mean(tasks, |c| c == Construct::Task) {
                Some((task_s, _)) => Cause::WaitsForTasks {
                    at: found.id(tasks),
                    task_s,
                },
                None => Cause::Unknown,
            };
            found.add(LossKind::TaskWait, of.region, seconds, cause);
        }
    }
}

/// Waiting to enter what one thread at a time may be in, and leaving it.
fn exclusion(found: &mut Found<'_>, of: &OfRegion<'_>) {
    for (site, (seconds, _)) in of.by_site(is_exclusion) {
        let cause = site.map_or(Cause::Unknown, |site| held(found, of, site));
        found.add(LossKind::Exclusion, of.region, seconds, cause);
    }
}

fn held(found: &Found<'_>, of: &OfRegion<'_>, site: u32) -> Cause {
    let at = found.id(site);
    let stats = found.summary.at_site(site).iter();
    let stats: Vec<_> = stats
        .filter(|r| r.parallel == of.site && r.construct.is_some_and(Construct::is_exclusive))
        .copied()
        .collect();
    let entries = stats.iter().map(|r| r.count()).sum();
    if stats
        .iter()
        .any(|r| r.construct == Some(Construct::Ordered))
    {
        return Cause::InOrder { at, entries };
    }
    let mutex = crate::from_summary::mutex_of(&stats);
    let held_s = mutex.and_then(|m| m.held_s);
    Cause::Held {
        at,
        held_s,
        of_wall: held_s
            .filter(|_| of.wall_s() > 0.0)
            .map(|h| h / of.wall_s()),
        entries,
    }
}
