//! The folder of the run that `try` records: what is new in it is removed where nothing came of it.

use crate::run_dir;
use anyhow::Result;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A folder for one recorded run.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// What was in it before; `None`: it is new.
    before: Option<BTreeSet<OsString>>,
    is_kept: bool,
}

impl Folder {
    /// The folder that was asked for, or the next free one.
    pub(super) fn new(wanted: Option<&Path>) -> Result<Folder> {
        let before = wanted.filter(|path| path.exists()).map(entries);
        Ok(Folder {
            path: run_dir::make_output(wanted)?,
            before,
            is_kept: false,
        })
    }

    /// What was recorded stays.
    pub(super) fn keep(mut self) -> PathBuf {
        self.is_kept = true;
        std::mem::take(&mut self.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // Nothing is lost if some of it can't be removed.
        match &self.before {
            None => drop(std::fs::remove_dir_all(&self.path)),
            Some(before) => {
                let is_new = |name: &&OsString| !before.contains(*name);
                for name in entries(&self.path).iter().filter(is_new) {
                    let _ = std::fs::remove_dir_all(self.path.join(name));
                }
            }
        }
    }
}

fn entries(folder: &Path) -> BTreeSet<OsString> {
    let listing = std::fs::read_dir(folder).into_iter().flatten().flatten();
    listing.map(|entry| entry.file_name()).collect()
}
