//! Jobs: folders with a folder of runs for each rank, in which each rank has left a summary.

use super::kinds::{SUMMARY_FILE, is_series, runs_in};
use super::summary;
use crate::one_line;
use crate::output::note;
use crate::{atomic, input, memory};
use anyhow::{Context, Result};
use ompfuse_account::Report;
use ompfuse_account::job::Job;
use ompfuse_account::model::Note;
use ompfuse_account::model::sampled::GoesOn;
use ompfuse_compare::gather::{Measured, RankRows, Ranks};
use ompfuse_compare::rank_summary::{self, MOST_BYTES, condensed};
use ompfuse_fuse::Summary;
use ompfuse_progress::Progress;
use ompfuse_report::view::json;
use ompfuse_report::words;
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// Summaries that are read before they are added: they take memory.
const AT_ONCE: usize = 64;

/// Reads the runs in a rank's folder with about so many bytes; and what goes on of it.
type Anew<'a> = &'a dyn Fn(&Path, u64) -> Result<(Summary, Vec<GoesOn>)>;

/// The report of a job. `name`: what the user calls it. A rank without a summary is read `anew`, with about `memory` bytes.
pub(crate) fn report(
    name: &Path,
    ranks: &[PathBuf],
    memory: u64,
    anew: Anew<'_>,
    progress: Progress<'_>,
) -> Result<Report> {
    add_up(
        Job::default(),
        name,
        ranks,
        (memory, anew),
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
        (memory, &recorded),
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
        all.add(called, rank_summary::rows(&left.text)?, &left.report);
        Ok(())
    };
    let how: (u64, Anew<'_>) = (memory::of_rank(), &recorded);
    let report =
        add_up(Job::default(), name, ranks, how, progress, &mut add).with_context(cannot)?;
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
    (memory, anew): (u64, Anew<'_>),
    progress: Progress<'_>,
    also: &mut dyn FnMut(&str, &Left) -> Result<()>,
) -> Result<Report> {
    let cannot = || format!("cannot report on the job {}", name.display());
    for some in ranks.chunks(AT_ONCE) {
        let read: Vec<Option<Result<Left>>> = some.par_iter().map(|folder| left(folder)).collect();
        for (folder, left) in some.iter().zip(read) {
            let left = left.unwrap_or_else(|| read_anew(folder, memory, anew));
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
    let runs = runs_in(folder);
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

fn read_anew(folder: &Path, memory: u64, anew: Anew<'_>) -> Result<Left> {
    let (summary, goes_on) = anew(folder, memory)?;
    let mut left = Left::read(text(&summary)?)?;
    left.report.goes_on = goes_on;
    Ok(left)
}

/// What is on record of a rank that has ended.
fn recorded(folder: &Path, memory: u64) -> Result<(Summary, Vec<GoesOn>)> {
    Ok((summary(folder, memory, Progress::default())?, vec![]))
}

/// The summary that a rank leaves.
fn text(summary: &Summary) -> Result<String> {
    let report = Report::new(summary);
    let rows = RankRows::new(summary, &report);
    condensed(&report, &rows, MOST_BYTES).context("its report is too large")
}

/// Leaves the summary of a rank that has recorded into a folder of its own; `known`: of its runs. Whatever fails is said, and no more: the
/// records are there.
pub(crate) fn leave(folder: &Path, known: Option<&Summary>) {
    if is_series(folder) {
        return;
    }
    let written = || -> Result<()> {
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
