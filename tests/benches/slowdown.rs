//! What patching and recording cost: `cargo bench -p ompfuse-tests [-- FIXTURE...]`.
//!
//! Fair pairs: original, patched (not recording) and recorded runs alternate, so that what else happens on the machine
//! hits all alike; the ratio is the median of the pairs' ratios, not the ratio of two medians. Waiting is passive and
//! the team has two threads. Times are whole processes; a recorded one is timed by ompfuse, which started it.
//! Environment: `OMPFUSE_BENCH_PAIRS` (default 9).

use ompfuse_tests::fixture::{Build, Fixture, names};
use ompfuse_tests::{process, table};
use std::path::Path;
use std::process::Command;

const THREADS: usize = 2;

fn main() {
    // Cargo passes `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let pairs = std::env::var("OMPFUSE_BENCH_PAIRS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(9);
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);

    println!(
        "{THREADS} threads, {pairs} alternating runs each, times in ms, ratios to the original"
    );
    println!(
        "{:<20} {:<6} {:>9} {:>9} {:>9} {:>8} {:>9} {:>9}",
        "fixture", "by", "original", "patched", "recorded", "patched", "recorded", "XUs"
    );
    for name in names().iter().filter(|n| is_wanted(n)) {
        let fixture = Fixture::open(name);
        let Some(size) = fixture.bench_size() else {
            continue;
        };
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| fixture.ordinary_builds(c))
        {
            println!("{}", measure(&build, size, pairs));
        }
    }
    if is_wanted("probecost") {
        probe_cost(pairs.min(3));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds of one run.
fn time(program: &Path, size: &str) -> f64 {
    let output = process::run(process::clean(&mut Command::new(program), THREADS).arg(size))
        .ok("a benchmark");
    output.duration.as_secs_f64() * 1e3
}

/// Milliseconds of one recorded run, as ompfuse measured them, and its number of XUs.
fn time_recorded(program: &Path, size: &str, count: bool) -> (f64, usize) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    table::record(program, &[size], THREADS, folder.path(), &table::ONE_EVENT).ok("a recording");
    let run = table::runs(folder.path())
        .pop()
        .expect("one run was recorded");
    let header = std::fs::read_to_string(run.join("run.json")).expect("a run has a header");
    let header: serde_json::Value = serde_json::from_str(&header).expect("a run's header is JSON");
    let seconds = header["duration_s"].as_f64().expect("a run has a duration");
    (
        seconds * 1e3,
        if count { table::export(&run).len() } else { 0 },
    )
}

/// A line of the table.
fn measure(build: &Build, size: &str, pairs: usize) -> String {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    time(&build.path, size);
    let (_, xus) = time_recorded(&patched, size, true);
    let runs: Vec<[f64; 3]> = (0..pairs)
        .map(|_| {
            [
                time(&build.path, size),
                time(&patched, size),
                time_recorded(&patched, size, false).0,
            ]
        })
        .collect();
    let column = |of: &dyn Fn(&[f64; 3]) -> f64| median(runs.iter().map(of).collect());
    let dash = if build.variant.is_empty() { "" } else { "-" };
    format!(
        "{:<20} {:<6} {:>9.1} {:>9.1} {:>9.1} {:>8.3} {:>9.3} {:>9}",
        format!("{}{dash}{}", build.fixture.name, build.variant),
        build.compiler,
        column(&|r| r[0]),
        column(&|r| r[1]),
        column(&|r| r[2]),
        column(&|r| r[1] / r[0]),
        column(&|r| r[2] / r[0]),
        xus
    )
}

/// Nanoseconds per construct, as `fixtures/probecost` measures them itself.
fn probe_cost(runs: usize) {
    let fixture = Fixture::open("probecost");
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| fixture.ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        let alone = |program: &Path| {
            let output = process::run(process::clean(&mut Command::new(program), THREADS));
            output.ok("probecost").text()
        };
        let recorded = || {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            table::record(&patched, &[], THREADS, folder.path(), &table::ONE_EVENT)
                .ok("probecost")
                .text()
        };
        let mut names: Vec<String> = Vec::new();
        let mut values: Vec<[Vec<f64>; 3]> = Vec::new();
        for _ in 0..runs {
            for (at, text) in [alone(&build.path), alone(&patched), recorded()]
                .iter()
                .enumerate()
            {
                for (name, ns) in text.lines().filter_map(|l| l.rsplit_once(' ')) {
                    let Ok(ns) = ns.parse() else { continue };
                    let row = names.iter().position(|n| n == name).unwrap_or_else(|| {
                        names.push(name.to_owned());
                        values.push(Default::default());
                        names.len() - 1
                    });
                    values[row][at].push(ns);
                }
            }
        }
        println!(
            "\nns per construct, {build}\n{:<28} {:>9} {:>9} {:>9}",
            "", "original", "patched", "recorded"
        );
        for (name, [original, patched, recorded]) in names.iter().zip(values) {
            let [a, b, c] = [original, patched, recorded].map(median);
            println!("{name:<28} {a:>9.1} {b:>9.1} {c:>9.1}");
        }
    }
}
