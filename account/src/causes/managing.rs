//! What the OpenMP runtime takes: starting and ending regions, creating tasks, fetching ranges.

use super::{Found, Lacking, OfRegion, TINY_S};
use crate::model::{Cause, Loss, LossKind, State};
use ompfuse_format::Construct;

/// Parts of a region's own time.
const FORKING: [&str; 2] = ["startup", "shutdown"];
const CREATING: [&str; 2] = [Construct::TaskCreate.name(), Construct::Taskloop.name()];
const FETCHING: &str = Construct::Dispatch.name();

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let starting: f64 = (of.by_site(|what| FORKING.contains(&what)).iter())
        .map(|(_, s)| s.0)
        .sum();
    let forking = starting + late(found, of, starting);
    let lacking = Lacking::of(forking, &mut found.queues.around);
    let forking = found.without_lacking(lacking, (LossKind::Forking, of.region), forking);
    let executions = of.executions();
    let cause = Cause::ShortRegions {
        executions,
        wall_s: of.wall_s() / executions as f64,
        cost_s: forking / executions as f64 / of.team() as f64,
    };
    // Others wait longer for a late thread than its start takes.
    let is_late = found.losses.iter().any(|l| is_late(l, of));
    match is_late {
        true => found.add(LossKind::Waiting, of.region, forking, Cause::Late),
        false => found.add(LossKind::Forking, of.region, forking, cause),
    }
    for (site, (seconds, _)) in of.by_site(|what| CREATING.contains(&what)) {
        let cause = site.map_or(Cause::Unknown, |site| creating(found, site));
        found.add(LossKind::Creation, of.region, seconds, cause);
    }
    for (site, (seconds, fetches)) in of.by_site(|what| what == FETCHING) {
        let cause = site.map_or(Cause::Unknown, |site| {
            fetching(found, site, seconds, fetches)
        });
        found.add(LossKind::Fetching, of.region, seconds, cause);
    }
    let is_other = |what: &str| {
        let known = FORKING.contains(&what) || CREATING.contains(&what) || what == FETCHING;
        !known && !what.ends_with(super::exclusion::EXIT)
    };
    let others = of.parts.iter().filter(|p| p.state == State::Management);
    let others: f64 = others
        .filter(|p| is_other(&p.what))
        .map(|p| p.seconds)
        .sum();
    found.add(LossKind::Runtime, of.region, others, Cause::Unknown);
}

fn is_late(loss: &Loss, of: &OfRegion<'_>) -> bool {
    loss.region == of.region && loss.cause == Cause::Late
}

/// A region of which starting and ending takes at least this share is short.
const SHORT: f64 = 0.5;

/// Takes back what threads waited for late ones where that is less than starting took: then it is a part of it. In seconds.
fn late(found: &mut Found<'_>, of: &OfRegion<'_>, starting: f64) -> f64 {
    // Without single records, nobody knows for what they waited.
    let is_end = |l: &Loss| {
        l.region == of.region && l.loss == LossKind::Waiting && l.cause == Cause::Unknown
    };
    let is_short = starting >= SHORT * of.executions.map_or(0.0, |e| e.total_s);
    let late = |l: &Loss| {
        let is_part = is_late(l, of) || (of.analysed.is_none() && is_short && is_end(l));
        is_part && l.seconds < starting
    };
    let taken: f64 = (found.losses.iter().filter(|l| late(l)))
        .map(|l| l.seconds)
        .sum();
    found.losses.retain(|l| !late(l));
    taken
}

/// That the tasks of a place are so short that managing them is what costs.
pub(super) fn tiny_tasks(found: &Found<'_>, site: u32) -> Option<Cause> {
    let cause = creating(found, site);
    let is_tiny = |c: &Cause| matches!(c, Cause::CostlyTasks { task_s, count, .. } if *task_s < TINY_S && *count > 1);
    Some(cause).filter(is_tiny)
}

fn creating(found: &Found<'_>, site: u32) -> Cause {
    let is_creation = |c| c == Construct::TaskCreate || c == Construct::Taskloop;
    let created = found.mean(site, is_creation);
    let tasks = found.mean(site, |c| c == Construct::Task);
    match (created, tasks) {
        (Some((create_s, _)), Some((task_s, count))) => Cause::CostlyTasks {
            at: found.id(site),
            create_s,
            task_s,
            count,
        },
        _ => Cause::Unknown,
    }
}

/// Whether there is an `ordered` construct in the parallel region that a loop is in.
fn is_ordered(found: &Found<'_>, site: u32) -> bool {
    let around: Vec<Option<u32>> = { found.summary.at_site(site).iter() }
        .map(|r| r.parallel)
        .collect();
    let mut all = found.summary.regions.iter();
    all.any(|r| r.construct == Some(Construct::Ordered) && around.contains(&r.parallel))
}

fn fetching(found: &Found<'_>, site: u32, seconds: f64, fetches: u64) -> Cause {
    let ranges = found.mean(site, |c| c == Construct::Range);
    let iterations: u64 = (found.summary.at_site(site).iter())
        .filter(|r| r.construct == Some(Construct::Range))
        .map(|r| r.extent())
        .sum();
    let loops = found.mean(site, |c| c == Construct::Loop);
    match ranges {
        Some((range_s, count)) => Cause::CostlyRanges {
            at: found.id(site),
            fetch_s: seconds / fetches.max(1) as f64,
            range_s,
            iterations: (iterations > 0).then(|| iterations as f64 / count as f64),
            ranges: loops.map(|(_, parts)| count as f64 / parts as f64),
            is_ordered: is_ordered(found, site),
        },
        None => Cause::Unknown,
    }
}
