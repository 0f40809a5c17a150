//! `watch`: a live table of the regions of a program that runs.

use super::steady::{Steady, TASKS};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, has, process, table};
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
        let text = command::ok(["watch".as_ref(), steady.out().as_os_str()]).text();
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
        let output = command::run(["watch".as_ref(), out.as_os_str()]);
        assert_eq!(output.status, 1, "{output:?}");
        assert!(
            output.errors().contains("nothing is being recorded"),
            "{output:?}"
        );
    }
}

/// `report` has the same numbers: a program that ends does nothing more in its regions.
#[test]
fn a_picture_agrees_with_the_report() {
    for steady in Steady::all() {
        let mut dialogue = steady.record(2, &["--events", "page-faults"], &[]);
        dialogue.ask("60");
        let out = steady.out();
        let ask = |command: &str| {
            command::json([
                command.as_ref(),
                out.as_os_str(),
                "--format".as_ref(),
                "json".as_ref(),
            ])
        };
        let watch = ask("watch");
        steady.end(dialogue, 2, &["60"]);
        let report = ask("report");
        let list = |of: &Value| of["regions"].as_array().cloned().expect("a list");
        let mut compared = 0;
        for region in list(&report) {
            let rows = list(&watch).into_iter();
            let mut rows = rows.filter(|row| row["address"] == region["address"]);
            let row = rows
                .next()
                .unwrap_or_else(|| panic!("{region} isn't in {watch}"));
            assert_eq!(row["xus"], region["xus"], "{row} {region}");
            assert_eq!(row["events"], region["events"], "{row} {region}");
            let number = |of: &Value, field: &str| of[field].as_f64().expect("a number");
            // What workers wait for around their parts is the parallel region's in the report only.
            if region["construct"] != "parallel" {
                for (seconds, field) in [("wait_s", "wait_share"), ("runtime_s", "runtime_share")] {
                    let share = number(&region, seconds) / number(&region, "time_s");
                    let shown = number(&row, field);
                    assert!((shown - share).abs() < 0.01, "{row} {region}");
                }
            }
            let imbalance = number(&region["spread"], "imbalance");
            let shown = number(&row, "imbalance");
            assert!((shown - imbalance).abs() < 0.02, "{row} {region}");
            compared += 1;
        }
        assert!(compared > 4, "{report}");
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
    let watch = command::ok(["watch".as_ref(), out.as_os_str()]);
    let is_over = recording.try_wait().expect("it is our child").is_some();
    let pid = watch.text().split(' ').next().map(str::to_owned);
    process::run(Command::new("kill").args(["-KILL", &pid.expect("it is told")]));
    recording.wait().expect("it ends");
    assert!(watch.text().contains("lifecycle.c:"), "{watch:?}");
    assert!(!is_over, "watching took until the program's end");
}

/// What was seen last stays on the terminal, whole lines of it.
#[test]
fn the_last_picture_stays() {
    if !has("script") {
        return;
    }
    let Some(steady) = Steady::all().next() else {
        return;
    };
    let mut dialogue = steady.record(2, &["--events", "page-faults"], &[]);
    dialogue.ask("20");
    let ours = command::path().display();
    let (out, columns) = (steady.out(), 120);
    let line = format!(
        "stty cols {columns} rows 30; exec {ours} watch {} --every 0.1",
        out.display()
    );
    let mut terminal = command::with_threads(2);
    terminal.env_remove("COLUMNS").env("TERM", "xterm");
    let mut script = Command::new("script");
    for (key, value) in terminal.get_envs() {
        match value {
            Some(value) => script.env(key, value),
            None => script.env_remove(key),
        };
    }
    script.args(["-qec", &line, "/dev/null"]);
    script.stdin(Stdio::null()).stdout(Stdio::piped());
    let watch = script.spawn().expect("script starts");
    std::thread::sleep(Duration::from_secs(1));
    dialogue.ask("30");
    steady.end(dialogue, 2, &["20", "30"]);
    let shown = watch.wait_with_output().expect("it ends with the program");
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8_lossy(&shown.stdout).replace('\r', "");
    // The code that gives the terminal back.
    let (screens, last) = shown
        .rsplit_once("\x1b[?1049l")
        .expect("a screen was shown");
    assert!(screens.contains("steady.c"), "{screens}");
    let row = last.lines().find(|l| l.contains("steady.c:33"));
    let row = row.unwrap_or_else(|| panic!("no row in {last}"));
    let tasks = (50 * TASKS).to_string();
    assert!(
        row.split_whitespace().any(|word| word == tasks),
        "all of them: {tasks} in {row}"
    );
    let table = last.lines().skip_while(|l| !l.contains("share"));
    for line in table.take_while(|l| l.contains('%') || l.contains("share")) {
        assert!(line.chars().count() <= columns, "{line}");
    }
}
