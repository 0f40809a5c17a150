//! The report of a run that goes on: of what is on record by now, and what its threads do.

use super::running::{Going, line};
use super::{is_allowed, program};
use ompfuse_tests::{command, schema};
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
        // Nobody has ended it.
        assert!(!text.contains("did not end"), "{text}");
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
