//! What patching and recording cost: `cargo bench -p ompfuse-tests [-- FIXTURE...]`.
//!
//! Fair rounds: the original, the patched program (not recording), one that records labels and times, and one that counts
//! an event too run in turn, so that what else happens on the machine hits all alike; a ratio is the median of the
//! rounds' ratios, not the ratio of two medians. Waiting is passive and the team has two threads. Times are those of whole
//! processes; where `ompfuse record` started it, as that measured it. The event is task-clock, which can be counted
//! everywhere and costs a system call per reading; hardware events are cheaper.
//! `-- default` compares what is counted when no event is named with `--events none`, and with `task-clock` per unit, on what costs
//! most to record (`tests/sources/cost.c`): the programs' own clocks and processor time. `-- leaving-out` does the same for
//! `--units` with `task-clock` per unit, `-- counts` for instructions that programs count themselves, beside
//! those of the simulator.
//! Environment: `OMPFUSE_BENCH_ROUNDS` (default 9).

use ompfuse_tests::fixture::{Build, Fixture, names};
use ompfuse_tests::{compile, process, repository, table};
use std::path::Path;
use std::process::Command;

const THREADS: usize = 2;

/// A round of [`options`]: seconds of the original, then wall-clock and processor seconds with each option.
type Round = (f64, Vec<[f64; 2]>);

fn main() {
    // Cargo passes `--bench`.
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(9);
    let rows: &[&[(&str, &[&str])]] = &[
        &[
            ("none", &["--events", "none"]),
            ("default", &[]),
            ("task-clock", &table::ONE_EVENT),
        ],
        &[
            ("all", &table::ONE_EVENT),
            (
                "sample 64",
                &["--events", "task-clock", "--units", "every=64"],
            ),
            (
                "throttle 2",
                &["--events", "task-clock", "--units", "cost=2"],
            ),
            (
                "from 50us",
                &["--events", "task-clock", "--units", "longer=50us"],
            ),
            ("none", &["--events", "none"]),
        ],
        &[
            ("none", &["--events", "none"]),
            ("count", &["--events", "instructions:exact"]),
            ("count 2", &["--events", "instructions:exact,loads:exact"]),
            (
                "count 4",
                &[
                    "--events",
                    "instructions:exact,loads:exact,stores:exact,flops:exact",
                ],
            ),
            ("simulate", &["--simulate", "--events", "sim-instructions"]),
        ],
    ];
    let usual = [["fib", "27"], ["ranges", "1000000"], ["kernels", "2000"]];
    let counted = [["fib", "23"], ["rows", "300"], ["smooth", "300"]];
    let programs = [usual, usual, counted];
    let kinds = ["default", "leaving-out", "counts"];
    for ((name, of), programs) in kinds.iter().zip(rows).zip(programs) {
        if wanted.iter().any(|w| w == name) {
            return options(of, programs, rounds);
        }
    }
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|w| w == name);

    println!("{THREADS} threads, {rounds} rounds, times in ms; x: ratio to the original");
    println!(
        "{}",
        line(
            "fixture",
            "by",
            [
                "original", "patched", "x", "recorded", "x", "+ event", "x", "XUs"
            ]
        )
    );
    for name in names().iter().filter(|n| is_wanted(n)) {
        let fixture = Fixture::open(name);
        let Some(size) = fixture.bench_size() else {
            continue;
        };
        for build in ["gcc", "clang"]
            .iter()
            .flat_map(|c| fixture.ordinary_builds(c))
        {
            println!("{}", measure(&build, size, rounds));
        }
    }
    if is_wanted("probecost") {
        probe_cost(rounds.min(3));
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A line of the table.
fn line(fixture: &str, by: &str, cells: [&str; 8]) -> String {
    let cells: Vec<String> = cells.iter().map(|c| format!("{c:>9}")).collect();
    format!("{fixture:<20} {by:<6}{}", cells.join(" "))
}

/// Milliseconds of one run; with a folder, of one that records labels and times into it.
fn time(program: &Path, size: &str, folder: Option<&Path>) -> f64 {
    let mut command = Command::new(program);
    process::clean(&mut command, THREADS).arg(size);
    if let Some(folder) = folder {
        command.env("OMPFUSE_DIR", folder);
    }
    process::run(&mut command)
        .ok("a benchmark")
        .duration
        .as_secs_f64()
        * 1e3
}

/// Milliseconds of one run with an event, as ompfuse measured them, and its number of XUs.
fn time_with_event(program: &Path, size: &str, count: bool) -> (f64, usize) {
    let folder = tempfile::tempdir().expect("there is room for a recording");
    table::record(program, &[size], THREADS, folder.path(), &table::ONE_EVENT).ok("a recording");
    let run = table::runs(folder.path())
        .pop()
        .expect("one run was recorded");
    let header = std::fs::read_to_string(run.join("run.json")).expect("a run has a header");
    let header: serde_json::Value = serde_json::from_str(&header).expect("a run's header is JSON");
    let seconds = header["duration_s"].as_f64().expect("a run has a duration");
    (
        seconds * 1e3,
        if count { table::export(&run).len() } else { 0 },
    )
}

/// A fixture's line.
fn measure(build: &Build, size: &str, rounds: usize) -> String {
    let folder = tempfile::tempdir().expect("there is room for a patched program");
    let patched = table::patch(build, folder.path(), &[]);
    time(&build.path, size, None);
    let (_, xus) = time_with_event(&patched, size, true);
    let one_round = |_| {
        let recording = tempfile::tempdir().expect("there is room for a recording");
        [
            time(&build.path, size, None),
            time(&patched, size, None),
            time(&patched, size, Some(recording.path())),
            time_with_event(&patched, size, false).0,
        ]
    };
    let times: Vec<[f64; 4]> = (0..rounds).map(one_round).collect();
    let ms = |of: usize| format!("{:.1}", median(times.iter().map(|t| t[of]).collect()));
    let ratio = |of: usize| {
        format!(
            "{:.3}",
            median(times.iter().map(|t| t[of] / t[0]).collect())
        )
    };
    let dash = if build.variant.is_empty() { "" } else { "-" };
    let cells = [
        ms(0),
        ms(1),
        ratio(1),
        ms(2),
        ratio(2),
        ms(3),
        ratio(3),
        xus.to_string(),
    ];
    line(
        &format!("{}{dash}{}", build.fixture.name, build.variant),
        build.compiler,
        cells.each_ref().map(String::as_str),
    )
}

/// Nanoseconds per construct, as `fixtures/probecost` measures them itself.
fn probe_cost(runs: usize) {
    let fixture = Fixture::open("probecost");
    for build in ["gcc", "clang"]
        .iter()
        .flat_map(|c| fixture.ordinary_builds(c))
    {
        let folder = tempfile::tempdir().expect("there is room for a patched program");
        let patched = table::patch(&build, folder.path(), &[]);
        let alone = |program: &Path, folder: Option<&Path>| {
            let mut command = Command::new(program);
            process::clean(&mut command, THREADS);
            if let Some(folder) = folder {
                command.env("OMPFUSE_DIR", folder);
            }
            process::run(&mut command).ok("probecost").text()
        };
        let recorded = || {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            alone(&patched, Some(folder.path()))
        };
        let with_event = || {
            let folder = tempfile::tempdir().expect("there is room for a recording");
            let output = table::record(&patched, &[], THREADS, folder.path(), &table::ONE_EVENT);
            output.ok("probecost").text()
        };
        let mut names: Vec<String> = Vec::new();
        let mut values: Vec<[Vec<f64>; 4]> = Vec::new();
        for _ in 0..runs {
            let texts = [
                alone(&build.path, None),
                alone(&patched, None),
                recorded(),
                with_event(),
            ];
            for (at, text) in texts.iter().enumerate() {
                for (name, ns) in text.lines().filter_map(|l| l.rsplit_once(' ')) {
                    let Ok(ns) = ns.parse() else { continue };
                    let row = names.iter().position(|n| n == name).unwrap_or_else(|| {
                        names.push(name.to_owned());
                        values.push(Default::default());
                        names.len() - 1
                    });
                    values[row][at].push(ns);
                }
            }
        }
        println!("\nns per construct, {build}");
        let head = ["", "original", "patched", "recorded", "+ event"];
        println!(
            "{:<20} {:>9} {:>9} {:>9} {:>9}",
            head[0], head[1], head[2], head[3], head[4]
        );
        for (name, columns) in names.iter().zip(values) {
            let [a, b, c, d] = columns.map(median);
            println!("{name:<20} {a:>9.1} {b:>9.1} {c:>9.1} {d:>9.1}");
        }
    }
}

/// What recording with these options costs, each beside the first one, in rounds.
fn options(all: &[(&str, &[&str])], programs: [[&str; 2]; 3], rounds: usize) {
    let heads = all.iter().flat_map(|(name, _)| [*name, "x", "x cpu"]);
    let heads: Vec<String> = heads.map(|h| format!("{h:>10}")).collect();
    println!(
        "{THREADS} threads, {rounds} rounds, times in ms; x: ratio to the first, by clock and by processor time"
    );
    println!(
        "{:<10} {:<8} {:>9}{}",
        "program",
        "by",
        "alone",
        heads.join("")
    );
    let source = repository().join("tests/sources/cost.c");
    for compiler in ["gcc", "clang-19"] {
        let folder = tempfile::tempdir().expect("there is room for a program");
        let program = folder.path().join("cost");
        let how = format!("{compiler} -O2 -g -fopenmp");
        if !compile::files(&[&source], &program, &how) {
            continue;
        }
        for [what, size] in programs {
            let args = [what, size];
            let told = |text: &str| -> [f64; 2] {
                let mut numbers = text
                    .split_whitespace()
                    .map(|n| n.parse().unwrap_or(f64::NAN));
                [(); 2].map(|()| numbers.next().unwrap_or(f64::NAN))
            };
            let alone = || {
                let mut command = Command::new(&program);
                told(
                    &process::run(process::clean(&mut command, THREADS).args(args))
                        .ok(what)
                        .text(),
                )
            };
            let with = |flags: &[&str]| {
                let out = tempfile::tempdir().expect("there is room for a recording");
                told(
                    &table::record(&program, &args, THREADS, out.path(), flags)
                        .ok(what)
                        .text(),
                )
            };
            with(all[0].1); // patches
            let rounds: Vec<Round> = (0..rounds)
                .map(|_| {
                    (
                        alone()[0],
                        all.iter().map(|(_, flags)| with(flags)).collect(),
                    )
                })
                .collect();
            let of = |f: &dyn Fn(&Round) -> f64| median(rounds.iter().map(f).collect());
            let cells: Vec<String> = (0..all.len())
                .map(|at| {
                    let ms = of(&|r| r.1[at][0]);
                    let [x, cpu] = [0, 1].map(|which| of(&|r| r.1[at][which] / r.1[0][which]));
                    format!("{ms:>10.1}{x:>10.2}{cpu:>10.2}")
                })
                .collect();
            println!(
                "{what:<10} {compiler:<8} {:>9.1}{}",
                of(&|r| r.0),
                cells.join("")
            );
        }
    }
}
