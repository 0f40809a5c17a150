//! How much a run writes while its program runs: it is said before it fills the disk, and ended where it would.

use crate::output::note;
use crate::running::{self, Access};
use ompfuse_format::samples;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From so many bytes on it is said, and at each doubling.
const FIRST: u64 = 1 << 30;

/// The records of a run.
pub(super) struct Volume {
    run: PathBuf,
    limit: u64,
    /// The next size that is said.
    next: Cell<u64>,
    /// What they had when recording ended.
    ended_at: Cell<Option<u64>>,
    /// Processes that were told so.
    told: RefCell<BTreeSet<String>>,
}

impl Volume {
    /// Of a run that begins. `limit`: bytes; `None`: half of what is free where it is.
    pub(super) fn new(run: &Path, limit: Option<u64>) -> Volume {
        let free = || {
            let of = rustix::fs::statvfs(run).ok()?;
            Some(of.f_bavail.saturating_mul(of.f_frsize) / 2)
        };
        Volume {
            run: run.to_owned(),
            limit: limit.or_else(free).unwrap_or(u64::MAX),
            next: Cell::new(FIRST),
            ended_at: Cell::new(None),
            told: RefCell::default(),
        }
    }

    /// Bytes of records at which recording ended, if it did.
    pub(super) fn ended_at(&self) -> Option<u64> {
        self.ended_at.get()
    }

    /// Looks at what there is by now.
    pub(super) fn look(&self) {
        if self.ended_at.get().is_some() {
            return self.end(); // others may have begun since
        }
        let size = size(&self.run);
        if size >= self.limit {
            self.ended_at.set(Some(size));
            note(format_args!(
                "recording ends and the program goes on: the records in {} have reached {} (--max-size allows more; --units \
                     records less)",
                self.run.display(),
                megabytes(size)
            ));
            return self.end();
        }
        if size >= self.next.get() {
            note(format_args!(
                "the records in {} have reached {}; recording ends at {} (--max-size)",
                self.run.display(),
                megabytes(size),
                megabytes(self.limit)
            ));
            while self.next.get() <= size {
                self.next.set(self.next.get().saturating_mul(2));
            }
        }
    }

    /// Tells the processes that don't know it yet; who is busy is told the next time.
    fn end(&self) {
        let Ok(found) = running::in_folder(&self.run, Access::Change) else {
            return;
        };
        let mut told = self.told.borrow_mut();
        for process in found.running {
            if told.contains(&process.key) {
                continue;
            }
            let changed = (process.control).change(Duration::ZERO, |changing| {
                changing.end();
                Ok(())
            });
            if changed.is_ok() {
                told.insert(process.key);
            }
        }
    }
}

/// Bytes of a run's records and samples.
fn size(run: &Path) -> u64 {
    let Ok(listing) = std::fs::read_dir(run) else {
        return 0;
    };
    let records = listing.filter_map(Result::ok);
    let is_counted = |name: &OsStr| {
        let endings = [".rec", samples::ENDING];
        (endings.iter()).any(|ending| name.as_encoded_bytes().ends_with(ending.as_bytes()))
    };
    let records = records.filter(|e| is_counted(&e.file_name()));
    records.filter_map(|e| Some(e.metadata().ok()?.len())).sum()
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
