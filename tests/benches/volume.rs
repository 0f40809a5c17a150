//! What a report, its page and a combination of very many units need: `cargo bench -p ompfuse-tests --bench volume [-- RANGES]` (default
//! 20,000,000 ranges of one dynamic loop; `OMPFUSE_BENCH_EVENTS=task-clock,...`: events that are counted, by default none).
//!
//! Beside them, in turn, one decoding of all records by the format crate on one thread, from memory, which anything that reads them
//! needs at least.
//! Processor time is that of whole processes, all threads together; memory is the largest resident set, pages of mapped files
//! included; both by GNU time. Aims: a report takes 3 times the decoding and 300 MB, a page twice
//! the report's clock time, a combination 10 times the decoding and 1.5 GB. Environment:
//! `OMPFUSE_BENCH_ROUNDS` (default 3).

use ompfuse_format::record::{Record, ThreadFile};
use ompfuse_tests::{command, compile, process, repository};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The name by which this benchmark calls itself.
const DECODE: &str = "decode";

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let first = args.next();
    if first.as_deref() == Some(DECODE) {
        let folder = args.next().expect("a run's folder");
        let (seconds, sum) = decode(Path::new(&folder));
        eprintln!("the sum is {sum}");
        return println!("{seconds}");
    }
    let ranges = first.unwrap_or_else(|| "20000000".to_owned());
    let events = std::env::var("OMPFUSE_BENCH_EVENTS").unwrap_or_else(|_| "none".to_owned());
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS").ok();
    let rounds = rounds.and_then(|n| n.parse().ok()).unwrap_or(3);
    let folder = tempfile::tempdir().expect("there is room for a run");
    let run = record(folder.path(), &ranges, &events);
    let profile = folder.path().join("profile.parquet");
    let page = folder.path().join("page.html");
    let this = std::env::current_exe().expect("this benchmark is a file");
    let ompfuse = command::path();
    let steps: [(&str, &Path, Vec<&Path>); 4] = [
        ("decode", &this, vec![Path::new(DECODE), &run]),
        ("report", ompfuse, vec![Path::new("report"), &run]),
        (
            "page",
            ompfuse,
            vec![Path::new("report"), Path::new("--html"), &page, &run],
        ),
        (
            "combine",
            ompfuse,
            vec![Path::new("combine"), Path::new("-o"), &profile, &run],
        ),
    ];
    let mut measured = [const { vec![] }; 4];
    for _ in 0..rounds {
        for (step, measured) in steps.iter().zip(&mut measured) {
            measured.push(run_step(step.1, &step.2, folder.path()));
        }
    }
    println!(
        "{ranges} ranges, events {events}, {} MB of records",
        size(&run) / 1_000_000
    );
    println!(
        "{:<10}{:>14}{:>10}{:>8}{:>10}",
        "", "processor, s", "clock, s", "x", "MB, peak"
    );
    let median = |of: &[Step], number: fn(&Step) -> f64| {
        let mut numbers: Vec<f64> = of.iter().map(number).collect();
        numbers.sort_by(f64::total_cmp);
        numbers[numbers.len() / 2]
    };
    let unit = median(&measured[0], |s| s.processors);
    for ((name, ..), of) in steps.iter().zip(&measured) {
        let processors = median(of, |s| s.processors);
        println!(
            "{name:<10}{processors:>14.2}{:>10.2}{:>8.1}{:>10.0}",
            median(of, |s| s.clock),
            processors / unit,
            median(of, |s| s.peak_kb) * 1024.0 / 1e6,
        );
    }
    println!("profile: {} MB", size_of(&profile) / 1_000_000);
}

/// Records the loop.
fn record(folder: &Path, ranges: &str, events: &str) -> PathBuf {
    let program = folder.join("volume");
    let source = repository().join("tests/sources/volume.c");
    assert!(compile::files(&[source], &program, "gcc -O2 -g -fopenmp"));
    let out = folder.join("out");
    let mut record = command::with_threads(2);
    record.args(["record", "--events", events, "-o"]);
    record.args([&out, Path::new("--"), &program]);
    process::run(record.args(["loop", ranges])).ok("record");
    out.join("run-0001")
}

/// A process, measured.
struct Step {
    processors: f64,
    clock: f64,
    peak_kb: f64,
}

fn run_step(program: &Path, args: &[&Path], folder: &Path) -> Step {
    let times = folder.join("times");
    let mut command = Command::new("/usr/bin/time");
    command.args(["-f", "%U %S %e %M", "-o"]).arg(&times);
    process::clean(&mut command, 2);
    let said = process::run(command.arg(program).args(args)).ok("a step");
    let text = std::fs::read_to_string(&times).expect("GNU time has written it");
    let numbers: Vec<f64> = text
        .split_whitespace()
        .filter_map(|n| n.parse().ok())
        .collect();
    let [user, system, clock, peak_kb] = numbers[..] else {
        panic!("GNU time says {text}");
    };
    // The decoding alone, without reading the file.
    let own = (args[0] == Path::new(DECODE)).then(|| said.text().trim().parse().ok());
    Step {
        processors: own.flatten().unwrap_or(user + system),
        clock,
        peak_kb,
    }
}

/// Files of records in a run's folder.
fn files(run: &Path) -> impl Iterator<Item = PathBuf> {
    let listing = std::fs::read_dir(run).expect("a run's folder");
    let files = listing.filter_map(|e| Some(e.ok()?.path()));
    files.filter(|p| p.extension().is_some_and(|e| e == "rec"))
}

fn size(run: &Path) -> u64 {
    files(run).map(|p| size_of(&p)).sum()
}

fn size_of(path: &Path) -> u64 {
    path.metadata().map_or(0, |m| m.len())
}

/// Decodes all records, and adds something up that depends on each of them. Seconds that this takes the processor, and the sum.
fn decode(run: &Path) -> (f64, u64) {
    let (mut sum, mut seconds) = (0u64, 0.0);
    for path in files(run) {
        let bytes = std::fs::read(&path).expect("records can be read");
        let before = on_processor();
        let file = ThreadFile::parse(&bytes).expect("a record file");
        for record in file.records() {
            let number = match record.expect("a whole record") {
                Record::Interval(i) => i.own_ticks ^ i.t1,
                _ => 1,
            };
            sum = sum.wrapping_add(number);
        }
        seconds += on_processor() - before;
    }
    (seconds, sum)
}

/// Seconds that this thread has had a processor.
fn on_processor() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat");
    let text = text.expect("the kernel tells how long threads have run");
    let ns = text
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok());
    ns.expect("nanoseconds") / 1e9
}
