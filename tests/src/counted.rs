//! Programs that count their own instructions: what they say, and what they execute when somebody else looks on.

use crate::{command, compile, process, repository};
use serde_json::Value;
use std::fmt::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The event.
pub const EXACT: &str = "instructions:exact";

/// `tests/sources/stepped.c`, which executes a program instruction by instruction.
pub struct Stepper(PathBuf);

impl Stepper {
    /// Compiled in a folder; `None`, and said so, without gcc.
    #[must_use]
    pub fn new(folder: &Path) -> Option<Stepper> {
        let path = folder.join("stepped");
        let source = repository().join("tests/sources/stepped.c");
        compile::files(&[source], &path, "gcc -O2").then_some(Stepper(path))
    }

    /// How many instructions a program with one thread executes in its functions that count, within so many seconds; `None`: it needs
    /// more, or has other threads.
    ///
    /// # Panics
    /// The program can't be scanned.
    #[must_use]
    pub fn steps(&self, program: &Path, seconds: u32) -> Option<u64> {
        let [mut own, _] = counted(program);
        own.sort_by_key(|range| range.start);
        own.dedup();
        let lines = own.iter().fold(String::new(), |mut text, range| {
            let _ = writeln!(text, "{:x} {:x}", range.start, range.end);
            text
        });
        let list = self.0.with_extension("ranges");
        std::fs::write(&list, lines).expect("there is room for a list");
        let mut command = Command::new("timeout");
        command.args(["-k", "1", &seconds.to_string()]);
        command.arg(&self.0).arg(&list).arg("--").arg(program);
        let said = process::run(process::clean(&mut command, 1).env("OMP_THREAD_LIMIT", "1"));
        let errors = said.errors();
        let told = errors.lines().find_map(|l| l.strip_prefix("steps "))?;
        told.parse().ok()
    }
}

/// What all threads of a run have counted.
///
/// # Panics
/// It is no report.
#[must_use]
pub fn total(report: &Value) -> u64 {
    let threads = report["accounting"].as_array().expect("a list of threads");
    let counts = threads
        .iter()
        .filter_map(|t| t["total_counts"][EXACT].as_u64());
    counts.sum()
}

/// Functions that count, by the addresses of their code, and the others that were to.
///
/// # Panics
/// The program can't be scanned.
#[must_use]
pub fn counted(program: &Path) -> [Vec<Range<u64>>; 2] {
    let scan = command::json([
        "scan".as_ref(),
        "--count".as_ref(),
        program.as_os_str(),
        "--format".as_ref(),
        "json".as_ref(),
    ]);
    let address = |v: &Value| {
        let text = v.as_str().expect("an address");
        u64::from_str_radix(text.trim_start_matches("0x"), 16).expect("an address")
    };
    let counted = &scan["binary"]["counted"];
    let own = counted["functions"]
        .as_array()
        .expect("a list of functions");
    let refused = counted["refused"].as_array().expect("a list of functions");
    let symbols = symbols(program);
    let ranges = |places: Vec<u64>| {
        let named = |range: &&(String, Range<u64>)| places.iter().any(|at| range.1.contains(at));
        let names: Vec<&str> = symbols.iter().filter(named).map(|s| &*s.0).collect();
        // What compilers move away belongs to the function.
        let is_part = |s: &&(String, Range<u64>)| {
            let base = s.0.split(".cold").next().unwrap_or(&s.0);
            names.contains(&base)
        };
        symbols
            .iter()
            .filter(is_part)
            .map(|s| s.1.clone())
            .collect()
    };
    [
        ranges(own.iter().map(|f| address(&f[0])).collect()),
        ranges(refused.iter().map(|f| address(&f["address"])).collect()),
    ]
}

/// A program's functions, as `nm` lists them.
fn symbols(program: &Path) -> Vec<(String, Range<u64>)> {
    let listed = process::run(Command::new("nm").arg("-S").arg(program)).ok("nm");
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [start, len, kind, name] = words[..] else {
            return None;
        };
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, len) = (number(start)?, number(len)?);
        matches!(kind, "t" | "T" | "w" | "W").then(|| (name.to_owned(), start..start + len))
    };
    listed.text().lines().filter_map(parse).collect()
}
