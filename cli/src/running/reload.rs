//! What `ompfuse record` does for the programs that it has started: their signals ask for a file to be read again.

use super::{Changes, Running, in_folder};
use crate::output::note;
use anyhow::{Context, Result};
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

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
        for process in in_folder(run).unwrap_or_default() {
            let Ok(reloads) = process.control.reloads() else {
                continue;
            };
            let key = run.join(&process.key);
            let before = self.seen.borrow_mut().insert(key, reloads);
            if before.unwrap_or(0) == reloads {
                continue;
            }
            if let Err(error) = self.apply(process) {
                note(format_args!("{error:#}"));
            }
        }
    }

    fn apply(&self, process: Running) -> Result<()> {
        let file = process.control.reload_file()?;
        let file = file.as_deref().unwrap_or(&self.file);
        Changes::read(file)?.apply(&[process])?;
        note(format_args!("{} holds from now on", file.display()));
        Ok(())
    }
}
