//! Where processes and threads end: `fixtures/behaviour/ends.c`.

use super::Pair;
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{fixture, is_whole, table};
use std::process::Command;

/// What is computed in destructors and exit handlers, of objects and of threads, is on record.
#[test]
fn regions_in_destructors() {
    // libomp 19 itself crashes where a thread's last regions come after its own destructors.
    if let Some(pair) = Pair::new("ends", "gcc", &[]) {
        for _ in 0..3 {
            pair.same_and_counted(&["12", "destructors"], 2);
        }
    }
}

/// Threads that go on while the process exits meet a runtime that is being shut down: with libomp some crash, in the
/// original too. Recorded they do so about as seldom, and what they have done is readable.
#[test]
fn threads_left_running() {
    for pair in Pair::all("ends", &[]) {
        let mut failed = [0, 0];
        let times = 40;
        for time in 0..times {
            let length = (10 + time * 3).to_string();
            let args = [length.as_str(), "detached"];
            failed[0] += usize::from(pair.run(&args, 2).status != 0);
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let mut command = Command::new(&pair.patched);
            let command = process::clean(&mut command, 2).args(args);
            let recorded = process::run(command.env("OMPFUSE_DIR", folder.path()));
            failed[1] += usize::from(recorded.status != 0);
            let listing = std::fs::read_dir(folder.path()).expect("a folder can be listed");
            let records = listing
                .filter(|f| {
                    let f = f.as_ref().expect("a folder can be listed");
                    f.path().extension().is_some_and(|e| e == "rec")
                })
                .count();
            assert!(records >= 2, "{}: {records} threads", pair.what);
        }
        assert!(
            failed[1] <= times / 4 + failed[0] * 2,
            "{}: of {times} runs {} failed, recorded {}",
            pair.what,
            failed[0],
            failed[1]
        );
    }
}

/// The child leaves its parent's records alone, and says that it has none.
#[test]
fn a_fork_that_nobody_is_told_of() {
    for pair in Pair::all("ends", &[]) {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let args = ["3000", "clone"];
        let original = pair.run(&args, 2).ok(&pair.what);
        assert_eq!(pair.run_patched(&args, 2).outcome(), original.outcome());
        let recorded = table::record(&pair.patched, &args, 2, folder.path(), &table::ONE_EVENT);
        assert_eq!(recorded.text(), original.text(), "{recorded:?}");
        let run = &table::runs(folder.path())[0];
        let what = format!("{}: {recorded:?}", pair.what);
        assert!(recorded.errors().contains("it is not recorded"), "{what}");
        let xus = table::export(run);
        let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
        assert_eq!(iterations, fixture::counts(&original.text())["iterations"]);
        let mut report = ompfuse_tests::command::with_threads(1);
        let report = process::run(report.arg("report").arg(run))
            .ok("report")
            .text();
        assert!(
            report.contains("stopped recording early") && !report.contains("orderly"),
            "{report}"
        );
    }
}

#[test]
fn thousands_of_threads() {
    for pair in Pair::all("ends", &[]) {
        let size = match (pair.what.contains("gcc"), is_whole()) {
            (true, true) => "10000",
            (true, false) => "2000",
            (false, _) => "1000",
        };
        let args = [size, "many"];
        let original: Output = pair.run(&args, 2).ok(&pair.what);
        let (recorded, xus) = table::xus_of(&pair.patched, &args, 2);
        assert_eq!(recorded.text(), original.text(), "{}", pair.what);
        let iterations: u64 = xus.iter().map(|x| x.number("iterations")).sum();
        assert_eq!(
            iterations,
            fixture::counts(&original.text())["iterations"],
            "{}",
            pair.what
        );
    }
}
