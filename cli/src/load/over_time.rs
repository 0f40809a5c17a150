//! A run over time.

use super::{name, read_releasing};
use crate::output::remark;
use anyhow::{Context, Result, bail};
use ompfuse_account::model::growth::{GrowthReport, GrowthUnit};
use ompfuse_format::site::SiteInfo;
use ompfuse_fuse::Summary;
use ompfuse_fuse::run::InParts;
use ompfuse_fuse::summary::growth::{Growth, GrowthBy};
use ompfuse_progress::Progress;
use std::path::{Path, PathBuf};

/// Where intervals end, as the user wants it.
pub(crate) enum Ends<'a> {
    /// After so many nanoseconds.
    Time(u64),
    /// With executions of the regions that this is true of: path of the module and site; and what the user calls them.
    Instances(&'a dyn Fn(&str, &SiteInfo) -> bool, String),
}

/// What one reading of a run's records tells.
pub(crate) struct Grown {
    /// The whole run.
    pub(crate) summary: Summary,
    /// How it goes on.
    pub(crate) growth: GrowthReport,
    /// For a further reading of its units; `None`: its records don't come in the order of time.
    pub(crate) in_parts: Option<InParts>,
}

/// The run that a path means over time. Its records are read once and not kept.
pub(crate) fn over_time(path: &Path, ends: Ends<'_>, progress: Progress<'_>) -> Result<Grown> {
    let folder = run_of(path)?;
    let by = match &ends {
        Ends::Time(ns) => GrowthBy::Time(*ns),
        Ends::Instances(wanted, _) => GrowthBy::Instances(*wanted),
    };
    let read = read_releasing(&folder, &[".json", ".rec"], |files, release| {
        let grown = Summary::growing(&name(&folder), files, by, progress.releasing(release));
        grown.with_context(|| format!("cannot divide {} into intervals", folder.display()))
    });
    let (summary, in_parts, growth): (Summary, _, Growth) = read?;
    let unit = match ends {
        Ends::Time(ns) => GrowthUnit::Time {
            wanted_s: ns as f64 * 1e-9,
            length_s: growth.each as f64 * 1e-9,
        },
        Ends::Instances(_, regions) => GrowthUnit::Instances {
            regions,
            each: growth.each,
        },
    };
    Ok(Grown {
        growth: ompfuse_account::growth(&summary, &growth, unit),
        summary,
        in_parts,
    })
}

/// The first run that a path means.
fn run_of(path: &Path) -> Result<PathBuf> {
    if !path.is_dir() {
        bail!(
            "{} is not a run's folder, and only records tell what happened when; give a run",
            path.display()
        );
    }
    let runs = super::runs(path)?;
    let first = runs
        .first()
        .with_context(|| format!("{} holds no run", path.display()))?;
    if runs.len() > 1 {
        remark(format_args!(
            "of {} runs the first is shown, {}",
            runs.len(),
            first.display()
        ));
    }
    Ok(first.clone())
}
