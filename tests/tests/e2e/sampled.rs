//! Samples beside records: the right function in the right region, lines in the right proportion, and a program that doesn't notice.
//! Counts and ratios only: how many samples there are depends on the machine.

mod behind;
mod changed;
mod compared;
mod counted;
mod ended;
mod foreign;
mod going;
mod running;
mod uneven;

use ompfuse_tests::{command, compile, process, repository, schema, table, tools};
use serde_json::Value;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

fn source(name: &str) -> PathBuf {
    repository().join("tests/sources/sampled").join(name)
}

/// A program of one file; `None` without the compiler.
pub(crate) fn program(name: &str, compiler: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room");
    let out = folder.path().join(name);
    let file = source(&format!("{name}.c"));
    compile::files(&[file], &out, compiler).then_some((folder, out))
}

/// Whether samples are allowed here; where they aren't, that is said.
pub(crate) fn is_allowed() -> bool {
    let answer = process::run(command::with_threads(2).args(["doctor", "--format", "json"]));
    let answer: Value = serde_json::from_slice(&answer.stdout).expect("JSON was asked for");
    let checks = answer["checks"].as_array().expect("a list");
    let check = checks.iter().find(|c| c["name"] == "samples");
    let is = check.expect("it is looked at")["state"] == "ok";
    if !is {
        eprintln!("skipped: no samples are allowed here");
    }
    is
}

/// Records, and returns the run's folder.
pub(crate) fn record(
    program: &Path,
    args: &[&str],
    threads: usize,
    out: &Path,
    options: &[&str],
) -> PathBuf {
    let mut ours = command::with_threads(threads);
    ours.args(["record", "--events", "none", "-o"]).arg(out);
    ours.args(options).arg("--").arg(program).args(args);
    process::run(&mut ours).ok("record");
    table::runs(out).pop().expect("a run was recorded")
}

fn header(run: &Path) -> Value {
    let text = std::fs::read(run.join("run.json")).expect("the run's header");
    serde_json::from_slice(&text).expect("JSON")
}

pub(crate) fn lines(run: &Path) -> Value {
    let options = ["--lines", "--format=json"].map(OsStr::new);
    let words = [
        OsStr::new("report"),
        run.as_os_str(),
        options[0],
        options[1],
    ];
    let printed = command::ok(words).text();
    schema::check_lines("lines", std::slice::from_ref(&printed));
    serde_json::from_str(&printed).expect("JSON was asked for")
}

pub(crate) fn number(of: &Value, key: &str) -> u64 {
    of[key].as_u64().unwrap_or_else(|| panic!("no {key}: {of}"))
}

pub(crate) fn regions(lines: &Value) -> &[Value] {
    lines["regions"].as_array().expect("a list")
}

/// The program with eight kinds of tasks.
pub(crate) fn tasks(compiler: &str) -> Option<(TempDir, PathBuf)> {
    let folder = tempfile::tempdir().expect("there is room");
    let mut files = vec![source("tasks.c")];
    for at in 0..8 {
        let object = folder.path().join(format!("f{at}.o"));
        let how = format!("{compiler} -c -DNAME=f{at}");
        if !compile::files(&[source("unit.c")], &object, &how) {
            return None;
        }
        files.push(object);
    }
    let out = folder.path().join("tasks");
    compile::files(&files, &out, compiler).then_some((folder, out))
}

#[test]
fn samples_are_in_the_function_that_their_unit_calls() {
    if !is_allowed() {
        return;
    }
    for compiler in ["gcc -O1 -g -fopenmp", "clang-19 -O1 -g -fopenmp"] {
        let Some((folder, program)) = tasks(compiler) else {
            continue;
        };
        for (threads, n, length, most) in [(1, "40000", "20000", 0.1), (4, "8000", "200000", 0.01)]
        {
            let out = folder.path().join(format!("{threads}"));
            // More samples than by default: there are enough of them sooner.
            let run = record(&program, &[n, length], threads, &out, &["--sampling=4000"]);
            let all = lines(&run);
            let (mut right, mut work, mut uncertain, mut samples) = (0, 0, 0, 0);
            let tasks = regions(&all).iter().filter(|r| r["construct"] == "task");
            let mut seen = 0;
            for task in tasks {
                seen += 1;
                work += number(task, "work");
                uncertain += number(task, "uncertain");
                samples += number(task, "samples");
                // In the source the first place is in line 11, the others two lines further each.
                let place = number(task, "line");
                let call = (place - 11) / 2;
                let functions = task["functions"].as_array().expect("a list");
                let own = functions
                    .iter()
                    .find(|f| f["function"] == format!("f{call}"));
                right += own.map_or(0, |own| number(own, "samples"));
            }
            assert_eq!(seen, 8, "{all}");
            assert!(work > 400, "{compiler}: {work} samples say nothing");
            let share = right as f64 / work as f64;
            assert!(share >= 0.995, "{compiler}, {threads} threads: {share}");
            let share = uncertain as f64 / samples as f64;
            assert!(share <= most, "{compiler}: {share} are uncertain");
        }
    }
}

#[test]
fn lines_have_samples_in_proportion() {
    let Some((folder, program)) = program("lines", "gcc -O1 -g -fopenmp").filter(|_| is_allowed())
    else {
        return;
    };
    let out = folder.path().join("out");
    let run = record(&program, &[], 2, &out, &["--sampling=1000"]);
    let all = lines(&run);
    let is_loop = |r: &&Value| r["construct"] == "loop" || r["construct"] == "parallel";
    let mut found = [0; 3];
    let of_lines = regions(&all).iter().filter(is_loop);
    let of_lines = of_lines.flat_map(|r| r["lines"].as_array().expect("a list"));
    for line in of_lines {
        match number(line, "line") {
            19 => found[0] += number(line, "samples"),
            22 => found[1] += number(line, "samples"),
            25 => found[2] += number(line, "samples"),
            _ => {}
        }
    }
    let n: u64 = found.iter().sum();
    assert!(n > 300, "{all}");
    for (found, share) in found.into_iter().zip([0.6f64, 0.3, 0.1]) {
        let error = (share * (1.0 - share) / n as f64).sqrt();
        let is = found as f64 / n as f64;
        assert!(
            (is - share).abs() <= 3.0 * error,
            "{is} of {n} instead of {share}"
        );
    }
    // The code outside of constructs has its function.
    let outside = regions(&all).iter().find(|r| r["construct"].is_null());
    let functions = &outside.expect("serial code")["functions"];
    assert_eq!(functions[0]["function"], "before", "{all}");
    // Text: the same lines, for people; a selector chooses among regions.
    let text = |option: &str| {
        let args = ["report".as_ref(), run.as_os_str(), option.as_ref()];
        command::ok::<&OsStr>(args).text()
    };
    let told = text("--lines");
    assert!(
        told.contains("outside of constructs") && told.contains("lines.c:19"),
        "{told}"
    );
    let chosen = text("--lines=lines.c");
    assert!(
        !chosen.contains("outside of constructs") && chosen.contains("lines.c:19"),
        "{chosen}"
    );
    let said = header(&run);
    assert_eq!(said["sampling"]["rate"], 1000);
    assert!(number(&said["sampling"], "samples") >= n);
}

#[test]
fn code_of_libraries_is_told_by_the_line_that_calls_it() {
    if !is_allowed() {
        return;
    }
    // The second has no frame pointers, and inlines.
    for compiler in [
        "gcc -O0 -g -fopenmp",
        "gcc -O2 -g -fopenmp",
        "clang-19 -O2 -g -fopenmp",
    ] {
        let folder = tempfile::tempdir().expect("there is room");
        let out = folder.path().join("stacks");
        if !compile::files(&[source("stacks.c")], &out, &format!("{compiler} -lm")) {
            continue;
        }
        let run = record(
            &out,
            &[],
            2,
            &folder.path().join("out"),
            &["--sampling=4000"], // lines with fewer than ten aren't told
        );
        let all = lines(&run);
        let of_loop = regions(&all).iter().max_by_key(|r| number(r, "work"));
        let of_loop = of_loop.expect("a region");
        let work = number(of_loop, "work");
        assert!(work > 200, "{compiler}: {all}");
        // Nearly all stacks reach the region's begin.
        let whole = number(of_loop, "whole") as f64 / work as f64;
        assert!(whole >= 0.98, "{compiler}: {whole} of the stacks");
        let of_sine = |lines: &[u64]| {
            let all = of_loop["lines"].as_array().expect("a list");
            let called = all.iter().filter(|l| {
                let object = l["callee"]["object"].as_str().unwrap_or_default();
                object.contains("libm") && lines.contains(&number(l, "line"))
            });
            called.map(|l| number(l, "samples")).sum::<u64>()
        };
        let found = [of_sine(&[8]), of_sine(&[13]), of_sine(&[27])];
        let n: u64 = found.iter().sum();
        assert!(n * 2 > work, "{compiler}: {all}");
        // All calls take about as long; how long depends on the argument.
        for (found, share) in found.into_iter().zip([0.6f64, 0.3, 0.1]) {
            let is = found as f64 / n as f64;
            let error = (share * (1.0 - share) / n as f64).sqrt();
            assert!(
                (is - share).abs() <= 0.08 + 3.0 * error,
                "{compiler}: {is} instead of {share}"
            );
        }
        // A function's total has what it calls.
        let functions = of_loop["functions"].as_array().expect("a list");
        let both = functions.iter().find(|f| f["function"] == "both");
        let both = number(both.expect("it calls the others"), "total");
        let expected = (found[0] + found[1]) as f64 / work as f64;
        assert!(
            both as f64 / work as f64 >= expected - 0.02,
            "{compiler}: {all}"
        );
        assert!(both < work, "{compiler}: {all}");
    }
}

#[test]
fn code_that_a_program_makes_has_the_names_that_it_tells() {
    let Some((folder, program)) = program("jit", "gcc -O1 -fopenmp").filter(|_| is_allowed())
    else {
        return;
    };
    let options = ["--sampling=1000"];
    let run = record(&program, &[], 2, &folder.path().join("out"), &options);
    let all = lines(&run);
    let region = regions(&all).iter().max_by_key(|r| number(r, "work"));
    let functions = region.expect("a region")["functions"].as_array();
    let mut functions = functions.expect("a list").iter();
    let made = functions.find(|f| f["function"] == "made while it ran");
    let listing = std::fs::read_dir(&run).expect("the run's folder");
    for file in listing.map(|e| e.expect("a file").path()) {
        if file.extension().is_some_and(|e| e == "samples") {
            let pid = file.file_stem().expect("a number").to_string_lossy();
            let _ = std::fs::remove_file(format!("/tmp/perf-{pid}.map"));
        }
    }
    assert!(
        number(made.expect("it has its name"), "samples") > 100,
        "{all}"
    );
}

#[test]
fn a_program_does_not_notice() {
    let Some((folder, program)) = program("behaviour", "gcc -O1 -fopenmp") else {
        return;
    };
    for how in [
        "state", "status", "signal", "abort", "fork", "exec", "threads",
    ] {
        let outcome = |rate: &str| {
            let out = folder.path().join(format!("{how}-{rate}"));
            let mut ours = command::with_threads(2);
            ours.args(["record", "-q", "--events", "none", "--sampling", rate, "-o"]);
            ours.arg(out).arg("--").arg(&program).arg(how);
            let (status, text, _) = process::run(&mut ours).outcome();
            (status, text)
        };
        let (off, on) = (outcome("off"), outcome("1000"));
        assert!(on.1.contains("sum 4950"), "{how}: {on:?}");
        assert_eq!(off, on, "{how}");
    }
}

#[test]
fn records_are_the_same_with_and_without() {
    let Some((folder, program)) = tasks("gcc -O1 -fopenmp") else {
        return;
    };
    let labels = |rate: &str| {
        let option = format!("--sampling={rate}");
        let out = folder.path().join(rate);
        let run = record(&program, &["800", "10"], 2, &out, &[&option]);
        assert_eq!(header(&run)["sampling"].is_null(), rate == "off");
        table::export(&run).len()
    };
    assert_eq!(labels("off"), labels("1000"));
}

#[test]
fn where_it_is_forbidden_a_run_is_as_without() {
    let folder = tempfile::tempdir().expect("there is room");
    let refuse = folder.path().join("refuse");
    let file = repository().join("tests/sources/refuse.c");
    if !tools::has("gcc") || !compile::files(&[file], &refuse, "gcc -O1") {
        return;
    }
    let program = repository().join("fixtures/prebuilt/knapsack-gcc");
    let run = |args: &[&OsStr]| {
        let ours = command::with_threads(2);
        let mut boxed = Command::new(&refuse);
        boxed.args(["1", "298", "--"]).arg(ours.get_program()); // perf_event_open(2): EPERM
        for (key, value) in ours.get_envs() {
            match value {
                Some(value) => boxed.env(key, value),
                None => boxed.env_remove(key),
            };
        }
        process::run(boxed.args(args))
    };
    let out = folder.path().join("out");
    let words = ["record", "--events", "none", "-o"].map(OsStr::new);
    let rest = [out.as_os_str(), OsStr::new("--"), program.as_os_str()];
    run(&[&words[..], &rest].concat()).ok("record");
    let recorded = table::runs(&out).pop().expect("a run was recorded");
    let header = header(&recorded);
    let reason = header["sampling"]["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("EPERM") && reason.contains("seccomp"),
        "{reason}"
    );
    assert_eq!(table::export(&recorded).len(), 510);
    let args = [
        OsStr::new("report"),
        recorded.as_os_str(),
        OsStr::new("--lines"),
    ];
    let refused = process::run(command::with_threads(2).args(args));
    assert_eq!(refused.status, 1);
    let said = refused.errors();
    assert!(
        said.contains("there are no samples") && said.contains("EPERM"),
        "{said}"
    );
    let doctor = run(&["doctor", "--format", "json"].map(OsStr::new));
    let doctor: Value = serde_json::from_slice(&doctor.stdout).expect("JSON was asked for");
    let checks = doctor["checks"].as_array().expect("a list");
    let check = checks
        .iter()
        .find(|c| c["name"] == "samples")
        .expect("it is looked at");
    assert_eq!(check["state"], "missing");
    let remedy = check["remedy"].as_str().expect("a remedy");
    assert!(remedy.contains("--cap-add PERFMON"), "{remedy}");
}

#[test]
fn damaged_samples_are_told() {
    let Some((folder, program)) = program("lines", "gcc -O1 -g -fopenmp").filter(|_| is_allowed())
    else {
        return;
    };
    let run = record(&program, &[], 2, &folder.path().join("out"), &[]);
    let is_samples = |p: &PathBuf| p.extension().is_some_and(|e| e == "samples");
    let listing = std::fs::read_dir(&run).expect("the run's folder");
    let mut files = listing.map(|e| e.expect("a file").path());
    let file = files.find(is_samples).expect("samples");
    let bytes = std::fs::read(&file).expect("samples");
    let refused = |bytes: &[u8]| {
        std::fs::write(&file, bytes).expect("there is room");
        let args = [OsStr::new("report"), run.as_os_str(), OsStr::new("--lines")];
        let output = process::run(command::with_threads(2).args(args));
        assert_eq!((output.status, output.errors().lines().count()), (1, 1));
        output.errors()
    };
    let said = refused(&bytes[..bytes.len() - 4]);
    assert!(said.contains("malformed record at byte"), "{said}");
    let said = refused(&bytes[..10]);
    assert!(said.contains("not a file of samples"), "{said}");
    let mut other = bytes.clone();
    other[8] = 99;
    assert!(refused(&other).contains("version 99"));
    // The report itself needs no samples.
    command::report(&run);
}

#[test]
fn where_samples_would_cost_too_much_they_end() {
    let Some((folder, program)) = program("switches", "gcc -O1 -fopenmp").filter(|_| is_allowed())
    else {
        return;
    };
    // A busy machine may have fewer of them than would cost too much: the program says how many there were.
    for (how, enough) in [("switches", 80_000), ("threads", 8_000)] {
        let out = folder.path().join(format!("out-{how}"));
        let mut ours = command::with_threads(2);
        ours.args(["record", "-q", "--events", "none", "-o"])
            .arg(&out);
        ours.arg("--").arg(&program).arg(how);
        let said = process::run(&mut ours).ok("record").text();
        let rounds: u64 = said.trim().parse().expect("a number");
        let run = table::runs(&out).pop().expect("a run was recorded");
        let sampling = &header(&run)["sampling"];
        if rounds >= enough {
            assert_eq!(sampling["closed"]["because"], how, "{rounds}: {sampling}");
        }
        assert!(number(sampling, "samples") < 2 * 1000 * 4, "{sampling}");
    }
}
