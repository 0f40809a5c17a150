//! What is combined.

use super::files::read_with;
use super::summary_of;
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
                "cannot combine {}: its counts are scaled (recorded with --rotate kernel), which makes them estimates; leave it out",
                path.display()
            );
        }
        Ok(())
    }
}
