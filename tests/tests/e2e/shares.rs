//! A report's shares: whatever is left out of a recording, none is below 0, and all of them add up.

use ompfuse_tests::{command, compile, each, repository, table};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A program of `tests/sources` by each compiler, in a folder of its own.
pub(crate) fn programs(name: &'static str) -> impl Iterator<Item = (&'static str, TempDir)> {
    each(["gcc", "clang-19"], move |compiler: &&str| {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let include = repository().join("include");
        let command = format!("{compiler} -O2 -g -fopenmp -I{}", include.display());
        let source = repository().join(format!("tests/sources/{name}.c"));
        compile::files(&[source], &folder.path().join(name), &command).then_some(folder)
    })
}

fn report(input: &Path) -> Value {
    command::report(input)
}

/// The last run's report.
pub(crate) fn reported(out: &Path) -> Value {
    report(&table::runs(out).pop().expect("a run was recorded"))
}

pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

/// Seconds that rounding may make of sums over many intervals.
const ROUNDED: f64 = 1e-6;

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= ROUNDED + 1e-9 * b.abs()
}

const CLASSES: [&str; 4] = [
    "synchronization_s",
    "imbalance_s",
    "limited_parallelism_s",
    "management_s",
];

/// Every share is one, and they add up.
fn check(report: &Value, case: &str) {
    let list = |key: &str| report[key].as_array().expect("a list").clone();
    let mut all = 0.0;
    for region in list("regions") {
        let time = number(&region["time_s"]);
        let parts = ["work_s", "wait_s", "runtime_s"].map(|key| number(&region[key]));
        assert!(parts.iter().all(|&p| p >= 0.0), "{case}: {region}");
        assert!(equal(parts.iter().sum(), time), "{case}: {region}");
        let share = number(&region["share"]);
        assert!((0.0..=1.0 + 1e-9).contains(&share), "{case}: {region}");
        for thread in region["per_thread"].as_array().expect("a list") {
            for key in ["work_s", "wait_s", "runtime_s"] {
                assert!(number(&thread[key]) >= 0.0, "{case}: {region}");
            }
        }
        all += time;
    }
    for key in ["program_s", "idle_s", "unknown_s"] {
        let time = number(&report["serial"][key]);
        assert!(time >= 0.0, "{case}: {key} {time}");
        all += time;
    }
    let threads = number(&report["thread_time_s"]);
    assert!(equal(all, threads), "{case}: {all} of {threads} s");
    for overhead in list("overheads") {
        let total = number(&overhead["total_s"]);
        let known = CLASSES.iter().chain(&["work_s"]);
        let known = known.filter_map(|&key| overhead[key].as_f64());
        let parts: Vec<f64> = known.chain([number(&overhead["unknown_s"])]).collect();
        assert!(parts.iter().all(|&p| p >= 0.0), "{case}: {overhead}");
        assert!(equal(parts.iter().sum(), total), "{case}: {overhead}");
        // Nobody has to guess why something is missing.
        let told = !overhead["incomplete"].is_null();
        assert!(overhead["work_s"].is_number() || told, "{case}: {overhead}");
        if let Some(share) = overhead["of_run"].as_f64() {
            assert!((0.0..=1.0).contains(&share), "{case}: {overhead}");
        }
    }
    for share in [&report["coverage"], &report["probes"]["share"]] {
        assert!((0.0..=1.0).contains(&number(share)), "{case}: {share}");
    }
}

/// Numbers that look random, the same ones every time.
struct Draw(u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// What may be left out; several of them at once, too.
const OPTIONS: [&[&str]; 6] = [
    &[],
    &["--units", "every=2"],
    &["--units", "every=16"],
    &["--units", "cost=1"],
    &["--units", "longer=2us"],
    &["--units", "every=3,longer=1us"],
];

/// Programs per compiler.
const PROGRAMS: u64 = 12;

#[test]
fn shares_of_random_programs_add_up_whatever_is_left_out() {
    for (compiler, folder) in programs("steps") {
        let program = folder.path().join("steps");
        let mut known = 0;
        for number in 1..=PROGRAMS {
            let mut draw = Draw(number);
            let steps = 1 + draw.below(6);
            let steps: String = (0..steps)
                .map(|_| {
                    draw.of(&[
                        "t", "q", "s", "l", "d", "x", "n", "c", "m", "o", "g", "e", "p", "r",
                    ])
                })
                .collect();
            // Something is on record in any case.
            let steps = format!("t{steps}");
            let (threads, options) = (1 + draw.below(4), OPTIONS[draw.below(OPTIONS.len())]);
            let case = format!("{compiler}: {steps} with {threads} threads, {options:?}");
            let out = folder.path().join(number.to_string());
            let flags = [&["--events", "none"], options].concat();
            table::record(&program, &[&steps], threads, &out, &flags).ok(&case);
            let report = reported(&out);
            check(&report, &case);
            let overheads = report["overheads"].as_array().expect("a list");
            known += overheads.iter().filter(|o| o["work_s"].is_number()).count();
            let text = command::ok([Path::new("report"), &table::runs(&out)[0]]).text();
            let is_below = |word: &str| word.starts_with('-') && word.ends_with('%');
            assert!(!text.split_whitespace().any(is_below), "{case}:\n{text}");
        }
        assert!(known > 0, "{compiler}: no region's work is known");
    }
}

/// Tasks that were left out where threads wait at a region's end are neither waiting nor work.
#[test]
fn what_is_left_out_at_a_regions_end_is_no_waiting() {
    for (compiler, folder) in programs("steps") {
        let program = folder.path().join("steps");
        // One thread never waits for another: what takes time at the region's end is its own tasks.
        for options in [&["--units", "every=1000000"][..], &["--units", "longer=1s"]] {
            let flags = [&["--events", "none"], options].concat();
            // A thread that lost its processor there, in a run of some ms, waited for that. What is told as waiting is so in every run.
            let is_told = |run: usize| {
                let out = folder.path().join(format!("{}-{run}", options[0]));
                table::record(&program, &["llllllll"], 1, &out, &flags).ok(compiler);
                let report = reported(&out);
                check(&report, compiler);
                let overhead = &report["overheads"][0];
                let in_part = report["regions"].as_array().expect("a list").iter();
                let left_out: f64 = in_part
                    .flat_map(|r| r["in_part"].as_array().into_iter().flatten())
                    .map(|p| number(&p["left_out_s"]))
                    .sum();
                let waited = overhead["imbalance_s"].as_f64().unwrap_or(0.0);
                println!("{compiler} {options:?}: {left_out} s were left out, {overhead}");
                assert!(overhead["work_s"].is_number(), "{overhead}");
                waited >= left_out
            };
            assert!(!(0..5).all(is_told), "{compiler} {options:?}");
        }
    }
}

/// The same wait has the same name, however the block is written.
#[test]
fn who_waits_behind_one_threads_block_lacks_parallelism() {
    // What most of the time of two threads out of three is.
    let cases = [
        ("master", "limited_parallelism_s"),
        ("single", "limited_parallelism_s"),
        ("nowait", "limited_parallelism_s"),
        ("end", "limited_parallelism_s"),
        ("worked", "synchronization_s"),
        ("loop", "imbalance_s"),
    ];
    for (compiler, folder) in programs("idle") {
        let program = folder.path().join("idle");
        for (how, class) in cases {
            let out = folder.path().join(format!("{how}-out"));
            table::record(&program, &[how], 3, &out, &["--events", "none"]).ok(how);
            let report = reported(&out);
            check(&report, how);
            let overhead = &report["overheads"][0];
            let of_class = |key: &str| overhead[key].as_f64().unwrap_or(0.0);
            // Two threads wait for a block of 60 ms at least, whatever else goes on.
            assert!(
                of_class(class) > 2.0 * 0.8 * 0.06,
                "{compiler} {how}: {overhead}"
            );
            for other in CLASSES
                .iter()
                .filter(|&&c| c != class && c != "management_s")
            {
                assert!(
                    of_class(other) < of_class(class) / 2.0,
                    "{compiler} {how}: {other} in {overhead}"
                );
            }
        }
    }
}

/// No process computes in parallel for longer than it is there.
#[test]
fn coverage_is_of_the_time_in_which_there_are_processes() {
    for (compiler, folder) in programs("lives") {
        let program = folder.path().join("lives");
        for how in ["daemon", "workers"] {
            let out = folder.path().join(how);
            table::record(&program, &[how], 2, &out, &["--events", "none"]).ok(how);
            let run = table::runs(&out).pop().expect("a run was recorded");
            // A daemon goes on when the command has ended: a run that goes on is not reported.
            let report = patiently(|| {
                let args = [Path::new("report"), &run, Path::new("--format=json")];
                let output = command::run(args);
                let report: Value = serde_json::from_str(&output.text()).ok()?;
                (report["regions"].as_array()?.iter())
                    .any(|r| r["construct"] == "parallel" && number(&r["executions"]) >= 100.0)
                    .then_some(report)
            });
            let case = format!("{compiler} {how}");
            check(&report, &case);
            let coverage = number(&report["coverage"]);
            assert!(coverage > 0.0, "{case}: {coverage}");
            let [life, available] = ["lifetime_s", "available_s"].map(|k| number(&report[k]));
            let parallel = number(&report["parallel_s"]);
            assert!(
                parallel <= life && life <= available,
                "{case}: {parallel} {life} {available}"
            );
            let of_run = &report["overheads"][0]["of_run"];
            assert!(number(of_run) <= 1.0, "{case}: {of_run}");
            if how == "workers" {
                // Three of them at once, of which each is there once.
                let wall = number(&report["overheads"][0]["wall_s"]);
                assert!(wall * 2.0 <= available * 1.01, "{case}: {wall} {available}");
            }
        }
    }
}

/// Asks until there is an answer.
fn patiently<T>(mut ask: impl FnMut() -> Option<T>) -> T {
    for _ in 0..300 {
        if let Some(answer) = ask() {
            return answer;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("there is no answer");
}

/// What the scan doubts is beside the number.
#[test]
fn a_loop_that_may_be_two_is_doubted() {
    for (compiler, folder) in programs("shared_code") {
        let (program, out) = (folder.path().join("shared_code"), folder.path().join("out"));
        let scan = command::ok([Path::new("scan"), &program, Path::new("--format=json")]).text();
        let doubted = scan.contains("two loops may share this code");
        // gcc makes one of them, clang doesn't.
        assert_eq!(doubted, compiler == "gcc", "{compiler}: {scan}");
        table::record(&program, &[], 2, &out, &["--events", "none"]).ok(compiler);
        let report = reported(&out);
        let regions = report["regions"].as_array().expect("a list");
        let loops: Vec<_> = regions
            .iter()
            .filter(|r| r["construct"] == "loop")
            .collect();
        assert_eq!(
            loops.len(),
            if doubted { 1 } else { 2 },
            "{compiler}: {report}"
        );
        assert!(
            loops.iter().all(|l| l["doubt"].is_string() == doubted),
            "{loops:?}"
        );
        let text = command::ok([Path::new("report"), &table::runs(&out)[0]]).text();
        let is_doubted = |l: &str| l.contains("shared_code.c:") && l.contains("%?");
        assert_eq!(text.lines().any(is_doubted), doubted, "{compiler}:\n{text}");
        let told = text.contains("two loops may share this code; if so,");
        assert_eq!(told, doubted, "{compiler}:\n{text}");
    }
}
