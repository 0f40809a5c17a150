//! How near predicted times come to measured ones: `cargo bench -p ompfuse-tests --bench prediction [-- sleeping | computing]`.
//!
//! - `sleeping`: graphs of units that sleep (`tests/sources/graphs.c`), which work with more threads than processors. Each run with 1, 2, 4
//!   and 8 threads predicts the region's time with the others. Aim: 90 % of what is told is within 10 %.
//! - `computing`: fixtures and planted programs with 1 and with 2 threads in turn, which wait actively. The time is that of all parallel regions on the clock, of
//!   each number of threads in its fastest run, and the report of that run predicts the other. Aim: 90 % of what is told is within 15 %, and at
//!   most 30 % is refused, on processors that nobody else uses. A row tells of the machine where runs of one kind differ by more than 5 %.
//!
//! Environment: `OMPFUSE_BENCH_ROUNDS` (default 5).

mod computing;
mod sleeping;

use serde_json::Value;

/// What is predicted and what came.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    told: usize,
    near: usize,
    refused: usize,
}

impl Tally {
    /// Adds a prediction, as a share of what was measured. Returns how it is printed.
    fn add(&mut self, predicted: Option<f64>, near: f64) -> String {
        let Some(quotient) = predicted else {
            self.refused += 1;
            return "-".to_owned();
        };
        self.told += 1;
        self.near += usize::from((quotient - 1.0).abs() <= near);
        format!("{:+.1} %", 100.0 * (quotient - 1.0))
    }

    fn print(self, near: f64) {
        let all = self.told + self.refused;
        println!(
            "{} of {} predictions are within {:.0} % ({:.0} %); {} of {all} refused\n",
            self.near,
            self.told,
            100.0 * near,
            100.0 * self.near as f64 / self.told.max(1) as f64,
            self.refused
        );
    }
}

/// The time of all of a report's parallel regions, and with another number of threads; `None`: it isn't told.
fn regions(scaling: &Value, threads: u64) -> (f64, Option<f64>) {
    let Some(regions) = scaling["regions"].as_array() else {
        return (f64::NAN, None); // a region so long that only a part was looked at
    };
    let sum = |key: &str| -> f64 { regions.iter().filter_map(|r| r[key].as_f64()).sum() };
    let told = scaling["predicted"].as_array();
    let told = told.and_then(|all| all.iter().find(|p| p["threads"] == threads));
    // What is told is of the program. Its work outside of regions is the same with any number of threads.
    let serial = scaling["work_s"].as_f64().unwrap_or(f64::NAN) - sum("work_s");
    let predicted = told.and_then(|p| Some(p["seconds"].as_f64()? - serial));
    (sum("wall_s"), predicted)
}

/// Why that isn't told, if so.
fn silent(scaling: &Value) -> &str {
    let reasons = [&scaling["silent"], &scaling["silent_above"]];
    reasons.into_iter().find_map(Value::as_str).unwrap_or("")
}

fn rounds() -> usize {
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS").ok();
    rounds.and_then(|n| n.parse().ok()).unwrap_or(5)
}

fn main() {
    let wanted = |name: &str| {
        let mut given = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
        let named = given.any(|a| a == name);
        named || std::env::args().skip(1).all(|a| a.starts_with('-'))
    };
    if wanted("sleeping") {
        sleeping::run();
    }
    if wanted("computing") {
        computing::run();
    }
}
