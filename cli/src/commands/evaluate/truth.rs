//! `ompfuse evaluate --truth`: a profile's counts against what its first run really had.

use super::exact;
use crate::load;
use anyhow::{Context, Result};
use ompfuse_fuse::Profile;
use ompfuse_progress::Progress;
use ompfuse_study::{TruthError, has_common_labels, rows_in_first, truth_error};
use std::path::Path;

/// The error of the profile at `path`. `complete`: the first run's execution, with all events.
pub(super) fn compared(
    path: &Path,
    profile: &Profile,
    complete: &Path,
    progress: Progress<'_>,
) -> Result<TruthError> {
    let cannot = || {
        format!(
            "cannot compare {} with {}",
            path.display(),
            complete.display()
        )
    };
    let truth = exact(complete, progress)?;
    let found = if has_common_labels(profile) {
        let first = profile.summary.runs.first().map_or("", |run| &run.name);
        let input = load::profile(Path::new(first), Progress::default()).with_context(|| {
            format!(
                "{}: the profile has the labels that its runs have in common, so those of its first run are needed",
                cannot()
            )
        })?;
        let rows = rows_in_first(profile, &input.xus).with_context(|| {
            format!(
                "{}: {first} is not the profile's first run as it was",
                cannot()
            )
        })?;
        truth_error(profile, Some((&input.xus, &rows)), &truth.xus)
    } else {
        truth_error(profile, None, &truth.xus)
    };
    found.with_context(|| {
        format!(
            "{}: no labels in common, or no event of a later run",
            cannot()
        )
    })
}
