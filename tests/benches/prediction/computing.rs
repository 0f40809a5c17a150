//! Programs that compute.

use crate::{Tally, regions, rounds};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::{command, process};
use std::path::Path;

/// Fixtures and their sizes: regions of tens of milliseconds and more.
const PROGRAMS: [(&str, &str); 6] = [
    ("mandelbrot", "1200"),
    ("nqueens", "12"),
    ("cg", "1000"),
    ("knapsack", "30"),
    ("mg", "12"),
    ("cholesky", "60"),
];
const NEAR: f64 = 0.15;
/// Runs of one kind that differ by more tell of the machine.
const SPREAD: f64 = 0.05;

/// A run: time of its regions, and what it predicts for the other number of threads.
struct Point {
    seconds: f64,
    predicted: Option<f64>,
    silent: String,
}

/// Records a program with so many threads, and reads the report.
fn point(program: &Path, size: &str, threads: u32, folder: &Path) -> Point {
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(threads as usize);
    record.env("OMP_WAIT_POLICY", "active");
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    process::run(record.arg("--").arg(program).arg(size)).ok("record");
    let report = command::json([Path::new("report"), &out, Path::new("--format=json")]);
    let (seconds, predicted) = regions(&report["scaling"], u64::from(3 - threads));
    Point {
        seconds,
        predicted,
        silent: report["scaling"]["silent"]
            .as_str()
            .unwrap_or("")
            .to_owned(),
    }
}

/// How far the second fastest is from the fastest.
fn spread(points: &[Point]) -> f64 {
    let mut all: Vec<f64> = points.iter().map(|p| p.seconds).collect();
    all.sort_by(f64::total_cmp);
    all.get(1).map_or(0.0, |second| second / all[0] - 1.0)
}

pub(crate) fn run() {
    let rounds = rounds();
    println!(
        "computing: {rounds} rounds, the fastest of each number of threads; ms of all parallel regions"
    );
    println!(
        "{:<26}{:>10}{:>10}{:>10}{:>10}{:>9}",
        "", "1 thread", "2", "1 -> 2", "2 -> 1", "spread"
    );
    let (mut tally, mut unsteady) = (Tally::default(), 0);
    for (name, size) in PROGRAMS {
        let builds = ["gcc", "clang"].map(|c| Fixture::open(name).ordinary_builds(c));
        for build in builds.into_iter().flatten() {
            let folder = tempfile::tempdir().expect("there is room for recordings");
            let mut all: [Vec<Point>; 2] = [vec![], vec![]];
            for _ in 0..rounds {
                for (threads, points) in (1..).zip(&mut all) {
                    points.push(point(&build.path, size, threads, folder.path()));
                }
            }
            let spread = spread(&all[0]).max(spread(&all[1]));
            let fastest = all.each_ref().map(|points| {
                let fastest = points.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
                fastest.expect("there was a round")
            });
            let [one, two] = fastest;
            // What the machine did tells nothing of the model.
            let mut ignored = Tally::default();
            let tally = match spread > SPREAD {
                true => &mut ignored,
                false => &mut tally,
            };
            let there = tally.add(one.predicted.map(|p| p / two.seconds), NEAR);
            let back = tally.add(two.predicted.map(|p| p / one.seconds), NEAR);
            unsteady += usize::from(spread > SPREAD);
            println!(
                "{:<26}{:>10.1}{:>10.1}{there:>10}{back:>10}{:>7.1} %  {} {}",
                build.to_string(),
                1e3 * one.seconds,
                1e3 * two.seconds,
                100.0 * spread,
                one.silent,
                two.silent
            );
        }
    }
    println!(
        "{unsteady} programs vary by more than {:.0} % and don't count",
        100.0 * SPREAD
    );
    tally.print(NEAR);
}
