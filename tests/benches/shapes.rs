//! How time and memory of a report grow with its run: `cargo bench -p ompfuse-tests --bench shapes [-- N [SHAPE ...]]`. Each shape of
//! `tests/sources/shapes.c` is recorded with N (default 5,000), 4 N and 16 N units, by gcc.
//!
//! Time is processor time of the whole process; memory is the most that isn't pages of files, as `/proc` tells each 2 ms. An exponent
//! is that of the growth from 4 N to 16 N: 1 is linear. Aims: 1.2 at most, and 300 MB with 10,000,000 units.

use ompfuse_tests::{command, compile, process, repository};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const SHAPES: [&str; 18] = [
    "static",
    "dynamic",
    "sections",
    "nowait",
    "singles",
    "criticals",
    "ordered",
    "tasks",
    "tree",
    "small-teams",
    "depend",
    "readers",
    "exclude",
    "nested",
    "recursive",
    "nested-tasks",
    "threads",
    "paths",
];

/// Sizes, in multiples of the smallest.
const SIZES: [u64; 3] = [1, 4, 16];
/// Growth from the second size to the last.
const GROWTH: f64 = 4.0;
/// Reports that take longer are ended.
const LIMIT: Duration = Duration::from_secs(300);

fn main() {
    let mut args = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let smallest: u64 = args.next().map_or(5000, |n| n.parse().expect("a number"));
    let named: Vec<String> = args.collect();
    let folder = tempfile::tempdir().expect("there is room for runs");
    let program = folder.path().join("shapes");
    let source = repository().join("tests/sources/shapes.c");
    assert!(compile::files(&[source], &program, "gcc -O2 -g -fopenmp"));
    println!(
        "| shape, {smallest} × 1, 4, 16 | records, MB | time, s | exponent | memory, MB | exponent |"
    );
    println!("|---|---|---|---|---|---|");
    for shape in SHAPES {
        if !named.is_empty() && !named.iter().any(|n| n == shape) {
            continue;
        }
        let measured = SIZES.map(|size| {
            let run = record(folder.path(), &program, shape, size * smallest);
            let bytes = size_of(&run);
            let (seconds, kb) = report(&run);
            let _ = std::fs::remove_dir_all(&run);
            (bytes as f64 / 1e6, seconds, kb as f64 * 1024.0 / 1e6)
        });
        let row = |number: fn(&(f64, f64, f64)) -> f64, digits: usize| {
            let all = measured.iter().map(|m| format!("{:.digits$}", number(m)));
            all.collect::<Vec<_>>().join(", ")
        };
        let exponent = |number: fn(&(f64, f64, f64)) -> f64| {
            let [_, before, after] = measured.each_ref().map(|m| number(m).max(0.01));
            (after / before).log(GROWTH)
        };
        println!(
            "| {shape} | {} | {} | {:.2} | {} | {:.2} |",
            row(|m| m.0, 1),
            row(|m| m.1, 2),
            exponent(|m| m.1),
            row(|m| m.2, 0),
            exponent(|m| m.2),
        );
    }
}

/// Records a program of four threads.
fn record(folder: &Path, program: &Path, shape: &str, size: u64) -> PathBuf {
    let out = folder.join(format!("{shape}-{size}"));
    let mut record = command::with_threads(4);
    record.args(["record", "--events", "none", "-o"]).arg(&out);
    record
        .arg("--")
        .arg(program)
        .args([shape, &size.to_string()]);
    process::within(&mut record, LIMIT).ok("record");
    out
}

/// Bytes of a recording.
fn size_of(folder: &Path) -> u64 {
    let listing = std::fs::read_dir(folder).expect("a folder");
    let one = |path: PathBuf| match path.is_dir() {
        true => size_of(&path),
        false => path.metadata().map_or(0, |m| m.len()),
    };
    listing
        .map(|entry| one(entry.expect("a file").path()))
        .sum()
}

/// Processor time of a report, in seconds, and the most memory that it had, in KB.
fn report(run: &Path) -> (f64, u64) {
    let mut report = command::with_threads(4);
    report.arg("report").arg(run).stdout(Stdio::null());
    let mut child = report.spawn().expect("the command");
    let begin = Instant::now();
    let mut most = 0;
    while !has_ended(&child) {
        most = most.max(anonymous(&child));
        if begin.elapsed() > LIMIT {
            child.kill().expect("a child that goes on");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let seconds = spent(&child);
    assert!(
        child.wait().expect("its end").success(),
        "no report in {LIMIT:?}"
    );
    (seconds, most)
}

/// Memory that is not a file's, in KB.
fn anonymous(child: &Child) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Fields of a child's status behind its name: also of one that has ended, until it is waited for.
fn fields(child: &Child) -> Vec<String> {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    let stat = stat.expect("a child that is not waited for");
    let (_, fields) = stat.rsplit_once(") ").expect("a name in parentheses");
    fields.split(' ').map(str::to_owned).collect()
}

fn has_ended(child: &Child) -> bool {
    fields(child)[0] == "Z"
}

/// Processor time, in seconds: ticks of 10 ms.
fn spent(child: &Child) -> f64 {
    let fields = fields(child);
    let ticks = |at: usize| fields[at].parse::<u64>().expect("a number");
    (ticks(11) + ticks(12)) as f64 / 100.0
}
