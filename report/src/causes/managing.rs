//! What the OpenMP runtime takes: starting and ending regions, creating tasks, fetching ranges.

use super::{Found, OfRegion};
use crate::from_summary::NS;
use crate::model::{Cause, LossKind};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let seconds = |names: &[&str]| -> f64 {
        let parts = of.overhead.parts.iter();
        let parts = parts.filter(|p| names.contains(&p.what.as_str()));
        parts.map(|p| p.seconds).sum()
    };
    let forking = seconds(&["startup", "shutdown"]);
    let executions = of.overhead.executions.max(1) as f64;
    let cause = Cause::ShortRegions {
        executions: of.overhead.executions,
        wall_s: of.overhead.wall_s / executions,
        cost_s: forking / executions / of.overhead.team.max(1) as f64,
    };
    found.add(LossKind::Forking, Some(of), forking, cause);
    let creations = [Construct::TaskCreate, Construct::Taskloop];
    for (site, ns, _) in by_site(found, of, |c| creations.contains(&c)) {
        let created = found.mean(site, |c| {
            c == Construct::TaskCreate || c == Construct::Taskloop
        });
        let tasks = found.mean(site, |c| c == Construct::Task);
        let cause = match (created, tasks) {
            (Some((create_s, _)), Some((task_s, count))) => Cause::CostlyTasks {
                at: found.id(site),
                create_s,
                task_s,
                count,
            },
            _ => Cause::Unknown,
        };
        found.add(LossKind::Creation, Some(of), ns as f64 * NS, cause);
    }
    for (site, ns, fetches) in by_site(found, of, |c| c == Construct::Dispatch) {
        let ranges = found.mean(site, |c| c == Construct::Range);
        let iterations: u64 = (found.summary.at_site(site).iter())
            .filter(|r| r.construct == Some(Construct::Range))
            .map(|r| r.extent())
            .sum();
        let cause = match ranges {
            Some((range_s, count)) => Cause::CostlyRanges {
                at: found.id(site),
                fetch_s: ns as f64 * NS / fetches.max(1) as f64,
                range_s,
                iterations: (iterations > 0).then(|| iterations as f64 / count as f64),
            },
            None => Cause::Unknown,
        };
        found.add(LossKind::Fetching, Some(of), ns as f64 * NS, cause);
    }
}

/// Sites of a kind in a region: own time in nanoseconds, and sum of extents.
fn by_site(
    found: &Found<'_>,
    of: &OfRegion<'_>,
    is: impl Fn(Construct) -> bool,
) -> Vec<(u32, u64, u64)> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stat in found.summary.in_parallel(of.site) {
        if let (Some(site), true) = (stat.site, stat.construct.is_some_and(&is)) {
            let sum = sums.entry(site).or_default();
            sum.0 += stat.own_ns();
            sum.1 += stat.extent();
        }
    }
    sums.into_iter()
        .map(|(site, (ns, n))| (site, ns, n))
        .collect()
}
