//! Recordings that are held: nothing is recorded until somebody lets them go on.

use super::{Access, PATIENCE, Running, find, folders, in_folder, number};
use crate::input;
use anyhow::{Context, Result};
use ompfuse_format::control::HELD_FILE;
use ompfuse_format::run::BEGUN_FILE;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Holds a run's processes, or lets them go on: those that start later (`mark`), then those that record by now.
pub(crate) fn hold_run(run: &Path, held: bool) -> Result<()> {
    mark(run, held)?;
    tell(&in_folder(run, Access::Change)?.running, held)
}

/// The same for what a user means by a folder or the number of a process. False: no process records there by now, and those
/// that start later know.
pub(crate) fn hold(target: &Path, held: bool) -> Result<bool> {
    let mut is_marked = false;
    if number(target).is_none() {
        let runs = folders(target)?.into_iter();
        for run in runs.filter(|folder| folder.join(BEGUN_FILE).is_file()) {
            mark(&run, held)?;
            is_marked = true;
        }
    }
    match find(target, Access::Change) {
        Ok(processes) => tell(&processes, held).map(|()| true),
        Err(_) if is_marked => Ok(false),
        Err(error) => Err(error),
    }
}

/// Says it to processes that start later, and notes when.
pub(crate) fn mark(run: &Path, held: bool) -> Result<()> {
    let file = run.join(HELD_FILE);
    let done = match held {
        true => File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&file)
            .map(drop),
        false => std::fs::remove_file(&file),
    };
    match done {
        Ok(()) => note_time(run, held),
        // It was so before.
        Err(e) if [ErrorKind::NotFound, ErrorKind::AlreadyExists].contains(&e.kind()) => Ok(()),
        Err(e) => Err(e).with_context(|| format!("cannot write {}", file.display())),
    }
}

/// In a run's folder: a line for each change, with its time and 1 (held) or 0.
const TIMES: &str = "held-times";

/// CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    let t = clock_gettime(ClockId::Monotonic);
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

fn note_time(run: &Path, held: bool) -> Result<()> {
    let file = run.join(TIMES);
    let line = format!("{} {}\n", monotonic_ns(), u8::from(held));
    let opened = File::options()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(&file);
    opened
        .and_then(|mut f| f.write_all(line.as_bytes()))
        .with_context(|| format!("cannot write {}", file.display()))
}

/// The changes so far: when, and whether it was held from then on.
fn changes(run: &Path) -> Vec<(u64, bool)> {
    let text = input::lasting_text(&run.join(TIMES)).unwrap_or_default();
    let change = |line: &str| {
        let (ns, held) = line.split_once(' ')?;
        Some((ns.parse().ok()?, held == "1"))
    };
    text.lines().filter_map(change).collect()
}

/// From when to when a run between two readings of the clock was not held, in seconds from its begin; `None`: it never was.
pub(crate) fn spans(run: &Path, begin: u64, end: u64) -> Option<Vec<[f64; 2]>> {
    let changes = changes(run);
    let (_, first) = changes.first()?;
    // Before the first change it was what it was not afterwards.
    let mut since = first.then_some(begin);
    let mut spans = Vec::new();
    for (at, held) in changes {
        match (held, since) {
            (true, Some(from)) => {
                spans.push([from, at]);
                since = None;
            }
            (false, None) => since = Some(at),
            _ => {}
        }
    }
    spans.extend(since.map(|from| [from, end]));
    let seconds = |ns: u64| ns.clamp(begin, end.max(begin)).saturating_sub(begin) as f64 * 1e-9;
    let spans = spans.into_iter().map(|span| span.map(seconds));
    Some(spans.filter(|[from, to]| to > from).collect())
}

/// The run is over.
pub(crate) fn clear(run: &Path) {
    for file in [HELD_FILE, TIMES] {
        let _ = std::fs::remove_file(run.join(file));
    }
}

fn tell(processes: &[Running], held: bool) -> Result<()> {
    processes.iter().try_for_each(|process| {
        process.control.change(PATIENCE, |change| {
            change.hold(held);
            Ok(())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_between_changes() {
        let folder = tempfile::tempdir().expect("a folder");
        let run = folder.path();
        assert_eq!(spans(run, 0, 9), None);
        let of = |changes: &str| {
            std::fs::write(run.join(TIMES), changes).expect("there is room");
            spans(run, 1_000_000_000, 9_000_000_000).expect("there were changes")
        };
        // Held before it began, then until its end, then twice.
        assert_eq!(of("900000000 1\n3000000000 0\n"), [[2.0, 8.0]]);
        assert_eq!(of("2000000000 1\n"), [[0.0, 1.0]]);
        assert_eq!(of("900000000 1\n"), [[0.0; 2]; 0]);
        assert_eq!(
            of("900000000 1\n2000000000 0\n3000000000 1\n4000000000 0\n"),
            [[1.0, 2.0], [3.0, 8.0]]
        );
    }

    #[test]
    fn only_changes_are_noted() {
        let folder = tempfile::tempdir().expect("a folder");
        for held in [false, true, true, false] {
            mark(folder.path(), held).expect("there is room");
        }
        let noted: Vec<bool> = changes(folder.path()).into_iter().map(|c| c.1).collect();
        assert_eq!(noted, [true, false]);
        clear(folder.path());
        assert!(folder.path().read_dir().expect("a folder").next().is_none());
    }
}
