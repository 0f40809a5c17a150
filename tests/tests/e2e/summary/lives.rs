//! Sums of programs that end, fork, go on as another program, open libraries, or are changed while they run.

use super::report;
use crate::control::steady::{COMPILERS, Steady, TASKS};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, repository, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Ways to end of `fixtures/lifecycle`, with the least number of units that are summed up then.
const WAYS: [(&str, u64); 8] = [
    ("quick", 10),
    ("abort", 10),
    ("kill", 10),
    ("inside", 10),
    ("fork", 30),
    ("exec", 20),
    ("threads", 100),
    ("closes", 2020),
];

/// Units of a kind in a report, or in what `watch` prints.
fn units(report: &Value, construct: &str) -> u64 {
    let regions = report["regions"].as_array().expect("a list of regions");
    let of_kind = regions.iter().filter(|r| r["construct"] == construct);
    of_kind.filter_map(|r| r["xus"].as_u64()).sum()
}

#[test]
fn however_a_process_ends_its_sums_are_there() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a program");
    let patched = table::patch(&build, folder.path(), &[]);
    for (how, wanted) in WAYS {
        let args = ["10", how];
        let mut original = Command::new(&build.path);
        let original = process::run(process::clean(&mut original, 2).args(args));
        let out = folder.path().join(how);
        let flags = ["--units=sums", "--events", "task-clock"];
        let recorded = table::record(&patched, &args, 2, &out, &flags);
        let outcome = |o: &process::Output| (o.status, o.text());
        assert_eq!(
            outcome(&recorded),
            outcome(&original),
            "{how}: {recorded:?}"
        );
        let run = table::runs(&out).pop().expect("a run was recorded");
        let found = report(&run, &[])["xus"].as_u64().expect("a number");
        assert!(found >= wanted, "{how}: {found} units, not {wanted}");
    }
}

/// What is switched off is in no sum, and `watch` shows the sums by then.
#[test]
fn sums_follow_what_is_switched() {
    let Some(steady) = COMPILERS.into_iter().find_map(Steady::new) else {
        return;
    };
    let watched = || {
        let out = steady.out();
        let args = [Path::new("watch"), &out, Path::new("--format=json")];
        units(&command::json(args), "task")
    };
    let mut program = steady.record(
        2,
        &["--units=sums", "--events", "none", "--delay", "resume"],
        &[],
    );
    program.ask("10");
    steady.ctl(&["resume"]);
    program.ask("10");
    assert_eq!(watched(), 10 * TASKS);
    steady.ctl(&["--disable", "task"]);
    program.ask("10");
    assert_eq!(watched(), 10 * TASKS);
    steady.ctl(&["--enable", "task"]);
    program.ask("10");
    assert_eq!(watched(), 20 * TASKS);
    steady.ctl(&["pause"]);
    program.ask("10");
    let ended = program.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    let run = table::runs(&steady.out())
        .pop()
        .expect("a run was recorded");
    let report = report(&run, &[]);
    assert_eq!(units(&report, "task"), 20 * TASKS, "{report:#}");
    let regions = report["regions"].as_array().expect("a list of regions");
    let parallel = regions.iter().find(|r| r["construct"] == "parallel");
    assert_eq!(parallel.expect("a region")["executions"], 30, "{report:#}");
}

/// A window that ends before the program does anything.
#[test]
fn a_window_without_work_has_empty_sums() {
    let Some(steady) = COMPILERS.into_iter().find_map(Steady::new) else {
        return;
    };
    let flags = [
        "--units=sums",
        "--events",
        "none",
        "--delay",
        "3600s",
        "--for",
        "1s",
    ];
    let mut program = steady.record(2, &flags, &[]);
    program.ask("10");
    let ended = program.end();
    assert_eq!(ended.status, 0, "{ended:?}");
    let run = table::runs(&steady.out())
        .pop()
        .expect("a run was recorded");
    assert_eq!(report(&run, &[])["xus"], 0);
}

/// A library that is opened and closed again and again: its regions are one, and take the space of one.
#[test]
fn libraries_that_come_and_go_are_summed_up() {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let at = |name: &str| folder.path().join(name);
    for (source, out, flags) in [
        ("host.c", "host", &["-pthread"][..]),
        ("work.c", "work.so", &["-fopenmp", "-fPIC", "-shared"]),
    ] {
        let mut compile = Command::new("gcc");
        compile.args(["-O2", "-g", "-o"]).arg(at(out));
        compile.arg(repository().join("tests/plugins").join(source));
        process::run(compile.args(flags)).ok("the compiler");
    }
    let mut profile = command::with_threads(2);
    profile.args([
        "profile",
        "--show=units",
        "--units=sums",
        "--events",
        "none",
        "-o",
    ]);
    profile
        .arg(at("out"))
        .arg("--")
        .arg(at("host"))
        .arg(at("work.so"));
    profile.args(["local", "60", "1"]);
    let said = process::run(profile.env("KEEP_OPEN", "libgomp.so.1"));
    assert_eq!(said.status, 3, "{said:?}");
    assert!(said.errors().contains("How long XUs took"), "{said:?}");
    let run = table::runs(&at("out")).pop().expect("a run was recorded");
    let report = report(&run, &[]);
    assert_eq!(report["xus"], 600, "{said:?}");
    let paths = report["call_paths"].as_array().expect("a list");
    let forks = paths.iter().filter(|p| !p["wall_s"].is_null());
    let executed: Vec<_> = forks
        .map(|p| (&p["executions"], &p["called_from"]))
        .collect();
    assert!(executed.len() == 1 && executed[0].0 == 60, "{executed:?}");
    let called_from = executed[0].1.as_str().unwrap_or_default();
    assert!(called_from.contains("main"), "{executed:?}");
}
