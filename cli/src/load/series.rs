//! The runs of a series over numbers of threads.

use super::kinds::is_series;
use super::{Source, name, same, summary, with_files};
use crate::run_dir;
use anyhow::{Context, Result};
use ompfuse_account::model::series::{Scaling, Series};
use ompfuse_compare::series::{Measured, measured, over_threads};
use ompfuse_fuse::span::labelled;
use ompfuse_progress::Progress;
use std::path::{Path, PathBuf};

/// The folders with the runs of one number of threads each.
pub(crate) fn runs(folder: &Path) -> Vec<PathBuf> {
    run_dir::of_threads(folder)
}

/// The series that paths mean: run folders, folders of runs, what `--threads` has recorded, profiles. Each run is read and
/// summed up before the next. Needs about `memory` bytes.
pub(crate) fn series(
    paths: &[PathBuf],
    scaling: Scaling,
    memory: u64,
    progress: Progress<'_>,
) -> Result<Series> {
    let mut folders = vec![];
    for path in paths {
        match path.is_dir() && is_series(path) {
            true => folders.extend(runs(path)),
            false => folders.push(path.clone()),
        }
    }
    let sources = super::sources(&folders)?;
    same::check_for(&sources, "make a series of")?;
    let each = progress.part(1.0 / sources.len().max(1) as f64);
    let mut runs: Vec<Measured> = vec![];
    for source in &sources {
        let (Source::Run(path) | Source::File(path)) = source;
        let summary = summary(path, memory, each)?;
        let units = match super::first_run(path) {
            Some(run) => with_files(&run, |files| Ok(labelled(files, &summary)))?,
            None => vec![],
        };
        runs.push(measured(&name(path), &summary, &units));
    }
    let called: Vec<String> = paths.iter().map(|p| name(p)).collect();
    over_threads(&runs, scaling)
        .with_context(|| format!("cannot make a series of {}", called.join(" ")))
}
