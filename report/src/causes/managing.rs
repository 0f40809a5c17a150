//! What the OpenMP runtime takes: starting and ending regions, creating tasks, fetching ranges.

use super::{Found, OfRegion};
use crate::model::{Cause, Loss, LossKind, State};
use ompfuse_format::Construct;

/// Parts of a region's own time.
const FORKING: [&str; 2] = ["startup", "shutdown"];
const CREATING: [&str; 2] = [Construct::TaskCreate.name(), Construct::Taskloop.name()];
const FETCHING: &str = Construct::Dispatch.name();

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let forking: f64 = (of.by_site(|what| FORKING.contains(&what)).values())
        .map(|s| s.0)
        .sum();
    let executions = of.executions();
    let cause = Cause::ShortRegions {
        executions,
        wall_s: of.wall_s() / executions as f64,
        cost_s: forking / executions as f64 / of.team() as f64,
    };
    // Others wait longer for a late thread than its start takes.
    let late = |l: &Loss| l.region == of.region && l.cause == Cause::Late && l.seconds >= forking;
    let is_late = found.losses.iter().any(late);
    match found.crowded() {
        Some(cause) => found.add(LossKind::Starvation, None, forking, cause),
        None if is_late => found.add(LossKind::Waiting, of.region, forking, Cause::Late),
        None => found.add(LossKind::Forking, of.region, forking, cause),
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
        !known && !what.ends_with(super::waiting::EXIT)
    };
    let others = of.parts.iter().filter(|p| p.state == State::Management);
    let others: f64 = others
        .filter(|p| is_other(&p.what))
        .map(|p| p.seconds)
        .sum();
    found.add(LossKind::Runtime, of.region, others, Cause::Unknown);
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

fn fetching(found: &Found<'_>, site: u32, seconds: f64, fetches: u64) -> Cause {
    let ranges = found.mean(site, |c| c == Construct::Range);
    let iterations: u64 = (found.summary.at_site(site).iter())
        .filter(|r| r.construct == Some(Construct::Range))
        .map(|r| r.extent())
        .sum();
    match ranges {
        Some((range_s, count)) => Cause::CostlyRanges {
            at: found.id(site),
            fetch_s: seconds / fetches.max(1) as f64,
            range_s,
            iterations: (iterations > 0).then(|| iterations as f64 / count as f64),
        },
        None => Cause::Unknown,
    }
}
