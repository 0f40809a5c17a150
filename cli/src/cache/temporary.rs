//! Folders for what is not kept.

use super::{REMEDY, trust};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The folder that runs go to, or the one that this will be made in.
static SPARE: OnceLock<PathBuf> = OnceLock::new();

/// Runs go to this folder (the current one, if none was named). They need it in any case, so it serves where there is no other.
pub(crate) fn spare(runs: Option<&Path>) {
    let runs = runs.unwrap_or(Path::new("."));
    let Ok(runs) = std::path::absolute(runs) else {
        return;
    };
    if let Some(folder) = runs.ancestors().find(|f| f.is_dir()) {
        let _ = SPARE.set(folder.to_owned());
    }
}

/// A new folder among temporary files, or else beside the runs.
pub(crate) fn folder() -> Result<TempDir> {
    let error = match TempDir::with_prefix("ompfuse-") {
        Ok(folder) => return Ok(folder),
        Err(error) => error,
    };
    // What lies in it is executed.
    let spare = SPARE.get().filter(|s| trust::trusted(s, s).is_ok());
    match spare.and_then(|s| TempDir::with_prefix_in(".ompfuse-", s).ok()) {
        Some(folder) => Ok(folder),
        None => bail!("{error}; {REMEDY}, or TMPDIR"),
    }
}
