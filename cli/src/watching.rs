//! What a recorded program does at the moment, read from the files that its threads map: nobody is stopped or asked.

mod changing;
mod finished;
mod history;
mod metrics;
mod picture;
mod rows;
mod sampled;
mod screen;
mod serve;

pub(crate) use rows::{Part, Process, Row, ThreadRow};
pub(crate) use sampled::sampled;
pub(crate) use screen::{Finished, browse, show};
pub(crate) use serve::serve;

use crate::output::note;
use crate::process;
use crate::run_dir;
use crate::running::{self, Access, Running, State, records};
use anyhow::{Result, anyhow, ensure};
use ompfuse_format::control::OFF;
use ompfuse_format::record::{MAX_COUNTERS, USER_MODULE, site_ref, split_site, sums};
use ompfuse_format::run::EventStatus;
use ompfuse_format::site::SiteInfo;
use ompfuse_fuse::run::rate_at_start;
use ompfuse_fuse::summary::live::{Live, LiveRegion, LiveSite};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The processes that are looked at, and all that they have recorded by now.
pub(crate) struct Watching {
    target: PathBuf,
    /// Where it is the number of a process: when that started. Another one may have the number later.
    started: Option<(u32, u64)>,
    processes: Vec<Known>,
    live: Live,
    /// What is wrong with other processes' files.
    damaged: Vec<String>,
    /// Regions that are switched off.
    off: BTreeSet<LiveSite>,
}

/// A process that was seen.
struct Known {
    folder: PathBuf,
    key: String,
    pid: u32,
    /// When its recording began, once that is known.
    begin_ns: Option<u64>,
    /// Nanoseconds of a tick of its clock, once that was measured.
    ns_per_tick: Option<f64>,
    /// Module number to path and sites.
    modules: BTreeMap<u32, (String, Vec<SiteInfo>)>,
    /// Names of the counters, by event set.
    sets: BTreeMap<u8, Vec<Option<String>>>,
    /// Its MPI rank, if it has one.
    rank: Option<u32>,
    /// What holds in it, when it was looked at last.
    state: Option<State>,
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
    /// Time of all threads that came on record meanwhile, in seconds, which all shares are of; what began before and ended meanwhile is in
    /// it as a whole. Null if the clock's rate is not known yet.
    recorded_s: Option<f64>,
    /// Records that could not be written.
    lost: u64,
    /// What is wrong with the files of other processes, which are not looked at.
    damaged: Vec<String>,
    /// Regions, the one with the most time first.
    pub(crate) regions: Vec<Row>,
    /// The same time by thread, the one with the most first.
    per_thread: Vec<ThreadRow>,
}

fn now_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// So often it is asked whether a recording has begun.
const WAIT: Duration = Duration::from_millis(50);
/// A process that has just begun can be looked at after so long at most.
const BEGIN: Duration = Duration::from_secs(2);

impl Watching {
    /// Looks at a folder or process. Waits for a recording that has yet to begin, which is said.
    pub(crate) fn when_begun(target: &Path) -> Result<Watching> {
        let mut waited: Option<Instant> = None;
        loop {
            // Asked before: meanwhile it may begin.
            let is_early = running::may_begin(target);
            let is_begun = waited.is_some_and(|last| last.elapsed() < BEGIN);
            match Watching::new(target) {
                Err(_) if is_early || is_begun => {}
                begun => return begun,
            }
            if waited.is_none() {
                let folder = target.display();
                note(format_args!("waiting for a recording in {folder} to begin"));
            }
            if is_early {
                waited = Some(Instant::now());
            }
            std::thread::sleep(WAIT);
        }
    }

    /// Looks at a folder or process.
    fn new(target: &Path) -> Result<Watching> {
        let started =
            running::number(target).and_then(|pid| Some((pid, process::start_time(pid)?)));
        let mut watching = Watching {
            target: target.to_owned(),
            started,
            processes: Vec::new(),
            live: Live::default(),
            damaged: Vec::new(),
            off: BTreeSet::new(),
        };
        watching.look()?;
        Ok(watching)
    }

    /// Reads what has been recorded since the last time. An error: nothing is being recorded any more.
    pub(crate) fn look(&mut self) -> Result<()> {
        if let Some((pid, started)) = self.started {
            let is_it = process::start_time(pid) == Some(started);
            ensure!(is_it, "process {pid} has ended");
        }
        let (mut read, mut damaged) = (0, Vec::new());
        let found = running::find(&self.target, Access::Look);
        let found = found.map_err(|error| match error.is::<running::Nothing>() {
            true if !self.processes.is_empty() => {
                anyhow!("the recording in {} has ended", self.target.display())
            }
            _ => error,
        });
        for process in found? {
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
        self.read_records(number)?;
        self.read_switches(number, process)
    }

    /// Which regions are switched off.
    fn read_switches(&mut self, number: usize, process: &Running) -> Result<()> {
        self.off.retain(|(of, _)| *of != number);
        let known = &self.processes[number];
        let modules = known.modules.keys().copied().chain([USER_MODULE]);
        for module in modules {
            let Some((_, table)) = process.control.table(module)? else {
                continue;
            };
            let off = (0..).zip(table).filter(|(_, byte)| byte & OFF != 0);
            let sites = off.map(|(site, _)| (number, site_ref(module, site)));
            self.off.extend(sites);
        }
        Ok(())
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
}

impl Known {
    fn new(process: &Running) -> Result<Known> {
        Ok(Known {
            folder: process.folder.clone(),
            key: process.key.clone(),
            pid: process.pid,
            begin_ns: begin_of(&process.folder, &process.key)?,
            ns_per_tick: None,
            modules: BTreeMap::new(),
            sets: BTreeMap::new(),
            rank: None,
            state: None,
        })
    }

    /// Its rank, or its number.
    fn name(&self) -> String {
        match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => self.pid.to_string(),
        }
    }

    /// Takes in modules and event sets that have come.
    fn learn(&mut self, process: &Running) -> Result<()> {
        if self.begin_ns.is_none() {
            self.begin_ns = begin_of(&self.folder, &self.key)?;
        }
        if self.ns_per_tick.is_none() {
            self.ns_per_tick = rate_of(&self.folder, &self.key)?;
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
        if self.rank.is_none() {
            let header = run_dir::process_of(&self.folder, &self.key)?;
            self.rank = header.and_then(|h| h.mpi_rank);
        }
        let state = process.control.state()?;
        let known = state.sets.len();
        self.state = Some(state);
        if self.sets.len() < known {
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

/// The rate of a process's clock, right to some tenths of a percent; `None`: it was not measured yet.
fn rate_of(folder: &Path, key: &str) -> Result<Option<f64>> {
    let begin = run_dir::process_of(folder, key)?.map(|header| header.begin);
    let soon = run_dir::costs_of(folder, key)?.and_then(|costs| costs.clock);
    Ok((begin.zip(soon)).and_then(|(begin, soon)| rate_at_start(begin, soon)))
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
            off: BTreeSet::new(),
        };
        let ended = watching.look().expect_err("it is another one");
        assert_eq!(ended.to_string(), format!("process {me} has ended"));
    }
}
