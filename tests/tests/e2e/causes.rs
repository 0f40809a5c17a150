//! Why programs don't scale, on programs that don't for a known reason (`tests/sources/causes.c`), and their work and span.

use crate::shares::{number, programs, reported};
use ompfuse_tests::{command, table};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// A case's report with so many threads.
fn report(folder: &TempDir, case: &str, threads: usize) -> Value {
    let out = folder.path().join(format!("{case}-{threads}"));
    recorded_into(&out, folder, case, threads, &[])
}

fn recorded_into(
    out: &Path,
    folder: &TempDir,
    case: &str,
    threads: usize,
    options: &[&str],
) -> Value {
    let program = folder.path().join("causes");
    let options = [&["--events", "none"], options].concat();
    table::record(&program, &[case], threads, out, &options).ok(case);
    reported(out)
}

/// The losses of a kind with a cause, largest first.
fn losses<'r>(report: &'r Value, loss: &str, cause: &str) -> Vec<&'r Value> {
    let all = report["losses"].as_array().expect("a list").iter();
    all.filter(|l| l["loss"] == loss && l["cause"]["kind"] == cause)
        .collect()
}

/// The largest loss of a kind, whose cause must be this one.
fn largest<'r>(report: &'r Value, loss: &str, cause: &str, what: &str) -> &'r Value {
    let all = report["losses"].as_array().expect("a list").iter();
    let first = all.clone().find(|l| l["loss"] == loss);
    let first = first.unwrap_or_else(|| panic!("{what}: no {loss}: {report:#}"));
    assert_eq!(
        first["cause"]["kind"], cause,
        "{what}: {:#}",
        report["losses"]
    );
    first
}

/// What is predicted. The units compute: where threads had no processor their times tell of the machine, and nothing is told.
fn told<'r>(scaling: &'r Value, compiler: &str) -> &'r [Value] {
    let predicted = scaling["predicted"].as_array().expect("a list");
    let silent = &scaling["silent"];
    assert_eq!(
        predicted.is_empty(),
        silent == "no_processor",
        "{compiler}: {silent}"
    );
    predicted
}

/// The construct at a cause's place: of a combined one the part that the work is in.
fn construct(report: &Value, loss: &Value) -> String {
    let regions = report["regions"].as_array().expect("a list");
    let region = regions.iter().find(|r| r["id"] == loss["cause"]["at"]);
    let region = region.unwrap_or_else(|| panic!("no such place: {loss}"));
    let inner = region["combined_with"].as_str();
    let construct = inner.or(region["construct"].as_str());
    construct.unwrap_or_default().to_owned()
}

#[test]
fn one_long_unit_is_named() {
    for (compiler, folder) in programs("causes") {
        let report_of = report(&folder, "uneven", 4);
        let loss = largest(&report_of, "waiting", "uneven_units", compiler);
        let cause = &loss["cause"];
        assert_eq!(cause["first"], 60, "{compiler}: {loss}");
        assert_eq!(cause["iterations"], 1, "{compiler}: {loss}");
        assert!(number(&cause["times_mean"]) > 3.0, "{compiler}: {loss}");
        assert!(number(&cause["unit_s"]) >= 0.1, "{compiler}: {loss}");
        assert!(
            loss["told"]
                .as_str()
                .is_some_and(|t| t.contains("iteration 60 ")),
            "{compiler}: {loss}"
        );
        assert_eq!(construct(&report_of, loss), "loop", "{compiler}");
        // However many threads there are, the long unit takes its time.
        for p in told(&report_of["scaling"]["regions"][0], compiler) {
            assert!(number(&p["seconds"]) >= 0.1, "{compiler}: {p}");
        }
        let sections = report(&folder, "sections", 4);
        let loss = largest(&sections, "waiting", "uneven_units", compiler);
        assert_eq!(loss["cause"]["first"], 2, "{compiler}: {loss}");
        assert_eq!(loss["cause"]["is_sections"], true, "{compiler}: {loss}");
    }
}

/// The region's `imbalance`: of the loop.
fn imbalance(report: &Value) -> f64 {
    let regions = report["regions"].as_array().expect("a list").iter();
    let mut loops = regions.filter(|r| r["construct"] == "loop" || r["combined_with"] == "loop");
    number(&loops.next().expect("a loop")["spread"]["imbalance"])
}

#[test]
fn a_triangle_is_distributed_badly_and_no_schedule_is_guessed() {
    for (compiler, folder) in programs("causes") {
        let by_static = report(&folder, "static", 4);
        let loss = largest(&by_static, "waiting", "uneven_distribution", compiler);
        let cause = &loss["cause"];
        assert_eq!(cause["schedule"], "static", "{compiler}: {loss}");
        // One range for each thread is all that is on record: how long its iterations take isn't.
        assert!(cause["better"].is_null(), "{compiler}: {loss}");
        assert!(loss["remedy"].is_null(), "{compiler}: {loss}");
        let by_dynamic = report(&folder, "dynamic", 4);
        // The slowest thread's work, in those of the mean.
        let now = 1.0 + imbalance(&by_dynamic);
        let before = 1.0 + imbalance(&by_static);
        assert!(now < before, "{compiler}: {now} {before}");
        let told = losses(&by_dynamic, "waiting", "uneven_distribution");
        let share = |losses: &[&Value]| losses.iter().map(|l| number(&l["share"])).sum::<f64>();
        assert!(
            share(&told) < number(&loss["share"]),
            "{compiler}: {:#}",
            by_dynamic["losses"]
        );
    }
}

/// How long the iterations of a range take isn't on record: a triangle's halves aren't equal.
#[test]
fn a_range_that_would_be_divided_predicts_nothing() {
    for (compiler, folder) in programs("causes") {
        let of = |threads| report(&folder, "static", threads)["scaling"].clone();
        let one = of(1);
        assert_eq!(
            one["predicted"],
            serde_json::json!([]),
            "{compiler}: {one:#}"
        );
        let silent = one["silent"].as_str().expect("a reason");
        assert!(
            ["uneven", "no_processor"].contains(&silent),
            "{compiler}: {one:#}"
        );
        let two = of(2);
        let more = list_of(&two["predicted"], "threads");
        let is_told = more == [1.0, 2.0] && two["silent_above"] == "uneven";
        assert!(
            is_told || more.is_empty() && !two["silent"].is_null(),
            "{compiler}: {two:#}"
        );
    }
}

fn list_of(list: &Value, key: &str) -> Vec<f64> {
    let list = list.as_array().expect("a list").iter();
    list.map(|one| number(&one[key])).collect()
}

#[test]
fn fewer_units_than_threads_are_counted() {
    for (compiler, folder) in programs("causes") {
        let report = report(&folder, "few", 4);
        let loss = largest(&report, "waiting", "few_units", compiler);
        assert_eq!(loss["cause"]["units"], 3.0, "{compiler}: {loss}");
        assert_eq!(loss["cause"]["threads"], 4, "{compiler}: {loss}");
    }
}

/// Where one thread never waits, all others wait for it, each time. Of these cases each region is executed once. On a busy machine the
/// last thread may wait for one that began late: then the cause isn't known.
#[test]
fn sums_tell_what_the_last_thread_did() {
    let (mut known, mut all) = (0, 0);
    for (compiler, folder) in programs("causes") {
        for (case, cause) in [
            ("uneven", "uneven_units"),
            ("static", "uneven_distribution"),
            ("few", "few_units"),
            ("sections", "uneven_units"),
            ("single", "one_thread"),
        ] {
            let out = folder.path().join(format!("sums-{case}"));
            let report = recorded_into(&out, &folder, case, 4, &["--units=sums"]);
            let losses = report["losses"].as_array().expect("a list");
            let told = losses.iter().find(|l| l["loss"] == "waiting");
            let told = told.unwrap_or_else(|| panic!("{case}, {compiler}: {losses:#?}"));
            let kind = &told["cause"]["kind"];
            assert!(
                kind == cause || kind == "unknown",
                "{case}, {compiler}: {losses:#?}"
            );
            known += usize::from(kind == cause);
            all += 1;
        }
    }
    assert!(2 * known >= all, "{known} of {all} are known");
}

#[test]
fn who_holds_what_others_wait_for_is_told() {
    for (compiler, folder) in programs("causes") {
        let critical = report(&folder, "critical", 4);
        let loss = largest(&critical, "exclusion", "held", compiler);
        assert_eq!(construct(&critical, loss), "critical", "{compiler}");
        assert_eq!(loss["cause"]["entries"], 64, "{compiler}: {loss}");
        // How long handing it over takes beside depends on the machine.
        let wall = number(&critical["overheads"][0]["wall_s"]);
        let of_wall = number(&loss["cause"]["of_wall"]);
        let held = number(&loss["cause"]["held_s"]);
        assert!((of_wall * wall - held).abs() < 1e-6, "{compiler}: {loss}");
        assert!(
            number(&loss["cause"]["held_s"]) >= 0.064,
            "{compiler}: {loss}"
        );
        // One at a time, however many there are.
        for p in critical["scaling"]["regions"][0]["predicted"]
            .as_array()
            .expect("a list")
        {
            assert!(number(&p["seconds"]) >= 0.06, "{compiler}: {p}");
        }
        let single = report(&folder, "single", 4);
        let loss = largest(&single, "waiting", "one_thread", compiler);
        assert_eq!(construct(&single, loss), "single", "{compiler}");
    }
}

#[test]
fn tiny_tasks_cost_their_creation() {
    for (compiler, folder) in programs("causes") {
        let report = report(&folder, "tiny", 2);
        let loss = largest(&report, "creation", "costly_tasks", compiler);
        let cause = &loss["cause"];
        assert_eq!(cause["count"], 30000, "{compiler}: {loss}");
        // What is created does nothing.
        let (create, task) = (number(&cause["create_s"]), number(&cause["task_s"]));
        assert!(create > 0.0 && task < 10.0 * create, "{compiler}: {loss}");
        assert!(loss["remedy"].is_string(), "{compiler}: {loss}");
    }
}

#[test]
fn a_serial_part_limits_the_whole() {
    for (compiler, folder) in programs("causes") {
        let report = report(&folder, "serial", 4);
        let loss = largest(&report, "serial", "serial_part", compiler);
        assert!(
            number(&loss["cause"]["wall_s"]) >= 0.06,
            "{compiler}: {loss}"
        );
        let of_work = number(&loss["cause"]["of_work"]);
        assert!((0.3..=1.0).contains(&of_work), "{compiler}: {loss}");
        // Amdahl: no prediction is faster than the serial part.
        for p in told(&report["scaling"], compiler) {
            assert!(number(&p["speedup"]) <= 1.001 / of_work, "{compiler}: {p}");
        }
    }
}

/// Work divided by span of a case's only region.
fn parallelism(folder: &TempDir, case: &str) -> f64 {
    let report = report(folder, case, 2);
    let regions = report["scaling"]["regions"].as_array().expect("a list");
    assert_eq!(regions.len(), 1, "{case}");
    number(&regions[0]["parallelism"])
}

#[test]
fn work_and_span_of_tasks_are_those_of_their_tree() {
    for (compiler, folder) in programs("causes") {
        // 32 tasks one after the other.
        let chain = parallelism(&folder, "chain");
        assert!((0.9..1.2).contains(&chain), "{compiler}: {chain}");
        // 64 at once: one that was interrupted makes it less.
        let flat = parallelism(&folder, "flat");
        assert!((2.5..=65.0).contains(&flat), "{compiler}: {flat}");
        // 63 nodes, six of them one after the other: 10.5.
        let tree = parallelism(&folder, "tree");
        assert!((1.5..=10.6).contains(&tree), "{compiler}: {tree}");
    }
}

#[test]
fn the_first_lines_say_it() {
    for (compiler, folder) in programs("causes") {
        let out = folder.path().join("text");
        let program = folder.path().join("causes");
        table::record(&program, &["few"], 4, &out, &["--events", "none"]).ok(compiler);
        let text = command::ok([Path::new("report"), &table::runs(&out)[0]]).text();
        let first = text.lines().next().unwrap_or_default();
        assert!(first.contains("of 4 threads' time is lost"), "{text}");
        let begin: String = text.lines().take(12).collect::<Vec<_>>().join(" ");
        assert!(begin.contains("1. "), "{text}");
    }
}
