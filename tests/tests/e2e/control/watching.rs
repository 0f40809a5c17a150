//! `watch`: a live table of the regions of a program that runs.

use super::steady::{Steady, TASKS};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process, table};
use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::Duration;

/// While the program waits for its next line, all that it has done is told.
#[test]
fn a_running_program_is_watched() {
    for steady in Steady::all() {
        let mut dialogue = steady.record(2, &["--events", "page-faults"], &[]);
        let picture = || {
            let out = steady.out();
            command::json([
                "watch".as_ref(),
                out.as_os_str(),
                "--format".as_ref(),
                "json".as_ref(),
            ])
        };
        // Regions that were entered, summed up by construct.
        let sum = |picture: &Value, construct: &str, field: &str| -> u64 {
            let regions = picture["regions"].as_array().expect("a list of regions");
            let of_this = regions.iter().filter(|r| r["construct"] == construct);
            of_this.filter_map(|r| r[field].as_u64()).sum()
        };
        let mut rounds = 0;
        for more in [3, 100, 40] {
            dialogue.ask(&more.to_string());
            rounds += more;
            let picture = picture();
            assert_eq!(sum(&picture, "task", "xus"), rounds * TASKS, "{picture}");
            assert_eq!(
                sum(&picture, "critical", "entered"),
                rounds * 2,
                "{picture}"
            );
            assert_eq!(picture["threads"], 2, "{picture}");
            let regions = picture["regions"].as_array().expect("a list of regions");
            let total: f64 = regions.iter().filter_map(|r| r["share"].as_f64()).sum();
            assert!((total - 1.0).abs() < 1e-6, "{picture}");
            let tasks = regions
                .iter()
                .find(|r| r["construct"] == "task" && r["xus"] != 0);
            let tasks = tasks.expect("tasks were executed");
            assert!(tasks["rate_per_s"].as_f64() > Some(0.0), "{tasks}");
            assert!(tasks["events"]["page-faults"].is_u64(), "{tasks}");
            assert_eq!(tasks["source"]["line"], 33, "{tasks}");
        }
        let text = command::ok([
            "watch".as_ref(),
            steady.out().as_os_str(),
            "--once".as_ref(),
        ])
        .text();
        assert!(
            text.contains("steady.c:33") && text.contains("page-faults"),
            "{text}"
        );
        // While it is at work, and in no state in particular.
        dialogue.tell("600");
        let mut before = 0;
        for _ in 0..10 {
            let tasks = sum(&picture(), "task", "xus");
            assert!(tasks >= before, "{tasks} after {before}");
            before = tasks;
        }
        dialogue.hear();
        steady.end(dialogue, 2, &["3", "100", "40", "600"]);
        let out = steady.out();
        let output = command::run(["watch".as_ref(), out.as_os_str(), "--once".as_ref()]);
        assert_eq!(output.status, 1, "{output:?}");
        assert!(
            output.errors().contains("nothing is being recorded"),
            "{output:?}"
        );
    }
}

/// A program that writes all the time is caught up with.
#[test]
fn a_busy_program_is_watched() {
    let Some(build) = Fixture::open("lifecycle").ordinary_builds("gcc").pop() else {
        return;
    };
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let (out, done) = (folder.path().join("runs"), folder.path().join("done"));
    let patched = table::patch(&build, folder.path(), &[]);
    let mut recorder = command::with_threads(2);
    recorder
        .args(["record", "--events", "none", "-o"])
        .arg(&out)
        .arg("--")
        .arg(&patched)
        .args(["1", "timer", "20000000"])
        .arg(&done);
    let mut recording = recorder.stdout(Stdio::null()).spawn().expect("it starts");
    std::thread::sleep(Duration::from_secs(2));
    let watch = command::ok(["watch".as_ref(), out.as_os_str(), "--once".as_ref()]);
    let is_over = recording.try_wait().expect("it is our child").is_some();
    let pid = watch.text().split(' ').next().map(str::to_owned);
    process::run(Command::new("kill").args(["-KILL", &pid.expect("it is told")]));
    recording.wait().expect("it ends");
    assert!(watch.text().contains("lifecycle.c:"), "{watch:?}");
    assert!(!is_over, "watching took until the program's end");
}
