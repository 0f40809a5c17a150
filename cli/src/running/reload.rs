//! What `ompfuse record` does for the programs that it has started: their signals ask for a file to be read again.

use super::lock::Busy;
use super::{Access, Changes, Running, in_folder};
use crate::output::note;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A file that signals ask for.
pub(crate) struct Reload {
    /// Its absolute path.
    pub(crate) file: PathBuf,
    /// By control file: how many requests have been seen to.
    seen: RefCell<HashMap<PathBuf, u32>>,
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
        for process in there.unwrap_or_default() {
            let Ok(reloads) = process.control.reloads() else {
                continue;
            };
            let key = run.join(&process.key);
            if self.seen.borrow().get(&key).copied().unwrap_or(0) == reloads {
                continue;
            }
            match self.apply(process) {
                // Somebody else is at it: next time.
                Err(error) if error.is::<Busy>() => continue,
                Err(error) => note(format_args!("{error:#}")),
                Ok(()) => {}
            }
            self.seen.borrow_mut().insert(key, reloads);
        }
    }

    fn apply(&self, process: Running) -> Result<()> {
        let file = process.control.reload_file()?;
        let file = file.as_deref().unwrap_or(&self.file);
        Changes::read(file)?.apply(&[process], Duration::ZERO)?;
        note(format_args!("{} holds from now on", file.display()));
        Ok(())
    }
}
