//! Waiting: at barriers and ends of regions, and for tasks.

use super::{Found, OfRegion, Part, exclusion, sums, tasks, units};
use crate::model::{Cause, LossKind, State};
use ompfuse_format::Construct;
use ompfuse_fuse::span::{LoopAnalysis, RegionAnalysis, WaitedFor};
use std::collections::BTreeMap;

/// The parts of the classes that are waiting for tasks.
const FOR_TASKS: [&str; 2] = [Construct::Taskwait.name(), Construct::Taskgroup.name()];

/// Adds a region's.
pub(super) fn add(found: &mut Found<'_>, of: &OfRegion<'_>) {
    exclusion::add(found, of);
    for_tasks(found, of);
    ends(found, of);
}

/// What threads waited for at barriers and the region's end, in the proportions of the executions that were looked at.
fn ends(found: &mut Found<'_>, of: &OfRegion<'_>) {
    let is_end = |what: &str| {
        what != Construct::Flush.name()
            && !FOR_TASKS.contains(&what)
            && !exclusion::is_exclusion(what)
    };
    let parts = of.parts.iter().filter(|p| p.state != State::Management);
    let parts = parts.filter(|p| is_end(&p.what));
    let barrier = |part: &Part| part.site.filter(|_| part.what != "region-end");
    let by_site = sums(parts.map(|part| (barrier(part), part)));
    let flush = of.by_site(|what| what == Construct::Flush.name());
    let flush: f64 = flush.iter().map(|(_, s)| s.0).sum();
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
        if let WaitedFor::Tasks(site) = waited_for {
            let reasons = tasks::reasons(found, of, barrier);
            if reasons.is_empty() {
                let cause = tasks::last(found, analysed, site);
                found.add(LossKind::Waiting, of.region, seconds, cause);
            }
            for reason in reasons {
                let may_be_s = seconds * reason.disturbed;
                let seconds = found.without_delays(may_be_s, of, seconds * reason.share);
                found.add(LossKind::Waiting, of.region, seconds, reason.cause);
            }
            continue;
        }
        let cause = waited(found, analysed, waited_for, of);
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
    of: &OfRegion<'_>,
) -> Cause {
    match waited_for {
        WaitedFor::Units(site) => match units_at(found, analysed, site) {
            Some(stat) => {
                let here = analysed.waiting.iter();
                let is_alone = here
                    .filter(|w| w.waited_for == waited_for)
                    .all(|w| !w.several);
                units::cause(found, stat, of.team(), is_alone)
            }
            None => Cause::Unknown,
        },
        WaitedFor::Block(site) => Cause::OneThread { at: found.id(site) },
        WaitedFor::Tasks(site) => tasks::last(found, analysed, site),
        WaitedFor::Code => Cause::UnevenCode,
        WaitedFor::Nested(site) => Cause::Nested { at: found.id(site) },
        WaitedFor::Late => Cause::Late,
        WaitedFor::Entering(site) => exclusion::entering(found, of, site),
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

/// What threads waited for in `taskwait` and `taskgroup`.
fn for_tasks(found: &mut Found<'_>, of: &OfRegion<'_>) {
    for (site, (seconds, _)) in of.by_site(|what| FOR_TASKS.contains(&what)) {
        let reasons = site.map_or(vec![], |site| tasks::reasons(found, of, Some(site)));
        if reasons.is_empty() {
            found.add(LossKind::TaskWait, of.region, seconds, Cause::Unknown);
        }
        for reason in reasons {
            let may_be_s = seconds * reason.disturbed;
            let seconds = found.without_delays(may_be_s, of, seconds * reason.share);
            let tiny = reason.tiny(found);
            let (kind, cause) = match tiny {
                Some(tiny) => (LossKind::Creation, tiny),
                None => (LossKind::TaskWait, reason.cause),
            };
            found.add(kind, of.region, seconds, cause);
        }
    }
}
