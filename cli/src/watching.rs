//! What a recorded program does at the moment, read from the files that its threads map: nobody is stopped or asked.

mod picture;
mod screen;

pub(crate) use screen::show;

use crate::run_dir;
use crate::running::{self, Access, Running, records};
use anyhow::{Result, ensure};
use ompfuse_format::record::{MAX_COUNTERS, USER_MODULE, site_ref, split_site, sums};
use ompfuse_format::run::EventStatus;
use ompfuse_format::site::{HexAddress, SiteInfo, Source};
use ompfuse_fuse::summary::live::{Live, LiveRegion, LiveSite};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The processes that are looked at, and all that they have recorded by now.
pub(crate) struct Watching {
    target: PathBuf,
    /// Where it is the number of a process: when that started. Another one may have the number later.
    started: Option<(u32, u64)>,
    processes: Vec<Known>,
    live: Live,
    /// What is wrong with other processes' files.
    damaged: Vec<String>,
}

/// A process that was seen.
struct Known {
    folder: PathBuf,
    key: String,
    pid: u32,
    /// When its recording began, once that is known.
    begin_ns: Option<u64>,
    /// Module number to path and sites.
    modules: BTreeMap<u32, (String, Vec<SiteInfo>)>,
    /// Names of the counters, by event set.
    sets: BTreeMap<u8, Vec<Option<String>>>,
}

/// The sums at a moment.
#[derive(Clone, Default)]
pub(crate) struct Sample {
    ns: u64,
    regions: BTreeMap<LiveSite, LiveRegion>,
}

/// What is shown.
#[derive(Debug, Serialize)]
pub(crate) struct Picture {
    /// Processes that are being recorded.
    processes: Vec<Process>,
    /// Threads that have recorded, those that ended included.
    threads: usize,
    /// Seconds that the numbers are about.
    seconds: f64,
    /// Records that could not be written.
    lost: u64,
    /// What is wrong with the files of other processes, which are not looked at.
    damaged: Vec<String>,
    /// Regions, the one with the most time first.
    pub(crate) regions: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: u32,
    folder: PathBuf,
    /// Since its recording began, if that is known.
    seconds: Option<f64>,
}

/// A region.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pid: u32,
    module: Option<String>,
    address: Option<HexAddress>,
    construct: Option<&'static str>,
    function: Option<String>,
    source: Option<Source>,
    /// How often it was entered, by all threads together, and execution units.
    entered: u64,
    xus: u64,
    /// The larger of the two, per second.
    rate_per_s: f64,
    /// Share of all recorded time, waiting and runtime library included.
    share: f64,
    /// Share of its own time that is waiting and runtime library.
    wait_share: f64,
    /// `max / mean - 1` of the threads' work, as `report` has it.
    imbalance: f64,
    /// Threads that worked in it.
    threads: usize,
    /// Own counts of the intervals for which they were counted.
    events: BTreeMap<String, u64>,
}

fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

impl Watching {
    /// Looks at a folder or process.
    pub(crate) fn new(target: &Path) -> Result<Watching> {
        let started =
            running::number(target).and_then(|pid| Some((pid, running::start_time(pid)?)));
        let mut watching = Watching {
            target: target.to_owned(),
            started,
            processes: Vec::new(),
            live: Live::default(),
            damaged: Vec::new(),
        };
        watching.look()?;
        Ok(watching)
    }

    /// Reads what has been recorded since the last time. An error: nothing is being recorded any more.
    pub(crate) fn look(&mut self) -> Result<()> {
        if let Some((pid, started)) = self.started {
            let is_it = running::start_time(pid) == Some(started);
            ensure!(is_it, "process {pid} has ended");
        }
        let (mut read, mut damaged) = (0, Vec::new());
        for process in running::find(&self.target, Access::Look)? {
            match self.read(&process) {
                Ok(()) => read += 1,
                Err(error) => damaged.push(error),
            }
        }
        self.damaged = damaged.iter().map(|error| format!("{error:#}")).collect();
        match damaged.pop() {
            Some(error) if read == 0 => Err(error),
            _ => Ok(()),
        }
    }

    fn read(&mut self, process: &Running) -> Result<()> {
        let is_it = |k: &Known| (&k.folder, &k.key) == (&process.folder, &process.key);
        let number = match self.processes.iter().position(is_it) {
            Some(known) => known,
            None => {
                self.processes.push(Known::new(process)?);
                self.processes.len() - 1
            }
        };
        self.processes[number].learn(process)?;
        self.read_records(number)
    }

    /// Reads what processes that have ended had yet to record when they were looked at last; what can't be read any more is left
    /// out.
    pub(crate) fn look_back(&mut self) {
        for number in 0..self.processes.len() {
            let _ = self.read_records(number);
        }
    }

    fn read_records(&mut self, number: usize) -> Result<()> {
        let known = &self.processes[number];
        let (modules, sets) = (&known.modules, &known.sets);
        let region = |site: u32| {
            let (module, index) = split_site(site);
            let sites = modules.get(&module).map(|(_, sites)| sites);
            let info = sites.and_then(|s| s.get(index as usize));
            info.map_or(site, |info| site_ref(module, info.region))
        };
        let mut tables = vec![];
        for path in records::files(&known.folder, &known.key)? {
            // A file that has just been made is empty; what is damaged, `ompfuse report` tells.
            let fresh = records::fresh(&path, |h| self.live.offset(number, h));
            if let Some((header, fresh)) = fresh {
                let _ = self.live.read(number, &header, &fresh, sets, region);
                if header.sums == sums::INSTEAD {
                    tables.extend(records::table(&path, &header).map(|table| (header, table)));
                }
            }
        }
        if !tables.is_empty() {
            self.live.begin_sums(number);
        }
        let names = sets.get(&0).map_or(&[][..], Vec::as_slice);
        for (header, table) in &tables {
            self.live.add_sums(number, header, table, names, region);
        }
        Ok(())
    }

    /// The sums by now.
    pub(crate) fn sample(&self) -> Sample {
        Sample {
            ns: now_ns(),
            regions: self.live.regions.clone(),
        }
    }

    /// What happened since an earlier sample; without one since the recording began.
    pub(crate) fn picture(&self, before: Option<&Sample>) -> Picture {
        let now = now_ns();
        let begin = self.processes.iter().filter_map(|p| p.begin_ns).min();
        let from = before.map_or(begin.unwrap_or(now), |b| b.ns);
        let seconds = now.saturating_sub(from) as f64 / 1e9;
        let nothing = LiveRegion::default();
        let since = |key: &LiveSite, region: &LiveRegion| {
            let before = before.and_then(|b| b.regions.get(key));
            region.since(before.unwrap_or(&nothing))
        };
        let regions = self.live.regions.iter();
        let regions: Vec<_> = regions.map(|(key, r)| (*key, since(key, r))).collect();
        let all: u64 = regions.iter().map(|(_, r)| r.ticks()).sum();
        let mut rows: Vec<Row> = regions
            .iter()
            .filter(|(_, r)| r.entered() + r.xus() > 0 || r.ticks() > 0)
            .map(|(key, region)| self.row(*key, region, all, seconds))
            .collect();
        rows.sort_by(|a, b| b.share.total_cmp(&a.share));
        Picture {
            processes: (self.processes.iter())
                .map(|p| Process {
                    pid: p.pid,
                    folder: p.folder.clone(),
                    seconds: p.begin_ns.map(|ns| now.saturating_sub(ns) as f64 / 1e9),
                })
                .collect(),
            threads: self.live.threads(),
            seconds,
            lost: self.live.lost(),
            damaged: self.damaged.clone(),
            regions: rows,
        }
    }

    fn row(&self, key: LiveSite, region: &LiveRegion, all: u64, seconds: f64) -> Row {
        let process = &self.processes[key.0];
        let (module, index) = split_site(key.1);
        let known = process.modules.get(&module);
        let info = known.and_then(|(_, sites)| sites.get(index as usize));
        let name = self.live.names.get(&key);
        let ratio = |part: u64, of: u64| {
            if of == 0 {
                0.0
            } else {
                part as f64 / of as f64
            }
        };
        let (entered, xus) = (region.entered(), region.xus());
        let per_s = entered.max(xus) as f64;
        let split = region.split();
        Row {
            pid: process.pid,
            module: known.map(|(path, _)| path.clone()),
            address: info.map(|i| i.address),
            construct: match (info, module) {
                (Some(info), _) => Some(info.construct.name()),
                (None, USER_MODULE) => Some(ompfuse_format::Construct::UserRegion.name()),
                (None, _) => None,
            },
            function: name
                .cloned()
                .or_else(|| info?.function.as_deref().map(str::to_owned)),
            source: info.and_then(|i| i.source.clone()),
            entered,
            xus,
            rate_per_s: if seconds > 0.0 { per_s / seconds } else { 0.0 },
            share: ratio(region.ticks(), all),
            wait_share: ratio(split.wait + split.runtime, region.ticks()),
            imbalance: self.live.imbalance(key, region),
            threads: region.workers(),
            events: self.live.counts(region),
        }
    }
}

impl Known {
    fn new(process: &Running) -> Result<Known> {
        Ok(Known {
            folder: process.folder.clone(),
            key: process.key.clone(),
            pid: process.pid,
            begin_ns: begin_of(&process.folder, &process.key)?,
            modules: BTreeMap::new(),
            sets: BTreeMap::new(),
        })
    }

    /// Takes in modules and event sets that have come.
    fn learn(&mut self, process: &Running) -> Result<()> {
        if self.begin_ns.is_none() {
            self.begin_ns = begin_of(&self.folder, &self.key)?;
        }
        let numbers = run_dir::modules_of(&self.folder, &self.key)?;
        if numbers
            .iter()
            .any(|m| !self.modules.contains_key(&m.module))
        {
            for (number, module) in process.modules()? {
                self.modules
                    .insert(number, (module.binary.path, module.sites));
            }
        }
        if self.sets.len() < process.control.state()?.sets.len() {
            for (number, events) in run_dir::sets_of(&self.folder, &self.key)? {
                self.sets.insert(number, columns(&events));
            }
        }
        Ok(())
    }
}

/// When a process's recording began; `None`: it has not said so yet.
fn begin_of(folder: &Path, key: &str) -> Result<Option<u64>> {
    Ok(run_dir::process_of(folder, key)?.map(|header| header.begin.ns))
}

/// The names of what is counted, in the order of the counters. Counts that have to be scaled are not shown, nor are the times
/// beside them: these have no name.
fn columns(events: &[EventStatus]) -> Vec<Option<String>> {
    let mut names = vec![];
    for event in events.iter().filter(|e| e.shared.is_none()) {
        let column = event.column.map(|c| c as usize);
        if let Some(column) = column.filter(|&c| c < MAX_COUNTERS) {
            names.resize(names.len().max(column + 1), None);
            names[column] = Some(event.name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_gets_the_number_of_a_process_later_is_not_looked_at() {
        let me = std::process::id();
        let mut watching = Watching {
            target: me.to_string().into(),
            started: Some((me, 0)), // some other process, that long ago
            processes: Vec::new(),
            live: Live::default(),
            damaged: Vec::new(),
        };
        let ended = watching.look().expect_err("it is another one");
        assert_eq!(ended.to_string(), format!("process {me} has ended"));
    }
}
