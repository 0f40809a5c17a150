//! Whether what `ompfuse try` recommends holds in runs that it didn't see: `cargo bench -p ompfuse-tests --bench recommending`.
//!
//! Twelve programs: eight of `tests/sources/tried.c` whose best value gains 15 % or more, and four that have it already. The told interval
//! must hold the gain of ten fresh pairs, or meet their own interval; no recommendation may be slower in these. `others`: the share of the
//! processors that other programs had during the pairs.
//!
//! Environment: `OMPFUSE_BENCH_ROUNDS` (default 1).

use ompfuse_tests::recommended::{Change, asked};
use ompfuse_tests::{compile, repository};

/// A program's compiler, its macro, and its value if it has the best one already.
const PROGRAMS: [(&str, &str, Option<u32>); 12] = [
    ("gcc", "SHORT", None),
    ("gcc", "COARSE", None),
    ("gcc", "UNEVEN", None),
    ("clang-19", "DECLINING", None),
    ("gcc", "TASKS", None),
    ("gcc", "TINY", None),
    ("gcc", "FIB", None),
    ("gcc", "QUEENS", None),
    ("gcc", "SHORT", Some(4096)),
    ("gcc", "COARSE", Some(64)),
    ("gcc", "TASKS", Some(1024)),
    ("clang-19", "UNEVEN", Some(16)),
];
const THREADS: usize = 2;

fn share(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn main() {
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS").ok();
    let rounds: usize = rounds.and_then(|n| n.parse().ok()).unwrap_or(1);
    let (mut all, mut holding, mut slower, mut missed) = (0, 0, 0, 0);
    println!("| program | recommended | told | ten pairs | others |\n|---|---|---|---|---|");
    for _ in 0..rounds {
        for (compiler, name, value) in PROGRAMS {
            let folder = tempfile::tempdir().expect("there is room for programs");
            let program = folder.path().join(name.to_lowercase());
            let source = repository().join("tests/sources/tried.c");
            let best = value.map_or(String::new(), |v| format!(" -DVALUE={v}"));
            let build = format!("{compiler} -O2 -g -fopenmp -D{name}{best} -lm");
            assert!(compile::files(&[source], &program, &build), "{compiler}");
            let row = format!("{} {compiler}{best}", name.to_lowercase());
            let answer = match asked(&program, THREADS, &["--for=60s", "--turns=8"], &[]) {
                Ok(answer) => answer,
                Err(error) => {
                    println!("| {row} | refused: {} | | | |", error.trim());
                    continue;
                }
            };
            let measured = answer.measured(&[]);
            let told = answer.told();
            let (
                Some(Change {
                    mean,
                    low,
                    high,
                    others,
                }),
                Some([from, to]),
            ) = (measured, told)
            else {
                missed += usize::from(value.is_none());
                println!("| {row} | nothing | | | |");
                continue;
            };
            all += 1;
            holding += usize::from(low <= to && from <= high);
            slower += usize::from(mean > 0.0);
            let best = answer.best().expect("it was measured");
            println!(
                "| {row} | {} {} | {} to {} | {} ({} to {}) | {:.0} % |",
                best["set"],
                best["env"],
                share(from),
                share(to),
                share(mean),
                share(low),
                share(high),
                100.0 * others
            );
        }
    }
    println!(
        "\n{all} recommendations: {holding} told intervals hold what ten further pairs say, {slower} are slower in these. {missed} times nothing was found where something helps."
    );
}
