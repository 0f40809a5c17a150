//! Times, against a program that measures its own tasks and chunks with its own clock (`fixtures/behaviour/truth.c`). What it measures
//! of a unit lies inside of what is recorded, and all units lie inside of what it measures of its region. So it is on any machine, however
//! busy: times are not compared with each other otherwise.

use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, has, process, repository};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// The scale of the recorded clock is measured too.
const SCALE: f64 = 1.01;

/// What the program measures: nanoseconds by kind (`chunk`, `task`, `child`) and number; `all` of the threads in the region.
type Truth = BTreeMap<(String, u64), f64>;

fn truth(text: &str) -> Truth {
    let line = |line: &str| {
        let mut words = line.split_whitespace();
        let key = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        Some((key, words.next()?.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The program's name for an XU, from its label: ranges by their first iteration, tasks by their rank in the `single`.
fn key(xu: &Xu) -> (String, u64) {
    let parts: Vec<u64> = xu
        .label
        .split('.')
        .map(|p| p.parse().expect("labels are numbers"))
        .collect();
    // 0, (rank, parallel), (rank, single), (rank, task), (rank, child)
    match (xu.construct.as_str(), parts.len()) {
        ("range", n) => ("chunk".to_owned(), parts[n - 1]),
        ("task", 7) => ("task".to_owned(), parts[5]),
        ("task", 9) => ("child".to_owned(), parts[5]),
        _ => panic!("{xu:?}"),
    }
}

#[test]
fn times_are_those_that_the_program_measures() {
    for compiler in ["gcc", "clang-19"] {
        if !has(compiler) {
            continue;
        }
        let folder = tempfile::tempdir().expect("there is room for a program");
        let (original, patched) = (folder.path().join("truth"), folder.path().join("patched"));
        let source = repository().join("fixtures/behaviour/truth.c");
        let mut compile = Command::new(compiler);
        compile.args(["-O2", "-g", "-fopenmp"]).arg(source);
        process::run(compile.arg("-o").arg(&original)).ok("the compiler");
        command::ok([Path::new("patch"), &original, Path::new("-o"), &patched]);
        for threads in [1, 3] {
            let what = format!("{compiler}, {threads} threads");
            let out = folder.path().join(format!("runs-{threads}"));
            // Reading counters would add to the times.
            let flags = ["--events", "none"];
            let output = table::record(&patched, &[], threads, &out, &flags).ok(&what);
            let mut truth = truth(&output.text());
            let all = truth.remove(&("all".to_owned(), threads as u64));
            let all = all.unwrap_or_else(|| panic!("{what}: {output:?}"));
            let run = table::runs(&out).pop().expect("a run was recorded");
            let xus = table::export(&run);
            let is_chunk = |xu: &&Xu| xu.construct == "range";
            let chunks = xus.iter().filter(is_chunk).count();
            // To a single thread libomp gives all of a loop at once, whatever its schedule.
            let undivided = threads == 1 && chunks == 1;
            let chunks = if undivided { 24 } else { chunks };
            assert_eq!((chunks, truth.len()), (24, 72), "{what}");
            let (mut units, mut sum) = (0, 0.0);
            for xu in xus.iter().filter(|xu| !(undivided && is_chunk(xu))) {
                let own = truth[&key(xu)];
                let recorded = xu.number("own_ns") as f64;
                assert!(recorded * SCALE > own - 2e3, "{what}: {own} ns of {xu:?}");
                (units, sum) = (units + 1, sum + recorded);
            }
            assert!(units >= 48, "{what}: {units}");
            // A single thread does nothing but these units: this is tight then.
            assert!(sum < all * SCALE, "{what}: {sum} of {all} ns");
            if threads == 1 {
                tasks_in_a_wait_are_no_waiting(&run, &truth, all, &what);
            }
        }
    }
}

/// One thread executes all tasks inside of `taskwait`, or of the barrier behind it.
fn tasks_in_a_wait_are_no_waiting(run: &Path, truth: &Truth, all: f64, what: &str) {
    let report = command::report(run);
    let regions = report["regions"].as_array().expect("a list of regions");
    let waited: f64 = regions.iter().filter_map(|r| r["wait_s"].as_f64()).sum();
    let units: f64 = truth.values().sum();
    assert!(
        regions.iter().any(|r| r["construct"] == "taskwait"),
        "{what}: {report}"
    );
    // Whatever a thread does not do in its units.
    assert!(
        waited * 1e9 < all * SCALE - units / SCALE,
        "{what}: {waited} s of waiting, {units} of {all} ns in units"
    );
}
