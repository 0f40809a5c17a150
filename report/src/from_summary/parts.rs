//! Counts and processor time per outermost parallel region and thread.

use super::{NS, pid};
use crate::model::{EventState, Grain, RegionCount, RegionCounts, Running};
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_fuse::run::{ProcessInfo, RegionParts};
use ompfuse_fuse::summary::{EventOrigin, Summary};
use std::collections::BTreeMap;

/// The events that were counted per region.
pub(super) fn events(summary: &Summary) -> impl Iterator<Item = EventState> + '_ {
    let state = |e: &EventOrigin| EventState {
        name: e.name.clone(),
        grain: Grain::Region,
        run: e.run.map(|run| run + 1),
        reason: e.reason.clone(),
        scaled: e.scaled,
        probe_inside: None,
        probe_around: None,
    };
    summary.region_events.iter().map(state)
}

/// By region and thread. `ids`: the sites' numbers in the report.
pub(super) fn counts(summary: &Summary, ids: &[u32]) -> Vec<RegionCounts> {
    let mut all: Vec<RegionCounts> = summary
        .region_parts
        .iter()
        .filter_map(|parts| region_counts(summary, parts, *ids.get(parts.site as usize)?))
        .collect();
    all.sort_by_key(|c| (c.region, c.process, c.team_thread));
    all
}

fn region_counts(summary: &Summary, parts: &RegionParts, region: u32) -> Option<RegionCounts> {
    let count = |(at, event): (usize, &EventOrigin)| {
        let count = parts.counts.get(at).copied().flatten()?;
        let covered = parts.covered.get(at).copied().filter(|&n| n > 0)?;
        Some((event.name.clone(), RegionCount { count, covered }))
    };
    let events = summary.region_events.iter().enumerate();
    Some(RegionCounts {
        region,
        process: pid(summary, parts.process),
        team_thread: parts.member,
        thread: parts.thread,
        executed: parts.parts,
        covered: parts.read,
        wall_s: parts.wall_ns as f64 * NS,
        covered_wall_s: parts.read_wall_ns as f64 * NS,
        processor_s: parts
            .processor_ns
            .filter(|_| parts.read > 0)
            .map(|ns| ns as f64 * NS),
        wait_s: parts.wait_ns as f64 * NS,
        events: events.filter_map(count).collect(),
    })
}

/// Share of the working time without a processor from which on it is told; an idle machine takes a smaller one, too.
const STARVED: f64 = 0.05;
/// Shorter times in regions tell nothing: a thread's start alone may take as long.
const TOO_SHORT_NS: u64 = 1_000_000;

/// Whether threads had processors; `None`: nothing is known, or too little.
pub(super) fn running(summary: &Summary) -> Option<Running> {
    let (wanted, not_running) = sums(summary);
    if wanted < TOO_SHORT_NS {
        return None;
    }
    let (threads, processes) = at_once(summary);
    let share = |ns: u64| ns as f64 / wanted as f64;
    let queued = queued_at_work_ns(summary).map(|threads| threads.iter().sum::<u64>());
    let without = queued.map(|queued| queued.min(not_running));
    Some(Running {
        threads: threads.max(1),
        processes,
        processors: summary.processors,
        limit: summary.limit,
        stolen_s: summary.stolen_s,
        stolen: stolen(summary),
        wanted_s: wanted as f64 * NS,
        not_running_s: not_running as f64 * NS,
        not_running: share(not_running),
        without_processor_s: without.map(|ns| ns as f64 * NS),
        queued_s: queued_ns(summary).map(|ns| ns as f64 * NS),
        is_starved: without.is_some_and(|ns| share(ns) >= STARVED),
    })
}

/// The most threads at once, and in how many processes.
fn at_once(summary: &Summary) -> (u64, u64) {
    let processes = summary.runs.first().map_or(&[][..], |r| &r.processes);
    let threads = summary.own.iter().map(|o| o.threads);
    let spans = processes.iter().map(ProcessInfo::own_span);
    let all: Vec<((i64, i64), u64)> = spans.zip(threads).collect();
    let at = |&((moment, _), _): &((i64, i64), u64)| {
        let there = (all.iter()).filter(|((begin, end), _)| (*begin..*end).contains(&moment));
        there.fold((0, 0), |(threads, count), of| (threads + of.1, count + 1))
    };
    all.iter().map(at).max().unwrap_or((0, 0))
}

/// Share of the machine's processor time that the hypervisor took during the run. `None`: not known.
fn stolen(summary: &Summary) -> Option<f64> {
    let all_s = summary.runs.first()?.duration_s? * f64::from(summary.cpus);
    (all_s > 0.0).then_some((summary.stolen_s? / all_s).clamp(0.0, 1.0))
}

/// Time in parallel regions without waits for other threads, and the least of it in which a thread was not running: nanoseconds.
fn sums(summary: &Summary) -> (u64, u64) {
    let known = summary.region_parts.iter();
    let known = known.filter_map(|p| Some((p, p.processor_ns?)));
    known.fold((0, 0), |(wanted, not_running), (parts, processor_ns)| {
        // Who waits may sleep, or may spin: what was not running was so at least.
        let own = parts.read_wall_ns.saturating_sub(parts.wait_ns);
        (wanted + own, not_running + own.saturating_sub(processor_ns))
    })
}

/// Time in which threads were ready to run and had no processor, in nanoseconds. `None`: not known of all threads.
fn queued_ns(summary: &Summary) -> Option<u64> {
    summary.accounts.iter().map(|a| a.queued_ns).sum()
}

/// By how much the threads of a process lacked a processor less than the one that lacked it most, in nanoseconds: as long as they may
/// wait for it because of that. Where all lack it alike, nobody is late for it. 0 also if it is not known.
pub(crate) fn delays_ns(summary: &Summary) -> u64 {
    let Some(least) = queued_at_work_ns(summary) else {
        return 0;
    };
    let mut by_process: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    for (account, ns) in summary.accounts.iter().zip(least) {
        by_process.entry(account.process).or_default().push(ns);
    }
    let late = |of: &Vec<u64>| {
        let most = of.iter().copied().max().unwrap_or(0);
        of.iter().map(|ns| most - ns).sum::<u64>()
    };
    by_process.values().map(late).sum()
}

/// The least of it by thread that was no waiting: who waits may have been ready for a part of that.
fn queued_at_work_ns(summary: &Summary) -> Option<Vec<u64>> {
    let mut waits = vec![0u64; summary.accounts.len()];
    let mut add = |thread: u32, ns: u64| {
        if let Some(sum) = waits.get_mut(thread as usize) {
            *sum += ns;
        }
    };
    let is_work = |c: Construct| c.charges_to() == Charge::Work || c.is_fork();
    let regions = summary.regions.iter();
    for stat in regions.filter(|r| r.construct.is_some_and(|c| !is_work(c))) {
        let threads = stat.threads.thread.iter().zip(&stat.threads.own_ns);
        threads.for_each(|(&thread, &ns)| add(thread, ns));
    }
    for parts in summary.parallel.iter().map(|p| &p.team_parts) {
        for (row, &thread) in parts.thread.iter().enumerate() {
            let around = [&parts.startup_ns, &parts.barrier_ns, &parts.shutdown_ns];
            add(thread, around.iter().map(|column| column[row]).sum());
        }
    }
    let of_threads = summary.accounts.iter().zip(waits);
    let least = of_threads.map(|(a, waits)| Some(a.queued_ns?.saturating_sub(waits)));
    least.collect()
}
