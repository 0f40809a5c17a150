//! Who may not count what the kernel does (`perf_event_paranoid` is 2 on most machines) counts what the program does itself. The
//! kernel then refuses each hardware event once before it opens it.

use super::stand_in::{self, program};
use ompfuse_tests::process;
use ompfuse_tests::{command, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Hardware events in a group.
const COUNTERS: &str = "3";

fn with(library: &Path) -> Command {
    let mut command = command::with_threads(2);
    command.env("LD_PRELOAD", library);
    command.env("FAKE_PMU_USER_ONLY", "1");
    command.env("FAKE_PMU_COUNTERS", COUNTERS);
    command
}

#[test]
fn what_the_program_does_itself_is_counted() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    for (n, flags) in [
        &["--slots", "2"][..],
        &["--rotate", "kernel", "--slots", "2"],
    ]
    .iter()
    .enumerate()
    {
        let out = folder.path().join(n.to_string());
        let mut record = with(&library);
        record.args(["record", "--events", "cycles,instructions,branches"]);
        record.args(*flags).arg("-o").arg(&out);
        let recorded = process::run(record.arg("--").arg(program())).ok("record");
        assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
        let runs = table::runs(&out);
        assert_eq!(runs.len(), 2 - n);
        let first = table::export(&runs[0]);
        assert_eq!(first.len(), 510);
        let counted = |xu: &&table::Xu| !xu.columns["cycles"].is_empty();
        assert!(first.iter().filter(counted).count() > 250);
    }
}

/// A group that can have no more is found out, not guessed.
#[test]
fn a_plan_knows_the_counters() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let json = |args: &[&str]| -> Value {
        let mut command = with(&library);
        let output = process::run(command.args(args).args(["--format", "json"])).ok("plan");
        serde_json::from_slice(&output.stdout).expect("JSON")
    };
    assert_eq!(json(&["events"])["hardware_slots"], 3);
    let events =
        "cycles,instructions,branches,branch-misses,cache-misses,cache-references,ref-cycles";
    let plan = json(&["plan", "--events", events]);
    let sizes = plan["sets"].as_array().expect("sets").iter();
    let sizes: Vec<usize> = sizes.map(|s| s.as_array().expect("a set").len()).collect();
    assert_eq!(sizes, [3, 3, 1]);
}

/// All of them, without a wish.
#[test]
fn what_is_multiplexed_by_default_fits() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let out = folder.path().join("all");
    let mut record = with(&library);
    record
        .args(["record", "--rotate", "kernel", "-o"])
        .arg(&out);
    let recorded = process::run(record.arg("--").arg(program())).ok("record");
    assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
    let why = "not counted, because one run has no room for all events: ";
    let notes = recorded.errors();
    let left_out = notes.lines().find_map(|line| line.split_once(why));
    let left_out = left_out.expect("software events are left out").1;
    assert!(left_out.contains("page-faults"), "{left_out}");
    let xus = table::export(&table::runs(&out)[0]);
    assert!(!xus[0].columns.contains_key("page-faults"));
    for event in [
        "cycles",
        "instructions",
        "ref-cycles",
        "stalled-cycles-backend",
        "task-clock",
    ] {
        let counted = |xu: &&table::Xu| !xu.columns[event].is_empty();
        assert!(xus.iter().filter(counted).count() > 100, "{event}");
    }
}

/// As in the papers: 33 events, of which a run counts four, in one profile.
#[test]
fn many_events_become_one_profile() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let with_four = |args: &[&str]| {
        let mut command = with(&library);
        command.env("FAKE_PMU_COUNTERS", "4").args(args);
        command
    };
    let known = process::run(&mut with_four(&["events", "--format", "json"])).ok("events");
    let known: Value = serde_json::from_slice(&known.stdout).expect("JSON");
    let known = known["events"].as_array().expect("a list").iter();
    let hardware = known.filter(|e| e["kind"] == "hardware" && e["available"] == true);
    let names: Vec<&str> = hardware
        .filter_map(|e| e["name"].as_str())
        .take(33)
        .collect();
    assert_eq!(names.len(), 33);
    let out = folder.path().join("out");
    let mut profile = with_four(&["profile", "--events", &names.join(","), "-o"]);
    profile.arg(&out).arg("--").arg(program());
    process::run(&mut profile).ok("profile");
    assert_eq!(table::runs(&out).len(), 9);
    let xus = table::export(&out);
    assert_eq!(xus.len(), 510);
    for xu in &xus {
        let counted = names
            .iter()
            .filter(|n| xu.columns[**n].parse::<u64>().is_ok());
        assert_eq!(counted.count(), 33);
    }
}

/// The processor's own events, by number; where it has none that is said.
#[test]
fn events_are_named_by_numbers() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let out = folder.path().join("raw");
    let mut record = with(&library);
    record
        .args(["record", "--events", "r01C2,rc0,r1c2,cycles", "-o"])
        .arg(&out);
    let recorded = process::run(record.arg("--").arg(program())).ok("record");
    assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
    let runs = table::runs(&out);
    assert_eq!(runs.len(), 1);
    let xus = table::export(&runs[0]);
    for event in ["r1c2", "rc0", "cycles"] {
        let counted = |xu: &&table::Xu| !xu.columns[event].is_empty();
        assert!(xus.iter().filter(counted).count() > 100, "{event}");
    }
    let none = command::run(
        ["record", "--events", "r1c2g", "--"]
            .map(Path::new)
            .into_iter()
            .chain([program().as_path()]),
    );
    assert_eq!(none.status, 1);
    assert!(
        none.errors()
            .starts_with("ompfuse: there is no event `r1c2g`; known events are "),
        "{none:?}"
    );
}
