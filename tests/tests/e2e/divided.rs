//! Loops and tasks whose division depends on the number of threads (`tests/sources/divided.c`): what is predicted, and what is advised.

use crate::shares::{number, programs};
use ompfuse_tests::{command, process};
use serde_json::Value;
use tempfile::TempDir;

const THREADS: usize = 4;

/// A mode's report. `schedule`: `OMP_SCHEDULE`.
fn report(folder: &TempDir, mode: &str, schedule: Option<&str>) -> Value {
    let mut command = command::with_threads(THREADS);
    command.envs(schedule.map(|s| ("OMP_SCHEDULE", s)));
    command.args(["profile", "--format=json", "--events", "none", "-o"]);
    let out = format!("{mode}-{}", schedule.unwrap_or_default());
    command.arg(folder.path().join(out)).arg("--");
    command.arg(folder.path().join("divided")).arg(mode);
    let output = process::run(&mut command).ok(mode);
    let text = output.text();
    // What the program prints comes first.
    let json = text.split_once("done\n").map_or(text.as_str(), |t| t.1);
    serde_json::from_str(json).unwrap_or_else(|e| panic!("{mode}: {e}: {text}"))
}

/// How many times as fast as with its own threads the program is told to be with twice as many; `None`: nothing is told.
fn doubled(report: &Value) -> Option<f64> {
    let predicted = report["scaling"]["predicted"].as_array().expect("a list");
    let of = |threads: usize| {
        let p = predicted.iter().find(|p| p["threads"] == threads)?;
        Some(number(&p["seconds"]))
    };
    of(THREADS)
        .zip(of(2 * THREADS))
        .map(|(now, then)| now / then)
}

/// As fast again, where some units were late: ranges that stay as they were give 1.
const TWICE: std::ops::Range<f64> = 1.3..2.3;

#[test]
fn even_ranges_are_made_again() {
    for (compiler, folder) in programs("divided") {
        let modes = [("guided", None), ("auto", None)].into_iter();
        let runtime = ["static", "guided", "dynamic,2"].map(|s| ("even", Some(s)));
        for (mode, schedule) in modes.chain(runtime) {
            let report = report(&folder, mode, schedule);
            // On a busy machine nothing may be told.
            if let Some(times) = doubled(&report) {
                let what = format!("{compiler}: {mode} {schedule:?}: {times}");
                assert!(TWICE.contains(&times), "{what}");
            }
        }
    }
}

#[test]
fn a_taskloops_default_is_no_clause() {
    for (compiler, folder) in programs("divided") {
        let grains = report(&folder, "grains", None);
        if let Some(times) = doubled(&grains) {
            assert!(TWICE.contains(&times), "{compiler}: {times}");
        }
        // libgomp makes as many tasks as threads, and so may a clause.
        let taskloop = report(&folder, "taskloop", None);
        if compiler == "gcc" {
            assert_eq!(doubled(&taskloop), None, "{:#}", taskloop["scaling"]);
            let reasons = ["silent", "silent_above"].map(|r| &taskloop["scaling"][r]);
            let others = ["no_processor", "model"];
            let is_one = |r: &Value| r == "by_threads" || others.iter().any(|o| r == o);
            assert!(reasons.into_iter().any(is_one), "{reasons:?}");
        }
    }
}

/// The advice for a cause; `None`: on a busy machine it isn't told.
fn advice(report: &Value, cause: &str) -> Option<String> {
    let losses = report["losses"].as_array().expect("a list");
    let is = |kind: &str| losses.iter().find(|l| l["cause"]["kind"] == kind);
    let Some(loss) = is(cause) else {
        assert!(is("no_processor").is_some(), "{cause}: {losses:#?}");
        return None;
    };
    Some(loss["remedy"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn advice_is_what_decides() {
    for (compiler, folder) in programs("divided") {
        let of = |mode, schedule, cause| advice(&report(&folder, mode, schedule), cause);
        if let Some(told) = of("triangle", Some("static"), "uneven_distribution") {
            let starts = told.starts_with("OMP_SCHEDULE=dynamic,");
            assert!(starts, "{compiler}: {told}");
        }
        if let Some(told) = of("early", None, "uneven_units") {
            assert!(!told.contains("first"), "{compiler}: {told}");
        }
        if let Some(told) = of("late", None, "uneven_units") {
            assert!(told.contains("let it begin first"), "{compiler}: {told}");
        }
    }
}

#[test]
fn untied_tasks_are_whole_and_their_dependences_on_record() {
    for (compiler, folder) in programs("divided") {
        let report = report(&folder, "untied", None);
        let scaling = &report["scaling"];
        let region = &scaling["regions"][0];
        assert_eq!(
            region["lower_bound_because"],
            serde_json::json!([]),
            "{compiler}: {region:#}"
        );
        // Four chains of four.
        let parallelism = number(&region["parallelism"]);
        assert!((3.4..4.6).contains(&parallelism), "{compiler}: {region:#}");
    }
}
