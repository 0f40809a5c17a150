//! MPI: calls in which a process waits for others.

use super::{Found, OfRegion, team};
use crate::from_summary::NS;
use crate::model::{Cause, LossKind};
use ompfuse_format::Construct;
use ompfuse_fuse::summary::RegionStat;
use std::collections::BTreeMap;

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
    for (site, (ns, calls)) in by_site(all.filter(|r| r.parallel.is_none())) {
        let cause = cause(found, site, ns, calls);
        found.add(
            LossKind::Communication,
            None,
            ns as f64 * NS * threads,
            cause,
        );
    }
}

/// Adds a parallel region's.
pub(super) fn inside(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let stats = found.summary.in_parallel(of.site).iter().copied();
    for (site, (ns, calls)) in by_site(stats) {
        let cause = cause(found, site, ns, calls);
        found.add(LossKind::Communication, Some(of), ns as f64 * NS, cause);
    }
}

fn cause(found: &Found<'_>, site: u32, ns: u64, calls: u64) -> Cause {
    Cause::Communication {
        at: found.id(site),
        calls,
        call_s: ns as f64 * NS / calls.max(1) as f64,
    }
}
