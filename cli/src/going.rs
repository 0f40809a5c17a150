//! A run that goes on: a copy of what is on record by now, and what its threads do.

use crate::interrupt::{self, Hold, Interrupted};
use crate::load::{self, is_run, listed};
use crate::running::{self, Access, Running, records};
use crate::{attached, run_dir, sampling};
use anyhow::{Context, Result};
use ompfuse_account::model::sampled::{EndedThread, GoesOn};
use ompfuse_account::sampled::SampledReport;
use ompfuse_format::run::{Exit, RUN_FILE, RankState};
use ompfuse_fuse::Summary;
use ompfuse_fuse::run::Problem;
use ompfuse_progress::Progress;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Without samples it is looked so long at what threads do.
const NOW: Duration = Duration::from_millis(300);
/// So long where no thread was met: on a busy machine none may have had a processor.
const MOST: Duration = Duration::from_secs(3);
/// Threads of a process that are told.
const THREADS: usize = 20;

/// A copy of a run that goes on.
pub(crate) struct Going {
    _folder: TempDir,
    /// A signal would leave the copy behind.
    hold: Hold,
    /// The copy.
    pub(crate) run: PathBuf,
    name: String,
    /// Its processes.
    pub(crate) processes: Vec<GoesOn>,
}

/// Copies the run that a path means, if it is the only one there, and goes on. `None`: it doesn't.
pub(crate) fn going(path: &Path) -> Result<Option<Going>> {
    let run = match is_run(path) {
        true => path.to_owned(),
        false => {
            let mut runs = listed(path).unwrap_or_default();
            runs.retain(|run| is_run(run));
            match &runs[..] {
                [run] => run.clone(),
                _ => return Ok(None),
            }
        }
    };
    let running = match running::in_folder(&run, Access::Look) {
        Ok(found) if !run.join(RUN_FILE).exists() => found.running,
        _ => return Ok(None),
    };
    if running.is_empty() {
        return Ok(None);
    }
    let cannot = || format!("cannot copy what {} has by now", run.display());
    let hold = interrupt::hold();
    let folder = TempDir::with_prefix("ompfuse-").with_context(cannot)?;
    let copy = folder.path().join("run");
    std::fs::create_dir(&copy).with_context(cannot)?;
    for file in listed(&run)? {
        let to = copy.join(file.file_name().unwrap_or_default());
        match file.extension().and_then(|e| e.to_str()) {
            Some("rec") => records::copy(&file, &to).with_context(cannot)?,
            Some("json") => drop(std::fs::copy(&file, &to).with_context(cannot)?),
            _ => {}
        }
    }
    let pids: Vec<u32> = running.iter().map(|process| process.pid).collect();
    let begun = Instant::now();
    let seen = loop {
        let seen = attached::now(&pids, Some(&run), NOW, &hold);
        hold.check()?;
        let is_met = |report: &SampledReport| report.threads.iter().any(|t| t.last.is_some());
        if seen.as_ref().map_or(true, is_met) || begun.elapsed() >= MOST {
            break seen.map_err(|error| crate::one_line(&error));
        }
        std::thread::sleep(NOW);
    };
    let processes = running.iter().map(|of| process(of, &seen));
    let mut processes: Vec<GoesOn> = processes.collect();
    processes.sort_by_key(|of| (of.rank, of.pid));
    Ok(Some(Going {
        processes,
        name: load::name(&run),
        run: copy,
        _folder: folder,
        hold,
    }))
}

/// What is on record of the runs in a folder, with about `memory` bytes; and what goes on of it.
pub(crate) fn summary(folder: &Path, memory: u64) -> Result<(Summary, Vec<GoesOn>)> {
    let read = |folder: &Path| load::summary(folder, memory, Progress::default());
    let Some(going) = going(folder)? else {
        return Ok((read(folder)?, vec![]));
    };
    let mut summary = read(&going.run)?;
    going.check()?;
    going.correct(&mut summary);
    Ok((summary, going.processes.clone()))
}

fn process(running: &Running, seen: &Result<SampledReport, String>) -> GoesOn {
    let own = sampling::threads(running.pid);
    let threads = seen.iter().flat_map(|report| &report.threads);
    let threads = threads.filter(|thread| own.contains(&thread.tid));
    let mut threads: Vec<EndedThread> = threads
        .filter_map(|thread| {
            Some(EndedThread {
                tid: thread.tid,
                is_main: thread.is_main,
                last: thread.last.clone()?,
            })
        })
        .collect();
    threads.sort_by_key(|t| (!t.is_main, t.tid));
    threads.truncate(THREADS);
    let header = run_dir::process_of(&running.folder, &running.key);
    GoesOn {
        pid: running.pid,
        rank: header.ok().flatten().and_then(|h| h.mpi_rank),
        threads,
        refusal: seen.as_ref().err().cloned(),
    }
}

impl Going {
    /// An error where a signal has come meanwhile.
    pub(crate) fn check(&self) -> Result<(), Interrupted> {
        self.hold.check()
    }

    /// It has the name that the user knows, and its processes have no end that could be told.
    pub(crate) fn correct(&self, summary: &mut Summary) {
        use Problem::{EstimatedClock, Killed, Unfinished};
        let goes_on = |pid: &u32| self.processes.iter().any(|of| of.pid == *pid);
        let has_rank = |rank: u32| self.processes.iter().any(|of| of.rank == Some(rank));
        for run in &mut summary.runs {
            run.name.clone_from(&self.name);
            run.exit = run.exit.filter(|exit| *exit != Exit::Unknown);
            run.ranks
                .retain(|end| end.state != RankState::GoesOn || !has_rank(end.rank));
            run.health.problems.retain(|problem| match problem {
                Killed { pid } | Unfinished { pid } | EstimatedClock { pid } => !goes_on(pid),
                _ => true,
            });
        }
    }
}
