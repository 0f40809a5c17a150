//! Samples of a program while it is recorded: where its threads are, looked at from outside by the kernel's perf events.
//!
//! The program doesn't know of it: its environment, its descriptors and its process stay as they are. Events are opened on its process
//! before it executes the program, so that its first instruction is looked at, too ([`stage`]). The kernel writes into rings, one for
//! each processor; a thread of this command empties them into a file of the run ([`collector`]). What that costs the program is bounded:
//! events are closed where there would be too many ([`watch`]). Threads that have stopped are looked at through `/proc` ([`stopped`]).

mod collector;
mod constructs;
mod events;
mod files;
mod jit;
mod maps;
pub(crate) mod places;
mod rate;
mod records;
mod stacks;
mod stage;
mod stopped;
mod watch;

pub(crate) use collector::Limit;
pub(crate) use events::{refusal, refusal_of, threads};
pub(crate) use files::Files;
pub(crate) use rate::Rate;
pub(crate) use stage::{Program, Waiting, execute, is_stage};

use anyhow::{Context, Result};
use collector::Collector;
use ompfuse_format::samples::{Sampling, samples_file};
use stage::Pipes;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the kernel's clock is, when times of samples can be compared with those of records.
const TSC: &str = "tsc";

/// Samples one run of a program.
pub(crate) struct Sampler {
    rate: u32,
    run: PathBuf,
    /// Of the run's records and samples.
    limit: Limit,
    collector: Option<Collector>,
    /// The process that it looks at.
    pid: Option<u32>,
    pipes: Option<Pipes>,
    reason: Option<String>,
}

impl Sampler {
    /// For a run that begins. `None`: nobody wants samples.
    pub(crate) fn new(rate: Rate, run: &Path) -> Option<Sampler> {
        let rate = rate.per_second()?;
        Some(Sampler {
            rate,
            run: run.to_owned(),
            limit: Limit::default(),
            collector: None,
            pid: None,
            pipes: None,
            reason: events::refusal().map(|refusal| refusal.reason),
        })
    }

    /// Of a process that runs already.
    ///
    /// # Errors
    /// If the kernel doesn't allow it, or it has ended.
    pub(crate) fn of_running(rate: u32, run: &Path, pid: u32, files: &Files) -> Result<Sampler> {
        let limit = Limit::default();
        let collector = Collector::of_running(pid, rate, files, run, &limit)?;
        Ok(Sampler {
            rate,
            run: run.to_owned(),
            limit,
            collector: Some(collector),
            pid: Some(pid),
            pipes: None,
            reason: None,
        })
    }

    /// Who may say that there is no room for more.
    pub(crate) fn limit(&self) -> Limit {
        self.limit.clone()
    }

    /// Whether the kernel allows it, as far as is known, and all is there. If not, the program is started as without samples.
    pub(crate) fn is_ready(&mut self) -> bool {
        if self.reason.is_none() {
            match spare_files().and_then(|()| Pipes::new()) {
                Ok(pipes) => self.pipes = Some(pipes),
                Err(error) => self.reason = Some(crate::one_line(&error)),
            }
        }
        self.reason.is_none()
    }

    /// Starts the process that waits, as this command has it.
    ///
    /// # Errors
    /// If it can't be started.
    pub(crate) fn stage(&mut self, command: &mut Command) -> Result<Waiting> {
        let pipes = self.pipes.take().map_or_else(Pipes::new, Ok)?;
        let waiting = stage::spawn(command, pipes)?;
        self.attach(&waiting);
        Ok(waiting)
    }

    /// Looks at a process that waits until it is told to execute the program. What fails keeps no program from being executed.
    fn attach(&mut self, waiting: &Waiting) {
        match Collector::start(waiting.pid(), self.rate, &self.run, &self.limit) {
            Ok(collector) => {
                self.collector = Some(collector);
                self.pid = Some(waiting.pid());
            }
            Err(error) => self.reason = Some(crate::one_line(&error)),
        }
    }

    /// The program could not be executed: nothing of its folder is of use.
    pub(crate) fn discard(self) {
        let pid = self.pid;
        let run = self.run.clone();
        let _ = self.end();
        if let Some(pid) = pid {
            let _ = std::fs::remove_file(run.join(samples_file(pid, 0))); // there may be none
        }
    }

    /// After the program's end.
    pub(crate) fn end(self) -> Sampling {
        let Sampler {
            rate,
            collector,
            reason,
            ..
        } = self;
        let nothing = |reason| Sampling {
            rate,
            reason,
            ..Sampling::default()
        };
        match collector.map(Collector::end) {
            None => nothing(reason),
            Some(Ok(done)) => Sampling { rate, ..done },
            Some(Err(error)) => nothing(Some(crate::one_line(&error))),
        }
    }
}

/// The command that waits, and then executes the program in its own place.
pub(crate) fn command() -> Command {
    stage::command()
}

/// Whether the kernel's clock is the one that records have.
pub(crate) fn has_tsc() -> bool {
    let file = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(file).is_ok_and(|name| name.trim() == TSC)
}

/// Whether a few more files may be open than are needed for the pipes: to start a process takes some, too.
fn spare_files() -> Result<()> {
    const SPARE: usize = 8;
    let files = std::iter::repeat_with(|| std::fs::File::open("/dev/null")).take(SPARE);
    let opened: std::io::Result<Vec<_>> = files.collect();
    opened.map(drop).context("too few files may be open")
}
