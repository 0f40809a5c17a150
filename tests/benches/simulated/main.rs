//! Data for evaluating combinations, complete runs of some programs with all events of the simulated PMU at once, and the
//! experiment on them.
//!
//! ```sh
//! cargo bench -p ompfuse-tests --bench simulated -- FOLDER [RUNS [PROGRAM...]]     # records
//! cargo bench -p ompfuse-tests --bench simulated -- experiment FOLDER [RESULTS]    # evaluates what is there; records first where nothing is
//! ```
//!
//! Recording writes `FOLDER/PROGRAM/run-01.parquet`, ... (12 runs without a number, 40 for the experiment), and says for how many XUs an event differs
//! between runs. Few events at a time are emulated by leaving columns out; what was left out is the truth. The experiment writes its
//! tables to RESULTS (Markdown), if that is given.

mod results;

use ompfuse_tests::command;
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::table::{self, Xu};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the data set, fixture, variant, size.
const PROGRAMS: [(&str, &str, &str, &str); 7] = [
    ("knapsack", "knapsack", "", "22"),
    ("nqueens", "nqueens", "", "10"),
    ("cholesky", "cholesky", "depend", "20"),
    ("cg-static", "cg", "static", "40"),
    ("cg-dynamic", "cg", "dynamic", "40"),
    ("mg-static", "mg", "static", "7"),
    ("mg-dynamic", "mg", "dynamic", "7"),
];
const THREADS: usize = 4;
const RUNS: usize = 12;
/// For the experiment.
const COMPARED: usize = 40;

fn main() {
    // Cargo passes `--bench`.
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let is_experiment = args.first().is_some_and(|a| a == "experiment");
    let Some(folder) = args.get(usize::from(is_experiment)) else {
        println!(
            "no folder given: cargo bench -p ompfuse-tests --bench simulated -- [experiment] FOLDER ..."
        );
        return;
    };
    // Cargo starts benchmarks in their package's folder.
    let folder = ompfuse_tests::repository().join(folder);
    if is_experiment {
        let missing = |name: &&str| !folder.join(name).is_dir();
        let missing: Vec<&str> = PROGRAMS.iter().map(|p| p.0).filter(missing).collect();
        if !missing.is_empty() {
            record_all(&folder, COMPARED, &missing);
        }
        let out = args
            .get(2)
            .map(|file| ompfuse_tests::repository().join(file));
        return results::experiment(&folder, &PROGRAMS.map(|p| p.0), out.as_deref());
    }
    let runs = args
        .get(1)
        .map_or(RUNS, |n| n.parse().expect("a number of runs"));
    let wanted: Vec<&str> = args.iter().skip(2).map(String::as_str).collect();
    record_all(&folder, runs, &wanted);
}

/// Records the wanted programs, all if none is named.
fn record_all(folder: &Path, runs: usize, wanted: &[&str]) {
    println!("{runs} runs with {THREADS} threads, gcc -O2");
    println!(
        "{:<12}{:>6}{:>10}   XUs whose count differs between runs",
        "program", "XUs", "KiB/run"
    );
    for (name, fixture, variant, size) in PROGRAMS {
        if wanted.is_empty() || wanted.contains(&name) {
            let line = record(&folder.join(name), name, fixture, variant, size, runs);
            println!("{line}");
        }
    }
}

/// Records a program; a line about it.
fn record(out: &Path, name: &str, fixture: &str, variant: &str, size: &str, runs: usize) -> String {
    let builds = Fixture::open(fixture).ordinary_builds("gcc");
    let build = builds
        .iter()
        .find(|b| b.variant == variant)
        .expect("gcc is installed");
    let folder = tempfile::tempdir().expect("there is room for a recording");
    let patched = table::patch(build, folder.path(), &[]);
    let recordings = folder.path().join("runs");
    for _ in 0..runs {
        table::record(&patched, &[size], THREADS, &recordings, &["--simulate"]).ok(name);
    }
    std::fs::create_dir_all(out).expect("the folder can be made");
    let mut bytes = 0;
    let mut tables = Vec::new();
    for (at, run) in table::runs(&recordings).iter().enumerate() {
        let file: PathBuf = out.join(format!("run-{:02}.parquet", at + 1));
        command::ok([Path::new("combine"), run, Path::new("-o"), &file]);
        bytes += file.metadata().expect("it was written").len();
        tables.push(table::export(run));
    }
    format!(
        "{name:<12}{:>6}{:>10}   {}",
        tables[0].len(),
        bytes / 1024 / runs as u64,
        variation(&tables)
    )
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
