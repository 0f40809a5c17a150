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
use ompfuse_report::compare::gather::{Measured, RankRows, Ranks};
use ompfuse_report::job::{self, Job, MOST_BYTES, condensed};
use ompfuse_report::model::Note;
use ompfuse_report::view::json;
use ompfuse_report::words;
use rayon::prelude::*;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The file in a rank's folder that has its summary.
pub(crate) const SUMMARY_FILE: &str = "summary.json";

/// Summaries that are read before they are added: they take memory.
const AT_ONCE: usize = 64;

/// The folders of a job's ranks; `None`: the path means something else.
pub(crate) fn ranks(path: &Path) -> Option<Vec<PathBuf>> {
    folders(path).filter(|folders| !are_repetitions(folders))
}

/// The folders of repetitions; `None`: the path means something else.
pub(super) fn repetitions(path: &Path) -> Option<Vec<PathBuf>> {
    folders(path).filter(|folders| are_repetitions(folders))
}

/// The folders of runs in a folder that is neither a run nor a folder of runs itself.
fn folders(path: &Path) -> Option<Vec<PathBuf>> {
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
        runs(folder)
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
    add_up(
        Job::default(),
        name,
        ranks,
        memory,
        progress,
        &mut |_, _| Ok(()),
    )
}

/// The same with call paths, as far as all ranks have them, and with all ranks of each region.
pub(crate) fn in_detail(
    name: &Path,
    ranks: &[PathBuf],
    memory: u64,
    progress: Progress<'_>,
) -> Result<Report> {
    let report = add_up(
        Job::in_detail(),
        name,
        ranks,
        memory,
        progress,
        &mut |_, _| Ok(()),
    )?;
    damage(&report).for_each(note);
    Ok(report)
}

/// What is compared of a job.
pub(crate) fn measured(name: &Path, ranks: &[PathBuf], progress: Progress<'_>) -> Result<Measured> {
    let cannot = || format!("cannot compare the job {}", name.display());
    let mut all = Ranks::default();
    let mut add = |called: &str, left: &Left| {
        all.add(called, job::rows(&left.text)?, &left.report);
        Ok(())
    };
    let memory = memory::of_rank();
    let report =
        add_up(Job::default(), name, ranks, memory, progress, &mut add).with_context(cannot)?;
    damage(&report).for_each(|told| all.add_damage(told));
    let left_out = all.left_out();
    if left_out > 0 {
        note(format_args!(
            "{}: {left_out} regions are not compared, because the summary of some rank has no room for them",
            name.display()
        ));
    }
    all.finish(&super::name(name), &report).with_context(cannot)
}

/// What is missing of a job.
fn damage(report: &Report) -> impl Iterator<Item = String> {
    let is_damage = |n: &Note| matches!(n, Note::RankUnreadable { .. } | Note::RanksSilent { .. });
    let both = report.shortcomings.iter().zip(words::notes(report));
    both.filter(move |(note, _)| is_damage(note))
        .map(|(_, told)| told)
}

/// What a rank has left.
struct Left {
    report: Report,
    text: String,
}

impl Left {
    fn read(text: String) -> Result<Left, json::ReadError> {
        let report = json::read(&text)?;
        Ok(Left { report, text })
    }
}

/// Adds up the ranks of a job. `also` is given each of them that can be read.
fn add_up(
    mut job: Job,
    name: &Path,
    ranks: &[PathBuf],
    memory: u64,
    progress: Progress<'_>,
    also: &mut dyn FnMut(&str, &Left) -> Result<()>,
) -> Result<Report> {
    let cannot = || format!("cannot report on the job {}", name.display());
    for some in ranks.chunks(AT_ONCE) {
        let read: Vec<Option<Result<Left>>> = some.par_iter().map(|folder| left(folder)).collect();
        for (folder, left) in some.iter().zip(read) {
            let left = left.unwrap_or_else(|| read_anew(folder, memory));
            let called = folder.file_name().unwrap_or_default().to_string_lossy();
            match left {
                Ok(left) => {
                    also(&called, &left)?;
                    job.add(&called, left.report).with_context(cannot)?;
                }
                Err(error) => job.add_damaged(&called, &one_line(&error)),
            }
        }
        progress.steps(some.len(), ranks.len());
    }
    job.finish(&name.to_string_lossy()).with_context(cannot)
}

/// The summary that a rank has left; `None`: it is damaged or missing, and there are records, or the rank has recorded again.
fn left(folder: &Path) -> Option<Result<Left>> {
    let file = folder.join(SUMMARY_FILE);
    let runs = runs(folder);
    let left = match read_summary(&file) {
        Err(error) if runs.is_empty() => return Some(Err(error)),
        left => left.ok()?,
    };
    let of_run = |run: &Path| {
        let name = run.file_name();
        let mut known = left
            .report
            .runs
            .iter()
            .map(|r| Path::new(&r.name).file_name());
        known.any(|known| known == name)
    };
    // The records may be elsewhere.
    runs.iter().all(|run| of_run(run)).then_some(Ok(left))
}

fn read_summary(file: &Path) -> Result<Left> {
    let cannot = || format!("cannot read {}", file.display());
    let text = input::text(file).with_context(cannot)?;
    Left::read(text).with_context(cannot)
}

fn read_anew(folder: &Path, memory: u64) -> Result<Left> {
    Ok(Left::read(text(&summary(
        folder,
        memory,
        Progress::default(),
    )?)?)?)
}

/// The summary that a rank leaves.
fn text(summary: &Summary) -> Result<String> {
    let report = Report::new(summary);
    let rows = RankRows::new(summary, &report);
    condensed(&report, &rows, MOST_BYTES).context("its report is too large")
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
        let text = match known {
            Some(known) => text(known)?,
            None => text(&summary(folder, memory::of_rank(), Progress::default())?)?,
        };
        atomic::write(&folder.join(SUMMARY_FILE), text.as_bytes(), 0o644)
    };
    if let Err(error) = written() {
        note(format_args!(
            "this rank leaves no summary: {}",
            one_line(&error)
        ));
    }
}
