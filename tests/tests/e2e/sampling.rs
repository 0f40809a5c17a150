//! One in N is recorded: the same ones in every run, with the labels that they have when all are; the rest is counted.

use ompfuse_tests::fixture::{Build, Fixture};
use ompfuse_tests::{command, few, has, process, schema, table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A recording with these options: the run, and what the report says.
fn record(patched: &Path, threads: usize, out: &Path, options: &[&str]) -> (PathBuf, Value) {
    let flags: Vec<&str> = table::ONE_EVENT.iter().chain(options).copied().collect();
    table::record(patched, &[], threads, out, &flags).ok(&format!("{options:?}"));
    reported(out)
}

/// The last run of a recording, and what the report says of it.
fn reported(out: &Path) -> (PathBuf, Value) {
    let run = table::runs(out).pop().expect("a run was recorded");
    let report = schema::checked(&run);
    (run, report)
}

/// XUs on record, and executions, by a region's construct; and the number of tasks that are said to be executed.
fn totals(report: &Value) -> (BTreeMap<String, [u64; 2]>, u64) {
    let mut totals: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    let mut executed = 0;
    for region in report["regions"].as_array().expect("a list of regions") {
        let name = region["construct"].as_str().expect("a kind").to_owned();
        let number = |key: &str| region[key].as_u64().expect("a number");
        let total = totals.entry(name).or_default();
        total[0] += number("xus");
        total[1] += number("executions");
        for part in region["in_part"].as_array().into_iter().flatten() {
            if part["kind"] == "task" {
                assert_eq!(part["recorded"], region["xus"], "{region}");
                executed += part["executed"].as_u64().expect("a number");
            }
        }
    }
    (totals, executed)
}

fn builds(name: &str) -> Vec<Build> {
    let fixture = Fixture::open(name);
    let compilers = ["gcc", "clang"].iter();
    compilers.flat_map(|c| fixture.ordinary_builds(c)).collect()
}

#[test]
fn samples_are_the_same_in_every_run() {
    for (name, tasks) in [("knapsack", true), ("loops", false)] {
        for build in few(&builds(name), 2) {
            let folder = tempfile::tempdir().expect("there is room for a program");
            let patched = table::patch(&build, folder.path(), &[]);
            let run = |threads, at: &str, options: &[&str]| {
                let (run, report) = record(&patched, threads, &folder.path().join(at), options);
                for account in report["accounting"].as_array().expect("a list of threads") {
                    assert_ne!(
                        account["balanced"],
                        Value::Bool(false),
                        "{build}: {account}"
                    );
                }
                (table::export(&run), report)
            };
            let (all, full) = run(2, "all", &[]);
            let (one, report) = run(2, "one", &["--units", "every=8"]);
            let (two, _) = run(2, "two", &["--units", "every=8"]);
            let labels = table::labels(&one);
            assert_eq!(labels, table::labels(&two), "{build}: two runs");
            assert!(
                !one.is_empty() && one.len() < all.len() / 2,
                "{build}: {} of {}",
                one.len(),
                all.len()
            );
            let whole = table::labels(&all);
            let is_strange = |l: &&String| whole.binary_search(l).is_err();
            let strange: Vec<_> = labels.iter().filter(is_strange).collect();
            assert!(strange.is_empty(), "{build}: {strange:?}");
            // What was executed is told exactly.
            let ((full, _), (part, executed)) = (totals(&full), totals(&report));
            for (construct, [_, executions]) in &full {
                assert_eq!(part[construct][1], *executions, "{build}: {construct}");
            }
            if tasks {
                assert_eq!(executed, full["task"][0], "{build}");
                let (four, _) = run(4, "four", &["--units", "every=8"]);
                assert_eq!(
                    labels,
                    table::labels(&four),
                    "{build}: another number of threads"
                );
            }
        }
    }
}

/// Tasks that do nothing but create one that takes a while.
const NESTED: &str = "
    #include <stdio.h>
    #include <time.h>
    static long now(void) {
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return t.tv_sec * 1000000000L + t.tv_nsec;
    }
    int main(void) {
        long sum = 0;
        #pragma omp parallel
        #pragma omp single
        for (int i = 0; i < 16; i++) {
            #pragma omp task firstprivate(i) shared(sum)
            {
                #pragma omp task firstprivate(i) shared(sum)
                {
                    long end = now() + 4000000;
                    while (now() < end) ;
                    #pragma omp critical
                    sum += i;
                }
            }
        }
        printf(\"%ld\\n\", sum);
        return 0;
    }";

/// What is short is counted, whatever it has inside is where it always is.
#[test]
fn what_is_short_is_left_out_and_its_children_are_not() {
    for compiler in ["gcc", "clang-19"] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let (source, program) = (folder.path().join("nested.c"), folder.path().join("nested"));
        std::fs::write(&source, NESTED).expect("a file can be written");
        if !has(compiler) {
            continue;
        }
        let mut compile = Command::new(compiler);
        compile
            .args(["-O2", "-g", "-fopenmp"])
            .arg(&source)
            .arg("-o");
        process::run(compile.arg(&program)).ok("the compiler");
        let labels = |report: &Path, depth: usize| -> Vec<String> {
            let mut labels = table::labels(&table::export(report));
            labels.retain(|l| l.split('.').count() == depth);
            labels
        };
        let (all, _) = record(&program, 2, &folder.path().join("all"), &[]);
        let (run, report) = record(
            &program,
            2,
            &folder.path().join("long"),
            &["--units", "longer=3ms"],
        );
        // 0, (rank, parallel), (rank, single), (rank, task), (rank, child)
        assert_eq!(labels(&all, 7).len(), 16, "{compiler}");
        assert_eq!(labels(&run, 9), labels(&all, 9), "{compiler}");
        assert_eq!(labels(&run, 9).len(), 16, "{compiler}");
        // Whoever was interrupted is long.
        assert!(labels(&run, 7).len() < 16, "{compiler}: {report}");
        for xu in table::export(&run) {
            assert!(xu.number("own_ns") >= 2_990_000, "{compiler}: {xu:?}");
        }
        assert_eq!(totals(&report).0["task"][1], 32, "{compiler}");
        check_sums(&report, compiler);
        let regions = report["regions"].as_array().expect("a list of regions");
        let parts = regions.iter().filter_map(|r| r["in_part"].as_array());
        for part in parts.flatten() {
            assert_eq!(part["shorter_than_s"], 3e-3, "{compiler}: {part}");
            assert_eq!(part["one_in"], 1, "{compiler}: {part}");
        }
        let text = command::ok([Path::new("report"), &run]).text();
        assert!(text.contains("none shorter than 3.00 ms"), "{text}");
    }
}

/// All or nothing: what no task reaches, and what all do.
#[test]
fn what_is_left_out_is_exact() {
    for build in builds("probecost") {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let patched = table::patch(&build, folder.path(), &[]);
        for (least, is_all) in [("1000s", false), ("1ns", true)] {
            let out = folder.path().join(least);
            let longer = format!("longer={least}");
            let flags = [&table::ONE_EVENT[..], &["--units", &longer]].concat();
            let wanted = fib(&patched, &out, &flags, &build.to_string());
            let (_, report) = reported(&out);
            let [xus, executions] = totals(&report).0["task"];
            assert_eq!(executions, wanted, "{build} {least}");
            assert_eq!(xus, if is_all { wanted } else { 0 }, "{build} {least}");
            check_sums(&report, &build.to_string());
        }
    }
}

/// Records a fib without cut-off, with two threads; returns how many tasks it says it has.
fn fib(patched: &Path, out: &Path, flags: &[&str], what: &str) -> u64 {
    let output = table::record(patched, &["1600", "fib-task", "12"], 2, out, flags);
    let text = output.ok(what).text();
    let wanted = text.lines().find_map(|l| l.strip_prefix("fib-tasks "));
    wanted
        .expect("the program says so")
        .parse()
        .expect("a number")
}

/// The threads' times are all there, in records or beside them.
fn check_sums(report: &Value, what: &str) {
    for account in report["accounting"].as_array().expect("a list of threads") {
        assert_eq!(account["balanced"], Value::Bool(true), "{what}: {account}");
    }
}

/// A fib without cut-off, of which the program says how many tasks it has.
#[test]
fn a_throttle_says_how_many_there_were() {
    for build in builds("probecost") {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let patched = table::patch(&build, folder.path(), &[]);
        let out = folder.path().join("runs");
        let flags: Vec<&str> = table::ONE_EVENT
            .into_iter()
            .chain(["--units", "cost=5"])
            .collect();
        // The event costs a system call per boundary, which is longer than such a task.
        let wanted = fib(&patched, &out, &flags, &build.to_string());
        let (run, report) = reported(&out);
        let (part, executed) = totals(&report);
        assert_eq!((executed, part["task"][1]), (wanted, wanted), "{build}");
        assert!(part["task"][0] < wanted / 2, "{build}: {part:?}");
        let regions = report["regions"].as_array().expect("a list of regions");
        let parts = regions.iter().filter_map(|r| r["in_part"].as_array());
        for tasks in parts.flatten().filter(|p| p["kind"] == "task") {
            assert_eq!(tasks["throttled"], Value::Bool(true), "{build}: {tasks}");
            assert!(tasks["one_in"].as_u64() > Some(1), "{build}: {tasks}");
        }
        let text = command::ok([Path::new("report"), &run]).text();
        assert!(
            text.contains("fewer where probes cost too much"),
            "{build}:\n{text}"
        );
    }
}
