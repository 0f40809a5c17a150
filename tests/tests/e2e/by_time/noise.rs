//! What comparisons say on a machine that has other work to do, and on an idle one: many pairs of builds, each recorded anew.

use super::compared;
use ompfuse_tests::{command, compile, process};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Three regions: a static loop, a dynamic one that the builds differ in, and one with a critical section.
const PROGRAM: &str = "
#include <math.h>
#include <stdio.h>
#ifndef SLOW
#define SLOW 1.0
#endif
static double a[4096];
static double f(double x, int n) { for (int i = 0; i < n; i++) x = sqrt(x + 1.5); return x; }
__attribute__((noinline)) static void assemble(void) {
    #pragma omp parallel for schedule(static)
    for (int i = 0; i < 4096; i++) a[i] = f(i, 200);
}
__attribute__((noinline)) static double solve(void) {
    double s = 0;
    #pragma omp parallel for schedule(dynamic, 64) reduction(+ : s)
    for (int i = 0; i < 4096; i++) s += f(a[i], (int)(400 * SLOW));
    return s;
}
__attribute__((noinline)) static void output(void) {
    #pragma omp parallel
    {
        #pragma omp critical
        a[0] = f(a[0], 1000);
    }
}
int main(void) {
    double s = 0;
    for (int r = 0; r < 20; r++) { assemble(); s += solve(); output(); }
    printf(\"%.3f\\n\", s);
}
";

const RUNS: usize = 12;

/// Pairs of builds; `OMPFUSE_PAIRS` makes them fewer.
fn pairs() -> usize {
    let wanted = std::env::var("OMPFUSE_PAIRS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(100)
}

/// Processes that want a processor each.
struct Load(Vec<Child>);

impl Load {
    fn new(processes: usize) -> Load {
        let busy = || {
            Command::new("sh")
                .args(["-c", "while :; do :; done"])
                .spawn()
        };
        Load((0..processes).map(|_| busy().expect("sh starts")).collect())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        for busy in &mut self.0 {
            let _ = busy.kill();
            let _ = busy.wait();
        }
    }
}

/// Each program recorded so often, in turns; the folders of runs.
fn in_turns(programs: &[&Path], folder: &Path) -> Vec<PathBuf> {
    let outs: Vec<PathBuf> = (0..programs.len())
        .map(|n| folder.join(n.to_string()))
        .collect();
    for run in 0..RUNS {
        let mut order: Vec<usize> = (0..programs.len()).collect();
        order.rotate_left(run % programs.len());
        for at in order {
            let mut record = command::with_threads(2);
            record
                .args(["record", "-q", "--events", "none", "-o"])
                .arg(&outs[at]);
            process::run(record.arg("--").arg(programs[at])).ok("record");
        }
    }
    outs
}

/// A certain change: a region's construct and function, its quantity (`unit`: a single unit), its size, and how sure that is.
#[derive(Debug)]
struct Certain {
    place: String,
    quantity: String,
    size: f64,
    /// Width of the interval.
    width: f64,
}

/// All changes that are certain.
fn certain(diff: &Value) -> Vec<Certain> {
    let mut found = vec![];
    let mut add = |place: &str, changes: &Value| {
        for change in changes.as_array().expect("a list") {
            if change["finding"] == "changed" {
                let quantity = change["quantity"].as_str().unwrap_or_default().to_owned();
                let size = change["change"].as_f64().unwrap_or(f64::INFINITY);
                let [low, high] = ["low", "high"].map(|end| change["interval"][end].as_f64());
                let width = high
                    .zip(low)
                    .map_or(f64::INFINITY, |(high, low)| high - low);
                found.push(Certain {
                    place: place.to_owned(),
                    quantity,
                    size,
                    width,
                });
            }
        }
    };
    add("program", &diff["total"]);
    let mut units = vec![];
    for pair in diff["pairs"].as_array().expect("a list") {
        let region = &pair["b"][0];
        let place = format!("{} in {}", region["construct"], region["function"]);
        add(&place, &pair["changes"]);
        if pair["unit"]["is_certain"] == true {
            let [a, b] = [0, 1].map(|n| pair["unit"]["time_s"][n].as_f64().unwrap_or(0.0));
            let (quantity, size) = ("unit".to_owned(), b / a - 1.0);
            units.push(Certain {
                place,
                quantity,
                size,
                width: f64::INFINITY,
            });
        }
    }
    found.extend(units);
    found
}

/// The size of the loop in `solve` that is known best, as the text has it.
fn of_solve(all: &[Certain]) -> Option<f64> {
    let is_it = |c: &&Certain| {
        let is_size = ["time", "median-unit"].contains(&c.quantity.as_str());
        c.place.contains("loop") && c.place.contains("solve") && is_size
    };
    let best = (all.iter().filter(is_it)).min_by(|x, y| x.width.total_cmp(&y.width));
    best.map(|found| found.size)
}

struct Counted {
    pairs: usize,
    /// Pairs of one build with itself in which something is certain; the largest factor.
    false_alarms: usize,
    largest: f64,
    /// Pairs with a change in which that is found with its size; in which the gate on it passed.
    found: usize,
    passed: usize,
}

/// Compares a build with itself and with one that has so much more work in one loop.
fn counted(more: f64) -> Option<Counted> {
    let build =
        |slow: f64| compile::compile(PROGRAM, &format!("gcc -O2 -g -fopenmp -DSLOW={slow} -lm"));
    let (before, after) = (build(1.0)?, build(1.0 + more)?);
    let mut counted = Counted {
        pairs: pairs(),
        false_alarms: 0,
        largest: 1.0,
        found: 0,
        passed: 0,
    };
    let gate = format!("region(\"solve*\").time>{}%", 50.0 * more);
    for pair in 0..counted.pairs {
        let folder = tempfile::tempdir().expect("there is room for runs");
        let programs = [&before.path, &before.path, &after.path].map(PathBuf::as_path);
        let outs = in_turns(&programs, folder.path());
        let same = certain(&compared(&[&outs[0], &outs[1]]));
        if !same.is_empty() {
            println!("pair {pair}, one build: {same:?}");
            counted.false_alarms += 1;
        }
        let factors = same
            .iter()
            .map(|c| (1.0 + c.size).max(1.0 / (1.0 + c.size)));
        counted.largest = factors.fold(counted.largest, f64::max);
        let words = [&outs[0], &outs[2]].map(PathBuf::as_path);
        let words = [words[0], words[1], Path::new("--fail-on"), Path::new(&gate)];
        let mut diff = command::with_threads(2);
        diff.arg("diff").args(words).args(["--format", "json"]);
        let output = process::run(&mut diff); // status 3 where the gate fails
        let diff: Value = serde_json::from_str(&output.text()).expect("JSON");
        counted.passed += usize::from(diff["gates"][0]["verdict"]["is"] == "passes");
        let all = certain(&diff);
        match of_solve(&all) {
            Some(size) if (0.5 * more..=1.5 * more).contains(&size) => counted.found += 1,
            _ => println!("pair {pair}, {:+.0} %: {all:?}", 100.0 * more),
        }
    }
    println!(
        "{} pairs of {RUNS} runs a side: one build: {} with a certain statement, at most {:.2} times; {:+.0} %: {} found, {} passed",
        counted.pairs,
        counted.false_alarms,
        counted.largest,
        100.0 * more,
        counted.found,
        counted.passed
    );
    Some(counted)
}

impl Counted {
    fn check(&self, least: f64) {
        let share = |n: usize| n as f64 / self.pairs as f64;
        assert!(share(self.false_alarms) <= 0.02, "{}", self.false_alarms);
        assert!(self.largest <= 1.5, "{}", self.largest);
        assert!(share(self.found) >= least, "{}", self.found);
        assert_eq!(self.passed, 0);
    }
}

#[test]
#[ignore = "by time: half an hour"]
fn beside_a_busy_process_ten_percent_are_found() {
    let _load = Load::new(1);
    if let Some(counted) = counted(0.1) {
        counted.check(0.8);
    }
}

#[test]
#[ignore = "by time, on an idle machine: a quarter of an hour"]
fn on_an_idle_machine_three_percent_are_found() {
    if let Some(counted) = counted(0.03) {
        counted.check(0.95);
    }
}
