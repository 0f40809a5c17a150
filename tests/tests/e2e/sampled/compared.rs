//! Runs with samples only beside others: by shares, of which only those that chance doesn't explain have changed. And their page.

use super::running::{line, looked_at, start};
use super::{is_allowed, program, record};
use ompfuse_tests::{command, schema};
use serde_json::Value;
use std::path::Path;

fn diff(a: &Path, b: &Path) -> (String, Value) {
    let text = command::ok([Path::new("diff"), a, b]).text();
    let json = [Path::new("diff"), a, b, Path::new("--format=json")];
    let json = command::ok(json).text();
    schema::check_shares("shares", std::slice::from_ref(&json));
    let words: Vec<&str> = text.split_whitespace().collect();
    let json = serde_json::from_str(&json).expect("JSON was asked for");
    (words.join(" "), json)
}

fn changed(json: &Value) -> Vec<&Value> {
    let regions = json["regions"].as_array().expect("regions");
    regions.iter().filter(|r| r["is_changed"] == true).collect()
}

#[test]
fn shares_change_only_beyond_their_errors() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let (shares, spins) = (start(&program, "shares"), start(&program, "spin"));
    let outs = ["a", "b", "c"].map(|name| folder.path().join(name));
    looked_at(&shares, &outs[0], "2s");
    looked_at(&shares, &outs[1], "2s");
    looked_at(&spins, &outs[2], "1s");
    let (text, json) = diff(&outs[0], &outs[1]);
    assert_eq!(json["shares_of"], "samples");
    assert!(
        text.starts_with("No share differs by more than chance"),
        "{text}"
    );
    assert!(changed(&json).is_empty(), "{json:#}");
    // One that waits has no samples.
    let (waits, out) = (start(&program, "locks"), folder.path().join("d"));
    looked_at(&waits, &out, "1s");
    let (text, _) = diff(&outs[0], &out);
    let told = "There is nothing to compare: B has ";
    assert!(text.starts_with(told), "{text}");
    let (text, json) = diff(&outs[0], &outs[2]);
    // All of it is outside of constructs now.
    let first = &json["regions"][0];
    assert_eq!(first["is_changed"], true, "{json:#}");
    assert!(first["construct"].is_null(), "{json:#}");
    assert!(first["b"].as_f64() > Some(0.9), "{json:#}");
    assert!(
        text.starts_with("The work outside of constructs is"),
        "{text}"
    );
    assert!(changed(&json).len() >= 3, "{json:#}");
    // Exactly the threshold that is documented.
    for region in json["regions"].as_array().expect("regions") {
        let number = |name: &str| region[name].as_f64().expect("a number");
        let unknown = ["a", "b"].map(|side| json[side]["unknown"].as_f64().expect("a share"));
        let [up, down] = [number("b") - number("a"), number("a") - number("b")];
        let differs = (up - unknown[0]).max(down - unknown[1]);
        let is_changed = differs > 3.0 * number("error");
        assert_eq!(region["is_changed"], is_changed, "{region:#}");
    }
}

#[test]
fn a_recorded_run_is_compared_by_work_only() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("slow", "gcc -O1 -g -fopenmp -lm") else {
        return;
    };
    let recorded = record(&program, &["trips", "6"], 2, &folder.path().join("r"), &[]);
    let sampled = folder.path().join("s");
    let options = ["--sampled", "--sampling", "1000"];
    let mut ours = command::with_threads(2);
    ours.args(["record", "-o"]).arg(&sampled).args(options);
    ours.arg("--").arg(&program).args(["trips", "6"]);
    ompfuse_tests::process::run(&mut ours).ok("record");
    let (text, json) = diff(&recorded, &sampled);
    assert_eq!(json["shares_of"], "work");
    assert!(json["a"]["samples"].is_null(), "{json:#}");
    assert!(text.starts_with("One side is recorded"), "{text}");
    let regions = json["regions"].as_array().expect("regions");
    assert!(!regions.is_empty(), "{json:#}");
    for side in ["a", "b"] {
        let all: f64 = regions.iter().filter_map(|r| r[side].as_f64()).sum();
        assert!((0.8..1.0001).contains(&all), "{side}: {json:#}");
    }
}

#[test]
fn its_page_says_what_the_text_says() {
    if !is_allowed() {
        return;
    }
    let Some((folder, program)) = program("running", "gcc -O1 -g -fopenmp") else {
        return;
    };
    let going = start(&program, "locks");
    let out = folder.path().join("out");
    let (text, _) = looked_at(&going, &out, "600ms");
    let page = folder.path().join("page.html");
    for redact in [false, true] {
        let mut words = vec!["report", "--html", page.to_str().expect("a plain name")];
        words.extend(redact.then_some("--redact"));
        words.push(out.to_str().expect("a plain name"));
        command::ok(words.iter().map(std::ffi::OsStr::new));
        let html = std::fs::read_to_string(&page).expect("a page");
        assert!(text.starts_with("No thread computes: "), "{text}");
        let place = format!("running.c:{}", line("locks"));
        for told in ["No thread computes: ", &place, "What each thread did last"] {
            assert!(html.contains(told), "{told}");
        }
        let folder = folder.path().to_string_lossy();
        assert_eq!(html.contains(&*folder), !redact);
    }
}
