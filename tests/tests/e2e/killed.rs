//! A program is killed at any moment: what was committed is there, readable, and complete but for what was going on.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, has, is_whole, process, repository, schema, table};
use std::path::Path;
use std::process::Command;

/// The moments are spread over this many microseconds.
const SPREAD: u64 = 20_000;
/// Threads of the program's regions.
const THREADS: u64 = 2;

/// Runs the program, recorded with these options, until it is killed. Returns the tasks that it had done and those on record.
fn killed_after(patched: &Path, options: &[&str], microseconds: u64) -> (u64, u64) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let file = folder.path().join("done");
    let out = folder.path().join("runs");
    let time = microseconds.to_string();
    let path = file.to_str().expect("temporary folders have plain names");
    let args = ["1", "timer", &time, path];
    let ended = table::record(patched, &args, THREADS as usize, &out, options);
    assert_eq!(ended.status, 128 + 9, "{ended:?}");
    let bytes = std::fs::read(file).expect("the program made it");
    let done = u64::from_le_bytes(bytes.try_into().expect("one number"));
    let run = table::runs(&out)
        .pop()
        .unwrap_or_else(|| panic!("no run: {ended:?}"));
    let mut report = command::with_threads(1);
    process::run(report.arg("report").arg(&run)).ok("a report of what there is");
    let tasks = table::export(&run)
        .iter()
        .filter(|xu| xu.construct == "task")
        .inspect(|xu| assert!(!xu.label.is_empty(), "after {microseconds} us: {xu:?}"))
        .count();
    (done, tasks as u64)
}

#[test]
fn at_most_the_last_task_of_each_thread_is_missing() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let patched = table::patch(&build, folder.path(), &[]);
    let kills = if is_whole() { 60 } else { 20 };
    let (mut all, mut missing) = (0, 0);
    for kill in 0..kills {
        // Golden-ratio steps: spread evenly, in no order, the same in every test run.
        let microseconds = kill * 12_361 % SPREAD;
        // Records with counts and without have forms of their own.
        let options = [table::ONE_EVENT, ["--events", "none"]][kill as usize % 2];
        let (done, recorded) = killed_after(&patched, &options, microseconds);
        // A task counts itself as its last act, and is on record right after.
        assert!(
            recorded <= done && done <= recorded + THREADS,
            "killed after {microseconds} us: {done} done, {recorded} on record"
        );
        all += done;
        missing += done - recorded;
    }
    assert!(
        all > kills * 20,
        "{all} tasks: the kills came before the work"
    );
    println!("{kills} kills, {all} tasks done, {missing} not on record");
}

/// It is measured when recording begins, and told then.
#[test]
fn what_recording_costs_is_known_of_a_killed_run() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let patched = table::patch(&build, folder.path(), &[]);
    let out = folder.path().join("runs");
    let ended = table::record(&patched, &["10", "kill"], 2, &out, &table::ONE_EVENT);
    assert_eq!(ended.status, 128 + 9, "{ended:?}");
    let report = schema::checked(&table::runs(&out)[0]);
    let event = &report["events"][0];
    assert!(event["probe_inside"].as_u64() > Some(0), "{event}");
    // A filter is made of what a boundary costs.
    let mut filter = command::with_threads(1);
    filter.args(["report", "--suggest-filter=5"]).arg(&out);
    process::run(&mut filter).ok("a filter");
}

/// Batch systems kill everything at once, the command too. The program's parent is it here, or a shell that it has started.
#[test]
fn a_run_whose_command_was_killed_is_readable() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    for (how, program_killed) in [("return", false), ("kill", true)] {
        let folder = tempfile::tempdir().expect("there is room for a recording");
        let (whole, out) = (folder.path().join("whole"), folder.path().join("runs"));
        let script = format!(
            "{} 10 {how}; [ $0 = whole ] || kill -9 $PPID",
            build.path.display()
        );
        let record = |out: &Path, name: &str| {
            let mut recorder = command::with_threads(2);
            recorder
                .arg("record")
                .args(table::ONE_EVENT)
                .arg("-o")
                .arg(out);
            process::run(recorder.args(["--", "/bin/sh", "-c", &script, name]))
        };
        assert_eq!(record(&whole, "whole").status, 0);
        let ended = record(&out, "killed");
        assert_eq!(ended.status, 128 + 9, "{ended:?}");
        let run = out.join("run-0001");
        assert!(!run.join("run.json").exists(), "it can't have been written");
        // The same execution units, with labels and places.
        let labels = |folder: &Path| {
            let xus = table::export(folder);
            let mut labels: Vec<(String, String)> =
                xus.into_iter().map(|xu| (xu.construct, xu.label)).collect();
            labels.sort();
            labels
        };
        let wanted = labels(&whole.join("run-0001"));
        assert!(
            wanted.len() >= 10 && labels(&run) == wanted,
            "{how}: {wanted:?}"
        );
        let mut report = command::with_threads(1);
        let text = process::run(report.arg("report").arg(&out))
            .ok("a report")
            .text();
        assert!(
            text.contains("the command that recorded it was killed"),
            "{text}"
        );
        assert!(!text.contains("are ticks"), "{text}");
        assert_eq!(text.contains("are estimates"), program_killed, "{text}");
        let ended = command::report(&out);
        assert_eq!(ended["runs"][0]["exit"], "unknown", "{ended:#}");
        assert!(
            ended["runs"][0]["duration_s"].as_f64() > Some(0.0),
            "{ended:#}"
        );
    }
}

/// What is around an execution unit is on record with it: a construct that never came to its end is in labels.
#[test]
fn units_of_constructs_that_were_killed_have_labels() {
    for compiler in ["gcc", "clang-19"] {
        if !has(compiler) {
            continue;
        }
        let folder = tempfile::tempdir().expect("there is room for a program");
        let (original, patched) = (folder.path().join("killed"), folder.path().join("patched"));
        let source = repository().join("fixtures/behaviour/killed.c");
        let mut compile = Command::new(compiler);
        compile.args(["-O2", "-g", "-fopenmp"]).arg(source);
        process::run(compile.arg("-o").arg(&original)).ok("the compiler");
        command::ok([Path::new("patch"), &original, Path::new("-o"), &patched]);
        for how in ["dynamic", "chunks", "sections", "taskloop", "nested"] {
            let out = folder.path().join(how);
            let ended = table::record(&patched, &["1", how], 2, &out, &["--events", "none"]);
            assert_eq!(ended.status, 128 + 9, "{how}: {ended:?}");
            let xus = table::export(&table::runs(&out)[0]);
            let tasks = xus.iter().filter(|xu| xu.construct == "task").count();
            assert!(tasks >= 3, "{compiler}, {how}: {tasks} tasks");
            // A thread's first range has none until the thread has another.
            let unlabelled = xus.iter().filter(|xu| xu.label.is_empty()).count();
            assert!(
                unlabelled <= 1,
                "{compiler}, {how}: {unlabelled} of {} have no label",
                xus.len()
            );
        }
    }
}
