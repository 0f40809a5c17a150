//! A finished run as a picture: the same rows as while it was recorded, from its report.

use super::{Picture, Row, ThreadRow};
use ompfuse_account::{Region, Report};
use ompfuse_report::By;
use ompfuse_report::view::text::detail::rows_by;
use std::collections::BTreeMap;

impl Picture {
    /// Of a run's report, with a row as `by` has it.
    pub(crate) fn of(report: &Report, by: By) -> Picture {
        let regions = rows_by(report, by);
        let wall_s = report.duration_s.unwrap_or(0.0);
        let mut picture = Picture {
            processes: Vec::new(),
            threads: report.threads as usize,
            seconds: wall_s,
            recorded_s: Some(report.thread_time_s),
            lost: 0,
            damaged: Vec::new(),
            regions: regions.iter().map(|r| row(r, wall_s)).collect(),
            per_thread: threads(&regions),
        };
        picture.regions.sort_by(|a, b| b.share.total_cmp(&a.share));
        picture
    }
}

fn ratio(part: f64, of: f64) -> f64 {
    if of > 0.0 { part / of } else { 0.0 }
}

fn row(region: &Region, wall_s: f64) -> Row {
    let more = region.executions.max(region.xus);
    Row {
        site: (0, region.id),
        pid: 0,
        among: region.file.clone(),
        module: region.module.clone(),
        address: region.address,
        construct: region.construct.map(|c| c.name()),
        function: region.function.clone(),
        source: region.source.clone(),
        off: false,
        entered: region.executions,
        xus: region.xus,
        rate_per_s: ratio(more as f64, wall_s),
        share: region.share,
        wait_share: ratio(region.wait_s, region.time_s),
        runtime_share: ratio(region.runtime_s, region.time_s),
        imbalance: region.spread.imbalance,
        threads: region.spread.threads as usize,
        events: region.events.clone(),
    }
}

/// What a thread did in all regions, and in which most of it.
#[derive(Default)]
struct OfThread {
    work_s: f64,
    wait_s: f64,
    runtime_s: f64,
    mostly: (f64, u32),
}

fn threads(regions: &[Region]) -> Vec<ThreadRow> {
    let mut all: BTreeMap<(Option<u32>, Option<u32>, u32), OfThread> = BTreeMap::new();
    for region in regions {
        for part in &region.per_thread {
            let key = (part.mpi_rank, part.process, part.thread);
            let thread = all.entry(key).or_default();
            thread.work_s += part.work_s;
            thread.wait_s += part.wait_s;
            thread.runtime_s += part.runtime_s;
            let time_s = part.work_s + part.wait_s + part.runtime_s;
            if time_s > thread.mostly.0 {
                thread.mostly = (time_s, region.id);
            }
        }
    }
    let time_s = |t: &OfThread| t.work_s + t.wait_s + t.runtime_s;
    let whole: f64 = all.values().map(time_s).sum();
    let row = |(number, (key, thread)): (u32, (&(_, Option<u32>, u32), &OfThread))| {
        let own = time_s(thread);
        ThreadRow {
            number,
            pid: key.1.unwrap_or(0),
            mpi_rank: key.0,
            thread: key.2,
            share: ratio(own, whole),
            work_share: ratio(thread.work_s, own),
            wait_share: ratio(thread.wait_s, own),
            runtime_share: ratio(thread.runtime_s, own),
            mostly: (thread.mostly.0 > 0.0).then_some((0, thread.mostly.1)),
        }
    };
    (0..).zip(&all).map(row).collect()
}
