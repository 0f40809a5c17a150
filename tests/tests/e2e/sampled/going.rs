//! The report of a run that goes on: of what is on record by now, and what its threads do.

use super::running::{Going, line};
use super::{is_allowed, program};
use ompfuse_tests::{command, schema};
use std::path::Path;
use std::time::Duration;

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
        std::thread::sleep(Duration::from_millis(2500));
        // Nothing may end the test before the program is ended.
        let text = command::run([Path::new("report"), &out]);
        let json = command::run([Path::new("report"), &out, Path::new("--format=json")]);
        let children = recorder.kill_children();
        drop(recorder);
        let (text, json) = (text.ok("report").text(), json.ok("report").text());
        schema::check(how, std::slice::from_ref(&json));
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON was asked for");
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
        if how == "barrier" {
            let waits = |t: &serde_json::Value| t["away_s"].as_f64() > Some(0.2);
            let is_it = |t: &serde_json::Value| t["line"] == line(mark) && waits(t);
            assert!(threads.iter().any(is_it), "{how}: {going:#}");
            assert!(
                text.contains(&format!("running.c:{}", line(mark))),
                "{text}"
            );
        } else {
            let regions = json["regions"].as_array().expect("regions");
            let parallel = regions.iter().filter(|r| r["construct"] == "parallel");
            assert!(parallel.count() >= 2, "{json:#}");
        }
        // Nobody has ended it.
        assert!(!text.contains("did not end"), "{text}");
    }
}
