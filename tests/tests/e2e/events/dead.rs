//! A hardware event that opens and stays 0, as on virtual machines that emulate only some: it has no column, and it is said.

use super::stand_in::{self, program};
use ompfuse_tests::{command, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Of the stand-in: `perf_event_attr.config` of instructions.
const INSTRUCTIONS: &str = "1";

fn with(library: &Path, dead_in: &str) -> Command {
    let mut command = command::with_threads(2);
    command
        .env("LD_PRELOAD", library)
        .env("FAKE_PMU_DEAD", INSTRUCTIONS)
        .env("FAKE_PMU_DEAD_IN", dead_in);
    command
}

fn of<'a>(events: &'a Value, name: &str) -> &'a Value {
    let mut list = events["events"].as_array().expect("a list").iter();
    let found = list.find(|e| e["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {events}"))
}

#[test]
fn what_stays_0_is_not_available() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let mut list = with(&library, "all");
    let output = process::run(list.args(["events", "--format", "json"])).ok("events");
    let events: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    for live in ["cycles", "branch-misses", "cache-misses"] {
        assert_eq!(of(&events, live)["available"], true, "{live}");
    }
    let dead = of(&events, "instructions");
    assert_eq!(dead["available"], false, "{dead}");
    let reason = dead["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("opens but stays 0"), "{dead}");
    // Nor is it recorded, if somebody wants it nevertheless.
    let out = folder.path().join("out");
    let mut record = with(&library, "all");
    record.args(["record", "--events", "cycles,instructions", "-o"]);
    let recorded = process::run(record.arg(&out).arg("--").arg(program())).ok("record");
    assert!(recorded.errors().contains("not counted: instructions"));
    columns(&table::runs(&out)[0], &["cycles"]);
}

/// The XUs have these counts, and no other of a hardware event; the counts are not all 0.
#[track_caller]
fn columns(run: &Path, expected: &[&str]) {
    let xus = table::export(run);
    assert_eq!(xus.len(), 510);
    for event in ["cycles", "instructions", "cache-misses"] {
        let counts: Vec<&String> = xus.iter().filter_map(|x| x.columns.get(event)).collect();
        if expected.contains(&event) {
            let positive = counts
                .iter()
                .filter(|c| c.parse::<u64>().is_ok_and(|n| n > 0));
            assert!(positive.count() > 250, "{event}: {counts:?}");
        } else {
            assert_eq!(counts, Vec::<&String>::new(), "{event}");
        }
    }
}

/// The command finds that it counts; where the program runs it doesn't, alone or beside others.
#[test]
fn what_stays_0_in_the_program_has_no_column() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    for flags in [
        &["--events", "cycles,instructions,cache-misses"][..],
        &[
            "--events",
            "cycles,instructions",
            "--slots",
            "1",
            "--rotate",
            "5",
        ],
    ] {
        let out = folder.path().join(flags.len().to_string());
        let mut record = with(&library, "program");
        record.arg("record").args(flags).arg("-o").arg(&out);
        let recorded = process::run(record.arg("--").arg(program())).ok("record");
        assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
        let run = table::runs(&out).remove(0);
        let json = ["--format".into(), "json".into()];
        let report = command::json(["report".into(), run.clone()].into_iter().chain(json));
        let text = report.to_string();
        assert!(text.contains("instructions opens but stays 0"), "{text}");
        let told = recorded
            .errors()
            .matches("instructions opens but stays 0")
            .count();
        assert_eq!(told, 1, "said once: {recorded:?}");
        if flags.len() > 2 {
            let turns = table::export(&run);
            let with = |e: &str| {
                turns
                    .iter()
                    .filter(|x| x.columns.get(e).is_some_and(|c| !c.is_empty()))
                    .count()
            };
            assert!(
                with("cycles") > 100 && with("cycles") < 510,
                "{}",
                with("cycles")
            );
            assert_eq!(with("instructions"), 0);
        } else {
            columns(&run, &["cycles", "cache-misses"]);
        }
    }
}
