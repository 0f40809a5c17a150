//! Why threads have no task to execute, on programs that know it (`tests/sources/few_tasks.c`): the cause, its place, and how much is lost
//! against the program's own clock.

use crate::shares::{number, programs, reported};
use ompfuse_tests::{repository, table};
use serde_json::Value;
use tempfile::TempDir;

/// Threads of each run.
const THREADS: usize = 4;

/// A mode's report, and the seconds that its threads had nothing to do.
fn report(folder: &TempDir, mode: &str) -> (Value, f64) {
    let out = folder.path().join(mode);
    let program = folder.path().join("few_tasks");
    let output = table::record(&program, &[mode], THREADS, &out, &["--events", "none"]);
    let own = output.ok(mode).text();
    (reported(&out), own.trim().parse().expect("seconds"))
}

/// Losses of at least 2 %, largest first. What a busy machine takes is none of the program's.
fn losses(report: &Value) -> Vec<&Value> {
    let all = report["losses"].as_array().expect("a list").iter();
    all.filter(|l| number(&l["share"]) >= 0.02 && l["loss"] != "starvation")
        .collect()
}

fn kinds(report: &Value) -> Vec<&str> {
    let all = losses(report).into_iter();
    all.filter_map(|l| l["cause"]["kind"].as_str()).collect()
}

/// Lines of the source that say that they are a mode's.
fn lines(mode: &str) -> Vec<u64> {
    let path = repository().join("tests/sources/few_tasks.c");
    let source = std::fs::read_to_string(path).expect("the source");
    let mark = format!("/* here: {mode} */");
    let marked = (1..).zip(source.lines()).filter(|(_, l)| l.contains(&mark));
    marked.map(|(line, _)| line).collect()
}

/// The largest loss is of this kind, at the mode's line, and nearly all that the program knows of.
fn check(compiler: &str, folder: &TempDir, mode: &str, kind: &str) -> Value {
    let (report, own_s) = report(folder, mode);
    let what = format!("{compiler} {mode}: {own_s} s; {:#}", report["losses"]);
    let first = *losses(&report).first().expect(&what);
    assert_eq!(first["cause"]["kind"], kind, "{what}");
    let regions = report["regions"].as_array().expect("a list");
    let place = regions.iter().find(|r| r["id"] == first["cause"]["at"]);
    let line = place.and_then(|p| p["source"]["line"].as_u64());
    let near = |of: u64| line.is_some_and(|l| l.abs_diff(of) <= 1);
    assert!(lines(mode).into_iter().any(near), "{line:?}: {what}");
    // Whoever wakes late, or begins late, has lost time, too; threads of libomp sleep.
    let share = number(&first["seconds"]) / own_s;
    assert!((0.4..1.1).contains(&share), "{share}: {what}");
    first["cause"].clone()
}

#[test]
fn who_creates_tasks_may_execute_them_at_once() {
    for (compiler, folder) in programs("few_tasks") {
        let of_all = check(compiler, &folder, "if_clause", "at_once");
        assert!(number(&of_all["parallelism"]) < 1.1, "{compiler}: {of_all}");
        for mode in ["if_tree", "final_tree"] {
            let of_most = check(compiler, &folder, mode, "at_once");
            let busy = number(&of_most["parallelism"]);
            assert!((0.9..2.2).contains(&busy), "{compiler} {mode}: {of_most}");
        }
        // Nothing is lost by it where the others are enough, or where there is no room for more.
        for mode in ["deep_if_tree", "many"] {
            let (report, _) = report(&folder, mode);
            let kinds = kinds(&report);
            assert!(!kinds.contains(&"at_once"), "{compiler} {mode}: {kinds:?}");
        }
    }
}

#[test]
fn several_tasks_before_a_wait_are_not_one_by_one() {
    for (compiler, folder) in programs("few_tasks") {
        for mode in ["pairs", "groups"] {
            let (report, _) = report(&folder, mode);
            let kinds = kinds(&report);
            assert!(
                !kinds.contains(&"one_by_one"),
                "{compiler} {mode}: {kinds:?}"
            );
        }
        // Threads of libomp may sleep while there are tasks.
        if compiler == "gcc" {
            check(compiler, &folder, "pairs", "few_tasks");
        }
        let one = check(compiler, &folder, "one_by_one", "one_by_one");
        // Where the machine is busy, another thread may have been late for one of the 20.
        let count = one["count"].as_u64();
        assert!((Some(18)..=Some(20)).contains(&count), "{compiler}: {one}");
    }
}

#[test]
fn what_orders_tasks_is_one_cause() {
    for (compiler, folder) in programs("few_tasks") {
        let wave = check(compiler, &folder, "wavefront", "dependences");
        assert_eq!(wave["excludes"], false, "{compiler}: {wave}");
        assert_eq!(wave["count"], 48, "{compiler}: {wave}");
        let (report, _) = report(&folder, "wavefront");
        let others = ["waits_for_tasks", "few_tasks", "uneven_tasks", "one_thread"];
        let kinds = kinds(&report);
        let is_other = |kind: &&str| others.contains(kind);
        assert!(!kinds.iter().any(is_other), "{compiler}: {kinds:?}");
        // libgomp executes them in the order of their creation, as if each wrote what the one before has written.
        let alone = check(compiler, &folder, "exclusion", "dependences");
        assert_eq!(alone["excludes"], compiler != "gcc", "{compiler}: {alone}");
    }
}

#[test]
fn an_event_is_waited_for_and_no_task() {
    for (compiler, folder) in programs("few_tasks") {
        let (report, _) = report(&folder, "event");
        let what = format!("{compiler}: {:#}", report["losses"]);
        let losses = losses(&report);
        let first = &losses.first().expect(&what)["cause"];
        assert_eq!(first["kind"], "awaits_event", "{what}");
        assert_eq!(first["count"], 3, "{what}");
    }
}
