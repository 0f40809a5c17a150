//! Why there was no task to execute for threads that waited: the reasons that the records show at each instant, as causes.

use super::{Found, OfRegion, managing};
use crate::from_summary::NS;
use crate::model::Cause;
use ompfuse_format::Construct;
use ompfuse_fuse::span::{Idle, LowerBound, NoTask, RegionAnalysis};

/// Tasks with less parallelism than so many times the threads are too few (Cilkview recommends ten).
const ENOUGH: f64 = 2.0;
/// From this share of the time on, creating tasks holds all else up.
const CREATING: f64 = 0.6;
/// If deferring tasks doesn't make the span shorter than this share of it, executing them at once costs nothing.
const SHORTER: f64 = 0.8;
/// At most so many times as long as tasks are left alone, threads have too few because of that.
const FOLLOWS: f64 = 4.0;
/// From this share on, the last tasks could have begun earlier.
const LATE: f64 = 0.25;

/// A part of a wait.
pub(super) struct Reason {
    /// From 0 to 1.
    pub(super) share: f64,
    pub(super) cause: Cause,
    /// The part of `share` that is for a task whose execution was disturbed.
    pub(super) disturbed: f64,
    /// Tasks that the thread that waits waited for, if it was for their end.
    tasks: Option<u32>,
}

impl Reason {
    /// The cause where managing these tasks is what costs.
    pub(super) fn tiny(&self, found: &Found<'_>) -> Option<Cause> {
        self.tasks
            .and_then(|site| managing::tiny_tasks(found, site))
    }
}

/// What a wait of a region consists of (`None`: its end), with one cause for each reason of the region. Empty: it isn't known.
pub(super) fn reasons(found: &Found<'_>, of: &OfRegion<'_>, at: Option<u32>) -> Vec<Reason> {
    let Some(analysed) = of.analysed else {
        return vec![];
    };
    let here = || analysed.idle.iter().filter(|i| i.at == at);
    let all: u64 = here().map(|i| i.ns).sum();
    let mut reasons: Vec<Reason> = vec![];
    let follows = |idle: &Idle| (root(analysed, idle), idle.ns as f64);
    let parts = here().filter(|i| i.ns > 0).flat_map(|idle| {
        let (why, ns) = follows(idle);
        let other = consequence(analysed, kind(analysed, idle));
        let (other, part) = other.map_or((why, 0.0), |(other, part)| (follows(other).0, part));
        let disturbed = idle.disturbed_ns as f64 * (1.0 - part);
        [(why, ns * (1.0 - part), disturbed), (other, ns * part, 0.0)]
    });
    for (why, ns, disturbed_ns) in parts.filter(|part| part.1 > 0.0) {
        let (share, disturbed) = (ns / all as f64, disturbed_ns / all as f64);
        let cause = cause(found, of, analysed, why);
        let same = |r: &&mut Reason| r.cause == cause;
        match reasons.iter_mut().find(same) {
            Some(known) => {
                known.share += share;
                known.disturbed += disturbed;
            }
            None => reasons.push(Reason {
                share,
                cause,
                disturbed,
                tasks: match why {
                    NoTask::Untaken(site) | NoTask::NotItsOwn(site) | NoTask::Last(site) => {
                        Some(site)
                    }
                    _ => None,
                },
            }),
        }
    }
    reasons
}

/// Whoever leaves tasks alone has too few of them later; and who would have too few anyway loses nothing by that. Which of both it is tells the
/// time that the region would take if tasks were taken at once. Of the waits for this reason: the other reason, and its part, from 0 to 1.
fn consequence(analysed: &RegionAnalysis, of: Kind) -> Option<(&Idle, f64)> {
    let largest = |of: Kind| analysed.idle.iter().find(|i| kind(analysed, i) == of);
    let ns = |of: Kind| {
        let these = analysed.idle.iter().filter(|i| kind(analysed, i) == of);
        these.map(|i| i.ns).sum::<u64>() as f64
    };
    let (untaken, last) = (ns(Kind::Untaken), ns(Kind::Last));
    if analysed.modelled_ns == 0 || untaken == 0.0 || last == 0.0 {
        return None;
    }
    let longer = analysed.wall_ns.saturating_sub(analysed.modelled_ns);
    let most = (untaken + last).min((1.0 + FOLLOWS) * untaken);
    let cost = ((longer * analysed.team) as f64).min(most);
    match of {
        Kind::Last if cost > untaken => Some((largest(Kind::Untaken)?, (cost - untaken) / last)),
        Kind::Untaken if cost < untaken => Some((largest(Kind::Last)?, 1.0 - cost / untaken)),
        _ => None,
    }
}

/// The reason that this one is told as: the region's largest of its kind, or what makes the tasks few.
fn root(analysed: &RegionAnalysis, idle: &Idle) -> NoTask {
    let mut kind = kind(analysed, idle);
    let of_kind = |kind: Kind| {
        let these = analysed.idle.iter();
        these.filter(move |i| self::kind(analysed, i) == kind)
    };
    let ns = |kind: Kind| of_kind(kind).map(|i| i.ns).sum::<u64>();
    let roots: &[Kind] = match kind {
        // One task's own code is waited for, and then its event.
        Kind::OneByOne => &[Kind::Event],
        Kind::Last if is_few(analysed) => &[
            Kind::Event,
            Kind::Dependent,
            Kind::Excluded,
            Kind::AtOnce,
            Kind::OneByOne,
            Kind::Block,
            Kind::Creating,
        ],
        _ => &[],
    };
    let most = roots.iter().copied().max_by_key(|&root| ns(root));
    kind = most.filter(|&root| ns(root) > ns(kind)).unwrap_or(kind);
    let other = match kind {
        Kind::Block => Some(Kind::Creating),
        Kind::Creating => Some(Kind::Block),
        _ => None,
    };
    kind = other.filter(|&other| ns(other) > ns(kind)).unwrap_or(kind);
    let most = of_kind(kind)
        .max_by_key(|i| i.ns)
        .map_or(idle.why, |i| i.why);
    match (kind, most) {
        (Kind::Last, NoTask::AtOnce(site) | NoTask::OneByOne { tasks: site, .. }) => {
            NoTask::Last(site)
        }
        (Kind::Creating, NoTask::Untaken(site)) => NoTask::Creating(site),
        (_, most) => most,
    }
}

/// Reasons that are one cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Untaken,
    NotItsOwn,
    Dependent,
    Excluded,
    Event,
    AtOnce,
    InYield,
    Block,
    Creating,
    OneByOne,
    Code,
    Last,
}

fn kind(analysed: &RegionAnalysis, idle: &Idle) -> Kind {
    match idle.why {
        NoTask::Untaken(_) if creating(analysed) >= CREATING => Kind::Creating,
        NoTask::Untaken(_) => Kind::Untaken,
        NoTask::NotItsOwn(_) => Kind::NotItsOwn,
        NoTask::Dependent(_) => Kind::Dependent,
        NoTask::Excluded(_) => Kind::Excluded,
        NoTask::Event(_) => Kind::Event,
        NoTask::AtOnce(_) if is_few(analysed) && would_defer(analysed) => Kind::AtOnce,
        NoTask::InYield(_) => Kind::InYield,
        NoTask::Block(_) => Kind::Block,
        NoTask::Creating(_) => Kind::Creating,
        NoTask::OneByOne { .. } if is_few(analysed) && single_waits(analysed, |_| true) > 1 => {
            Kind::OneByOne
        }
        NoTask::Code => Kind::Code,
        NoTask::AtOnce(_) | NoTask::OneByOne { .. } | NoTask::Last(_) => Kind::Last,
    }
}

fn cause(found: &Found<'_>, of: &OfRegion<'_>, analysed: &RegionAnalysis, why: NoTask) -> Cause {
    let tasks = |site: u32| found.tasks(site);
    let count = |site: u32| tasks(site).map_or(0, |(_, count)| count);
    match why {
        NoTask::Untaken(site) if is_open(analysed) => dependences(found, analysed, site),
        NoTask::Untaken(site) => Cause::UntakenTasks {
            at: found.id(site),
            mean_s: tasks(site).map(|(mean_s, _)| mean_s),
        },
        NoTask::NotItsOwn(site) => match tasks(site) {
            Some((task_s, _)) => Cause::WaitsForTasks {
                at: found.id(site),
                task_s,
            },
            None => Cause::Unknown,
        },
        NoTask::Dependent(site) => dependences(found, analysed, site),
        NoTask::Excluded(site) => Cause::Dependences {
            at: found.id(site),
            count: count(site),
            parallelism: None,
            excludes: true,
        },
        NoTask::Event(site) => Cause::AwaitsEvent {
            at: found.id(site),
            count: count(site),
        },
        NoTask::AtOnce(site) => Cause::AtOnce {
            at: found.id(site),
            parallelism: is_outermost(analysed).then(|| parallelism(analysed)),
            in_yield: false,
        },
        NoTask::InYield(site) => Cause::AtOnce {
            at: found.id(site),
            parallelism: None,
            in_yield: true,
        },
        NoTask::Block(site) => Cause::OneThread { at: found.id(site) },
        NoTask::Creating(site) => Cause::SlowCreation {
            at: found.id(site),
            share: creating(analysed).min(1.0),
        },
        NoTask::OneByOne { wait, tasks } => {
            let times = single_waits(analysed, |site| site == wait);
            let of_all = of.executions() as f64 / analysed.executions.max(1) as f64;
            Cause::OneByOne {
                at: found.id(wait),
                tasks: found.id(tasks),
                count: (times as f64 * of_all.max(1.0)).round() as u64,
            }
        }
        NoTask::Code => Cause::UnevenCode,
        NoTask::Last(site) => last(found, analysed, site),
    }
}

fn dependences(found: &Found<'_>, analysed: &RegionAnalysis, site: u32) -> Cause {
    let count = found.tasks(site);
    let is_known = !is_open(analysed) && is_outermost(analysed);
    Cause::Dependences {
        at: found.id(site),
        count: count.map_or(0, |(_, count)| count),
        parallelism: is_known.then(|| parallelism(analysed)),
        excludes: false,
    }
}

/// Others execute the last tasks.
pub(super) fn last(found: &Found<'_>, analysed: &RegionAnalysis, site: u32) -> Cause {
    // Of tasks inside inner regions work and span are the outermost's.
    if !is_outermost(analysed) {
        return Cause::Unknown;
    }
    if is_open(analysed) {
        return dependences(found, analysed, site);
    }
    let at = found.id(site);
    let stats = found.summary.at_site(site).iter();
    let tasks = stats.filter(|r| r.construct == Some(Construct::Task));
    let longest = tasks.flat_map(|r| &r.threads.max_ns).max();
    let mean_s = found.tasks(site).map(|(mean_s, _)| mean_s);
    let longest_s = longest.map(|&ns| ns as f64 * NS);
    let last = analysed
        .idle
        .iter()
        .filter(|i| matches!(i.why, NoTask::Last(_)));
    let (late, all) = last.fold((0, 0), |(late, all), i| (late + i.late_ns, all + i.ns));
    let began_late = late as f64 >= LATE * all as f64 && all > 0;
    let iterations = iterations(found, site);
    let parallelism = parallelism(analysed);
    match parallelism < analysed.team as f64 {
        true => Cause::FewTasks {
            at,
            parallelism,
            mean_s,
            longest_s,
            began_late,
            iterations,
        },
        false => Cause::UnevenTasks {
            at,
            parallelism,
            mean_s,
            longest_s,
            began_late,
            iterations,
        },
    }
}

/// Mean number of iterations in a task that a `taskloop` creates.
fn iterations(found: &Found<'_>, site: u32) -> Option<f64> {
    let stats = found.summary.at_site(site);
    let is_taskloop = stats
        .iter()
        .any(|r| r.construct == Some(Construct::Taskloop));
    let tasks = stats
        .iter()
        .filter(|r| r.construct == Some(Construct::Task));
    let (iterations, count) = tasks.fold((0, 0), |(i, n), r| (i + r.extent(), n + r.count()));
    (is_taskloop && count > 0).then(|| iterations as f64 / count as f64)
}

fn parallelism(analysed: &RegionAnalysis) -> f64 {
    analysed.work_ns as f64 / analysed.span_ns.max(1) as f64
}

/// Whether its work and span are known.
fn is_outermost(analysed: &RegionAnalysis) -> bool {
    analysed.executions > 0
}

/// Whether a region's tasks can't keep its threads busy.
fn is_few(analysed: &RegionAnalysis) -> bool {
    !is_outermost(analysed) || parallelism(analysed) < ENOUGH * analysed.team as f64
}

/// Whether it would help if tasks were not executed at their creation.
fn would_defer(analysed: &RegionAnalysis) -> bool {
    let deferred = analysed.span_deferred_ns as f64;
    !is_outermost(analysed) || deferred < SHORTER * analysed.span_ns as f64
}

/// Waits for single tasks, at these places.
fn single_waits(analysed: &RegionAnalysis, is_here: impl Fn(u32) -> bool) -> u64 {
    let here = { analysed.idle.iter() }
        .filter(|i| matches!(i.why, NoTask::OneByOne { wait, .. } if is_here(wait)));
    here.map(|i| i.times).sum()
}

/// Whether it isn't on record how tasks depend on each other.
fn is_open(analysed: &RegionAnalysis) -> bool {
    analysed.lower_bound.contains(&LowerBound::TaskDependences)
}

/// Share of the time in which one thread creates tasks.
fn creating(analysed: &RegionAnalysis) -> f64 {
    analysed.creating_ns as f64 / analysed.wall_ns.max(1) as f64
}
