//! What a folder is: a run, runs over numbers of threads, a job's ranks, repetitions.

use super::PROFILE_NAME;
use super::files::listed;
use crate::{input, run_dir};
use ompfuse_format::run::{BEGUN_FILE, RUN_FILE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file in a rank's folder that has its summary.
pub(crate) const SUMMARY_FILE: &str = "summary.json";

/// Whether a folder is a run.
pub(crate) fn is_run(folder: &Path) -> bool {
    folder.join(RUN_FILE).is_file() || folder.join(BEGUN_FILE).is_file()
}

/// Whether a folder holds the runs of `--threads`.
pub(crate) fn is_series(folder: &Path) -> bool {
    !is_run(folder) && !run_dir::of_threads(folder).is_empty()
}

/// The folders of a job's ranks; `None`: the path means something else.
pub(crate) fn ranks(path: &Path) -> Option<Vec<PathBuf>> {
    folders(path).filter(|folders| !are_repetitions(folders))
}

/// The folders of repetitions; `None`: the path means something else.
pub(crate) fn repetitions(path: &Path) -> Option<Vec<PathBuf>> {
    folders(path).filter(|folders| are_repetitions(folders))
}

/// The folders of runs in a folder that is neither a run nor a folder of runs itself.
fn folders(path: &Path) -> Option<Vec<PathBuf>> {
    let is_other = !path.is_dir() || is_run(path) || path.join(PROFILE_NAME).is_file();
    if is_other || is_series(path) {
        return None;
    }
    let mut folders = listed(path).ok()?;
    folders.retain(|p| p.is_dir());
    if folders.iter().any(|p| is_run(p)) {
        return None; // runs of one program
    }
    folders.retain(|p| p.join(SUMMARY_FILE).is_file() || !runs_in(p).is_empty());
    folders.sort();
    (!folders.is_empty()).then_some(folders)
}

/// Whether folders of runs are repetitions and no job's ranks: none has left a summary, and all have processes of the same ranks, or
/// of none.
fn are_repetitions(folders: &[PathBuf]) -> bool {
    if folders
        .iter()
        .any(|folder| folder.join(SUMMARY_FILE).is_file())
    {
        return false;
    }
    let of = |folder: &PathBuf| {
        runs_in(folder)
            .iter()
            .try_fold(BTreeSet::new(), |known, run| with_ranks(known, run))
    };
    let mut all = folders.iter().map(of);
    // One folder is no repetition, but may be the first.
    let first = all.next().flatten();
    let is_rank = folders.len() == 1 && first.as_ref().is_some_and(|ranks| !ranks.is_empty());
    first.is_some() && !is_rank && all.all(|ranks| ranks == first)
}

/// The ranks of a run's processes beside others'; `None`: it has no process, or one that can't be read.
fn with_ranks(mut known: BTreeSet<u64>, run: &Path) -> Option<BTreeSet<u64>> {
    let is_process = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("process-") && name.ends_with(".json") && !name.ends_with(".end.json")
    };
    let mut files = listed(run).ok()?;
    files.retain(is_process);
    for file in &files {
        let header: serde_json::Value = serde_json::from_str(&input::text(file).ok()?).ok()?;
        known.extend(header.get("mpi_rank").and_then(serde_json::Value::as_u64));
    }
    (!files.is_empty()).then_some(known)
}

/// The runs in a folder.
pub(super) fn runs_in(folder: &Path) -> Vec<PathBuf> {
    let mut found = listed(folder).unwrap_or_default();
    found.retain(|p| is_run(p));
    found
}

/// Whether a run's folder has a thread's records.
pub(super) fn has_records(run: &Path) -> bool {
    let is_record = |p: &PathBuf| p.extension().is_some_and(|e| e == "rec");
    listed(run).is_ok_and(|files| files.iter().any(is_record))
}

/// Whether a run is of a process that was only looked at. Other runs are not opened for that.
pub(crate) fn has_samples_only(run: &Path) -> bool {
    #[derive(serde::Deserialize)]
    struct Header {
        attached_to: Option<Vec<u32>>,
    }
    let header = || {
        let bytes = std::fs::read(run.join(RUN_FILE)).ok()?;
        serde_json::from_slice::<Header>(&bytes).ok()?.attached_to
    };
    !has_records(run) && header().is_some()
}
