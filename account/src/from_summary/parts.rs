//! Counts and processor time per outermost parallel region and thread.

use super::{NS, pid};
use crate::model::{EventState, Grain, RegionCount, RegionCounts};
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
