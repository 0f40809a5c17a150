//! From sums to performance properties: those of ompP, and those of tasks (docs/reference/ompp.md#properties).
//!
//! They follow the classes of overhead: what is a loss there has a property here, with the place of the loss.

use super::NS;
use super::classes::{Sums, idle_at, rows, too_few_in_all, too_few_sections};
use crate::from_summary::indexed::Indexed;
use crate::model::{Class, ParallelOverhead, Property, PropertyKind};
use ompfuse_format::Construct;
use ompfuse_fuse::summary::RegionStat;
use std::collections::BTreeMap;

/// Atomic operations for each second of the available time from which on they are a property.
const FREQUENT: f64 = 1000.0;

/// Seconds and number.
type Losses = BTreeMap<(PropertyKind, Option<u32>), (f64, u64)>;

/// All of them, the largest first. `available_s`: the program's available time.
pub(super) fn properties(
    summary: &Indexed<'_>,
    overheads: &[ParallelOverhead],
    available_s: Option<f64>,
    ids: &[u32],
) -> Vec<Property> {
    let mut losses = Losses::new();
    for stat in &summary.regions {
        let region = stat.site.map(|site| ids[site as usize]);
        for (kind, ns, count) in of_stat(summary, stat) {
            add(&mut losses, kind, region, ns as f64 * NS, count);
        }
    }
    for overhead in overheads {
        for (kind, seconds, count) in at_end(summary, overhead, ids) {
            add(&mut losses, kind, Some(overhead.region), seconds, count);
        }
    }
    let is_frequent = |count: u64| available_s.is_some_and(|s| count as f64 > FREQUENT * s);
    let mut list: Vec<Property> = losses
        .into_iter()
        .filter(|((kind, _), (_, count))| {
            *kind != PropertyKind::FrequentAtomic || is_frequent(*count)
        })
        .filter(|(_, (seconds, _))| *seconds > 0.0)
        .map(|((kind, region), (seconds, count))| Property {
            kind,
            region,
            seconds,
            count,
            severity: available_s.filter(|&s| s > 0.0).map(|s| seconds / s),
        })
        .collect();
    list.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    list
}

fn add(losses: &mut Losses, kind: PropertyKind, region: Option<u32>, seconds: f64, count: u64) {
    let loss = losses.entry((kind, region)).or_default();
    loss.0 += seconds;
    loss.1 += count;
}

/// Of one kind of interval at one place: nanoseconds, and number.
fn of_stat(summary: &Indexed<'_>, stat: &RegionStat) -> Vec<(PropertyKind, u64, u64)> {
    let Some(construct) = stat.construct else {
        return vec![];
    };
    let (own, count) = (stat.own_ns(), stat.count());
    let waited = construct.split(own, stat.extent()).wait;
    let one = |kind, ns| vec![(kind, ns, count)];
    match construct {
        Construct::Barrier => at_barrier(summary, stat),
        Construct::ImplicitBarrier => one(at_implicit_barrier(summary, stat), own),
        Construct::Critical => one(PropertyKind::CriticalSectionContention, waited),
        Construct::Lock => one(PropertyKind::LockContention, waited),
        Construct::Ordered => one(PropertyKind::OrderedWait, waited),
        Construct::Reduction => one(PropertyKind::ReductionWait, waited),
        Construct::Atomic => one(PropertyKind::FrequentAtomic, own),
        c if c.is_task_wait() => one(PropertyKind::WaitForTasks, own),
        c if c.is_creation() => one(PropertyKind::TaskCreation, own),
        Construct::Dispatch => vec![(PropertyKind::LoopScheduling, own, stat.extent())],
        _ => vec![],
    }
}

/// Behind a block that one thread executes the others have nothing to do: that is no wait for each other.
fn at_barrier(summary: &Indexed<'_>, stat: &RegionStat) -> Vec<(PropertyKind, u64, u64)> {
    let idle = idle_at(summary, stat);
    let block = stat.parallel.and_then(|p| block_in(summary, p));
    let of_row = |sums: Sums| {
        let kind = block
            .filter(|_| idle.has(sums.thread))
            .unwrap_or(PropertyKind::WaitAtBarrier);
        (kind, sums.own, sums.count)
    };
    rows(&stat.threads).map(of_row).collect()
}

/// By what one thread executes in a parallel region while others wait.
fn block_in(summary: &Indexed<'_>, parallel: u32) -> Option<PropertyKind> {
    let has = |wanted: Construct| {
        let mut stats = summary.in_parallel(parallel).iter();
        stats.any(|r| r.construct == Some(wanted))
    };
    match (has(Construct::Master), has(Construct::Single)) {
        (true, _) => Some(PropertyKind::UnparallelizedInMaster),
        (false, true) => Some(PropertyKind::UnparallelizedInSingle),
        (false, false) => None,
    }
}

fn at_implicit_barrier(summary: &Indexed<'_>, stat: &RegionStat) -> PropertyKind {
    let site = stat.site.and_then(|site| summary.sites.get(site as usize));
    match site.and_then(|site| site.construct) {
        Some(Construct::Single) => PropertyKind::UnparallelizedInSingle,
        Some(c) if c.is_loop() => PropertyKind::ImbalanceInLoop,
        Some(Construct::Parallel) => PropertyKind::ImbalanceInParallelRegion,
        Some(Construct::Sections) if too_few_sections(summary, stat.site, stat.parallel) => {
            PropertyKind::NotEnoughSections
        }
        Some(Construct::Sections) if is_uneven(summary, stat) => {
            PropertyKind::UnevenSectionDistribution
        }
        Some(Construct::Sections) => PropertyKind::ImbalanceInSections,
        _ => PropertyKind::ImbalanceInWorkshare,
    }
}

/// Whether some threads have executed more sections than others.
fn is_uneven(summary: &Indexed<'_>, end: &RegionStat) -> bool {
    let Some(site) = end.site else { return false };
    unevenly(summary, site, end.parallel, &end.threads.thread)
}

/// The same over these threads, of sections at a place.
fn unevenly(summary: &Indexed<'_>, site: u32, parallel: Option<u32>, threads: &[u32]) -> bool {
    let sections = summary.at_site(site).iter();
    let mut sections =
        sections.filter(|r| (r.parallel, r.construct) == (parallel, Some(Construct::Section)));
    let Some(sections) = sections.next() else {
        return false;
    };
    let of_thread = |thread: &u32| {
        let row = sections.threads.thread.iter().position(|t| t == thread);
        row.map_or(0, |row| sections.threads.count[row])
    };
    let counts = threads.iter().map(of_thread);
    counts.clone().max() != counts.min()
}

/// What a parallel region's threads lose before and after their parts, as far as that is known.
fn at_end(
    summary: &Indexed<'_>,
    overhead: &ParallelOverhead,
    ids: &[u32],
) -> Vec<(PropertyKind, f64, u64)> {
    let site = (0u32..).zip(ids).find(|(_, id)| **id == overhead.region);
    let site = site.map(|(site, _)| site);
    let stat = site.and_then(|site| summary.parallel_at(site).first().copied());
    let sections = stat.filter(|stat| {
        let kinds = stat.site.map_or(&[][..], |site| summary.at_site(site));
        kinds
            .iter()
            .any(|r| r.construct == Some(Construct::Section))
    });
    // A combined construct's sections end where the region does.
    let combined = sections.map(|stat| {
        let at = stat.site.unwrap_or_default();
        let is_uneven = unevenly(summary, at, stat.site, &stat.team_parts.thread);
        match (too_few_in_all(summary, stat), is_uneven) {
            (true, _) => PropertyKind::NotEnoughSections,
            (false, true) => PropertyKind::UnevenSectionDistribution,
            (false, false) => PropertyKind::ImbalanceInSections,
        }
    });
    let kind = |what: &str, class: Class| match (what, class) {
        ("startup" | "shutdown", _) => Some(PropertyKind::ThreadManagement),
        ("region-end", _) if combined.is_some() => combined,
        ("region-end", Class::LimitedParallelism) => site.and_then(|site| block_in(summary, site)),
        ("region-end", _) => Some(PropertyKind::ImbalanceInParallelRegion),
        _ => None,
    };
    let parts = overhead.parts.iter();
    parts
        .filter_map(|p| Some((kind(&p.what, p.class)?, p.seconds, p.count)))
        .collect()
}
