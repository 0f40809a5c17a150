//! To which class of overhead own time belongs (docs/reference/classes.md). Parallel regions, call paths and properties all ask here, so
//! that their sums agree.

use crate::from_summary::indexed::Indexed;
use crate::model::Class;
use ompfuse_format::Construct;
use ompfuse_format::construct::{Charge, WaitsFor};
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary, ThreadColumns};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Kind of interval, its site, and the site of the innermost parallel region.
pub(super) type Place = (Construct, Option<u32>, Option<u32>);

/// Sums over intervals of a kind at a place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    /// `None`: of all threads.
    pub(super) thread: Option<u32>,
    pub(super) count: u64,
    pub(super) own: u64,
    /// See [`ThreadColumns::extent`]; `None`: not known.
    pub(super) extent: Option<u64>,
}

/// The sums of each thread.
pub(super) fn rows(columns: &ThreadColumns) -> impl Iterator<Item = Sums> {
    (columns.thread.iter().enumerate()).map(|(row, &thread)| Sums {
        thread: Some(thread),
        count: columns.count[row],
        own: columns.own_ns[row],
        extent: Some(columns.extent[row]),
    })
}

/// Own time of a class.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part<'k> {
    pub(super) class: Class,
    /// Its source: `barrier`, `critical-exit`.
    pub(super) what: Cow<'k, str>,
    pub(super) ns: u64,
    pub(super) count: u64,
}

/// How the own time of intervals of a kind at a place is divided.
#[derive(Debug)]
pub(super) struct Kind {
    construct: Construct,
    class: Class,
    what: Cow<'static, str>,
    idle: Idle,
}

impl Kind {
    /// `None`: that time is no overhead.
    pub(super) fn new(summary: &Indexed<'_>, (construct, site, parallel): Place) -> Option<Kind> {
        // A fork's own time is told by the region's executions.
        let class = construct
            .overhead_class()
            .filter(|_| !construct.is_fork())?;
        let mut kind = Kind {
            construct,
            class,
            what: construct.name().into(),
            idle: Idle::default(),
        };
        match construct {
            Construct::Barrier => {
                let region = region_at(summary, (construct, site, parallel));
                kind.idle = region.map_or_else(Idle::default, |r| idle_at(summary, r));
            }
            Construct::ImplicitBarrier => {
                let waits_for = ends_behind(summary, site, parallel);
                kind.class = construct.overhead_class_for(waits_for).unwrap_or(class);
                if let Some(ends) = ended_at(summary, site).filter(|&ends| ends != construct) {
                    kind.what = format!("{}-end", ends.name()).into();
                }
            }
            _ => {}
        }
        Some(kind)
    }

    /// Divides own time at that place.
    pub(super) fn divide(&self, sums: &Sums) -> impl Iterator<Item = Part<'_>> {
        let construct = self.construct;
        let &Sums {
            count, own, extent, ..
        } = sums;
        let part = |class, what, ns, count| Part {
            class,
            what,
            ns,
            count,
        };
        let what = || Cow::Borrowed(&*self.what);
        let parts = match construct {
            _ if construct.charges_to() == Charge::Entry => {
                // How the time of those that were left out was divided is not known; most often it is waiting.
                let split = construct.split(own, extent.unwrap_or(own));
                let exits = if extent.is_some() { count } else { 0 };
                let exit = Cow::Owned(format!("{}-exit", self.what));
                [
                    Some(part(self.class, what(), split.wait, count)),
                    Some(part(Construct::AFTER_ENTRY, exit, split.runtime, exits)),
                ]
            }
            Construct::Barrier if self.idle.has(sums.thread) => {
                let class = construct.overhead_class_for(WaitsFor::OneThread);
                let class = class.unwrap_or(self.class);
                [Some(part(class, BEHIND_ONE.into(), own, count)), None]
            }
            // One interval per loop and thread; its extent says how often.
            Construct::Dispatch => {
                let fetched = extent.unwrap_or(count);
                [Some(part(self.class, what(), own, fetched)), None]
            }
            _ => [Some(part(self.class, what(), own, count)), None],
        };
        parts.into_iter().flatten()
    }
}

/// What waits at a barrier are called behind a block that one thread executes.
const BEHIND_ONE: &str = "master-end";

/// Who had nothing to do at a barrier, while another thread executed a block: that is no wait for each other. It is told by all that a
/// thread did there. How often it came on one path would tell something else on each of them.
#[derive(Debug, Default)]
pub(super) struct Idle {
    threads: BTreeSet<u32>,
    /// Most of all.
    all: bool,
}

impl Idle {
    /// `None`: all threads together.
    pub(super) fn has(&self, thread: Option<u32>) -> bool {
        thread.map_or(self.all, |thread| self.threads.contains(&thread))
    }
}

/// Who had nothing to do at a barrier.
pub(super) fn idle_at(summary: &Indexed<'_>, barrier: &RegionStat) -> Idle {
    let is_idle = |extent: u64, count: u64| 2 * extent > count;
    let sums: Vec<Sums> = rows(&barrier.threads).collect();
    let threads = sums.iter().filter_map(|sums| {
        is_idle(sums.extent?, sums.count)
            .then_some(sums.thread)
            .flatten()
    });
    let threads: BTreeSet<u32> = threads.collect();
    // One thread at most came with something done.
    if sums.len() > threads.len() + 1 || !has_block(summary, barrier.parallel) {
        return Idle::default();
    }
    let all = is_idle(barrier.extent(), barrier.count());
    Idle { threads, all }
}

/// What happened at a place.
fn region_at<'s>(
    summary: &Indexed<'s>,
    (construct, site, parallel): Place,
) -> Option<&'s RegionStat> {
    let same =
        |r: &&RegionStat| (r.site, r.parallel, r.construct) == (site, parallel, Some(construct));
    match site {
        Some(site) => summary.at_site(site).iter().copied().find(same),
        None => summary.whole().regions.iter().find(same),
    }
}

/// Whether one thread at a time executes a block in this parallel region.
pub(super) fn has_block(summary: &Indexed<'_>, parallel: Option<u32>) -> bool {
    let is_block = |r: &&RegionStat| r.construct.is_some_and(Construct::is_block);
    parallel.is_some_and(|site| summary.in_parallel(site).iter().any(is_block))
}

/// The construct whose end is at a site.
fn ended_at(summary: &Summary, site: Option<u32>) -> Option<Construct> {
    site.and_then(|s| summary.sites[s as usize].construct)
}

/// Whom threads wait for in the implicit barrier at a site.
fn ends_behind(summary: &Indexed<'_>, site: Option<u32>, parallel: Option<u32>) -> WaitsFor {
    match ended_at(summary, site) {
        Some(Construct::Single) => WaitsFor::OneThread,
        Some(Construct::Sections) if too_few_sections(summary, site, parallel) => {
            WaitsFor::FewSections
        }
        _ => WaitsFor::Others,
    }
}

/// The same of sections that are all that a parallel region consists of.
pub(super) fn too_few_in_all(summary: &Indexed<'_>, stat: &ParallelStat) -> bool {
    let Some(site) = stat.site else { return false };
    let sections = summary.at_site(site).iter();
    let sections = sections.filter(|r| r.construct == Some(Construct::Section));
    let sections: u64 = sections.map(|r| r.count()).sum();
    let left_out = summary.left_out_at(site).iter();
    let left_out = left_out.filter(|l| l.construct == Construct::Section);
    let sections = sections + left_out.map(|l| l.count).sum::<u64>();
    sections > 0 && sections < stat.team_parts.count.iter().sum()
}

/// ompP's rule: fewer sections were executed than threads came by.
pub(super) fn too_few_sections(
    summary: &Indexed<'_>,
    site: Option<u32>,
    parallel: Option<u32>,
) -> bool {
    let Some(site) = site else {
        return false;
    };
    let count = |construct: Construct| -> u64 {
        let recorded = (summary.at_site(site).iter())
            .filter(|r| (r.parallel, r.construct) == (parallel, Some(construct)))
            .copied();
        let left_out = (summary.left_out_at(site).iter()).filter(|l| l.construct == construct);
        recorded.map(RegionStat::count).sum::<u64>() + left_out.map(|l| l.count).sum::<u64>()
    };
    count(Construct::Section) < count(Construct::ImplicitBarrier)
}
