//! What a region's calling context costs: `cargo bench -p ompfuse-tests --bench contexts`.
//!
//! A program forks regions of one thread below so many calls (`contexts.c`), recorded with contexts and without, one after the other.
//! Of each run the least time of a region counts, of the rounds the median of the differences. Aims: at most 300 ns at 10 calls, and 15 ns
//! for each further one. Environment: `OMPFUSE_BENCH_ROUNDS` (default 7).

use ompfuse_tests::{command, compile, process, repository};
use std::path::Path;

const CALLS: [u32; 4] = [5, 10, 40, 100];
/// Nanoseconds at ten calls, and for each further one.
const AIMS: [f64; 2] = [300.0, 15.0];

/// Nanoseconds of a region.
fn region(program: &Path, calls: u32, depth: &str) -> f64 {
    let out = program.with_file_name("out");
    let _ = std::fs::remove_dir_all(&out);
    let mut record = command::with_threads(1);
    record.args(["record", "--events", "none", "--region-events", "none"]);
    record.args(["--context-depth", depth, "-o"]).arg(&out);
    record.arg("--").arg(program).arg(calls.to_string());
    let said = process::run(&mut record).ok("record").text();
    said.trim().parse().expect("the program prints a number")
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let rounds: usize = std::env::var("OMPFUSE_BENCH_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(7);
    println!("{rounds} rounds, medians; ns of a region");
    println!("compiler  calls  without  context");
    for compiler in ["gcc", "clang-19"] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let program = folder.path().join("contexts");
        let source = repository().join("tests/benches/contexts.c");
        if !compile::files(&[source], &program, &format!("{compiler} -O2 -fopenmp")) {
            continue;
        }
        let mut costs = vec![];
        for calls in CALLS {
            let pairs = (0..rounds).map(|_| {
                let without = region(&program, calls, "none");
                (without, region(&program, calls, "128") - without)
            });
            let (without, costs_of): (Vec<f64>, Vec<f64>) = pairs.unzip();
            let cost = median(costs_of);
            println!("{compiler:8} {calls:6} {:8.1} {cost:8.1}", median(without));
            costs.push((calls, cost));
        }
        let at_ten = costs[1].1;
        let (first, last) = (costs[0], costs[costs.len() - 1]);
        let further = (last.1 - first.1) / f64::from(last.0 - first.0);
        let met = |is: bool| if is { "met" } else { "not met" };
        println!(
            "at 10 calls {at_ten:.1} ns (aim {}: {}), each further one {further:.2} ns (aim {}: {})",
            AIMS[0],
            met(at_ten <= AIMS[0]),
            AIMS[1],
            met(further <= AIMS[1])
        );
    }
}
