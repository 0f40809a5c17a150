//! What a command looks at that is given nothing: the newest folder of `ompfuse profile` or `record`.

use crate::output::{Usage, remark};
use crate::run_dir::{self, DEFAULT_NAME};
use anyhow::{Context, Result};
use ompfuse_format::run::{BEGUN_FILE, RUN_FILE};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The path that was given, or the newest folder in this one; that is said.
pub(crate) fn or_newest(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return Ok(path.to_owned());
    }
    let newest = newest_in(Path::new("."))?.with_context(|| {
        Usage(format!(
            "there is no {DEFAULT_NAME}* with a run in this folder; name a run or profile, or make one with `ompfuse profile -- \
             PROGRAM`"
        ))
    })?;
    remark(format_args!(
        "reading {}, the newest here",
        newest.display()
    ));
    Ok(newest)
}

fn newest_in(folder: &Path) -> Result<Option<PathBuf>> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let found = listing.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let is_ours = name.starts_with(DEFAULT_NAME) && entry.path().is_dir();
        // Of two that are equally old the one with the higher number came later.
        let number: u64 = name.rsplit('-').next()?.parse().unwrap_or(0);
        Some((last_run(&entry.path())?, number, PathBuf::from(name))).filter(|_| is_ours)
    });
    Ok(found.max().map(|(_, _, name)| name))
}

/// When the last run in a folder ended, or began if it goes on.
fn last_run(folder: &Path) -> Option<SystemTime> {
    let list = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten();
    let of_threads = run_dir::of_threads(folder);
    let folders = of_threads.iter().map(PathBuf::as_path).chain([folder]);
    let runs = folders
        .flat_map(list)
        .filter_map(|entry| Some(entry.ok()?.path()));
    let headers = runs.flat_map(|run| [run.join(RUN_FILE), run.join(BEGUN_FILE)]);
    let times = headers.filter_map(|file| file.metadata().ok()?.modified().ok());
    times.max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_newest_run_decides() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(newest_in(folder.path()).unwrap(), None);
        let now = SystemTime::now();
        for (name, age) in [
            ("ompfuse-out", Some(30)),
            ("ompfuse-out-2", Some(10)),
            ("ompfuse-out-10", Some(10)),
            ("ompfuse-out-3", Some(20)),
            ("ompfuse-out-4", None),
            ("other", Some(0)),
        ] {
            let run = folder.path().join(name).join("run-0001");
            std::fs::create_dir_all(&run).unwrap();
            if let Some(age) = age {
                let file = std::fs::File::create(run.join(RUN_FILE)).unwrap();
                file.set_modified(now - Duration::from_secs(age)).unwrap();
            }
        }
        let found = newest_in(folder.path()).unwrap().unwrap();
        assert_eq!(found, Path::new("ompfuse-out-10"));
    }
}
