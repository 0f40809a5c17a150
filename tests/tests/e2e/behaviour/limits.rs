//! Limits of a process, and files and memory of its own: `fixtures/behaviour/limits.c`, `memory.c`, `interrupted.c`.

use super::Pair;
use ompfuse_tests::process;
use ompfuse_tests::{command, table};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernel ends a process that writes beyond its limit: headers and ends of processes, which are some hundred bytes, too.
#[test]
fn files_that_may_not_grow() {
    for pair in Pair::all("limits", &[]) {
        for bytes in ["0", "100", "300", "2000"] {
            pair.same(&["1", "sizes", bytes], 2);
            if !pair.what.contains("gcc") {
                continue; // libomp has a file of its own in a child
            }
            let (_, folder) = pair.same(&["1", "forks", bytes], 2);
            // No part of a file, which would make the run unreadable.
            let run = &table::runs(folder.path())[0];
            assert!(table::export(run).len() >= 10, "{} {bytes}", pair.what);
        }
    }
}

/// A program that opens as many files as it may opens as many when it is recorded, if its soft limit is below the hard one.
#[test]
fn descriptors_are_the_programs() {
    for pair in Pair::all("limits", &[]) {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let limited = |program: &Path, folder: Option<&Path>| {
            let script = format!("ulimit -Sn 64; exec {} 1 numbers -", program.display());
            let mut shell = Command::new("sh");
            process::clean(&mut shell, 6).args(["-c", &script]);
            shell.envs(folder.map(|f| ("OMPFUSE_DIR", f)));
            process::run(shell.env("OMPFUSE_EVENTS", "task-clock,page-faults"))
        };
        let original = limited(&pair.original, None).ok(&pair.what);
        let recorded = limited(&pair.patched, Some(folder.path()));
        assert_eq!(recorded.outcome(), original.outcome(), "{}", pair.what);
        let opened = original.text();
        assert!(opened.contains("opened 6") || opened.contains("opened 5"));
    }
}

/// Stacks that are too short for the command are not for the program, which has the same limit as ever.
#[test]
fn short_stacks() {
    for pair in Pair::all("limits", &[]) {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let limited = |before: &[&OsStr]| {
            let mut shell = Command::new("sh");
            process::clean(&mut shell, 2).args(["-c", "ulimit -s 56; exec \"$@\"", "sh"]);
            shell.env("XDG_CACHE_HOME", pair.folder.path().join("cache"));
            shell.args(before).arg(&pair.original);
            process::run(shell.args(["1", "stacks", "-"])).ok(&pair.what)
        };
        let original = limited(&[]);
        assert!(original.text().contains("stack 56 KiB"), "{original:?}");
        let mut record = vec![command::path().as_os_str()];
        record.extend(["record", "--events", "none", "-o"].map(OsStr::new));
        record.extend([folder.path().as_os_str(), OsStr::new("--")]);
        assert_eq!(limited(&record).text(), original.text(), "{}", pair.what);
        let xus = table::export(&table::runs(folder.path())[0]);
        let tasks = xus.iter().filter(|x| x.construct == "task");
        assert_eq!(tasks.count(), 20, "{}", pair.what);
    }
}

/// What could not be recorded is not told to a file that has got standard error's number.
#[test]
fn a_file_in_the_place_of_standard_error() {
    for pair in Pair::all("limits", &[]) {
        let file = pair.folder.path().join("own");
        let path = file.to_str().expect("temporary folders have plain names");
        let (_, folder) = pair.same(&["1", "error", path], 2);
        assert_eq!(std::fs::read(&file).expect("the program made it"), b"");
        let run = &table::runs(folder.path())[0];
        let mut report = command::with_threads(1);
        let report = process::run(report.arg("report").arg(run)).ok("report");
        assert!(
            report.text().contains("records could not be written"),
            "{report:?}"
        );
    }
}

/// A line that nobody can read ends no program.
#[test]
fn nobody_reads_standard_error() {
    for pair in Pair::all("limits", &[]) {
        let (reader, writer) = std::io::pipe().expect("a pipe can be made");
        drop(reader);
        let mut direct = Command::new(&pair.patched);
        process::clean(&mut direct, 2).args(["1", "sizes", "1000000"]);
        direct.env("OMPFUSE_DIR", pair.folder.path().join("none"));
        let status = direct.stdout(Stdio::null()).stderr(writer).status();
        let status = status.expect("the program can be started");
        assert!(status.success(), "{}: {status}", pair.what);
    }
}

/// The recording does without the program's heap: nothing may be left in it, or a signal handler that interrupts the allocator forks.
#[test]
fn the_heap_is_the_programs() {
    for pair in Pair::all("memory", &[]) {
        for how in ["exits", "begins", "forks"] {
            if how != "exits" && !pair.what.contains("gcc") {
                continue; // libomp itself allocates for each new thread, and in the child of a fork
            }
            let (_, folder) = pair.same(&["1", how], 2);
            let run = &table::runs(folder.path())[0];
            let tasks = table::export(run);
            let tasks = tasks.iter().filter(|x| x.construct == "task").count();
            assert_eq!(tasks, 10, "{} {how}", pair.what);
        }
    }
}

/// A signal that interrupts the kernel while it makes room is no full disk.
#[test]
fn signals_are_no_full_disk() {
    for pair in Pair::all("interrupted", &[]) {
        pair.same_and_counted(&[], 2);
    }
}
