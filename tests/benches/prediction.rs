//! How near predicted times come to measured ones: `cargo bench -p ompfuse-tests --bench prediction [-- FIXTURE ARGUMENT...]`.
//!
//! Programs are recorded with 1 and with 2 threads in turn, which wait actively. The time is that of all parallel regions on the clock, of
//! each number of threads in its fastest run. The report of that run predicts the time with the other number. `error` is the prediction
//! divided by what was measured, less 1; `model` is the same for the number of threads that the run had. `not running` is the larger
//! share of time, of the two runs, in which a thread had work and no processor: above 5 % a row tells of the machine. Runs need two
//! processors that nobody else uses. Environment: `OMPFUSE_BENCH_ROUNDS` (default 5).

use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process};
use serde_json::Value;
use std::path::Path;

/// Fixtures and their sizes: regions of tens of milliseconds and more.
const PROGRAMS: [(&str, &[&str]); 4] = [
    ("mandelbrot", &["1200"]),
    ("nqueens", &["12"]),
    ("cg", &["1000"]),
    ("knapsack", &["30"]),
];

/// What one run was, and says of the other number of threads.
struct Point {
    seconds: f64,
    /// With the other number; `None`: it can't be told.
    predicted: Option<f64>,
    model: Option<f64>,
    not_running: f64,
}

/// Records a program with so many threads, and reads the report.
fn point(program: &Path, args: &[String], threads: u32, folder: &Path) -> Point {
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(threads as usize);
    record.env("OMP_WAIT_POLICY", "active");
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    process::run(record.arg("--").arg(program).args(args)).ok("record");
    let report = command::json([Path::new("report"), &out, Path::new("--format=json")]);
    let scaling = &report["scaling"];
    let regions = scaling["regions"].as_array().expect("a list of regions");
    let other = 3 - threads;
    let of_region = |region: &Value| {
        let all = region["predicted"].as_array()?;
        let found = all.iter().find(|p| p["threads"] == other)?;
        found["seconds"].as_f64()
    };
    Point {
        seconds: regions.iter().filter_map(|r| r["wall_s"].as_f64()).sum(),
        predicted: regions.iter().map(of_region).sum(),
        model: scaling["model_error"].as_f64(),
        not_running: report["running"]["not_running"].as_f64().unwrap_or(0.0),
    }
}

fn error(quotient: Option<f64>) -> String {
    quotient.map_or("-".to_owned(), |q| format!("{:+.1} %", 100.0 * (q - 1.0)))
}

fn main() {
    let given: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let programs: Vec<(String, Vec<String>)> = match given.split_first() {
        Some((name, args)) => vec![(name.clone(), args.to_vec())],
        None => PROGRAMS
            .iter()
            .map(|(name, args)| {
                (
                    (*name).to_owned(),
                    args.iter().map(|&a| a.to_owned()).collect(),
                )
            })
            .collect(),
    };
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|n| n.parse().ok()).unwrap_or(5);
    println!(
        "{rounds} rounds, the fastest run of each number of threads; ms of all parallel regions"
    );
    println!(
        "{:<26}{:>10}{:>10}{:>11}{:>9}{:>9}{:>11}{:>9}{:>9}{:>13}",
        "", "1 thread", "2", "1 -> 2", "error", "model", "2 -> 1", "error", "model", "not running"
    );
    for (name, args) in &programs {
        for build in ["gcc", "clang"]
            .into_iter()
            .flat_map(|c| Fixture::open(name).ordinary_builds(c))
        {
            let folder = tempfile::tempdir().expect("there is room for recordings");
            let mut fastest: [Option<Point>; 2] = [None, None];
            for _ in 0..rounds {
                for (threads, fastest) in (1..).zip(&mut fastest) {
                    let new = point(&build.path, args, threads, folder.path());
                    if fastest.as_ref().is_none_or(|f| new.seconds < f.seconds) {
                        *fastest = Some(new);
                    }
                }
            }
            let [Some(one), Some(two)] = fastest else {
                continue;
            };
            let told = |predicted: Option<f64>| {
                predicted.map_or("-".to_owned(), |s| format!("{:.1}", 1e3 * s))
            };
            println!(
                "{:<26}{:>10.1}{:>10.1}{:>11}{:>9}{:>9}{:>11}{:>9}{:>9}{:>11.1} %",
                build.to_string(),
                1e3 * one.seconds,
                1e3 * two.seconds,
                told(one.predicted),
                error(one.predicted.map(|p| p / two.seconds)),
                error(one.model),
                told(two.predicted),
                error(two.predicted.map(|p| p / one.seconds)),
                error(two.model),
                100.0 * one.not_running.max(two.not_running)
            );
        }
    }
}
