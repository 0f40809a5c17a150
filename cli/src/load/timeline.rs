//! What the threads of one run did, for what draws or exports it.

use super::{PARQUET_MAGIC, is_parquet, read_releasing, runs::runs};
use crate::output::note;
use anyhow::{Context, Result, bail};
use ompfuse_format::samples::ENDING;
use ompfuse_fuse::run::timeline::Timeline;
use ompfuse_fuse::samples::{Collected, SampledPlaces, Stacks};
use ompfuse_progress::Progress;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a first reading takes of the time.
const OF_INDEX: f64 = 0.3;

/// The one run that a path means.
pub(crate) fn one_run(path: &Path) -> Result<PathBuf> {
    if path.is_file() {
        let mut first = [0; PARQUET_MAGIC.len()];
        let is_profile = File::open(path).is_ok_and(|mut file| file.read_exact(&mut first).is_ok());
        if is_parquet(path) || (is_profile && first == *PARQUET_MAGIC) {
            bail!(
                "cannot read the threads of {}: it is a profile, which has no order of time; name the folder of its run",
                path.display()
            );
        }
        bail!("{} is no run's folder", path.display());
    }
    let mut found = runs(path)?;
    match (found.len(), found.pop()) {
        (1, Some(folder)) => Ok(folder),
        (many, _) => bail!("{} holds {many} runs; name one of them", path.display()),
    }
}

/// Hands on a run's timeline, with the progress of reading it.
pub(crate) fn timeline<T>(
    folder: &Path,
    progress: Progress<'_>,
    read: impl FnOnce(&Timeline<'_>, Progress<'_>) -> Result<T>,
) -> Result<T> {
    read_releasing(folder, &[".json", ".rec"], |files, release| {
        let progress = progress.releasing(release);
        let timeline = Timeline::new(files, progress.part(OF_INDEX))
            .with_context(|| format!("cannot read the threads of {}", folder.display()))?;
        read(&timeline, progress.part(1.0 - OF_INDEX))
    })
}

/// As [`timeline`], with the run's samples if it has any.
pub(crate) fn timeline_with_samples<T>(
    folder: &Path,
    progress: Progress<'_>,
    read: impl FnOnce(&Timeline<'_>, Option<&Stacks<'_>>, Progress<'_>) -> Result<T>,
) -> Result<T> {
    read_releasing(folder, &[".json", ".rec", ENDING], |files, release| {
        let progress = progress.releasing(release);
        let timeline = Timeline::new(files, progress.part(OF_INDEX))
            .with_context(|| format!("cannot read the threads of {}", folder.display()))?;
        let collected = Collected::read(files).unwrap_or_else(|error| {
            note(format_args!(
                "{}: samples are left out: {error}",
                folder.display()
            ));
            Collected::default()
        });
        let nothing = SampledPlaces::default();
        let places = files.places.as_ref().unwrap_or(&nothing);
        let stacks = Stacks::new(&timeline, &collected, places);
        read(&timeline, stacks.as_ref(), progress.part(1.0 - OF_INDEX))
    })
}

/// Whether a run has samples beside records.
pub(crate) fn has_samples(folder: &Path) -> Result<bool> {
    let endings = [".json", ".rec", ENDING];
    read_releasing(folder, &endings, |files, _| {
        Ok(!files.samples.is_empty() && !files.has_sums_only())
    })
}
