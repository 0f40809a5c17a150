//! The runs that a path means.

use super::kinds::{has_records, has_samples_only, is_run, repetitions};
use crate::output::{note, remark};
use crate::running::{self, Access};
use anyhow::{Context, Result, bail};
use ompfuse_account::units::several;
use ompfuse_format::run::RUN_FILE;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Folders of which it is said what they were taken for: commands read some of them twice.
static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The runs that a path means: a run folder, all of a folder of runs in the order of their numbers, or all of a folder of such folders
/// that are repetitions.
pub(super) fn runs(path: &Path) -> Result<Vec<PathBuf>> {
    if is_run(path) {
        if let Some(process) = goes_on(path) {
            bail!("cannot read {} yet: {process}", path.display());
        }
        if has_samples_only(path) {
            bail!(
                "{} has samples only, and no records: `ompfuse report` shows them, as text or JSON",
                path.display()
            );
        }
        return Ok(vec![path.to_owned()]);
    }
    if let Some(folders) = repetitions(path) {
        let is_new = TOLD
            .lock()
            .is_ok_and(|mut told| told.insert(path.to_owned()));
        if is_new {
            let several = several(folders.len() as u64, "folder");
            remark(format_args!(
                "{}: {several} of runs, taken for repetitions",
                path.display()
            ));
        }
        let each: Result<Vec<_>> = folders.iter().map(|folder| runs(folder)).collect();
        return Ok(each?.concat());
    }
    let listing =
        std::fs::read_dir(path).with_context(|| format!("cannot list {}", path.display()))?;
    let mut found: Vec<PathBuf> = listing.filter_map(|e| Some(e.ok()?.path())).collect();
    found.retain(|p| is_run(p));
    let mut left_out = vec![];
    if let [one] = &found[..]
        && has_samples_only(one)
    {
        return runs(one);
    }
    // What an interruption leaves, beside others.
    let others_have_records = found.iter().any(|p| has_records(p));
    found.retain(|p| {
        let reason = goes_on(p).or_else(|| {
            let is_empty = others_have_records && !has_records(p);
            is_empty.then(|| "no thread was recorded".to_owned())
        });
        left_out.extend(
            reason
                .iter()
                .map(|reason| format!("{}: {reason}", p.display())),
        );
        reason.is_none()
    });
    left_out.sort();
    if let (true, [first, ..]) = (found.is_empty(), &left_out[..]) {
        bail!("cannot read {first}");
    }
    for reason in left_out {
        note(format_args!("left out, {reason}"));
    }
    if found.is_empty() {
        bail!(
            "{} holds no run (no {RUN_FILE} in it or in its folders); make one with `ompfuse record`",
            path.display()
        );
    }
    found.sort();
    Ok(found)
}

/// The process that still records into a run's folder, for a message: as long as records are written they can't be read as a
/// whole.
fn goes_on(run: &Path) -> Option<String> {
    let processes = running::in_folder(run, Access::Look).ok()?.running;
    let process = processes.first()?;
    Some(format!(
        "process {} is still being recorded there; look at it with `ompfuse watch` (if that is another program by now, \
         remove {})",
        process.pid,
        process.control_file().display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::read;
    use ompfuse_progress::Progress;

    #[test]
    fn a_folder_of_runs_means_all_of_them() {
        let folder = tempfile::tempdir().unwrap();
        let error = |p: &Path| format!("{:#}", runs(p).unwrap_err());
        assert!(error(folder.path()).contains("holds no run"));
        let missing = folder.path().join("missing");
        assert!(error(&missing).starts_with("cannot list "));
        for name in ["run-0002", "run-0001", "other"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in ["run-0002", "run-0001"] {
            std::fs::write(folder.path().join(name).join(RUN_FILE), "{}").unwrap();
        }
        let found = runs(folder.path()).unwrap();
        assert_eq!(
            found,
            [
                folder.path().join("run-0001"),
                folder.path().join("run-0002")
            ]
        );
        assert_eq!(runs(&found[0]).unwrap(), [found[0].clone()]);
        assert!(
            format!("{:#}", read(&found[0], Progress::default()).unwrap_err())
                .contains("run.json can't be read")
        );
    }
}
