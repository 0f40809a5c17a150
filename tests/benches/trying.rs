//! What `ompfuse try` finds on a binary, beside the best value of the same source:
//! `cargo bench -p ompfuse-tests --bench trying [-- PAGE]`. It prints a page of measurements, and writes it to that
//! Markdown file of the repository.
//!
//! Each program of `tests/sources/tried.c` has a bad value. The best one is looked for by building it again with others, and by trying them
//! on the binary. Original, the best build, and the tuned binary run in turns then. Aims: the tuned one takes at most 5 % longer than the
//! best build in 90 % of the programs, and never more than 1 % longer than the original. Wants processors of its own.
//!
//! Environment: `OMPFUSE_BENCH_ROUNDS` (default 9); with one round it only shows that it runs through.

use ompfuse_tests::{command, compile, process, repository};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// A region with a bad value.
struct Region {
    /// Its macro in the source.
    name: &'static str,
    /// Compilers that it can be set for.
    compilers: &'static [&'static str],
    /// What is set, before the value.
    setting: &'static str,
    /// Values that the source is built with.
    values: &'static [u32],
    /// Those of them that are tried.
    tried: &'static [u32],
}

const BOTH: &[&str] = &["gcc", "clang-19"];

const REGIONS: [Region; 8] = [
    of_chunks("SHORT", &[1, 4, 16, 64, 256, 1024, 4096]),
    of_chunks("COARSE", &[1, 4, 16, 64, 256, 1024]),
    of_chunks("UNEVEN", &[1, 4, 16, 64, 256]),
    Region {
        name: "DECLINING",
        compilers: &["clang-19"], // each schedule has functions of its own in libgomp
        setting: "schedule=dynamic, chunk=",
        values: &[1, 4, 16, 64],
        tried: &[1, 4, 16, 64],
    },
    Region {
        name: "TASKS",
        compilers: BOTH,
        setting: "grainsize=",
        values: &[1, 4, 16, 64, 256, 1024],
        tried: &[1, 4, 16, 64, 256, 1024],
    },
    Region {
        name: "TINY",
        compilers: &["gcc"], // clang's regions hand over no number
        setting: "threads=",
        values: &[1, 2],
        tried: &[1],
    },
    of_tasks("FIB"),
    of_tasks("QUEENS"),
];

/// Its cutoff is looked for.
const fn of_tasks(name: &'static str) -> Region {
    Region {
        name,
        compilers: &["gcc"], // clang's would need functions that they don't call
        setting: "cutoff=",
        values: &[1, 2, 4, 6, 8, 10, 12],
        tried: &[2, 4, 6, 8, 10],
    }
}

/// Its best chunk is searched for.
const fn of_chunks(name: &'static str, values: &'static [u32]) -> Region {
    Region {
        name,
        compilers: BOTH,
        setting: "chunk=",
        values,
        tried: &[],
    }
}

const THREADS: usize = 2;

/// How the page goes on, with what is measured by hand.
const OTHERS: &str = "\n## Wheels";

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

/// What came of a program, in seconds.
struct Row {
    program: String,
    original: f64,
    best: f64,
    best_value: u32,
    tuned: f64,
    found: String,
}

impl Row {
    fn is_near(&self) -> bool {
        self.tuned <= 1.05 * self.best
    }

    fn is_slower(&self) -> bool {
        self.tuned > 1.01 * self.original
    }
}

/// Has ompfuse look for a better value. Returns what it found, and the program with it.
fn tuned(region: &Region, original: &Path, folder: &Path) -> Option<(String, PathBuf)> {
    let out = folder.join("tuned");
    let mut tried = command::with_threads(THREADS);
    tried.env("OMP_WAIT_POLICY", "active");
    let budget = format!("--for={}s", (7 * rounds()).min(60));
    tried.args(["try", "--format=json", &budget, "--patch"]);
    tried.arg(&out);
    let place = format!("tried.c:{}", place(region.name));
    if region.tried.is_empty() {
        tried.args(["--search", &place]);
    }
    let sets = region
        .tried
        .iter()
        .map(|v| format!("--set={place}: {}{v}", region.setting));
    tried.args(sets).arg("-o").arg(folder.join("out"));
    let output = process::run(tried.arg("--").arg(original)).ok("try");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let best = answer["best"].as_u64()? as usize;
    let sets = answer["variants"][best]["set"].as_array().expect("a list");
    let found: Vec<&str> = sets.iter().filter_map(|set| set.as_str()).collect();
    Some((found.join(" + "), out))
}

fn row(region: &Region, compiler: &str) -> Row {
    let folder = tempfile::tempdir().expect("there is room for programs");
    let original = build(compiler, region.name, None, folder.path());
    let builds: Vec<PathBuf> = region
        .values
        .iter()
        .map(|&v| build(compiler, region.name, Some(v), folder.path()))
        .collect();
    let times = medians(&builds);
    let best = (0..times.len()).min_by(|&a, &b| times[a].total_cmp(&times[b]));
    let best = best.expect("there are builds");
    let (found, tuned) = tuned(region, &original, folder.path())
        .unwrap_or_else(|| ("nothing".to_owned(), original.clone()));
    let times = medians(&[original, builds[best].clone(), tuned]);
    Row {
        program: format!("{}, {compiler}", region.name.to_lowercase()),
        original: times[0],
        best: times[1],
        best_value: region.values[best],
        tuned: times[2],
        found,
    }
}

/// The page of measurements.
fn page(rows: &[Row], out: &str) -> String {
    let date = Command::new("date").arg("+%-d %B %Y").output();
    let date = date.map_or(String::new(), |o| {
        String::from_utf8_lossy(&o.stdout).trim().to_owned()
    });
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "# What `try` finds\n\nHow near a tuned binary comes to the best value in the source.\n\n```sh\n\
         cargo bench -p ompfuse-tests --bench trying -- {out}\n```\n\n\
         Each program of `tests/sources/tried.c` has a bad value. The *best build* is the fastest of several values in the source. *Tuned* is \
         the binary that `try --patch` writes. {} rounds in turns, medians.\n\n\
         {date}, {cores} cores, {THREADS} threads, active waiting:\n\n\
         | program | original | best build | its value | tuned | beside the best build | `try` found |\n|---|---|---|---|---|---|---|\n",
        rounds()
    );
    for row in rows {
        let _ = writeln!(
            text,
            "| {} | {:.0} ms | {:.0} ms | {} | {:.0} ms | {:+.1} % | {} |",
            row.program,
            1e3 * row.original,
            1e3 * row.best,
            row.best_value,
            1e3 * row.tuned,
            100.0 * (row.tuned / row.best - 1.0),
            row.found
        );
    }
    let near = rows.iter().filter(|row| row.is_near()).count();
    let slower = rows.iter().filter(|row| row.is_slower()).count();
    let _ = writeln!(
        text,
        "\n{near} of {} are within 5 % of the best build. {slower} are slower than the original by more than 1 %.",
        rows.len()
    );
    text
}

fn main() {
    let mut rows = vec![];
    for compiler in BOTH {
        for region in REGIONS.iter().filter(|r| r.compilers.contains(compiler)) {
            rows.push(row(region, compiler));
            eprintln!(
                "{}: {}",
                rows[rows.len() - 1].program,
                rows[rows.len() - 1].found
            );
        }
    }
    let out = std::env::args().skip(1).find(|arg| arg.ends_with(".md"));
    let page = page(&rows, out.as_deref().unwrap_or("PAGE"));
    print!("{page}");
    if let Some(out) = out {
        let file = repository().join(out);
        // What this doesn't measure stays.
        let before = std::fs::read_to_string(&file).unwrap_or_default();
        let rest = before.find(OTHERS).map_or("", |at| &before[at..]);
        std::fs::write(file, page + rest).expect("the page is written");
    }
}
