//! What `try` tells, beside programs whose best value is known; what reports say of it; and files that programs write.

use super::line_of;
use ompfuse_tests::recommended::{self, Change, tried};
use ompfuse_tests::{command, compile, process, repository, table};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const THREADS: usize = 4;
/// What an answer may be beside the truth, as a share of the time.
const BESIDE: f64 = 0.03;

fn program(flags: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room for a program");
    let program = folder.path().join("proof");
    let source = repository().join("tests/sources/proof.c");
    let command = format!("gcc -O1 -g -fopenmp {flags}");
    compile::files(&[source], &program, &command).then_some((folder, program))
}

/// Checks an answer about a program against what is known to be best.
fn holds(answer: &recommended::Answer, best: Change) {
    let [low, high] = answer.told().unwrap_or_else(|| panic!("{:#}", answer.json));
    assert!(best.mean < -0.15, "{best:?}");
    assert!(
        low - BESIDE <= best.high && best.low <= high + BESIDE,
        "{best:?}: {:#}",
        answer.json
    );
    let fresh = &answer.best().expect("it is told")["is_fresh"];
    assert_eq!(*fresh, true, "{:#}", answer.json);
}

#[test]
fn what_is_told_holds_the_best_of_the_source() {
    let (Some((_a, bad)), Some((_b, good))) = (program("-DCOARSE"), program("-DCOARSE -DVALUE=1"))
    else {
        return;
    };
    let answer = tried(&bad, THREADS, &["--turns=8", "--for=20s"], &[]);
    holds(
        &answer,
        recommended::change((&bad, &[]), (&good, &[]), THREADS),
    );
    let measured = answer.measured(&[]).expect("one is recommended");
    assert!(measured.mean < 0.0, "{measured:?}");
}

#[test]
fn what_is_told_holds_the_best_of_the_environment() {
    let Some((_folder, program)) = program("-DRUNTIME") else {
        return;
    };
    let bad = [("OMP_SCHEDULE", "static")];
    let good = [("OMP_SCHEDULE", "dynamic,1")];
    let answer = tried(&program, THREADS, &["--turns=8", "--for=20s"], &bad);
    let best = recommended::change((&program, &bad), (&program, &good), THREADS);
    holds(&answer, best);
}

#[test]
fn where_nothing_can_be_gained_nothing_is_told() {
    let Some((_folder, program)) = program("-DEVEN") else {
        return;
    };
    let answer = tried(&program, THREADS, &["--turns=6", "--for=10s"], &[]);
    if let Some([_, high]) = answer.told() {
        panic!("{high}: {:#}", answer.json);
    }
}

/// The report of a recorded run, as text and JSON.
fn report(program: &Path) -> (String, Value) {
    let out = program.with_file_name("recorded");
    table::record(program, &[], THREADS, &out, &["--events", "none"]).ok("record");
    let text = command::ok([Path::new("report"), &out]).text();
    let run = table::runs(&out).pop().expect("a run was recorded");
    let words: Vec<&str> = text.split_whitespace().collect();
    (words.join(" "), command::report(run))
}

#[test]
fn a_report_names_try_where_something_can_be_tried() {
    let (Some((_a, bad)), Some((_b, even))) = (program("-DCOARSE"), program("-DEVEN")) else {
        return;
    };
    let (text, json) = report(&bad);
    let chunk = format!("proof.c:{}: chunk=1", line_of("proof", "place"));
    let of_others = json["running"]["taken"]
        .as_f64()
        .is_some_and(|taken| taken > 0.05);
    let is_alone = !of_others && matches!(json["running"]["sharing"].as_str(), None | Some("own"));
    assert_eq!(text.contains("ompfuse try -- "), is_alone, "{text}");
    let names: Vec<&Value> = json["to_try"].as_array().expect("a list").iter().collect();
    assert!(names.contains(&&Value::from(chunk.as_str())), "{names:?}");
    // `try` has the same.
    let answer = tried(&bad, THREADS, &["--turns=4", "--for=10s"], &[]);
    let variants = answer.json["variants"].as_array().expect("a list").iter();
    let mut sets = variants.map(|v| &v["set"][0]);
    assert!(sets.any(|set| *set == chunk.as_str()), "{:#}", answer.json);
    let (text, json) = report(&even);
    let names = json["to_try"].to_string();
    assert!(!names.contains("proof.c"), "{names}");
    assert!(names != "null" || !text.contains("ompfuse try"), "{text}");
}

/// Each run adds a line to a file: it is named, and in copies of the folder nothing of that is left.
#[test]
fn written_files_are_named_and_compared() {
    let Some((folder, program)) = program("-DFILES") else {
        return;
    };
    let written = folder.path().join("written.txt");
    let lines = || std::fs::read_to_string(&written).map_or(0, |text| text.lines().count());
    let tried = |options: &[&str]| {
        let mut ours: Command = command::with_threads(THREADS);
        ours.current_dir(folder.path());
        ours.args(["try", "--turns=4", "--format=json"])
            .args(options);
        let place = line_of("proof", "place");
        ours.arg(format!("--set=proof.c:{place}: chunk=1"));
        process::run(ours.arg("--").arg(&program))
    };
    let said = tried(&[]).ok("try");
    assert!(
        said.errors()
            .contains("a run changes written.txt (new, 10 bytes"),
        "{said:?}"
    );
    let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let changed = &answer["changed_files"][0];
    assert_eq!(changed["path"], "written.txt", "{answer:#}");
    assert_eq!(changed["after"]["bytes"], 10, "{answer:#}");
    let before = lines();
    assert!(before > 8, "each run wrote: {before}");
    let said = tried(&["--compare-files", "written.*"]).ok("try");
    let answer: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    assert_eq!(answer["variants"][0]["output"], "equal", "{answer:#}");
    assert_eq!(lines(), before + 1, "only the recorded run is here");
    let refused = tried(&["--compare-files", "*.none"]);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(
        refused
            .errors()
            .contains("no file of this folder is called *.none"),
        "{refused:?}"
    );
    assert_eq!(
        refused
            .errors()
            .lines()
            .last()
            .map(|l| l.starts_with("ompfuse: ")),
        Some(true)
    );
}
