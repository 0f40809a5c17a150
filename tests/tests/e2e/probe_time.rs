//! What probes take: said where it is much, with the command that helps; and the regions that cost most are named.

use crate::shares::{number, programs, reported};
use ompfuse_tests::{command, process, table};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Executions of `tests/sources/kernels.c` whose units are too short, and what is at fault: the construct and the line's text.
const CASES: [(&[&str], &str, &str); 3] = [
    (&["ranges", "20"], "parallel", "schedule(dynamic, 1)"),
    (&["kernels", "20"], "parallel", "schedule(dynamic, 1)"),
    (&["tasks", "18"], "task", "omp task shared(x)"),
];

/// Line of a text in the source, from 1.
fn line(text: &str) -> usize {
    let source = ompfuse_tests::repository().join("tests/sources/kernels.c");
    let source = std::fs::read_to_string(source).expect("the source is text");
    let at = source.lines().position(|l| l.contains(text));
    1 + at.unwrap_or_else(|| panic!("no line has {text}"))
}

/// Every case that a report complains of, with its run's folder: what the recording said, too.
fn recorded(events: &[&str], mut check: impl FnMut(&str, &Path, &str, (&str, usize))) {
    for (compiler, folder) in programs("kernels") {
        let program = folder.path().join("kernels");
        for (args, construct, text) in CASES {
            let out = folder.path().join(format!("{}-out", args[0]));
            // One thread waits for nobody, however busy the machine is; but libomp gives it a loop as one range.
            let threads = if construct == "task" { 1 } else { 2 };
            let output = table::record(&program, args, threads, &out, events);
            output.clone().ok(compiler);
            let case = format!("{compiler} {args:?} {events:?}");
            check(&case, &out, &output.errors(), (construct, line(text)));
            std::fs::remove_dir_all(&out).expect("a run is a folder of ours");
        }
    }
}

/// The lines of `report --suggest-filter` that leave out a region.
fn suggested(out: &Path, share: &str) -> Vec<String> {
    let run = &table::runs(out)[0];
    let share = format!("--suggest-filter={share}");
    let text = command::ok([Path::new("report"), run, Path::new(&share)]).text();
    let lines = text.lines().filter(|l| l.starts_with("skip "));
    lines.map(str::to_owned).collect()
}

#[test]
fn a_filter_names_what_is_too_short() {
    // On a busy machine units take longer by the clock, and probes a smaller share of that; reading a counter is much anyway.
    for (events, share) in [(&["--events", "none"][..], "0.1"), (&table::ONE_EVENT, "5")] {
        recorded(events, |case, out, _, (_, line)| {
            let lines = suggested(out, share);
            let place = format!("kernels.c:{line}:");
            // The line of the construct, or of the loop behind it.
            let next = format!("kernels.c:{}:", line + 1);
            assert!(
                lines
                    .iter()
                    .any(|l| l.contains(&place) || l.contains(&next)),
                "{case}: {place} is not in {lines:#?}"
            );
            let report = reported(out);
            let threads = number(&report["thread_time_s"]);
            // No region took longer than all threads did together.
            for line in lines {
                let of = line.rsplit("% of ").next().expect("a time");
                let (time, unit) = of.split_once(' ').unwrap_or((of, "s"));
                let time: f64 = time.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
                let seconds = match unit {
                    "s" => time,
                    "ms" => time * 1e-3,
                    "µs" => time * 1e-6,
                    _ => panic!("{line}: {unit}"),
                };
                assert!(seconds <= threads * 1.01, "{case}: {line} of {threads} s");
            }
        });
    }
}

#[test]
fn a_run_that_was_mostly_probes_says_so_first() {
    says_so_first(&table::ONE_EVENT, "--events none");
}

/// The clock alone takes so little that a short program's start may take more.
#[test]
fn what_helps_without_counters_leaves_out_units() {
    says_so_first(&["--events", "none"], "-");
}

/// `helps`: what the option that is advised begins with.
fn says_so_first(events: &[&str], helps: &str) {
    recorded(events, |case, out, said, _| {
        let report = reported(out);
        let probes = &report["probes"];
        if events[1] == "none" && probes["command"].is_null() {
            return;
        }
        assert!(number(&probes["share"]) > 0.1, "{case}: {probes}");
        let of_regions: f64 = report["regions"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|r| number(&r["probes_estimated_s"]))
            .sum();
        let all = number(&probes["estimated_s"]);
        assert!(
            (of_regions - all).abs() < 1e-6,
            "{case}: {of_regions} {all}"
        );
        let advised = probes["command"].as_str().expect("a command");
        assert!(
            advised.contains(&format!("record {helps}")),
            "{case}: {advised}"
        );
        let text = command::ok([Path::new("report"), &table::runs(out)[0]]).text();
        let told = text.find("the probes took about").unwrap_or(usize::MAX);
        let where_time_went = text.find("Where ").expect("the regions");
        assert!(told < where_time_went, "{case}:\n{text}");
        assert!(text.contains(advised), "{case}: {advised}\n{text}");
        // The recording has said the same, with a command to type.
        let Some(line) = said.lines().find(|l| l.contains("the probes took about")) else {
            // It has looked at a part of the records only.
            assert!(number(&probes["share"]) < 0.15, "{case}: {probes}, {said}");
            return;
        };
        // Where leaving out is measured to save nothing, it leads to a filter (`a_filter_names_what_is_too_short`).
        let also = line.find("ompfuse record").map(|at| &line[at..]);
        assert!(
            also.is_some() || line.contains("--suggest-filter"),
            "{line}"
        );
        for typed in std::iter::once(advised).chain(also) {
            let again = out.with_extension("again");
            let command = format!(
                "{} record -o {}",
                command::path().display(),
                again.display()
            );
            let typed = typed.replacen("ompfuse record", &command, 1);
            let mut shell = Command::new("sh");
            process::clean(&mut shell, 2);
            process::run(shell.args(["-c", &typed])).ok(&typed);
            assert_eq!(table::runs(&again).len(), 1, "{typed}");
            std::fs::remove_dir_all(&again).expect("a run is a folder of ours");
        }
    });
}

/// What is left out is still timed, so of units that do nothing the probes take more than any small share: that is said.
#[test]
fn a_throttle_that_cannot_be_kept_is_told() {
    const SAID: &str = "because what --units leaves out is still timed";
    for (compiler, folder) in programs("kernels") {
        let out = folder.path().join("out");
        let program = folder.path().join("kernels");
        let options = ["--events", "none", "--units", "cost=1"];
        let output = table::record(&program, &["tasks", "18"], 1, &out, &options);
        let errors = output.ok(compiler).errors();
        let told: Vec<&str> = errors.lines().filter(|l| l.contains(SAID)).collect();
        assert_eq!(told.len(), 1, "{compiler}: {errors}");
        assert!(!told[0].contains("record --units cost"), "{told:?}");
        assert!(number(&reported(&out)["probes"]["share"]) > 0.01);
    }
    for (compiler, folder) in programs("idle") {
        let (program, out) = (folder.path().join("idle"), folder.path().join("out"));
        let options = ["--events", "none", "--units", "cost=5"];
        let output = table::record(&program, &["loop"], 2, &out, &options).ok(compiler);
        assert!(!output.errors().contains(SAID), "{output:?}");
    }
}

/// Long units: nothing is said of probes, anywhere.
#[test]
fn nothing_is_said_of_probes_that_took_nothing() {
    for (compiler, folder) in programs("idle") {
        let (program, out) = (folder.path().join("idle"), folder.path().join("out"));
        let output = table::record(&program, &["loop"], 2, &out, &["--events", "none"]);
        output.clone().ok(compiler);
        assert!(!output.errors().contains("probes took"), "{output:?}");
        let report = reported(&out);
        assert_eq!(
            report["probes"]["command"],
            Value::Null,
            "{compiler}: {report}"
        );
        let text = command::ok([Path::new("report"), &table::runs(&out)[0]]).text();
        assert!(!text.contains("probes"), "{compiler}:\n{text}");
    }
}
