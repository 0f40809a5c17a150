//! One region: everything that happened at one site.

use super::paths::{self, ByThread};
use super::probes::{Price, intervals};
use super::{NS, distribution, mutex, pid, times, transfer};
use crate::from_summary::indexed::Indexed;
use crate::model::{Doubt, InPart, Region, RegionThread, Spread, Transfer};
use ompfuse_format::construct::Split;
use ompfuse_format::{Construct, Detail};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::run::LeftOut;
use ompfuse_fuse::spread::imbalance;
use ompfuse_fuse::summary::{EventOrigin, ModuleSummary, RegionStat, Summary};
use std::collections::{BTreeMap, BTreeSet};

/// Of one thread's sum: `own` and `extent` in nanoseconds. What a foreign table has is work.
fn split(construct: Option<Construct>, own: u64, extent: u64) -> Split {
    let all_work = Split {
        work: own,
        ..Split::default()
    };
    construct.map_or(all_work, |c| c.split(own, extent))
}

/// File name of a module, if there are several.
fn file(summary: &Indexed<'_>, module: &str) -> Option<String> {
    let is_it = |m: &&ModuleSummary| m.build_id.as_deref().unwrap_or(&m.path) == module;
    let found = summary.modules.iter().find(is_it)?;
    let name = found.path.rsplit('/').next().unwrap_or(&found.path);
    (summary.modules.len() > 1).then(|| name.to_owned())
}

/// A region, and who its threads are.
pub(super) struct Built {
    /// The region.
    pub(super) region: Region,
    /// For each of its threads the position in [`Summary::accounts`].
    pub(super) accounts: Vec<Option<u32>>,
}

/// Everything that happened at one site, or is known not to be on record; `None` if nothing did. `inclusive`: sums over its paths,
/// which a region has too that had not ended when its program was killed.
pub(super) fn region(
    summary: &Indexed<'_>,
    site: u32,
    id: u32,
    thread_ns: u64,
    inclusive: Option<&ByThread>,
) -> Option<Built> {
    let stats = summary.at_site(site);
    if stats.is_empty() && inclusive.is_none() && left_out(summary, site).next().is_none() {
        return None;
    }
    let at = &summary.sites[site as usize];
    let Sums {
        total,
        xus,
        threads,
    } = sums(summary, site, stats);
    let construct = main_construct(at.construct, stats);
    let wall = |r: &&&RegionStat| r.construct.is_some_and(Construct::is_fork);
    let wall_ns: u64 = stats.iter().filter(wall).map(|r| r.wall_ns()).sum();
    let time = total.work + total.wait + total.runtime;
    let probes_ns = Price::of(summary).map(|price| {
        let (recorded, left_out) = intervals(summary, site);
        price.ns(recorded, left_out)
    });
    let times = times::by_thread(summary, site, construct);
    let of_thread = |thread: u32| inclusive.and_then(|i| i.get(&thread));
    let of_call = |thread: u32| {
        let is_call = construct == Some(Construct::Mpi);
        is_call.then(|| transfer::of_thread(summary, site, thread))?
    };
    let mut region = Region {
        id,
        address: at.address,
        name: at.name.clone(),
        module: Some(at.module.clone()).filter(|m| !m.is_empty()),
        file: file(summary, &at.module),
        construct,
        combined_with: combined_with(construct, stats),
        function: at.function.clone(),
        function_demangled: at.function.as_deref().map(|f| readable(f).into_owned()),
        source: at.source.clone(),
        detail: at.detail.clone(),
        doubt_kind: (at.detail.as_ref())
            .is_some_and(|d| Detail(d).is_shared())
            .then_some(Doubt::SharedCode),
        executions: executed(construct, stats, left_out(summary, site)),
        in_part: in_part(summary, site, stats),
        xus: xus.count,
        iterations: iterations(stats),
        iterations_max: most_iterations(stats),
        wall_s: construct
            .is_some_and(Construct::is_fork)
            .then_some(wall_ns as f64 * NS),
        time_s: time as f64 * NS,
        share: if thread_ns == 0 {
            0.0
        } else {
            time as f64 / thread_ns as f64
        },
        of_available: 0.0,
        work_s: total.work as f64 * NS,
        wait_s: total.wait as f64 * NS,
        runtime_s: total.runtime as f64 * NS,
        probes_estimated_s: probes_ns.map(|ns| ns as f64 * NS),
        probes_share: None, // the processor time isn't known here
        xu_mean_s: (xus.count > 0).then(|| xus.own_ns as f64 / xus.count as f64 * NS),
        xu_min_s: (xus.count > 0).then_some(xus.min_ns as f64 * NS),
        xu_max_s: (xus.count > 0).then_some(xus.max_ns as f64 * NS),
        spread: spread(summary, site, stats, &threads),
        inclusive_s: inclusive.map(|i| inclusive_ns(i, stats) as f64 * NS),
        times: times::sum(&times),
        per_thread: threads
            .iter()
            .map(|(&thread, part)| RegionThread {
                mutex: mutex::of_thread(stats, thread),
                transfer: of_call(thread),
                inclusive_s: of_thread(thread).map(|s| s.all as f64 * NS),
                times: times.get(&thread).copied(),
                events: of_thread(thread).map_or_else(BTreeMap::new, |s| paths::counts(summary, s)),
                ..region_thread(summary, thread, part)
            })
            .collect(),
        ranks: None,
        events: event_totals(summary, stats),
        mutex: mutex::of_region(stats),
        transfer: None,
        cancelled: (construct == Some(Construct::Cancel)).then(|| cancelled(stats)),
        distribution: distribution::distribution(summary, stats),
    };
    region.transfer = Transfer::sum(region.per_thread.iter().filter_map(|t| t.transfer.as_ref()));
    let account = |&thread: &u32| summary.accounts.get(thread as usize).map(|_| thread);
    Some(Built {
        region,
        accounts: threads.keys().map(account).collect(),
    })
}

/// Own times at a site.
#[derive(Default)]
struct Sums {
    total: Split,
    xus: Xus,
    /// Units and times of each thread.
    threads: BTreeMap<u32, (u64, Split)>,
}

fn sums(summary: &Indexed<'_>, site: u32, stats: &[&RegionStat]) -> Sums {
    let mut sums = Sums::default();
    for stat in stats {
        let columns = &stat.threads;
        let is_xu = stat.construct.is_none_or(Construct::is_xu);
        for (row, &thread) in columns.thread.iter().enumerate() {
            let (count, own_ns) = (columns.count[row], columns.own_ns[row]);
            let part = split(stat.construct, own_ns, columns.extent[row]);
            let of_thread = sums.threads.entry(thread).or_default();
            sums.total += part;
            of_thread.1 += part;
            if is_xu {
                of_thread.0 += count;
                let (min_ns, max_ns) = (columns.min_ns[row], columns.max_ns[row]);
                sums.xus.add(count, own_ns, min_ns, max_ns);
            }
        }
    }
    // What workers wait between fork and join is in their outermost intervals, but belongs here.
    for stat in summary.parallel_at(site) {
        for (&thread, &ns) in stat.workers.thread.iter().zip(&stat.workers.ns) {
            sums.total.wait += ns;
            sums.threads.entry(thread).or_default().1.wait += ns;
        }
    }
    sums
}

#[derive(Default)]
struct Xus {
    count: u64,
    own_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

impl Xus {
    fn add(&mut self, count: u64, own_ns: u64, min_ns: u64, max_ns: u64) {
        self.min_ns = if self.count == 0 {
            min_ns
        } else {
            self.min_ns.min(min_ns)
        };
        self.max_ns = self.max_ns.max(max_ns);
        self.count += count;
        self.own_ns += own_ns;
    }
}

/// What the region is: as the scan has it if that was recorded. The runtime library can know better (KMPC says when a static
/// loop is `sections`, and which barriers are implicit).
fn main_construct(scanned: Option<Construct>, stats: &[&RegionStat]) -> Option<Construct> {
    const ENCLOSING: [Construct; 4] = [
        Construct::Loop,
        Construct::Sections,
        Construct::ImplicitBarrier,
        Construct::Barrier,
    ];
    let recorded = |wanted: Construct| stats.iter().any(|s| s.construct == Some(wanted));
    match scanned {
        Some(construct) if !recorded(construct) => {
            ENCLOSING.into_iter().find(|&c| recorded(c)).or(scanned)
        }
        _ => scanned,
    }
}

/// The work-sharing half of a combined construct, whose parts have one site.
fn combined_with(construct: Option<Construct>, stats: &[&RegionStat]) -> Option<Construct> {
    let inner = [Construct::Loop, Construct::Sections];
    let recorded = |wanted: &Construct| stats.iter().any(|s| s.construct == Some(*wanted));
    (construct == Some(Construct::Parallel))
        .then(|| inner.into_iter().find(recorded))
        .flatten()
}

fn left_out<'s>(summary: &Indexed<'s>, site: u32) -> impl Iterator<Item = &'s LeftOut> {
    summary.left_out_at(site).to_vec().into_iter()
}

/// By construct, wherever they were executed.
fn in_part(summary: &Indexed<'_>, site: u32, stats: &[&RegionStat]) -> Vec<InPart> {
    let mut parts: BTreeMap<Construct, InPart> = BTreeMap::new();
    for l in left_out(summary, site) {
        let same = stats.iter().filter(|s| s.construct == Some(l.construct));
        let recorded: u64 = same.map(|s| s.count()).sum();
        let part = parts.entry(l.construct).or_insert(InPart {
            kind: l.construct,
            recorded,
            executed: recorded,
            one_in: 1,
            throttled: false,
            left_out_s: 0.0,
            shorter_than_s: None,
        });
        part.executed += l.count;
        part.one_in = part.one_in.max(l.one_in);
        part.throttled |= l.throttled;
        part.left_out_s += l.own_ns as f64 * NS;
        let shorter = l.shorter_than_ns.map(|ns| ns as f64 * NS);
        if shorter > part.shorter_than_s {
            part.shorter_than_s = shorter;
        }
    }
    parts.into_values().collect()
}

/// As [`executions`], with what is not on record: then no other number stands for the construct's own.
fn executed<'a>(
    construct: Option<Construct>,
    stats: &[&RegionStat],
    left_out: impl Iterator<Item = &'a LeftOut>,
) -> u64 {
    let own = left_out.filter(|l| Some(l.construct) == construct);
    match own.map(|l| l.count).sum::<u64>() {
        0 => executions(construct, stats),
        left_out => {
            let own = stats.iter().filter(|s| s.construct == construct);
            own.map(|s| s.instances).sum::<u64>() + left_out
        }
    }
}

/// Instances of the construct itself; where only its XUs or parts are recorded, those.
fn executions(construct: Option<Construct>, stats: &[&RegionStat]) -> u64 {
    let of = |wanted: &dyn Fn(Option<Construct>) -> bool| -> u64 {
        stats
            .iter()
            .filter(|s| wanted(s.construct))
            .map(|s| s.instances)
            .sum()
    };
    match of(&|c| c == construct) {
        0 => match of(&|c| c.is_none_or(Construct::is_xu)) {
            0 => stats.iter().map(|s| s.instances).max().unwrap_or(0),
            xus => xus,
        },
        n => n,
    }
}

/// Spread over the threads that took part in the parallel regions around (or in this one, if it is one).
fn spread(
    summary: &Indexed<'_>,
    site: u32,
    stats: &[&RegionStat],
    threads: &BTreeMap<u32, (u64, Split)>,
) -> Spread {
    let around: BTreeSet<u32> = stats
        .iter()
        .filter(|s| !s.construct.is_some_and(Construct::is_fork))
        .filter_map(|s| s.parallel)
        .chain([site])
        .collect();
    let team = (around.iter())
        .flat_map(|&site| summary.at_site(site))
        .filter(|r| r.construct.is_some_and(Construct::is_part))
        .flat_map(|r| r.threads.thread.iter().copied());
    let mut by_place: BTreeMap<u32, u64> = BTreeMap::new();
    for thread in team
        .chain(threads.keys().copied())
        .collect::<BTreeSet<u32>>()
    {
        let work = threads.get(&thread).map_or(0, |part| part.1.work);
        *by_place.entry(summary.place(thread)).or_default() += work;
    }
    let work: Vec<u64> = by_place.into_values().collect();
    let (min, max) = (
        work.iter().min().copied().unwrap_or(0),
        work.iter().max().copied().unwrap_or(0),
    );
    let mean = work.iter().sum::<u64>() as f64 / work.len().max(1) as f64;
    Spread {
        threads: work.len() as u32,
        min_s: min as f64 * NS,
        mean_s: mean * NS,
        max_s: max as f64 * NS,
        imbalance: imbalance(&work),
    }
}

fn region_thread(summary: &Indexed<'_>, thread: u32, &(xus, part): &(u64, Split)) -> RegionThread {
    let account = summary.accounts.get(thread as usize);
    RegionThread {
        process: account.and_then(|a| pid(summary, a.process)),
        mpi_rank: account.and_then(|a| summary.processes.get(a.process as usize)?.mpi_rank),
        thread: account.map_or(thread, |a| a.index),
        in_place_of: Some(summary.place(thread))
            .filter(|&first| first != thread)
            .and_then(|first| Some(summary.accounts.get(first as usize)?.index)),
        thread_name: account.and_then(|a| a.name.clone()),
        xus,
        work_s: part.work as f64 * NS,
        wait_s: part.wait as f64 * NS,
        runtime_s: part.runtime as f64 * NS,
        inclusive_s: None,
        times: None,
        events: BTreeMap::new(),
        mutex: None,
        transfer: None,
    }
}

/// The iterations of ranges, and of natural loops, on record; `None` if there are neither.
fn iterations(stats: &[&RegionStat]) -> Option<u64> {
    let iterates = |c| matches!(c, Some(Construct::Range | Construct::NaturalLoop));
    let stats = stats.iter().filter(|s| iterates(s.construct));
    stats.map(|s| s.extent()).reduce(|a, b| a + b)
}

/// The most iterations of one execution of a natural loop; `None` if it is none.
fn most_iterations(stats: &[&RegionStat]) -> Option<u64> {
    let loops = (stats.iter()).filter(|s| s.construct == Some(Construct::NaturalLoop));
    loops.flat_map(|s| &s.threads.largest).max().copied()
}

/// The extent of a `cancel` says that nothing was cancelled.
fn cancelled(stats: &[&RegionStat]) -> u64 {
    let cancels = stats
        .iter()
        .filter(|s| s.construct == Some(Construct::Cancel));
    cancels.map(|s| s.count().saturating_sub(s.extent())).sum()
}

/// What is not known of a part is not known of the whole, but for scaled counts: parts that are too short to have seen an event
/// hardly matter to an estimate.
pub(super) fn event_totals(summary: &Summary, stats: &[&RegionStat]) -> BTreeMap<String, u64> {
    let total = |(at, event): (usize, &EventOrigin)| {
        let mut counts = stats.iter().map(|s| s.counts.get(at).copied().flatten());
        let known: Vec<u64> = counts.clone().flatten().collect();
        let is_known = !known.is_empty() && (event.scaled || counts.all(|c| c.is_some()));
        is_known.then(|| (event.name.clone(), known.iter().sum()))
    };
    summary
        .events
        .iter()
        .enumerate()
        .filter_map(total)
        .collect()
}

/// With all that is inside. Where functions call each other in turn, paths lead back to the first one, and what was executed in the other is
/// above it: the outermost calls' time from begin to end has all of it.
fn inclusive_ns(by_thread: &ByThread, stats: &[&RegionStat]) -> u64 {
    let on_paths = by_thread.values().map(|s| s.all).sum::<u64>();
    let calls = stats
        .iter()
        .filter(|r| r.construct.is_some_and(Construct::is_code));
    on_paths.max(calls.map(|r| r.wall_ns()).sum())
}
