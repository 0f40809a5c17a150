//! The baselines of a folder, here or in a branch.

use super::sides;
use crate::git;
use crate::input;
use crate::one_line;
use crate::output::note;
use anyhow::{Context, Result, bail, ensure};
use ompfuse_compare::history::Named;
use ompfuse_progress::Progress;
use std::path::Path;

/// What the names of baselines end with.
const ENDING: &str = ".json.gz";

/// The baselines in a folder, or in `REVISION:FOLDER`, and whether all could be read. Those that can't are named.
///
/// # Errors
/// None can be read.
pub(crate) fn baselines(given: &str, progress: Progress<'_>) -> Result<(Vec<Named>, bool)> {
    let mut read = match given.split_once(':') {
        _ if Path::new(given).exists() => of_folder(Path::new(given), progress)?,
        Some((revision, folder)) => of_branch(revision, folder, progress)?,
        None => bail!(
            "cannot read {given}: there is no such folder; give a folder of baselines, or REVISION:FOLDER"
        ),
    };
    ensure!(
        !read.is_empty(),
        "cannot read the history: {given} has no baseline, that is no *{ENDING}; `ompfuse baseline RUNS -o FILE{ENDING}` makes one"
    );
    let is_read = read.iter().any(Result::is_ok);
    if let Some(at) = read.iter().position(Result::is_err).filter(|_| !is_read) {
        return read.swap_remove(at).map(|never| (vec![never], true));
    }
    let mut found = vec![];
    let mut is_whole = true;
    for one in read {
        match one {
            Ok(named) => found.push(named),
            Err(error) => {
                note(format_args!("left out: {}", one_line(&error)));
                is_whole = false;
            }
        }
    }
    Ok((found, is_whole))
}

/// Baselines, or why they can't be read.
type Read = Vec<Result<Named>>;

fn of_folder(folder: &Path, progress: Progress<'_>) -> Result<Read> {
    let cannot = || format!("cannot read the folder {}", folder.display());
    ensure!(
        folder.is_dir(),
        "cannot read {} as a history: it is no folder; give the folder with the baselines",
        folder.display()
    );
    let mut files = vec![];
    for entry in folder.read_dir().with_context(cannot)? {
        let path = entry.with_context(cannot)?.path();
        if path.to_string_lossy().ends_with(ENDING) && path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    let share = progress.part(1.0 / files.len().max(1) as f64);
    let mut found = vec![];
    for path in &files {
        let shown = path.display().to_string();
        found.push(input::map(path).and_then(|bytes| named(&shown, &bytes)));
        share.advance(1.0);
    }
    Ok(found)
}

fn of_branch(revision: &str, folder: &str, progress: Progress<'_>) -> Result<Read> {
    let cannot = || format!("cannot read {revision}:{folder}");
    let files = git::files(revision, folder).with_context(cannot)?;
    let files: Vec<&String> = files.iter().filter(|f| f.ends_with(ENDING)).collect();
    let share = progress.part(1.0 / files.len().max(1) as f64);
    let mut found = vec![];
    for path in files {
        let bytes = git::file(revision, path).with_context(cannot)?;
        found.push(named(&format!("{revision}:{path}"), &bytes));
        share.advance(1.0);
    }
    Ok(found)
}

/// `shown`: what the user calls it.
fn named(shown: &str, bytes: &[u8]) -> Result<Named> {
    let Some(side) = sides::read_baseline(shown, bytes)? else {
        bail!(
            "cannot read the baseline {shown}: it is not packed by gzip; remove it or make it again"
        );
    };
    let name = shown.rsplit(['/', ':']).next().unwrap_or(shown);
    Ok(Named {
        name: name.trim_end_matches(ENDING).to_owned(),
        side,
    })
}
