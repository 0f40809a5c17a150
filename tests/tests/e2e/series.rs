//! A program over several numbers of threads: `profile --threads` and `report` of several runs.

use crate::shares::{number, programs};
use ompfuse_tests::process::{self, Output};
use ompfuse_tests::{command, table};
use serde_json::Value;
use std::path::{Path, PathBuf};

const NONE: [&str; 2] = ["--events", "none"];

/// Runs the command in a folder.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    process::run(command::with_threads(2).args(args).current_dir(folder))
}

/// The series that `profile --threads` prints.
fn profiled(folder: &Path, options: &[&str], program: &[&str]) -> Value {
    let args = [
        &["profile", "--format=json"],
        &NONE[..],
        options,
        &["--"],
        program,
    ]
    .concat();
    let output = run(folder, &args).ok(&format!("{args:?}"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

pub(crate) fn reported(folder: &Path, args: &[&str]) -> Value {
    let args = [&["report", "--format=json"], args].concat();
    let output = run(folder, &args).ok(&format!("{args:?}"));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

pub(crate) fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key]
        .as_array()
        .unwrap_or_else(|| panic!("no {key}: {value}"))
}

const PARTS: [&str; 11] = [
    "work_s",
    "synchronization_s",
    "imbalance_s",
    "limited_parallelism_s",
    "management_s",
    "serial_s",
    "serial_idle_s",
    "unused_s",
    "communication_s",
    "call_s",
    "unknown_s",
];

/// All parts add up to own time times threads, and all losses to what is lost.
fn check(series: &Value, case: &str) {
    let equal = |a: f64, b: f64| (a - b).abs() <= 1e-6 + 1e-9 * b.abs();
    let stacked = |of: &Value| -> f64 {
        let parts = PARTS.iter().filter_map(|&part| of["stack"][part].as_f64());
        let parts: Vec<f64> = parts.collect();
        assert!(parts.iter().all(|&p| p > -1e-9), "{case}: {of}");
        parts.iter().sum()
    };
    for point in list(series, "points") {
        let threads = number(&point["threads"]);
        // The program's own time, without what recording takes.
        let all = number(&point["available_s"]);
        let wall = number(&point["wall"]["mean_s"]) * threads;
        assert!(equal(all, wall), "{case}: {point}");
        assert!(equal(stacked(point), all), "{case}: {point}");
        let losses = list(point, "losses").iter().map(|l| number(&l["seconds"]));
        let lost = losses.sum::<f64>() + number(&point["other_losses_s"]);
        assert!(
            equal(lost, all - number(&point["ideal_s"])),
            "{case}: {point}"
        );
        let ratio = number(&point["efficiency"]) * threads;
        let least = number(&series["points"][0]["threads"]);
        assert!(
            equal(ratio, number(&point["speedup"]) * least),
            "{case}: {point}"
        );
    }
    for region in list(series, "regions") {
        for point in list(region, "points") {
            let all = number(&point["wall_s"]) * number(&point["threads"]);
            assert!(equal(stacked(point), all), "{case}: {point}");
        }
    }
}

fn verdict(series: &Value) -> String {
    let sentences = list(series, "verdict").iter();
    sentences
        .filter_map(Value::as_str)
        .collect::<Vec<_>>()
        .join(" ")
}

/// The line of a source that has this text, from 1.
fn line(text: &str) -> usize {
    let source = ompfuse_tests::repository().join("tests/sources/scaling.c");
    let source = std::fs::read_to_string(source).expect("it is there");
    1 + source
        .lines()
        .position(|l| l.contains(text))
        .expect("it is in it")
}

#[test]
fn the_serial_part_limits() {
    for (compiler, folder) in programs("scaling") {
        let folder = folder.path();
        let options = ["--threads", "1,2", "--repeat", "2", "-o", "out"];
        let series = profiled(folder, &options, &["./scaling", "serial"]);
        check(&series, compiler);
        let points = list(&series, "points");
        let numbers: Vec<u64> = points
            .iter()
            .filter_map(|p| p["threads"].as_u64())
            .collect();
        assert_eq!(numbers, [1, 2], "{compiler}");
        for point in points {
            assert_eq!(point["wall"]["runs"], 2, "{compiler}: {point}");
            // Four fifths of the processor time are serial by construction.
            let stack = &point["stack"];
            assert!(number(&stack["serial_s"]) > 0.12, "{compiler}: {point}");
            assert!(number(&stack["work_s"]) > 0.029, "{compiler}: {point}");
        }
        let limit = &series["limit"];
        assert_eq!(
            (&limit["place"], &limit["cause"]),
            (&Value::Null, &"serial_idle".into()),
            "{series:#}"
        );
        assert!(
            verdict(&series).contains("The serial part limits"),
            "{compiler}: {series:#}"
        );
        // What is recorded is reported again; the runs by themselves too.
        assert_eq!(
            reported(folder, &["out"]),
            without_paths(&series, folder),
            "{compiler}"
        );
        let text = run(folder, &["report", "out"]).ok(compiler).text();
        assert!(
            text.contains("The serial part") && text.contains("Thread time"),
            "{text}"
        );
        let long = text.lines().find(|l| l.chars().count() > 110);
        assert_eq!(long, None, "{compiler}");
        // Folders from elsewhere, in any order.
        for (from, to) in [
            ("out/threads-1", "a"),
            ("out/threads-2/run-0001", "b"),
            ("out/threads-2/run-0002", "c"),
        ] {
            std::fs::rename(folder.join(from), folder.join(to)).expect("it is ours");
        }
        let again = reported(folder, &["c", "a", "b"]);
        check(&again, compiler);
        let means = |s: &Value| -> Vec<f64> {
            list(s, "points")
                .iter()
                .map(|p| number(&p["available_s"]))
                .collect()
        };
        let same = means(&again)
            .iter()
            .zip(means(&series))
            .all(|(a, b)| (a - b).abs() < 1e-9);
        assert!(
            same && again["limit"]["cause"] == limit["cause"],
            "{compiler}: {again:#}"
        );
        assert_eq!(
            list(&again, "regions").len(),
            list(&series, "regions").len(),
            "{compiler}"
        );
    }
}

/// A series as it is read again from a folder that is named by its relative path.
fn without_paths(series: &Value, folder: &Path) -> Value {
    let folder = folder.canonicalize().expect("it is there");
    let prefix = format!("{}/", folder.display());
    let text = serde_json::to_string(series).expect("it was JSON");
    serde_json::from_str(&text.replace(&prefix, "")).expect("still JSON")
}

#[test]
fn a_critical_section_that_is_all_of_the_work_limits() {
    for (compiler, folder) in programs("scaling") {
        let options = ["--threads", "1-2", "-o", "out"];
        let series = profiled(folder.path(), &options, &["./scaling", "critical"]);
        check(&series, compiler);
        let limit = &series["limit"];
        assert_eq!(limit["cause"], "synchronization", "{compiler}: {series:#}");
        assert_eq!(
            limit["place"]["construct"], "critical",
            "{compiler}: {series:#}"
        );
        let at = line("omp critical(door)") as u64;
        let found = limit["place"]["source"]["line"].as_u64().expect("a line");
        assert!(found.abs_diff(at) <= 1, "{compiler}: {found} {at}");
        let told = format!("The critical section at scaling.c:{found} limits");
        assert!(
            verdict(&series).contains(&told),
            "{compiler}: {}",
            verdict(&series)
        );
        let region = &list(&series, "regions")[0];
        assert_eq!(region["mostly"], "synchronization", "{compiler}: {region}");
    }
}

#[test]
fn the_number_of_threads_goes_into_the_arguments() {
    for (compiler, folder) in programs("scaling") {
        let folder = folder.path();
        let options = ["--threads", "3,1", "--weak", "-o", "out"];
        let series = profiled(folder, &options, &["./scaling", "same", "{threads}"]);
        check(&series, compiler);
        assert_eq!(series["scaling"], "weak", "{compiler}");
        for point in list(&series, "points") {
            let run = point["runs"][0].as_str().expect("a folder");
            let report = reported(folder, &[run]);
            let threads = point["threads"].to_string();
            assert_eq!(report["args"][1], *threads, "{compiler}");
            assert!(
                run.contains(&format!("threads-{threads}/")),
                "{compiler}: {run}"
            );
        }
        let kinds = |series: &Value| -> Vec<String> {
            let kinds = list(series, "notes").iter().map(|n| n["kind"].to_string());
            kinds.collect()
        };
        assert!(
            !kinds(&series).contains(&"\"arguments-differ\"".to_owned()),
            "{series:#}"
        );
        let strong = reported(folder, &["out"]);
        assert!(
            kinds(&strong).contains(&"\"arguments-differ\"".to_owned()),
            "{strong:#}"
        );
    }
}

fn refused(said: &Output, status: i32, words: &[&str]) {
    assert_eq!(said.status, status, "{said:?}");
    for word in words {
        assert!(said.errors().contains(word), "{word}: {said:?}");
    }
    if status == 1 {
        assert_eq!(said.errors().lines().count(), 1, "{said:?}");
    }
}

#[test]
fn what_is_no_series_is_refused() {
    for (compiler, folder) in programs("scaling") {
        let folder = folder.path();
        let run = |args: &[&str]| run(folder, args);
        for wrong in ["0", "", "a", "4-2", "1,,2"] {
            refused(
                &run(&["record", "--threads", wrong, "--", "./scaling"]),
                2,
                &["--threads"],
            );
        }
        refused(
            &run(&["profile", "--threads", "2", "--", "./scaling"]),
            2,
            &["two are needed"],
        );
        refused(
            &run(&["profile", "--weak", "--", "./scaling"]),
            2,
            &["--threads"],
        );
        refused(
            &run(&[
                "profile",
                "--threads",
                "1,2",
                "--simulate",
                "--",
                "./scaling",
            ]),
            2,
            &["--simulate"],
        );
        let record = |out: &str, how: &str, threads: usize| -> PathBuf {
            let out = folder.join(out);
            table::record(&folder.join("scaling"), &[how], threads, &out, &NONE).ok(compiler);
            out
        };
        record("two", "fixed", 1);
        record("too", "fixed", 4);
        let suggestion = run(&["report", "two", "too", "--suggest-filter", "5"]);
        refused(&suggestion, 2, &["one run"]);
        refused(&run(&["report", "--weak", "two"]), 2, &["several runs"]);
        // The program has its own number of threads.
        refused(
            &run(&["report", "two", "too"]),
            1,
            &["teams of 2 threads", "OMP_NUM_THREADS"],
        );
        let other = folder.join("other");
        std::fs::create_dir(&other).expect("there is room");
        let text =
            "int main(void) {\n#pragma omp parallel\n{ __asm__ volatile(\"\"); }\nreturn 0; }\n";
        let Some(program) =
            ompfuse_tests::compile::text(&other, "other", text, "gcc -fopenmp -Wl,--build-id")
        else {
            continue;
        };
        table::record(&program, &[], 3, &folder.join("three"), &NONE).ok(compiler);
        let said = run(&["report", "two", "three"]);
        refused(&said, 1, &["cannot make a series of", "different programs"]);
    }
}
