//! The report of a run that goes on: of what is on record by now, and what its threads do.

use super::ended::SILENT;
use super::running::{Going, line};
use super::{is_allowed, program};
use crate::ranks;
use ompfuse_tests::{command, compile, schema};
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// So often it is asked, and so long.
const EVERY: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_run_that_goes_on_is_reported_as_far_as_it_is_on_record() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    for (how, options, mark) in [
        ("barrier", &[][..], "pause"),
        ("barrier", &["--sampling", "off"], "pause"),
        ("shares", &[], "large"),
    ] {
        let out = folder.path().join(format!("{how}{}", options.len()));
        let mut record = command::with_threads(2);
        record.args(["record", "--events", "none", "-o"]).arg(&out);
        record.args(options).env("OMP_WAIT_POLICY", "passive");
        record.stdout(std::process::Stdio::null());
        let recorder = record.arg("--").arg(&program).arg(how).spawn();
        let recorder = Going(recorder.expect("it starts"));
        let begun = Instant::now();
        // Nothing may end the test before the program is ended.
        let (text, json) = loop {
            std::thread::sleep(EVERY);
            let text = command::run([Path::new("report"), &out]);
            let json = command::run([Path::new("report"), &out, Path::new("--format=json")]);
            let whole = serde_json::from_slice(&json.stdout).unwrap_or(Value::Null);
            let is_it = has_all(how, &text.text(), &whole, mark);
            if is_it || begun.elapsed() > PATIENCE {
                break (text, json);
            }
        };
        let children = recorder.kill_children();
        drop(recorder);
        let (text, json) = (text.ok("report").text(), json.ok("report").text());
        schema::check(how, std::slice::from_ref(&json));
        let json: Value = serde_json::from_str(&json).expect("JSON was asked for");
        assert!(has_all(how, &text, &json, mark), "{how}: {text}{json:#}");
        let told = format!(
            "It goes on: process {} is still being recorded.",
            children.trim()
        );
        assert!(text.starts_with(&told), "{how}: {text}");
        let going = &json["goes_on"][0];
        assert_eq!(going["pid"].to_string(), children.trim());
        let threads = going["threads"].as_array().expect("threads");
        // Of the other one nothing may be known yet, where it had no processor.
        assert!(threads.len() <= 2, "{how}: {going:#}");
        assert!(threads[0]["is_main"] == true, "{how}: {going:#}");
        assert!(going["refusal"].is_null(), "{how}: {going:#}");
        is_of_none_that_ended(&text);
    }
}

/// Whether the program has come so far that the text says what is wanted, and JSON, too.
fn has_all(how: &str, text: &str, json: &Value, mark: &str) -> bool {
    let all = |of: &Value| of.as_array().cloned().unwrap_or_default();
    let threads = all(&json["goes_on"][0]["threads"]);
    if how != "barrier" {
        let regions = all(&json["regions"]);
        let parallel = regions.iter().filter(|r| r["construct"] == "parallel");
        return parallel.count() >= 2 && threads.iter().any(|t| t["is_main"] == true);
    }
    let waits = |t: &Value| t["line"] == line(mark) && t["away_s"].as_f64() > Some(0.2);
    let place = format!("running.c:{}", line(mark));
    threads.iter().any(waits) && text.contains(&place)
}

#[test]
fn ranks_that_go_on_are_told_with_their_calls() {
    if !is_allowed() {
        return;
    }
    let (compiler, launcher) = ranks::IMPLEMENTATIONS[0];
    let Some(program) = compile::compile(SILENT, &format!("{compiler} -O1 -g -fopenmp")) else {
        return;
    };
    let folder = program.folder.path();
    let line = format!(
        "timeout -s TERM 90 {launcher} -n 2 \"$OMPFUSE\" record --events none -o job/%r -- {} &
        for second in $(seq 60); do
            sleep 1
            \"$OMPFUSE\" report job > told && \"$OMPFUSE\" report job --format json > told.json || continue
            tr -s ' \\n' ' ' < told | grep -q 'rank 0, .* MPI_Recv.*rank 1, .* pause' && break
        done
        kill $!; wait",
        program.path.display()
    );
    ranks::run(folder, &line);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it is written");
    let (text, json) = (read("told"), read("told.json"));
    schema::check("ranks", std::slice::from_ref(&json));
    let told = "It goes on: rank 0, rank 1 are still being recorded.";
    assert!(text.starts_with(told), "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    for mark in ["MPI_Recv(", "pause();"] {
        let at = SILENT.lines().position(|line| line.contains(mark));
        let place = format!(":{}", at.expect("the mark is there") + 1);
        assert!(text.contains(&place), "{mark}: {text}");
    }
    is_of_none_that_ended(&text);
}

/// Nobody has ended it.
fn is_of_none_that_ended(text: &str) {
    for word in [
        "did not end",
        "was killed",
        "was not waited for",
        "at its end",
    ] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}
