//! From what was recorded to what is shown.

use super::{Picture, Sample, Watching, now_ns};
use ompfuse_format::Construct;
use ompfuse_format::construct::Split;
use ompfuse_format::record::{USER_MODULE, split_site};
use ompfuse_format::site::{HexAddress, Source};
use ompfuse_fuse::summary::live::{LiveRegion, LiveSite};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A process that is being recorded.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) folder: PathBuf,
    /// Since its recording began, if that is known.
    pub(crate) seconds: Option<f64>,
    /// Its MPI rank, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mpi_rank: Option<u32>,
    /// Its threads that have recorded.
    pub(crate) threads: usize,
    /// Share of all recorded time.
    pub(crate) share: f64,
    /// Shares of its own time: waiting, the runtime library otherwise.
    pub(crate) wait_share: f64,
    pub(crate) runtime_share: f64,
    /// `max / mean - 1` of its threads' work.
    pub(crate) imbalance: f64,
}

/// A region.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    #[serde(skip)]
    pub(crate) site: LiveSite,
    pub(crate) pid: u32,
    /// What its process is called, where there are several.
    #[serde(skip)]
    pub(crate) among: Option<String>,
    pub(crate) module: Option<String>,
    pub(crate) address: Option<HexAddress>,
    pub(crate) construct: Option<&'static str>,
    pub(crate) function: Option<String>,
    pub(crate) source: Option<Source>,
    /// Whether it is switched off.
    pub(crate) off: bool,
    /// How often it was entered, by all threads together, and execution units.
    pub(crate) entered: u64,
    pub(crate) xus: u64,
    /// The larger of the two, per second.
    pub(crate) rate_per_s: f64,
    /// Share of all recorded time, waiting and runtime library included.
    pub(crate) share: f64,
    /// Shares of its own time: waiting, the runtime library otherwise.
    pub(crate) wait_share: f64,
    pub(crate) runtime_share: f64,
    /// `max / mean - 1` of the threads' work, as `report` has it.
    pub(crate) imbalance: f64,
    /// Threads that worked in it.
    pub(crate) threads: usize,
    /// Own counts of the intervals for which they were counted.
    pub(crate) events: BTreeMap<String, u64>,
}

/// A thread.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ThreadRow {
    #[serde(skip)]
    pub(crate) number: u32,
    pub(crate) pid: u32,
    /// The process's MPI rank, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mpi_rank: Option<u32>,
    /// Its number in the process.
    pub(crate) thread: u32,
    /// Share of all recorded time.
    pub(crate) share: f64,
    /// Shares of its own time: the program's code, waiting, the runtime library otherwise.
    pub(crate) work_share: f64,
    pub(crate) wait_share: f64,
    pub(crate) runtime_share: f64,
    /// The region with most of its time: its place among the regions.
    #[serde(skip)]
    pub(crate) mostly: Option<LiveSite>,
}

/// A thread's part of a region, as shares of the region's time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Part {
    /// The process or rank, and the thread's number in it.
    pub(crate) thread: String,
    pub(crate) work: f64,
    pub(crate) wait: f64,
    pub(crate) runtime: f64,
}

impl Part {
    /// All of its time.
    pub(crate) fn all(&self) -> f64 {
        self.work + self.wait + self.runtime
    }
}

fn ratio(part: u64, of: u64) -> f64 {
    match of {
        0 => 0.0,
        of => part as f64 / of as f64,
    }
}

fn ticks(split: Split) -> u64 {
    split.work + split.wait + split.runtime
}

/// The sums of a thread, and the region with most of it.
#[derive(Default)]
struct OfThread {
    split: Split,
    mostly: Option<(u64, LiveSite)>,
}

impl Watching {
    /// What happened since an earlier sample; without one since the recording began. Regions in which nothing did are there if they were
    /// entered before.
    pub(crate) fn picture(&self, before: Option<&Sample>) -> Picture {
        let now = now_ns();
        let begin = self.processes.iter().filter_map(|p| p.begin_ns).min();
        let from = before.map_or(begin.unwrap_or(now), |b| b.ns);
        let seconds = now.saturating_sub(from) as f64 / 1e9;
        let regions = self.since(before);
        let all: u64 = regions.iter().map(|(_, r)| r.ticks()).sum();
        let mut rows: Vec<Row> = (regions.iter())
            .filter(|(_, r)| before.is_some() || r.entered() + r.xus() > 0 || r.ticks() > 0)
            .map(|(key, region)| self.row(*key, region, all, seconds))
            .collect();
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        let threads = of_threads(&regions);
        Picture {
            processes: self.process_rows(&threads, all, now),
            threads: self.live.threads(),
            seconds,
            recorded_s: self.recorded_s(&regions),
            lost: self.live.lost(),
            damaged: self.damaged.clone(),
            regions: rows,
            per_thread: self.thread_rows(&threads, all),
        }
    }

    fn recorded_s(&self, regions: &[(LiveSite, LiveRegion)]) -> Option<f64> {
        let of = |((process, _), region): &(LiveSite, LiveRegion)| {
            let ns_per_tick = self.processes[*process].ns_per_tick?;
            Some(region.ticks() as f64 * ns_per_tick / 1e9)
        };
        regions.iter().map(of).sum()
    }

    /// What each thread did in a region since an earlier sample.
    pub(super) fn parts(&self, site: LiveSite, before: Option<&Sample>) -> Vec<Part> {
        let Some(region) = self.live.regions.get(&site) else {
            return Vec::new();
        };
        let nothing = LiveRegion::default();
        let before = before.and_then(|b| b.regions.get(&site));
        let region = region.since(before.unwrap_or(&nothing));
        let places = self.live.thread_places();
        let all = region.ticks();
        let part = |(number, split): (u32, Split)| {
            let (process, thread) = places.get(&number).copied().unwrap_or_default();
            Part {
                thread: format!("{}:{thread}", self.processes[process].name()),
                work: ratio(split.work, all),
                wait: ratio(split.wait, all),
                runtime: ratio(split.runtime, all),
            }
        };
        region.by_thread().into_iter().map(part).collect()
    }

    /// What came in each region since an earlier sample.
    pub(super) fn since(&self, before: Option<&Sample>) -> Vec<(LiveSite, LiveRegion)> {
        let nothing = LiveRegion::default();
        let since = |(key, region): (&LiveSite, &LiveRegion)| {
            let before = before.and_then(|b| b.regions.get(key));
            (*key, region.since(before.unwrap_or(&nothing)))
        };
        self.live.regions.iter().map(since).collect()
    }

    fn thread_rows(&self, threads: &BTreeMap<u32, OfThread>, all: u64) -> Vec<ThreadRow> {
        let places = self.live.thread_places();
        let row = |(&number, &(process, thread)): (&u32, &(usize, u32))| {
            let of = threads.get(&number);
            let split = of.map(|t| t.split).unwrap_or_default();
            let own = ticks(split);
            ThreadRow {
                number,
                pid: self.processes[process].pid,
                mpi_rank: self.processes[process].rank,
                thread,
                share: ratio(own, all),
                work_share: ratio(split.work, own),
                wait_share: ratio(split.wait, own),
                runtime_share: ratio(split.runtime, own),
                mostly: of.and_then(|t| Some(t.mostly?.1)),
            }
        };
        let mut rows: Vec<ThreadRow> = places.iter().map(row).collect();
        rows.sort_by(|a, b| b.share.total_cmp(&a.share).then(a.number.cmp(&b.number)));
        rows
    }

    fn process_rows(&self, threads: &BTreeMap<u32, OfThread>, all: u64, now: u64) -> Vec<Process> {
        let places = self.live.thread_places();
        let row = |(number, process): (usize, &super::Known)| {
            let own = places.iter().filter(|(_, (of, _))| *of == number);
            let splits: Vec<Split> = own
                .map(|(thread, _)| threads.get(thread).map(|t| t.split).unwrap_or_default())
                .collect();
            let mut sum = Split::default();
            splits.iter().for_each(|split| sum += *split);
            let work: Vec<u64> = splits.iter().map(|split| split.work).collect();
            let begin = process.begin_ns;
            Process {
                pid: process.pid,
                folder: process.folder.clone(),
                seconds: begin.map(|ns| now.saturating_sub(ns) as f64 / 1e9),
                mpi_rank: process.rank,
                threads: splits.len(),
                share: ratio(ticks(sum), all),
                wait_share: ratio(sum.wait, ticks(sum)),
                runtime_share: ratio(sum.runtime, ticks(sum)),
                imbalance: ompfuse_fuse::spread::imbalance(&work),
            }
        };
        self.processes.iter().enumerate().map(row).collect()
    }

    fn row(&self, key: LiveSite, region: &LiveRegion, all: u64, seconds: f64) -> Row {
        let process = &self.processes[key.0];
        let (module, index) = split_site(key.1);
        let known = process.modules.get(&module);
        let info = known.and_then(|(_, sites)| sites.get(index as usize));
        let name = self.live.names.get(&key);
        let (entered, xus) = (region.entered(), region.xus());
        let per_s = entered.max(xus) as f64;
        let split = region.split();
        Row {
            site: key,
            pid: process.pid,
            among: (self.processes.len() > 1).then(|| process.name()),
            module: known.map(|(path, _)| path.clone()),
            address: info.map(|i| i.address),
            construct: match (info, module) {
                (Some(info), _) => Some(info.construct.name()),
                (None, USER_MODULE) => Some(Construct::UserRegion.name()),
                (None, _) => None,
            },
            function: name
                .cloned()
                .or_else(|| info?.function.as_deref().map(str::to_owned)),
            source: info.and_then(|i| i.source.clone()),
            off: self.off.contains(&key),
            entered,
            xus,
            rate_per_s: if seconds > 0.0 { per_s / seconds } else { 0.0 },
            share: ratio(region.ticks(), all),
            wait_share: ratio(split.wait, region.ticks()),
            runtime_share: ratio(split.runtime, region.ticks()),
            imbalance: self.live.imbalance(key, region),
            threads: region.workers(),
            events: self.live.counts(region),
        }
    }
}

fn of_threads(regions: &[(LiveSite, LiveRegion)]) -> BTreeMap<u32, OfThread> {
    let mut threads: BTreeMap<u32, OfThread> = BTreeMap::new();
    for (key, region) in regions {
        for (thread, split) in region.by_thread() {
            let of = threads.entry(thread).or_default();
            of.split += split;
            let own = ticks(split);
            if own > of.mostly.map_or(0, |(most, _)| most) {
                of.mostly = Some((own, *key));
            }
        }
    }
    threads
}
