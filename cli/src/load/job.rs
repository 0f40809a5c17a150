//! Jobs: folders with a folder of runs for each rank, in which each rank has left a summary.

use super::{PROFILE_NAME, is_run, listed, series, summary};
use crate::one_line;
use crate::output::note;
use crate::recording::Recording;
use crate::{atomic, input, memory};
use anyhow::{Context, Result};
use ompfuse_fuse::Summary;
use ompfuse_progress::Progress;
use ompfuse_report::Report;
use ompfuse_report::job::{Job, MOST_BYTES, condensed};
use ompfuse_report::view::json;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// The file in a rank's folder that has its summary.
pub(crate) const SUMMARY_FILE: &str = "summary.json";

/// Summaries that are read before they are added: they take memory.
const AT_ONCE: usize = 64;

/// The folders of a job's ranks; `None`: the path means something else.
pub(crate) fn ranks(path: &Path) -> Option<Vec<PathBuf>> {
    let is_other = !path.is_dir() || is_run(path) || path.join(PROFILE_NAME).is_file();
    if is_other || series::is_series(path) {
        return None;
    }
    let mut folders = listed(path).ok()?;
    folders.retain(|p| p.is_dir());
    if folders.iter().any(|p| is_run(p)) {
        return None; // runs of one program
    }
    folders.retain(|p| p.join(SUMMARY_FILE).is_file() || !runs(p).is_empty());
    folders.sort();
    (!folders.is_empty()).then_some(folders)
}

/// The runs in a rank's folder.
fn runs(folder: &Path) -> Vec<PathBuf> {
    let mut found = listed(folder).unwrap_or_default();
    found.retain(|p| is_run(p));
    found
}

/// The report of a job. `name`: what the user calls it. A rank without a summary is read anew, with about `memory` bytes.
pub(crate) fn report(
    name: &Path,
    ranks: &[PathBuf],
    memory: u64,
    progress: Progress<'_>,
) -> Result<Report> {
    let mut job = Job::default();
    for some in ranks.chunks(AT_ONCE) {
        let read: Vec<Option<Result<Report>>> =
            some.par_iter().map(|folder| left(folder)).collect();
        for (folder, report) in some.iter().zip(read) {
            let report = report.unwrap_or_else(|| read_anew(folder, memory));
            let called = folder.file_name().unwrap_or_default().to_string_lossy();
            match report {
                Ok(report) => job.add(&called, report),
                Err(error) => {
                    job.add_damaged(&called, &one_line(&error));
                    Ok(())
                }
            }
            .with_context(|| format!("cannot report on the job {}", name.display()))?;
        }
        progress.steps(some.len(), ranks.len());
    }
    let report = job.finish(&name.to_string_lossy());
    report.with_context(|| format!("cannot report on the job {}", name.display()))
}

/// The summary that a rank has left; `None`: it is damaged or missing, and there are records, or the rank has recorded again.
fn left(folder: &Path) -> Option<Result<Report>> {
    let file = folder.join(SUMMARY_FILE);
    let runs = runs(folder);
    let report = match read_summary(&file) {
        Err(error) if runs.is_empty() => return Some(Err(error)),
        report => report.ok()?,
    };
    let of_run = |run: &Path| {
        let name = run.file_name();
        let mut known = report.runs.iter().map(|r| Path::new(&r.name).file_name());
        known.any(|known| known == name)
    };
    // The records may be elsewhere.
    runs.iter().all(|run| of_run(run)).then_some(Ok(report))
}

fn read_summary(file: &Path) -> Result<Report> {
    let cannot = || format!("cannot read {}", file.display());
    let text = input::text(file).with_context(cannot)?;
    json::read(&text).with_context(cannot)
}

fn read_anew(folder: &Path, memory: u64) -> Result<Report> {
    let found = summary(folder, memory, Progress::default())?;
    // What it would have left.
    let report = Report::new(&found);
    let text = condensed(&report, MOST_BYTES).context("its report is too large")?;
    Ok(json::read(&text)?)
}

/// Leaves the summary of a rank that records into a folder of its own; `known`: of its runs. Whatever fails is said, and no more: the
/// records are there.
pub(crate) fn leave(recording: &Recording, known: Option<&Summary>) {
    // Who has failed may not keep its launcher waiting.
    if !recording.is_rank || recording.status() != 0 || series::is_series(&recording.folder) {
        return;
    }
    let written = || -> Result<()> {
        let folder = &recording.folder;
        let read = || summary(folder, memory::usual(), Progress::default());
        let report = match known {
            Some(summary) => Report::new(summary),
            None => Report::new(&read()?),
        };
        let text = condensed(&report, MOST_BYTES).context("its report is too large")?;
        atomic::write(&folder.join(SUMMARY_FILE), text.as_bytes(), 0o644)
    };
    if let Err(error) = written() {
        note(format_args!(
            "this rank leaves no summary: {}",
            one_line(&error)
        ));
    }
}
