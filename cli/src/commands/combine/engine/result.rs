//! Parts that an engine has written become one profile.

use super::plan::{self, Plan};
use crate::commands::partition::summary_file;
use crate::load::FOLDER_FILE;
use crate::{atomic, input, load};
use anyhow::{Context, Result, ensure};
use ompfuse_fuse::Summary;
use ompfuse_fuse::exchange::{Done, Folder, Manifest};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where marks of finished parts are.
const DONE: &str = "_done";
/// What is combined there.
const PLAN: &str = "_plan.json";

/// The folder until all parts are there.
pub(super) fn partial(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

/// Gives the folder its name, and says how many units it has.
pub(super) fn finish(
    partial: &Path,
    output: &Path,
    units: &Path,
    manifest: &Manifest,
    plan: &Plan,
) -> Result<u64> {
    let (mut files, mut all) = (BTreeMap::new(), Done::default());
    for mark in load::listed(&partial.join(DONE))? {
        let cannot = || format!("cannot read {}", mark.display());
        let text = input::text(&mark).with_context(cannot)?;
        let done: Done = serde_json::from_str(&text).with_context(cannot)?;
        let name = mark.file_stem().unwrap_or_default().to_string_lossy();
        files.insert(format!("{name}.parquet"), done.combined);
        all.add(done);
    }
    let expected = super::units_of(manifest, |_| true);
    ensure!(
        all.units == expected,
        "cannot write {}: {} of {expected} units were combined",
        output.display(),
        all.units
    );
    let xus = all.combined;
    let order = plan.order(manifest.runs()?.len());
    let known: Vec<Option<Summary>> = (order.iter())
        .map(|&run| {
            let part = manifest.parts.iter().find(|p| p.run == run)?.part;
            let known = plan::read(&summary_file(units, run, part)).ok()?;
            Some(known.summary)
        })
        .collect();
    let folder = Folder::new(
        manifest,
        &order,
        known,
        plan.strategy,
        (files, all.listed()),
    );
    let json = serde_json::to_vec(&folder).context("cannot encode the summary")?;
    atomic::write(&partial.join(FOLDER_FILE), &json, 0o644)?;
    std::fs::rename(partial, output)
        .with_context(|| format!("cannot write {}", output.display()))?;
    // What is no part of it any more; readers don't mind it.
    let _ = std::fs::remove_dir_all(output.join(DONE));
    let _ = std::fs::remove_file(output.join(PLAN));
    for path in load::listed(output).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with('.') {
            let _ = std::fs::remove_file(path);
        }
    }
    Ok(xus)
}
