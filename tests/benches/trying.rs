//! What `ompfuse try` finds on a binary, beside the best value of the same source: `cargo bench -p ompfuse-tests --bench trying`.
//!
//! Each program of `tests/sources/tried.c` has a bad value. The best one is looked for by building it again with others, and by trying them
//! on the binary. Original, the best build, and the tuned binary run in turns then. Aims: the tuned one takes at most 5 % longer than the
//! best build in 90 % of the programs, and never more than 1 % longer than the original. Wants processors of its own.
//!
//! Environment: `OMPFUSE_BENCH_ROUNDS` (default 9).

use ompfuse_tests::{command, compile, process, repository};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Macro, what try looks for, and values of the source.
const PROGRAMS: [(&str, &str, &[u32]); 5] = [
    ("SHORT", "chunk", &[1, 4, 16, 64, 256, 1024, 4096]),
    ("COARSE", "chunk", &[1, 4, 16, 64, 256, 1024]),
    ("UNEVEN", "chunk", &[1, 4, 16, 64, 256]),
    ("TASKS", "grainsize", &[1, 4, 16, 64, 256, 1024]),
    ("TINY", "threads", &[1, 2]),
];

const THREADS: usize = 2;

fn rounds() -> usize {
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS").ok();
    rounds.and_then(|n| n.parse().ok()).unwrap_or(9)
}

/// Median seconds of programs that run in turns.
fn medians(programs: &[PathBuf]) -> Vec<f64> {
    let mut times = vec![vec![]; programs.len()];
    for _ in 0..rounds() {
        for (times, program) in times.iter_mut().zip(programs) {
            let mut command = Command::new(program);
            process::clean(&mut command, THREADS).env("OMP_WAIT_POLICY", "active");
            let begin = Instant::now();
            process::run(&mut command).ok("a program");
            times.push(begin.elapsed().as_secs_f64());
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    times.into_iter().map(median).collect()
}

fn build(compiler: &str, name: &str, value: Option<u32>, folder: &Path) -> PathBuf {
    let value = value.map(|v| format!(" -DVALUE={v}")).unwrap_or_default();
    let program = folder.join(format!("{name}{}", value.replace(' ', "")));
    let source = repository().join("tests/sources/tried.c");
    let command = format!("{compiler} -O2 -g -fopenmp -D{name}{value}");
    let command = format!("{command} -lm");
    assert!(compile::files(&[source], &program, &command), "{compiler}");
    program
}

/// The line of the region.
fn place(name: &str) -> usize {
    let source = repository().join("tests/sources/tried.c");
    let text = std::fs::read_to_string(source).expect("the source is there");
    let begin = format!("defined({name})");
    let lines = text
        .lines()
        .enumerate()
        .skip_while(|(_, l)| !l.contains(&begin));
    let mut lines = lines.filter(|(_, l)| l.contains("/* place */"));
    lines.next().expect("a region").0 + 1
}

fn main() {
    let (mut near, mut slower, mut all) = (0, 0, 0);
    println!(
        "{:<18}{:>10}{:>18}{:>18}  try found",
        "", "original", "best build", "tuned"
    );
    for compiler in ["gcc", "clang-19"] {
        for (name, parameter, values) in PROGRAMS {
            if parameter == "threads" && compiler != "gcc" {
                continue; // clang's regions hand over no number
            }
            let folder = tempfile::tempdir().expect("there is room for programs");
            let original = build(compiler, name, None, folder.path());
            let builds: Vec<PathBuf> = values
                .iter()
                .map(|&v| build(compiler, name, Some(v), folder.path()))
                .collect();
            let times = medians(&builds);
            let best = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
            let best = best.expect("there are builds");
            let tuned = folder.path().join("tuned");
            let mut tried = command::with_threads(THREADS);
            tried.env("OMP_WAIT_POLICY", "active");
            tried
                .args(["try", "--format=json", "--budget=60s", "--patch"])
                .arg(&tuned);
            let place = place(name);
            match parameter {
                "chunk" => drop(tried.args(["--search", &format!("tried.c:{place}")])),
                parameter => {
                    let sets = values
                        .iter()
                        .map(|v| format!("--set=tried.c:{place}: {parameter}={v}"));
                    tried.args(sets);
                }
            }
            tried
                .arg("-o")
                .arg(folder.path().join("out"))
                .arg("--")
                .arg(&original);
            let output = process::run(&mut tried).ok("try");
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let found = answer["best"]
                .as_u64()
                .map(|at| answer["variants"][at as usize]["set"].to_string());
            let tuned = if found.is_some() {
                tuned
            } else {
                original.clone()
            };
            let [a, b, c] = medians(&[original, builds[best].clone(), tuned])[..] else {
                unreachable!("three programs")
            };
            all += 1;
            near += usize::from(c <= 1.05 * b);
            slower += usize::from(c > 1.01 * a);
            println!(
                "{:<18}{:>7.0} ms{:>7.0} ms {:>6}{:>8.0} ms {:>+5.1} %  {}",
                format!("{name} {compiler}"),
                1e3 * a,
                1e3 * b,
                values[best],
                1e3 * c,
                100.0 * (c / b - 1.0),
                found.unwrap_or_else(|| "nothing".to_owned())
            );
        }
    }
    println!(
        "{near} of {all} within 5 % of the best build; {slower} slower than the original by more than 1 %"
    );
}
