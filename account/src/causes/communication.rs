//! MPI: calls in which a process waits for others.

use super::Found;
use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Account, BusiestRank, Cause, LossKind, State};
use ompfuse_format::Construct;
use ompfuse_fuse::run::Matched;
use std::collections::{BTreeMap, BTreeSet};

/// Adds calls outside of parallel regions: meanwhile the other threads have nothing to do.
pub(super) fn outside(found: &mut Found<'_>) {
    let parts = found.account.parts(State::Communication).iter();
    let parts: Vec<_> = parts.filter(|p| p.parallel.is_none()).collect();
    let all: u64 = parts.iter().map(|p| p.ns).sum();
    let idle = found.account.ns(State::IdleCommunication);
    let with_idle = (all + idle) as f64 / all.max(1) as f64;
    for part in parts {
        add(found, part, with_idle);
    }
}

/// Adds those in parallel regions.
pub(super) fn inside(found: &mut Found<'_>) {
    let parts = found.account.parts(State::Communication).iter();
    for part in parts.filter(|p| p.parallel.is_some()) {
        add(found, part, 1.0);
    }
}

/// Adds a site's calls. `times`: what the threads that idle meanwhile make of them.
fn add(found: &mut Found<'_>, part: &crate::model::StatePart, times: f64) {
    let Some((site, id)) = part.region.and_then(|id| Some((found.site(id)?, id))) else {
        let seconds = part.ns as f64 * NS * times;
        return found.add(
            LossKind::Communication,
            part.parallel,
            seconds,
            Cause::Unknown,
        );
    };
    let late = late(found.summary, site);
    let late_ns = late.late_ns.min(part.ns);
    if late_ns > 0 {
        let cause = Cause::LateSender {
            at: id,
            receives: late.receives,
            late: late.late,
            late_s: late_ns as f64 * NS / late.late.max(1) as f64,
            busiest: busiest(found.account),
        };
        let seconds = late_ns as f64 * NS * times;
        found.add(LossKind::Communication, part.parallel, seconds, cause);
    }
    let ns = part.ns - late_ns;
    let name = (found.summary.sites.get(site as usize)).and_then(|s| s.detail.as_deref());
    let cause = Cause::Communication {
        at: id,
        calls: part.count,
        call_s: ns as f64 * NS / part.count.max(1) as f64,
        busiest: busiest(found.account).filter(|_| waits_for_work(name)),
    };
    found.add(
        LossKind::Communication,
        part.parallel,
        ns as f64 * NS * times,
        cause,
    );
}

/// Whether ranks come late to calls of this name because they work. Before the first one they have not begun, and the last one waits for
/// processes to end.
pub(crate) fn waits_for_work(name: Option<&str>) -> bool {
    !name.is_some_and(|name| name.starts_with("MPI_Init") || name.starts_with("MPI_Finalize"))
}

/// A rank that works so many times the mean is named.
const BUSIER: f64 = 1.1;

/// The rank with the most work, if that is much more than the mean.
pub(crate) fn busiest(account: &Account) -> Option<BusiestRank> {
    let mut works: BTreeMap<u32, u64> = BTreeMap::new();
    for process in &account.processes {
        let states = process.states.iter();
        let work = states.filter(|(s, _)| matches!(s, State::Useful | State::Serial));
        *works.entry(process.mpi_rank?).or_default() += work.map(|(_, ns)| ns).sum::<u64>();
    }
    let (&rank, &most) = works.iter().max_by_key(|(_, ns)| **ns)?;
    let mean = works.values().sum::<u64>() as f64 / works.len() as f64;
    let times_mean = most as f64 / mean.max(1.0);
    (works.len() > 1 && times_mean >= BUSIER).then_some(BusiestRank { rank, times_mean })
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
