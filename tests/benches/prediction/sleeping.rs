//! Programs whose units sleep.

use crate::{Tally, regions, silent};
use ompfuse_tests::{command, compile, repository, table};

const MODES: [&str; 12] = [
    "chain",
    "readers",
    "tree",
    "wavefront",
    "cholesky",
    "pipeline",
    "some",
    "doacross",
    "ordered",
    "set",
    "inoutset",
    "loops",
];
const THREADS: [usize; 4] = [1, 2, 4, 8];
/// Microseconds of a unit.
const UNIT: &str = "20000";
const NEAR: f64 = 0.1;

pub(crate) fn run() {
    println!("sleeping: error of what a run with so many threads predicts for 1, 2, 4, 8");
    let folder = tempfile::tempdir().expect("there is room for programs");
    let mut tally = Tally::default();
    for compiler in ["gcc", "clang-19"] {
        let program = folder.path().join(compiler);
        let source = repository().join("tests/sources/graphs.c");
        let command = format!("{compiler} -O2 -g -fopenmp");
        if !compile::files(&[source], &program, &command) {
            println!("{compiler} is not installed");
            continue;
        }
        for mode in MODES {
            let reports = THREADS.map(|threads| {
                let out = folder.path().join(format!("{compiler}-{mode}-{threads}"));
                let options = ["--events", "none"];
                table::record(&program, &[mode, UNIT], threads, &out, &options).ok(mode);
                command::report(&out)
            });
            for (from, report) in THREADS.iter().zip(&reports) {
                print!("{compiler:<10}{mode:<12}{from:>3}");
                for (to, other) in THREADS.iter().zip(&reports) {
                    let (measured, _) = regions(&other["scaling"], 0);
                    let (_, told) = regions(&report["scaling"], *to as u64);
                    let shown = match from == to {
                        true => String::new(),
                        false => tally.add(told.map(|t| t / measured), NEAR),
                    };
                    print!("{shown:>10}");
                }
                println!("   {}", silent(&report["scaling"]));
            }
        }
    }
    tally.print(NEAR);
}
