//! What paths mean that are combined.

use super::files::read_with;
use super::{folder, given, runs, same, summary_of};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// What is combined.
pub(crate) enum Source {
    /// A run folder.
    Run(PathBuf),
    /// A profile, which may be a folder of files, or a table of another recorder.
    File(PathBuf),
}

impl Source {
    pub(crate) fn path(&self) -> &Path {
        match self {
            Source::Run(path) | Source::File(path) => path,
        }
    }

    /// Whether only sums were recorded.
    pub(super) fn has_sums_only(&self) -> bool {
        match self {
            Source::Run(folder) => {
                read_with(
                    folder,
                    &[".json", ".rec"],
                    |files| Ok(files.has_sums_only()),
                )
                .unwrap_or(false)
            }
            Source::File(path) => {
                summary_of(path).is_ok_and(|summary| summary.runs.iter().any(|run| run.sums_only))
            }
        }
    }

    /// Whether its counts are what was counted: those that are scaled can't be combined with others.
    pub(super) fn check_exact(&self) -> Result<()> {
        // What can't be read is told when all of it is read.
        let (path, is_scaled) = match self {
            Source::Run(folder) => {
                let scaled = read_with(folder, &[".json"], |files| Ok(files.is_scaled()));
                (folder, scaled.unwrap_or(false))
            }
            Source::File(path) => {
                let summary = summary_of(path);
                (
                    path,
                    summary.is_ok_and(|s| s.events.iter().any(|e| e.scaled)),
                )
            }
        };
        if is_scaled {
            bail!(
                "cannot combine {}: its counts are scaled (recorded with --multiplex), which makes them estimates; leave it out",
                path.display()
            );
        }
        Ok(())
    }
}

/// What the paths mean, in order.
pub(crate) fn inputs(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let inputs = sources(paths)?;
    if inputs.len() > 1 {
        check_sums(&inputs)?;
        inputs.iter().try_for_each(Source::check_exact)?;
        same::check(&inputs)?;
    }
    Ok(inputs)
}

/// The run of each rank of a job.
pub(crate) fn inputs_of_ranks(ranks: &[PathBuf]) -> Result<Vec<Source>> {
    let one = |folder: &PathBuf| {
        let found = runs(folder)?;
        let count = found.len();
        match <[PathBuf; 1]>::try_from(found) {
            Ok([run]) => Ok(Source::Run(run)),
            Err(_) => bail!(
                "{} has {count} runs: record each launch into a job's folder of its own",
                folder.display()
            ),
        }
    };
    ranks.iter().map(one).collect()
}

/// Refuses to combine sums with units: the counts of the one would be in no unit of the other.
fn check_sums(inputs: &[Source]) -> Result<()> {
    let sums: Vec<bool> = inputs.iter().map(Source::has_sums_only).collect();
    if let (Some(at), true) = (sums.iter().position(|&s| s), sums.contains(&false)) {
        bail!(
            "cannot combine {} with the others: it has sums only (recorded with --summary), they have units; leave it out, or record \
             it without --summary",
            inputs[at].path().display()
        );
    }
    Ok(())
}

pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut sources = vec![];
    for path in paths {
        if folder::is_folder(path) {
            sources.push(Source::File(path.clone()));
        } else if path.is_dir() {
            sources.extend(runs(path)?.into_iter().map(Source::Run));
        } else {
            given::check(path)?;
            sources.push(Source::File(path.clone()));
        }
    }
    Ok(sources)
}
