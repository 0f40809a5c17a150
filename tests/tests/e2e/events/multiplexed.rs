//! Hardware multiplexing: groups of events share the processor's counters, and their counts are scaled.
//!
//! In the stand-in all events count the time on a processor, while they have a counter: scaled, each of them is
//! what the kernel's own clock says, which is counted all the time.

use super::stand_in::{self, program};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, table};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The kernel's clock, the truth here.
const TRUTH: &str = "task-clock";
/// Each has its turn.
const SHARED: [&str; 3] = ["cycles", "instructions", "branches"];
/// So many items keep the program busy for hundreds of turns.
const ITEMS: &str = "26";

/// Records with the stand-in.
fn record(library: &Path, out: &Path, flags: &[&str]) -> Output {
    let mut record = command::with_threads(2);
    record.env("LD_PRELOAD", library);
    record.env("FAKE_PMU_TURN_US", "200");
    record.arg("record").args(flags).arg("-o").arg(out);
    process::run(record.arg("--").arg(program()).arg(ITEMS)).ok("record")
}

fn multiplexed(library: &Path, out: &Path) -> PathBuf {
    let events = SHARED.join(",") + "," + TRUTH;
    let recorded = record(
        library,
        out,
        &["--events", &events, "--slots", "1", "--rotate", "kernel"],
    );
    assert!(recorded.text().ends_with("right\n"), "{recorded:?}");
    table::runs(out).remove(0)
}

fn report(run: &Path) -> Value {
    report_with(run, [])
}

fn report_with<const N: usize>(run: &Path, flags: [PathBuf; N]) -> Value {
    let json = ["--format", "json"].map(PathBuf::from);
    let report = ["report".into(), run.to_owned()].into_iter();
    command::json(report.chain(json).chain(flags))
}

#[test]
fn counts_are_scaled_by_the_time_that_was_missed() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let run = multiplexed(&library, &folder.path().join("out"));
    let xus = table::export(&run);
    let count = |xu: &table::Xu, event: &str| -> Option<u64> { xu.columns[event].parse().ok() };
    assert!(xus.iter().all(|xu| count(xu, TRUTH).is_some()));
    for event in SHARED {
        let seen: Vec<_> = xus.iter().filter(|xu| count(xu, event).is_some()).collect();
        // Some XUs are over before it had its turn: they have no count.
        assert!(
            (20..xus.len()).contains(&seen.len()),
            "{event}: {}",
            seen.len()
        );
        let sum = |e: &str| seen.iter().filter_map(|xu| count(xu, e)).sum::<u64>() as f64;
        let ratio = sum(event) / sum(TRUTH);
        assert!((0.8..1.25).contains(&ratio), "{event}: {ratio}");
    }
    // Of a region's sum nothing is missing. A run that is read in parts says the same.
    let in_parts = ["--memory", "1"].map(PathBuf::from);
    let in_parts = report_with(&run, in_parts);
    let report = report(&run);
    assert_eq!(in_parts["regions"], report["regions"]);
    let regions = report["regions"].as_array().expect("a list");
    let sum = |e: &str| -> f64 { regions.iter().filter_map(|r| r["events"][e].as_f64()).sum() };
    for event in SHARED {
        let ratio = sum(event) / sum(TRUTH);
        assert!((0.9..1.1).contains(&ratio), "{event}: {ratio}");
    }
    for event in report["events"].as_array().expect("a list") {
        let name = event["name"].as_str().expect("a name");
        assert_eq!(event["scaled"], SHARED.contains(&name), "{event}");
    }
}

/// Against complete runs it is evaluated as any recorder would have to: with guesses for what was never seen.
#[test]
fn what_was_never_seen_is_interpolated_to_be_evaluated_only() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let run = multiplexed(&library, &folder.path().join("out"));
    let complete = folder.path().join("complete");
    let events = SHARED.join(",");
    record(&library, &complete, &["--events", &events, "--repeat", "3"]);
    let references = table::runs(&complete);
    let mut evaluate: Vec<PathBuf> = vec!["evaluate".into(), run.clone(), "--reference".into()];
    evaluate.extend(references.iter().cloned());
    let first = evaluate.clone();
    evaluate.extend(["--format", "json"].map(PathBuf::from));
    let answer = command::json(evaluate);
    let absent = |event: &str| {
        let xus = table::export(&run);
        xus.iter().filter(|xu| xu.columns[event].is_empty()).count()
    };
    let missing: usize = SHARED.iter().map(|e| absent(e)).sum();
    assert_eq!(answer["interpolated"], missing);
    assert!(missing > 0);
    // The events of the stand-in count the same: complete runs show that, multiplexed ones not quite.
    let error = answer["correlation_error"].as_f64().expect("a number");
    let complete = answer["reference_correlation_errors"].as_array();
    let mut complete = complete.expect("a list").iter().filter_map(Value::as_f64);
    assert!(complete.all(|c| c < error), "{answer}");
    assert!(command::ok(first).text().contains("Interpolated: "));
    // Estimates are no reference.
    let mut among: Vec<PathBuf> = vec!["evaluate".into(), references[0].clone()];
    among.extend(["--reference".into(), references[1].clone(), run.clone()]);
    let refused = command::run(among);
    assert_eq!(refused.status, 1, "{refused:?}");
    let why = format!("cannot take {} for the truth: its counts", run.display());
    assert!(refused.errors().contains(&why), "{refused:?}");
    // Nor are they mixed with counts.
    let profile = folder.path().join("p.parquet");
    for second in [&run, &profile] {
        let mut combine: Vec<PathBuf> =
            vec!["combine".into(), references[0].clone(), second.clone()];
        combine.extend(["-o".into(), folder.path().join("both.parquet")]);
        if second == &profile {
            let alone = ["combine".into(), run.clone(), "-o".into(), profile.clone()];
            command::ok(alone);
        }
        let refused = command::run(combine);
        assert_eq!(refused.status, 1);
        assert!(
            refused.errors().contains("its counts are scaled"),
            "{refused:?}"
        );
        assert!(!folder.path().join("both.parquet").exists());
    }
}

#[test]
fn it_must_fit_and_make_sense() {
    let folder = tempfile::tempdir().expect("there is room for a library");
    let Some(library) = stand_in::compiled(folder.path()) else {
        return;
    };
    let refused = |args: &[&str], why: &str| {
        let out = folder.path().join("refused");
        let mut command = command::with_threads(2);
        command
            .env("LD_PRELOAD", &library)
            .args(args)
            .arg("-o")
            .arg(&out);
        let refused = process::run(command.arg("--").arg(program()));
        assert_eq!(refused.status, 1, "{refused:?}");
        assert!(refused.errors().contains(why), "{refused:?}");
        assert!(!out.exists() && refused.text().is_empty());
    };
    let many = "cycles,instructions,branches,branch-misses,cache-misses,cache-references,ref-cycles,\
         stalled-cycles-backend,task-clock";
    refused(
        &[
            "record", "--rotate", "kernel", "--slots", "1", "--events", many,
        ],
        "cannot multiplex 9 events and the 9 times that scale their counts",
    );
    refused(
        &[
            "profile", "--rotate", "kernel", "--repeat", "2", "--events", "cycles",
        ],
        "can't be combined",
    );
    let out = folder.path().join("one");
    let one = record(
        &library,
        &out,
        &["--rotate", "kernel", "--events", "cycles,branches"],
    );
    assert!(one.errors().contains("--rotate changes nothing"), "{one:?}");
    let report = report(&table::runs(&out)[0]);
    let events = report["events"].as_array().expect("a list");
    assert!(events.iter().all(|e| e["scaled"] == false), "{events:?}");
}
