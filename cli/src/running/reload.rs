//! What `ompfuse record` does for the programs that it has started: their signals ask for a file to be read again.

use super::lock::Busy;
use super::{Access, Changes, PATIENCE, Running, in_folder};
use crate::output::note;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A file that signals ask for.
pub(crate) struct Reload {
    /// Its absolute path.
    pub(crate) file: PathBuf,
    /// By control file.
    seen: RefCell<HashMap<PathBuf, Seen>>,
}

/// What has become of a process's requests.
#[derive(Default)]
struct Seen {
    /// How many have been seen to.
    reloads: u32,
    /// One that can't be seen to yet.
    held_up: Option<HeldUp>,
}

/// A request that waits until somebody else's change is made.
struct HeldUp {
    since: Instant,
    /// What is to be read.
    file: PathBuf,
    pid: u32,
    who: String,
    told: bool,
}

impl HeldUp {
    /// Who takes longer for a change than any takes is named, once.
    fn tell(&mut self, is_over: bool) {
        if self.told || !is_over && self.since.elapsed() < PATIENCE {
            return;
        }
        self.told = true;
        let (file, pid, who) = (self.file.display(), self.pid, &self.who);
        match is_over {
            true => note(format_args!(
                "{file} was not read again before process {pid} ended: {who} was changing its settings"
            )),
            false => note(format_args!(
                "{file} has no effect on process {pid} yet: {who} has been changing its settings for {PATIENCE:?}"
            )),
        }
    }
}

impl Reload {
    /// For a file that can be read now; what is in it holds when a signal comes.
    pub(crate) fn new(file: &Path) -> Result<Reload> {
        Changes::read(file)?;
        Ok(Reload {
            file: std::path::absolute(file).context("cannot find the current folder")?,
            seen: RefCell::default(),
        })
    }

    /// Sees to the requests of a run's processes; what is wrong is said, and the program goes on.
    pub(crate) fn look(&self, run: &Path) {
        let there = in_folder(run, Access::Change).map(|found| found.running);
        let mut seen = self.seen.borrow_mut();
        for process in there.unwrap_or_default() {
            let Ok(reloads) = process.control.reloads() else {
                continue;
            };
            let seen = seen.entry(run.join(&process.key)).or_default();
            if seen.reloads == reloads {
                continue;
            }
            let (pid, named) = (process.pid, process.control.reload_file());
            let file = named.ok().flatten().unwrap_or_else(|| self.file.clone());
            if let Err(error) = apply(&file, process) {
                // Somebody else is at it: next time.
                if let Some(busy) = error.downcast_ref::<Busy>() {
                    let held_up = seen.held_up.get_or_insert_with(|| HeldUp {
                        since: Instant::now(),
                        file,
                        pid,
                        who: String::new(),
                        told: false,
                    });
                    held_up.who.clone_from(&busy.who);
                    held_up.tell(false);
                    continue;
                }
                note(format_args!("{error:#}"));
            }
            *seen = Seen {
                reloads,
                held_up: None,
            };
        }
    }

    /// A run is over: what was asked for in it and not done is said.
    pub(crate) fn end(&self) {
        let seen = std::mem::take(&mut *self.seen.borrow_mut());
        for mut held_up in seen.into_values().filter_map(|seen| seen.held_up) {
            held_up.tell(true);
        }
    }
}

fn apply(file: &Path, process: Running) -> Result<()> {
    Changes::read(file)?.apply(&[process], Duration::ZERO)?;
    note(format_args!("{} is in effect now", file.display()));
    Ok(())
}
