//! Counts and processor time per outermost parallel region and thread.

use super::{NS, pid};
use crate::model::{EventState, Grain, RegionCount, RegionCounts, Running};
use ompfuse_fuse::run::RegionParts;
use ompfuse_fuse::summary::{EventOrigin, Summary};

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

/// Share of time not running from which on times tell more of the machine than of the program.
const STARVED: f64 = 0.2;
/// Shorter times in regions tell nothing: a thread's start alone may take as long.
const TOO_SHORT_NS: u64 = 1_000_000;

/// Whether threads had processors; `None`: nothing is known, or too little. `waits_ns`: what threads wait in regions and in the runtime.
pub(super) fn running(summary: &Summary, waits_ns: u64) -> Option<Running> {
    let (wanted, not_running) = sums(summary);
    if wanted < TOO_SHORT_NS {
        return None;
    }
    let threads: u64 = summary.own.iter().map(|o| o.threads).sum();
    let share = |ns: u64| ns as f64 / wanted as f64;
    // Who was ready and had no processor may have been so while it waited: the rest was work.
    let queued = queued_ns(summary).map(|queued| queued.saturating_sub(waits_ns));
    let without = queued.map(|queued| queued.min(not_running));
    Some(Running {
        threads: threads.max(1),
        processors: summary.processors,
        wanted_s: wanted as f64 * NS,
        not_running_s: not_running as f64 * NS,
        not_running: share(not_running),
        without_processor_s: without.map(|ns| ns as f64 * NS),
        queued_s: queued_ns(summary).map(|ns| ns as f64 * NS),
        is_starved: without.is_some_and(|ns| share(ns) >= STARVED),
    })
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

/// Time in which threads were ready to run and had no processor, in nanoseconds. `None`: not known of all processes.
fn queued_ns(summary: &Summary) -> Option<u64> {
    let processes = &summary.runs.first()?.processes;
    processes.iter().map(|p| p.queued_ns).sum()
}
