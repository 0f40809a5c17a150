//! What the own time on each call path consists of, thread by thread: classes of overhead, and how often threads came there.
//!
//! Classes are those of `classes`, which `overhead` adds up by parallel region. Here nothing is divided that was not measured for each thread.

use super::classes::{Kind, rows, too_few_in_all};
use crate::from_summary::indexed::Indexed;
use crate::model::Class;
use ompfuse_format::Construct;
use ompfuse_format::construct::{AroundPart, WaitsFor};
use ompfuse_fuse::summary::{ParallelStat, PathKind, PathStat};
use std::collections::BTreeMap;

/// Of a path and a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    /// Nanoseconds by class, in the order of [`Class::ALL`].
    pub(super) classes: [u64; 4],
    /// How often the thread came to it; `None`: it only waited or worked for it.
    pub(super) visits: Option<u64>,
}

impl Parts {
    fn add(&mut self, class: Class, ns: u64) {
        self.classes[class as usize] += ns;
    }

    /// Makes the classes fit into a time. A worker that a fork has made was not there from the fork on, so the last class, management, is
    /// made smaller first; more than that is rounding.
    fn fit(&mut self, own: u64) {
        let mut excess = self.classes.iter().sum::<u64>().saturating_sub(own);
        self.classes.iter_mut().rev().for_each(|ns| {
            let less = excess.min(*ns);
            (*ns, excess) = (*ns - less, excess - less);
        });
    }
}

/// By thread. `own`: its own nanoseconds on this path.
pub(super) fn parts(
    summary: &Indexed<'_>,
    path: usize,
    own: impl Fn(u32) -> u64,
) -> BTreeMap<u32, Parts> {
    let stat = &summary.paths[path];
    let parallel = innermost(summary, path);
    let mut found: BTreeMap<u32, Parts> = BTreeMap::new();
    for kind in &stat.kinds {
        add_kind(&mut found, summary, stat.site, parallel, kind);
    }
    if let Some(executions) = &stat.executions {
        add_around(&mut found, summary, executions);
    }
    add_visits(&mut found, summary, stat);
    for (&thread, parts) in &mut found {
        parts.fit(own(thread));
    }
    found
}

/// Site of the innermost parallel region on a path, its end included.
fn innermost(summary: &Indexed<'_>, path: usize) -> Option<u32> {
    let paths = &summary.paths;
    let up = |path: &&PathStat| paths.get(path.parent? as usize);
    let mut around = std::iter::successors(paths.get(path), up);
    around.find(|p| p.executions.is_some())?.site
}

fn add_kind(
    found: &mut BTreeMap<u32, Parts>,
    summary: &Indexed<'_>,
    site: Option<u32>,
    parallel: Option<u32>,
    kind: &PathKind,
) {
    let Some(place) = Kind::new(summary, (kind.construct, site, parallel)) else {
        return;
    };
    for sums in rows(&kind.threads) {
        let parts = found.entry(sums.thread.unwrap_or_default()).or_default();
        for part in place.divide(&sums) {
            parts.add(part.class, part.ns);
        }
    }
}

/// Adds what threads wait and manage around their parts of a parallel region, where all of them are on record.
fn add_around(found: &mut BTreeMap<u32, Parts>, summary: &Indexed<'_>, executions: &ParallelStat) {
    if executions.measured != executions.executions || executions.left_behind_ns > 0 {
        return;
    }
    let waits_for = match too_few_in_all(summary, executions) {
        true => WaitsFor::FewSections,
        false => WaitsFor::Others,
    };
    let columns = &executions.team_parts;
    for (row, &thread) in columns.thread.iter().enumerate() {
        let parts = found.entry(thread).or_default();
        for (part, ns) in [
            (AroundPart::Startup, columns.startup_ns[row]),
            (AroundPart::End(waits_for), columns.barrier_ns[row]),
            (AroundPart::Shutdown, columns.shutdown_ns[row]),
        ] {
            parts.add(part.overhead_class(), ns);
        }
    }
}

/// As `exec_count` of a region's times.
fn add_visits(found: &mut BTreeMap<u32, Parts>, summary: &Indexed<'_>, stat: &PathStat) {
    let mut add = |thread: &u32, count: u64| {
        let visits = &mut found.entry(*thread).or_default().visits;
        *visits = Some(visits.unwrap_or(0).max(count));
    };
    if let Some(executions) = &stat.executions {
        let columns = &executions.team_parts;
        let rows = columns.thread.iter().zip(&columns.count);
        return rows.for_each(|(thread, &count)| add(thread, count));
    }
    let site = stat.site.and_then(|site| summary.sites.get(site as usize));
    let construct = site.map_or(Some(Construct::Program), |site| site.construct);
    let is_shared = construct.is_some_and(|c| c.is_divided() || c == Construct::Single);
    // Who gets nothing of a loop, or does not execute the block, comes to its end.
    let comes =
        |c: Construct| Some(c) == construct || (is_shared && c == Construct::ImplicitBarrier);
    let has_own = stat.kinds.iter().any(|kind| comes(kind.construct));
    for kind in &stat.kinds {
        if comes(kind.construct) || (!has_own && kind.construct.is_xu()) {
            let rows = kind.threads.thread.iter().zip(&kind.threads.count);
            rows.for_each(|(thread, &count)| add(thread, count));
        }
    }
}
