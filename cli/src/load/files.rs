//! The files of a run's folder, mapped.

use crate::input::{self, Input};
use crate::{program, run_dir};
use anyhow::{Context, Result};
use ompfuse_format::run::{BEGUN_FILE, RUN_FILE, RunHeader};
use ompfuse_format::samples::ENDING;
use ompfuse_fuse::RunFiles;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// Giving memory back takes one part in so many of the time.
const REST: u32 = 10;

/// What a run folder holds.
pub(crate) fn with_files<T>(
    folder: &Path,
    read: impl FnOnce(&RunFiles<'_>) -> Result<T>,
) -> Result<T> {
    read_with(folder, &[".json", ".rec"], read)
}

/// What some of a run folder's files hold: those that end so.
pub(super) fn read_with<T>(
    folder: &Path,
    endings: &[&str],
    read: impl FnOnce(&RunFiles<'_>) -> Result<T>,
) -> Result<T> {
    read_releasing(folder, endings, |files, _| read(files))
}

/// As [`read_with`], also with what gives the memory of pages back that were read.
pub(super) fn read_releasing<T>(
    folder: &Path,
    endings: &[&str],
    read: impl FnOnce(&RunFiles<'_>, &(dyn Fn() + Sync)) -> Result<T>,
) -> Result<T> {
    let mut files: Vec<(String, Input)> = Vec::new();
    for path in listed(folder)? {
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if endings.iter().any(|e| name.ends_with(e)) {
            files.push((name, input::map(&path)?));
        }
    }
    let begun = begun(folder, &files).map(|header| (RUN_FILE, header));
    let begun = begun.iter().map(|(name, header)| (*name, &header[..]));
    let bytes = files.iter().map(|(name, input)| (name.as_str(), &**input));
    let bytes = bytes.chain(begun);
    let run = RunFiles::from_folder(bytes)
        .with_context(|| format!("cannot read the run {}", folder.display()))?;
    let next = Mutex::new(Instant::now());
    read(&run, &|| {
        // Every thread that was read asks for this, and it looks at the files of all: without a limit the work would grow with the
        // square of the number of threads.
        let Some(mut next) = next.try_lock().ok().filter(|next| **next <= Instant::now()) else {
            return;
        };
        let begun = Instant::now();
        files.iter().for_each(|(_, input)| input.release());
        *next = Instant::now() + REST * begun.elapsed();
    })
}

/// The header of a run whose end nobody has seen, with the modules that its processes have loaded by now; `None`: it ended.
fn begun(folder: &Path, files: &[(String, Input)]) -> Option<Vec<u8>> {
    if files.iter().any(|(name, _)| name == RUN_FILE) {
        return None;
    }
    let (_, bytes) = files.iter().find(|(name, _)| name == BEGUN_FILE)?;
    let mut header: RunHeader = serde_json::from_slice(bytes).ok()?;
    // What is damaged is told when all of it is read.
    let processes = run_dir::readable_processes(folder);
    for status in processes.modules() {
        if !header.modules.iter().any(|m| m.patched == status.path) {
            header
                .modules
                .extend(program::loaded(Path::new(&status.path)));
        }
    }
    header.ranks = run_dir::ranks::ranks_in(folder);
    serde_json::to_vec(&header).ok()
}

/// What is in a folder.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot list {}", folder.display());
    let listing = std::fs::read_dir(folder).with_context(cannot)?;
    let paths = listing.map(|entry| Ok(entry.with_context(cannot)?.path()));
    paths.collect()
}

/// What a run folder holds, samples as well.
pub(crate) fn with_samples<T>(
    folder: &Path,
    read: impl FnOnce(&RunFiles<'_>) -> Result<T>,
) -> Result<T> {
    let endings = [".json", ".rec", ENDING];
    read_releasing(folder, &endings, |files, _| read(files))
}
