//! Data for evaluating combinations: complete runs of some programs, all events of the simulated PMU at once.
//!
//! `cargo bench -p ompfuse-tests --bench simulated -- FOLDER [RUNS [PROGRAM...]]` writes `FOLDER/PROGRAM/run-01.parquet`, ... (12
//! runs without a number), and says how much slower than alone the programs ran, and how much the events differ between
//! runs, label by label. Few events at a time are emulated by leaving columns out; what was left out is the truth.

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::table::{self, Xu};
use ompfuse_tests::{command, process};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the data set, fixture, variant, size.
const PROGRAMS: [(&str, &str, &str, &str); 7] = [
    ("knapsack", "knapsack", "", "26"),
    ("nqueens", "nqueens", "", "10"),
    ("cholesky", "cholesky", "depend", "20"),
    ("cg-static", "cg", "static", "40"),
    ("cg-dynamic", "cg", "dynamic", "40"),
    ("mg-static", "mg", "static", "7"),
    ("mg-dynamic", "mg", "dynamic", "7"),
];
const THREADS: usize = 4;
const RUNS: usize = 12;

fn main() {
    // Cargo passes `--bench`.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let Some(folder) = args.first() else {
        println!(
            "no folder given: cargo bench -p ompfuse-tests --bench simulated -- FOLDER [RUNS [PROGRAM...]]"
        );
        return;
    };
    // Cargo starts benchmarks in their package's folder.
    let folder = ompfuse_tests::repository().join(folder);
    let runs = args
        .get(1)
        .map_or(RUNS, |n| n.parse().expect("a number of runs"));
    let wanted = args.get(2..).unwrap_or_default();
    println!(
        "{runs} runs with {THREADS} threads, gcc -O2; x: user and system time, simulated / alone"
    );
    println!(
        "{:<12}{:>6}{:>10}{:>8}   XUs whose count differs between runs",
        "program", "XUs", "KiB/run", "x"
    );
    for (name, fixture, variant, size) in PROGRAMS {
        if wanted.is_empty() || wanted.iter().any(|w| w == name) {
            println!(
                "{}",
                record(&folder.join(name), name, fixture, variant, size, runs)
            );
        }
    }
}

/// Records a program; a line about it.
fn record(out: &Path, name: &str, fixture: &str, variant: &str, size: &str, runs: usize) -> String {
    let fixture = Fixture::open(fixture);
    let builds = fixture.ordinary_builds("gcc");
    let build = builds
        .iter()
        .find(|b| b.variant == variant)
        .expect("gcc is installed");
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(build, folder.path(), &[]);
    let alone = cpu_time(|| {
        let mut command = Command::new(&build.path);
        process::run(process::clean(&mut command, THREADS).arg(size)).ok(name);
    });
    let recordings = folder.path().join("runs");
    let repeat = runs.to_string();
    let flags = ["--simulate", "--repeat", repeat.as_str()];
    let simulated = cpu_time(|| {
        table::record(&patched, &[size], THREADS, &recordings, &flags).ok(name);
    });
    std::fs::create_dir_all(out).expect("the folder can be made");
    let mut bytes = 0;
    let mut tables = Vec::new();
    for (at, run) in table::runs(&recordings).iter().enumerate() {
        let file: PathBuf = out.join(format!("run-{:02}.parquet", at + 1));
        command::ok([Path::new("combine"), run, Path::new("-o"), &file]);
        bytes += file.metadata().expect("it was written").len();
        tables.push(table::export(run));
    }
    let per_run = simulated / runs as f64;
    format!(
        "{name:<12}{:>6}{:>10}{:>8.0}   {}",
        tables[0].len(),
        bytes / 1024 / runs as u64,
        per_run / alone,
        variation(&tables)
    )
}

/// User and system time, in seconds, of the processes that end meanwhile.
fn cpu_time(work: impl FnOnce()) -> f64 {
    let now = || {
        let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux has it");
        let (_, fields) = stat.rsplit_once(')').expect("the name is in parentheses");
        // cutime and cstime, in hundredths of a second (proc(5)).
        let ticks = |at| {
            fields
                .split_whitespace()
                .nth(at)
                .and_then(|t: &str| t.parse::<f64>().ok())
        };
        (ticks(13).unwrap_or(0.0) + ticks(14).unwrap_or(0.0)) / 100.0
    };
    let before = now();
    work();
    now() - before
}

/// For some events, of how many labels the count is not the same in every run that has the label.
fn variation(tables: &[Vec<Xu>]) -> String {
    let events = [
        "sim-instructions",
        "sim-branch-misses",
        "sim-l1i-misses",
        "sim-l1d-misses",
        "sim-l2-misses",
        "sim-dtlb-misses",
    ];
    let of = |event: &str| {
        let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for xu in tables.iter().flatten() {
            values.entry(&xu.label).or_default().push(xu.number(event));
        }
        let differ = values
            .values()
            .filter(|v| v.iter().any(|n| *n != v[0]))
            .count();
        100 * differ / values.len().max(1)
    };
    let one = |event: &&str| format!("{} {} %", event.trim_start_matches("sim-"), of(event));
    events.iter().map(one).collect::<Vec<_>>().join(", ")
}
