//! MPI: calls in which a process waits for others.

use super::{Found, OfRegion, team};
use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Cause, LossKind};
use ompfuse_format::Construct;
use ompfuse_fuse::run::Matched;
use ompfuse_fuse::summary::RegionStat;
use std::collections::{BTreeMap, BTreeSet};

/// Own time in nanoseconds and calls, by site.
fn by_site<'s>(stats: impl Iterator<Item = &'s RegionStat>) -> BTreeMap<u32, (u64, u64)> {
    let mut sums: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for stat in stats.filter(|r| r.construct == Some(Construct::Mpi)) {
        if let Some(site) = stat.site {
            let sum = sums.entry(site).or_default();
            sum.0 += stat.own_ns();
            sum.1 += stat.count();
        }
    }
    sums
}

/// Adds calls outside of parallel regions: meanwhile the whole team has nothing to do.
pub(super) fn outside(found: &mut Found<'_>) {
    let all = found.summary.regions.iter();
    let threads = team(found.summary) as f64;
    for (site, sums) in by_site(all.filter(|r| r.parallel.is_none())) {
        add(found, None, (site, sums), threads);
    }
}

/// Adds a parallel region's.
pub(super) fn inside(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let stats = found.summary.in_parallel(of.site).iter().copied();
    for (site, sums) in by_site(stats) {
        add(found, Some(of), (site, sums), 1.0);
    }
}

/// Adds a site's calls. `times`: how many threads have nothing to do meanwhile.
fn add(
    found: &mut Found<'_>,
    of: Option<&OfRegion<'_>>,
    (site, (ns, calls)): (u32, (u64, u64)),
    times: f64,
) {
    let late = late(found.summary, site);
    let late_ns = late.late_ns.min(ns);
    if late_ns > 0 {
        let cause = Cause::LateSender {
            at: found.id(site),
            receives: late.receives,
            late: late.late,
            late_s: late_ns as f64 * NS / late.late.max(1) as f64,
        };
        let seconds = late_ns as f64 * NS * times;
        found.add(LossKind::Communication, of, seconds, cause);
    }
    let ns = ns - late_ns;
    let cause = cause(found, site, ns, calls);
    found.add(LossKind::Communication, of, ns as f64 * NS * times, cause);
}

/// A site's receives that waited for the sender; none where its calls are both inside and outside of parallel regions, or in
/// several: messages don't tell.
fn late(summary: &Indexed<'_>, site: u32) -> Matched {
    let calls = summary.at_site(site).iter();
    let calls = calls.filter(|r| r.construct == Some(Construct::Mpi));
    let places: BTreeSet<Option<u32>> = calls.map(|r| r.parallel).collect();
    if places.len() > 1 {
        return Matched::default();
    }
    let of_site = summary.messages.iter().filter(|m| m.site == site);
    let mut sum = Matched::default();
    for matched in of_site.filter_map(|m| m.matched) {
        sum.receives += matched.receives;
        sum.late += matched.late;
        sum.late_ns += matched.late_ns;
    }
    sum
}

fn cause(found: &Found<'_>, site: u32, ns: u64, calls: u64) -> Cause {
    Cause::Communication {
        at: found.id(site),
        calls,
        call_s: ns as f64 * NS / calls.max(1) as f64,
    }
}
