//! The call-path profile: what belongs to each path itself, and with all that is below.

use super::path_parts::{Parts, parts};
use super::{NS, pid};
use crate::from_summary::indexed::Indexed;
use crate::model::{CallPath, CallPathThread, Class, PathCount};
use ompfuse_format::Construct;
use ompfuse_fuse::summary::{EventOrigin, PathStat};
use std::collections::BTreeMap;

/// Of a path and a thread.
#[derive(Debug, Clone, Default)]
pub(super) struct Sums {
    /// Nanoseconds of its own.
    pub(super) own: u64,
    /// With all that is below.
    pub(super) all: u64,
    /// By event; `None`: not known.
    counts: Vec<Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    own: Option<u64>,
    all: Option<u64>,
}

/// Of each path, by thread.
pub(super) type ByThread = BTreeMap<u32, Sums>;

/// What a part of which something isn't known makes of the whole. Parts that are too short to have seen an event that took turns
/// hardly matter to an estimate.
fn plus(a: Option<u64>, b: Option<u64>, event: &EventOrigin) -> Option<u64> {
    match (a, b, event.scaled) {
        (Some(a), Some(b), _) => Some(a.wrapping_add(b)),
        (one, other, true) => one.or(other),
        _ => None,
    }
}

/// The sums of a summary's paths, by position.
pub(super) fn sums(summary: &Indexed<'_>) -> Vec<ByThread> {
    let events = &summary.events;
    let mut sums: Vec<ByThread> = summary.paths.iter().map(|p| own(p, events)).collect();
    // What workers wait between fork and join is in their program's intervals, but belongs to the region.
    for stat in summary.paths.iter().filter_map(|p| p.executions.as_ref()) {
        for (thread, ns) in stat.workers.thread.iter().zip(&stat.workers.ns) {
            if let Some(outside) = sums[0].get_mut(thread) {
                outside.own = outside.own.saturating_sub(*ns);
            }
        }
    }
    for by_thread in &mut sums {
        by_thread.values_mut().for_each(|s| s.all = s.own);
    }
    for at in (1..sums.len()).rev() {
        let Some(parent) = summary.paths[at].parent else {
            continue;
        };
        let (before, behind) = sums.split_at_mut(at);
        let above = &mut before[parent as usize];
        for (&thread, inner) in &behind[0] {
            let outer = above.entry(thread).or_insert_with(|| Sums {
                counts: vec![
                    Count {
                        own: Some(0),
                        all: Some(0)
                    };
                    events.len()
                ],
                ..Sums::default()
            });
            outer.all += inner.all;
            for ((outer, inner), event) in outer.counts.iter_mut().zip(&inner.counts).zip(events) {
                outer.all = plus(outer.all, inner.all, event);
            }
        }
    }
    sums
}

fn own(path: &PathStat, events: &[EventOrigin]) -> ByThread {
    let mut by_thread = ByThread::new();
    for kind in &path.kinds {
        for (row, &thread) in kind.threads.thread.iter().enumerate() {
            let is_new = !by_thread.contains_key(&thread);
            let sums = by_thread.entry(thread).or_default();
            sums.own += kind.threads.own_ns[row];
            let count = |at: usize| *kind.counts.get(at)?.get(row)?;
            let counts = (0..events.len()).map(count);
            if is_new {
                let same = |own: Option<u64>| Count { own, all: own };
                sums.counts = counts.map(same).collect();
                continue;
            }
            for ((sum, count), event) in sums.counts.iter_mut().zip(counts).zip(events) {
                sum.own = plus(sum.own, count, event);
                sum.all = sum.own;
            }
        }
    }
    if let Some(stat) = &path.executions {
        for (&thread, &ns) in stat.workers.thread.iter().zip(&stat.workers.ns) {
            by_thread.entry(thread).or_default().own += ns;
        }
    }
    by_thread
}

/// By region and thread, over all paths: a region is on each of them once.
pub(super) fn by_region(summary: &Indexed<'_>, sums: &[ByThread]) -> BTreeMap<u32, ByThread> {
    let mut regions: BTreeMap<u32, ByThread> = BTreeMap::new();
    for (path, of_path) in summary.paths.iter().zip(sums) {
        let Some(site) = path.site else { continue };
        let region = regions.entry(site).or_default();
        for (&thread, more) in of_path {
            match region.get_mut(&thread) {
                Some(sum) => add(sum, more, &summary.events),
                None => drop(region.insert(thread, more.clone())),
            }
        }
    }
    regions
}

fn add(sum: &mut Sums, more: &Sums, events: &[EventOrigin]) {
    let Sums { own, all, counts } = more;
    sum.own += own;
    sum.all += all;
    if sum.counts.is_empty() {
        sum.counts.clone_from(counts);
        return;
    }
    for ((sum, more), event) in sum.counts.iter_mut().zip(counts).zip(events) {
        sum.own = plus(sum.own, more.own, event);
        sum.all = plus(sum.all, more.all, event);
    }
}

/// The paths of the report.
/// `contexts`: of contexts by number minus 1.
pub(super) fn call_paths(
    summary: &Indexed<'_>,
    sums: &[ByThread],
    ids: &[u32],
    contexts: &[Option<u32>],
) -> Vec<CallPath> {
    let paths = summary.paths.iter().zip(sums).enumerate();
    let path = |(at, (path, by_thread)): (usize, (&PathStat, &ByThread))| {
        let parts = parts(summary, at, |thread| {
            by_thread.get(&thread).map_or(0, |sums| sums.own)
        });
        let mut total = Sums::default();
        by_thread
            .values()
            .for_each(|s| add(&mut total, s, &summary.events));
        CallPath {
            parent: path.parent,
            region: path.site.map(|site| ids[site as usize]),
            context: (path.context.checked_sub(1))
                .and_then(|at| contexts.get(at as usize).copied().flatten()),
            executions: executions(summary, path),
            wall_s: path.executions.as_ref().map(|e| e.wall_ns as f64 * NS),
            exclusive_s: total.own as f64 * NS,
            inclusive_s: total.all as f64 * NS,
            per_thread: by_thread
                .iter()
                .map(|(t, s)| CallPathThread {
                    idle_s: (at == 0).then(|| idle(summary, *t, s)).flatten(),
                    ..thread(summary, *t, s, parts.get(t))
                })
                .collect(),
            events: counts(summary, &total),
        }
    };
    in_order(paths.map(path).collect())
}

/// The same, each path behind the one around it and beside its siblings in the order of their regions' numbers: that of a summary is the
/// order of its sites, which differs between a run and its profile.
fn in_order(mut paths: Vec<CallPath>) -> Vec<CallPath> {
    let mut below: Vec<Vec<usize>> = vec![vec![]; paths.len()];
    let mut rest: Vec<(usize, Option<u32>)> = vec![];
    for (at, path) in paths.iter().enumerate() {
        match path.parent {
            Some(parent) => below[parent as usize].push(at),
            None => rest.push((at, None)),
        }
    }
    rest.reverse();
    for list in &mut below {
        // The last comes first off the stack; those that are alike stay as they are.
        list.reverse();
        list.sort_by_key(|&at| std::cmp::Reverse((paths[at].region, paths[at].context)));
    }
    let mut order = Vec::with_capacity(paths.len());
    while let Some((at, parent)) = rest.pop() {
        paths[at].parent = parent;
        let place = order.len() as u32;
        order.push(at);
        rest.extend(below[at].iter().map(|&inner| (inner, Some(place))));
    }
    let mut paths: Vec<Option<CallPath>> = paths.into_iter().map(Some).collect();
    order
        .into_iter()
        .filter_map(|at| paths[at].take())
        .collect()
}

fn thread(
    summary: &Indexed<'_>,
    thread: u32,
    sums: &Sums,
    parts: Option<&Parts>,
) -> CallPathThread {
    let account = summary.accounts.get(thread as usize);
    let classes = Class::ALL.into_iter().filter_map(|class| {
        let ns = parts?.classes[class as usize];
        (ns > 0).then_some((class, ns as f64 * NS))
    });
    CallPathThread {
        process: account.and_then(|a| pid(summary, a.process)),
        mpi_rank: account.and_then(|a| summary.processes.get(a.process as usize)?.mpi_rank),
        thread: account.map_or(thread, |a| a.index),
        exclusive_s: sums.own as f64 * NS,
        inclusive_s: sums.all as f64 * NS,
        visits: parts.and_then(|parts| parts.visits),
        classes: classes.collect(),
        idle_s: None,
        events: counts(summary, sums),
    }
}

/// What a worker does in the program's own time.
fn idle(summary: &Indexed<'_>, thread: u32, sums: &Sums) -> Option<f64> {
    let is_worker = (summary.accounts.get(thread as usize)).is_some_and(|a| !a.root);
    (is_worker && sums.own > 0).then_some(sums.own as f64 * NS)
}

/// By name of the event; without those of which nothing is known.
pub(super) fn counts(summary: &Indexed<'_>, sums: &Sums) -> BTreeMap<String, PathCount> {
    let counts = summary.events.iter().zip(&sums.counts);
    let counts = counts.filter(|(_, c)| c.own.is_some() || c.all.is_some());
    counts
        .map(|(event, c)| {
            let count = PathCount {
                exclusive: c.own,
                inclusive: c.all,
            };
            (event.name.clone(), count)
        })
        .collect()
}

/// Instances of the construct; where only its units or parts are on record, of those.
fn executions(summary: &Indexed<'_>, path: &PathStat) -> u64 {
    if let Some(executions) = &path.executions {
        return executions.executions;
    }
    let site = path.site.and_then(|site| summary.sites.get(site as usize));
    let construct = site.and_then(|site| site.construct);
    let of = |wanted: &dyn Fn(Construct) -> bool| -> u64 {
        let kinds = path.kinds.iter().filter(|k| wanted(k.construct));
        kinds.map(|k| k.instances).sum()
    };
    let most = || path.kinds.iter().map(|k| k.instances).max().unwrap_or(0);
    [of(&|c| Some(c) == construct), of(&Construct::is_xu), most()]
        .into_iter()
        .find(|&n| n > 0)
        .unwrap_or(0)
}
