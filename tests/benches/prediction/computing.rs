//! Programs that compute.

use crate::{Tally, regions, rounds, silent};
use ompfuse_tests::fixture::Fixture;
use ompfuse_tests::planted::{Case, Programs, cases};
use ompfuse_tests::{command, process};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Fixtures and their sizes: regions of tens of milliseconds and more. Of `cg` and `mg` the first size fits a cache, the second doesn't.
const PROGRAMS: [(&str, &str); 8] = [
    ("mandelbrot", "1200"),
    ("nqueens", "14"),
    ("cg", "450"),
    ("cg", "1000"),
    ("knapsack", "32"),
    ("mg", "9"),
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
    /// Iterations of loops, and tasks.
    work: u64,
}

/// How many iterations and tasks a report has.
fn work(report: &Value) -> u64 {
    let regions = report["regions"].as_array().expect("a list of regions");
    let of = |region: &Value| match region["construct"].as_str() {
        Some("task") => region["executions"].as_u64(),
        _ => region["iterations"].as_u64(),
    };
    regions.iter().filter_map(of).sum()
}

/// Records a program with so many threads, and reads the report.
fn point(program: &Program, threads: u32, folder: &Path) -> Point {
    let out = folder.join("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(threads as usize);
    record.env("OMP_WAIT_POLICY", "active");
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    process::run(record.arg("--").arg(&program.file).args(&program.args)).ok("record");
    let report = command::report(&out);
    let (seconds, predicted) = regions(&report["scaling"], u64::from(3 - threads));
    Point {
        seconds,
        predicted,
        silent: silent(&report["scaling"]).to_owned(),
        work: work(&report),
    }
}

/// How far the second fastest is from the fastest.
fn spread(points: &[Point]) -> f64 {
    let mut all: Vec<f64> = points.iter().map(|p| p.seconds).collect();
    all.sort_by(f64::total_cmp);
    all.get(1).map_or(0.0, |second| second / all[0] - 1.0)
}

/// What is run.
struct Program {
    name: String,
    file: PathBuf,
    args: Vec<String>,
}

/// The fixtures, by both compilers.
fn fixtures() -> Vec<Program> {
    let builds = |(name, size): (&str, &str)| {
        let builds = ["gcc", "clang"].map(|c| Fixture::open(name).ordinary_builds(c));
        let size = size.to_owned();
        builds.into_iter().flatten().map(move |build| Program {
            name: format!("{build} {size}"),
            file: build.path,
            args: vec![size.clone()],
        })
    };
    PROGRAMS.into_iter().flat_map(builds).collect()
}

/// Planted programs that compute, each once for each compiler.
fn planted(programs: &mut Programs) -> Vec<Program> {
    let is_meant = |case: &&Case| !case.sleeps() && !case.has("crowded") && !case.is_mpi();
    let cases = cases();
    let mut found: Vec<Program> = vec![];
    for case in cases.iter().filter(is_meant) {
        let name = format!("{} {}", case.program, case.compiler());
        if found.iter().any(|p| p.name == name) {
            continue;
        }
        let args = [case.mode(), "spin"].map(str::to_owned).to_vec();
        if let Some(file) = programs.build(case) {
            found.push(Program { name, file, args });
        }
    }
    found
}

/// Runs with one and with two threads in turn, and prints how near they predict each other.
fn row(program: &Program, rounds: usize, tally: &mut Tally, unsteady: &mut usize) {
    let folder = tempfile::tempdir().expect("there is room for recordings");
    let mut all: [Vec<Point>; 2] = [vec![], vec![]];
    for _ in 0..rounds {
        for (threads, points) in (1..).zip(&mut all) {
            points.push(point(program, threads, folder.path()));
        }
    }
    let spread = spread(&all[0]).max(spread(&all[1]));
    let [one, two] = all.each_ref().map(|points| {
        let fastest = points.iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        fastest.expect("there was a round")
    });
    // What the machine did tells nothing of the model; a prediction is of the same work.
    let is_same = one.work == two.work;
    let mut ignored = Tally::default();
    let tally = match spread > SPREAD || !is_same {
        true => &mut ignored,
        false => tally,
    };
    let there = tally.add(one.predicted.map(|p| p / two.seconds), NEAR);
    let back = tally.add(two.predicted.map(|p| p / one.seconds), NEAR);
    *unsteady += usize::from(spread > SPREAD);
    let other = if is_same { "" } else { "other work " };
    println!(
        "{:<34}{:>10.1}{:>10.1}{there:>10}{back:>10}{:>7.1} %  {other}{} {}",
        program.name,
        1e3 * one.seconds,
        1e3 * two.seconds,
        100.0 * spread,
        one.silent,
        two.silent
    );
}

pub(crate) fn run() {
    let rounds = rounds();
    println!(
        "computing: {rounds} rounds, the fastest of each number of threads; ms of all parallel regions"
    );
    println!(
        "{:<34}{:>10}{:>10}{:>10}{:>10}{:>9}",
        "", "1 thread", "2", "1 -> 2", "2 -> 1", "spread"
    );
    let folder = tempfile::tempdir().expect("there is room for programs");
    let mut programs = Programs::new(folder.path());
    let all = [fixtures(), planted(&mut programs)];
    let (mut tally, mut unsteady) = (Tally::default(), 0);
    for program in all.iter().flatten() {
        row(program, rounds, &mut tally, &mut unsteady);
    }
    println!(
        "{unsteady} programs vary by more than {:.0} % and don't count",
        100.0 * SPREAD
    );
    tally.print(NEAR);
}
