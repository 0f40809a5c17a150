//! How long scanning, patching and verifying take, and how much memory: `cargo bench -p ompfuse-tests --bench rewriting
//! [-- FILE...]`. Without a file: a library that is made of the fixtures, every object many times.
//!
//! Beside them, in turn, what any tool would need at least: a copy of the file, with and without forcing it to the disk (a
//! patch does that), the code decoded once by iced-x86 on one thread, objdump. Times are medians, of whole processes but for
//! the decoder: by the clock, and of the processors (all of them together; on a busy machine these are the ones to compare).
//! Memory is the largest resident set, pages of the mapped file included, by GNU time. Then what the patched file has more
//! than the original, by part; last, what the parts of scan and patch take in one process. Environment: `OMPFUSE_BENCH_ROUNDS` (default 5).
//!
//! With `--ratios` only what scan and patch take in linear decodes is measured ([`ratios`]): also on a busy machine.

mod ratios;

use object::{Object, ObjectSection};
use ompfuse_rewriter::patch::accept;
use ompfuse_rewriter::patch_error::PatchError;
use ompfuse_rewriter::plan::{PlanOptions, plan};
use ompfuse_rewriter::scan::scan_timed;
use ompfuse_rewriter::write::write_to;
use ompfuse_tests::{command, process, repository};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Copies of every object in the library that is made here.
const COPIES: usize = 60;

fn main() {
    let files: Vec<PathBuf> = std::env::args_os()
        .skip(1)
        .filter(|a| !a.to_string_lossy().starts_with('-'))
        .map(PathBuf::from)
        .collect();
    let rounds = std::env::var("OMPFUSE_BENCH_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(5);
    let folder = tempfile::tempdir().expect("there is room for a benchmark");
    let files = match files.is_empty() {
        true => vec![made_of_fixtures(folder.path())],
        false => files,
    };
    if std::env::args_os().any(|arg| arg == "--ratios") {
        return tell_ratios(&files, rounds);
    }
    for file in files {
        measure(&file, folder.path(), rounds);
    }
}

/// Prints what scan and patch take in linear decodes.
fn tell_ratios(files: &[PathBuf], rounds: usize) {
    println!(
        "{:>10}{:>8}{:>8}  file, medians of {rounds} rounds",
        "decode ms", "scan", "patch"
    );
    for file in files {
        let bytes = std::fs::read(file).expect("the file can be read");
        let ratios = ratios::measure(&bytes, &file.to_string_lossy(), rounds);
        println!(
            "{:>10.2}{:>8.1}{:>8.1}  {}",
            ratios.decode,
            ratios.scan,
            ratios.patch,
            file.display()
        );
    }
}

/// A step of the benchmark.
struct Step {
    name: &'static str,
    program: PathBuf,
    args: Vec<PathBuf>,
}

/// What is measured.
fn steps(file: &Path, copy: &Path, patched: &Path) -> [Step; 6] {
    let ompfuse = command::path().to_owned();
    let step = |name, program: &Path, args: &[&Path]| Step {
        name,
        program: program.to_owned(),
        args: args.iter().map(|&a| a.to_owned()).collect(),
    };
    let json = [Path::new("--format"), Path::new("json")];
    [
        step("cp", Path::new("cp"), &[file, copy]),
        step(
            "cp, fsync",
            Path::new("sh"),
            &[
                Path::new("-c"),
                Path::new(r#"cp "$0" "$1" && sync "$1""#),
                file,
                copy,
            ],
        ),
        step("objdump -d", Path::new("objdump"), &[Path::new("-d"), file]),
        step(
            "scan",
            &ompfuse,
            &[Path::new("scan"), json[0], json[1], file],
        ),
        step(
            "patch",
            &ompfuse,
            &[
                Path::new("patch"),
                json[0],
                json[1],
                Path::new("-o"),
                patched,
                file,
            ],
        ),
        step("verify", &ompfuse, &[Path::new("verify"), file, patched]),
    ]
}

fn measure(file: &Path, folder: &Path, rounds: usize) {
    let (copy, patched) = (folder.join("copy.so"), folder.join("patched.so"));
    let steps = steps(file, &copy, &patched);
    let bytes = std::fs::read(file).expect("the file can be read");
    let mut decoding = Times::default();
    let mut times: Vec<Times> = steps.iter().map(|_| Times::default()).collect();
    let mut memory = vec![None; steps.len()];
    for _ in 0..rounds {
        decoding.push(decode(&bytes));
        for (at, step) in steps.iter().enumerate() {
            let (time, peak) = run(step);
            times[at].push(time);
            memory[at] = memory[at].max(peak);
        }
    }
    let sites = command::json(
        ["scan", "--format", "json"]
            .map(Path::new)
            .into_iter()
            .chain([&*patched]),
    );
    let mb = |n: usize| n as f64 / 1e6;
    let new = patched.metadata().expect("the patched file is there").len() as usize;
    println!(
        "{}: {:.1} MB, {} sites, {} patched; {:.1} % larger; {rounds} rounds",
        file.display(),
        mb(bytes.len()),
        sites["totals"]["sites"],
        sites["totals"]["patched"],
        100.0 * (new as f64 / bytes.len() as f64 - 1.0)
    );
    println!(
        "{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>8}",
        "", "ms", "x decode", "CPU ms", "x decode", "peak MB", "x file"
    );
    let unit = decoding.medians();
    let row = |name: &str, time: Time, peak: Option<u64>| {
        let (peak, of_file) = match peak {
            Some(kb) => (
                format!("{:.0}", kb as f64 * 1024.0 / 1e6),
                format!("{:.2}", kb as f64 * 1024.0 / bytes.len() as f64),
            ),
            None => ("?".to_owned(), "?".to_owned()),
        };
        println!(
            "{name:<14}{:>10.0}{:>10.1}{:>10.0}{:>10.1}{peak:>10}{of_file:>8}",
            time.clock,
            time.clock / unit.clock,
            time.processors,
            time.processors / unit.processors,
        );
    };
    row("linear decode", unit, None);
    for ((step, times), peak) in steps.iter().zip(times).zip(memory) {
        row(step.name, times.medians(), peak);
    }
    let patched = std::fs::read(&patched).expect("the patched file can be read");
    println!("{:<24}{:>10}{:>10}", "added", "bytes", "% of file");
    for (part, len) in added(bytes.len() as u64, &patched) {
        println!(
            "{part:<24}{len:>10}{:>10.2}",
            100.0 * len as f64 / bytes.len() as f64
        );
    }
    println!("{:<34}{:>10}{:>10}", "part", "ms", "x decode");
    for (part, ms) in parts(file, &bytes, rounds) {
        println!("{part:<34}{ms:>10.0}{:>10.2}", ms / unit.clock);
    }
}

/// Milliseconds that the parts of scan and patch take, medians. Those of looking at functions are of all threads together,
/// the others by the clock.
fn parts(file: &Path, bytes: &[u8], rounds: usize) -> Vec<(String, f64)> {
    let name = file.to_string_lossy();
    let mut all: Vec<(String, Times)> = Vec::new();
    for _ in 0..rounds {
        let mut here: Vec<(String, f64)> = Vec::new();
        let mut begin = Instant::now();
        let mut lap = |here: &mut Vec<(String, f64)>, what: &str| {
            here.push((what.to_owned(), begin.elapsed().as_secs_f64() * 1e3));
            begin = Instant::now();
        };
        let (scan, functions) = scan_timed(bytes, &name).expect("the file can be scanned");
        lap(&mut here, "scan");
        for (part, taken) in functions {
            let what = format!("  functions: {part}");
            here.push((what, taken.as_secs_f64() * 1e3));
        }
        lap(&mut here, "");
        let plan = plan(bytes, scan, &PlanOptions::default()).expect("the file can be patched");
        lap(&mut here, "plan");
        let mut new = Vec::with_capacity(plan.len as usize);
        let written = write_to(bytes, &plan, |part| -> Result<(), PatchError> {
            new.extend_from_slice(part);
            Ok(())
        });
        written.expect("the plan is the file's");
        lap(&mut here, "write, in memory");
        accept(bytes, &new, &plan, &|_| ()).expect("the patched file is right");
        lap(&mut here, "verify");
        for (what, ms) in here.into_iter().filter(|(what, _)| !what.is_empty()) {
            let time = Time {
                clock: ms,
                processors: f64::NAN,
            };
            match all.iter_mut().find(|(known, _)| *known == what) {
                Some((_, times)) => times.push(time),
                None => {
                    let mut times = Times::default();
                    times.push(time);
                    all.push((what, times));
                }
            }
        }
    }
    let medians = all.into_iter();
    medians
        .map(|(what, times)| (what, times.medians().clock))
        .collect()
}

/// The bytes behind the original's end, by section.
fn added(original: u64, patched: &[u8]) -> Vec<(String, u64)> {
    let file = object::File::parse(patched).expect("an ELF file");
    let mut parts: Vec<(String, u64)> = file
        .sections()
        .filter_map(|section| {
            let (offset, len) = section.file_range()?;
            let name = section.name().unwrap_or("?").to_owned();
            (offset >= original).then_some((name, len))
        })
        .collect();
    let named: u64 = parts.iter().map(|(_, len)| len).sum();
    let all = patched.len() as u64 - original;
    parts.push(("headers and filler".to_owned(), all.saturating_sub(named)));
    parts.push(("together".to_owned(), all));
    parts
}

/// Milliseconds.
#[derive(Clone, Copy)]
struct Time {
    clock: f64,
    /// On all processors.
    processors: f64,
}

/// Several of the same thing.
#[derive(Default)]
struct Times {
    clock: Vec<f64>,
    processors: Vec<f64>,
}

impl Times {
    fn push(&mut self, time: Time) {
        self.clock.push(time.clock);
        self.processors.push(time.processors);
    }

    fn medians(&self) -> Time {
        let median = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
        };
        Time {
            clock: median(&self.clock),
            processors: median(&self.processors),
        }
    }
}

/// Times of a process, and its largest resident set in units of 1024 bytes; what only GNU time tells is missing where it isn't there.
fn run(step: &Step) -> (Time, Option<u64>) {
    let counter = Path::new("/usr/bin/time");
    let mut command = match counter.is_file() {
        true => {
            let mut command = Command::new(counter);
            command.args(["-f", "%M %U %S"]).arg(&step.program);
            command
        }
        false => Command::new(&step.program),
    };
    command
        .args(&step.args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let begin = Instant::now();
    let output = command.output().expect("a tool can be started");
    let clock = begin.elapsed().as_secs_f64() * 1e3;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}", step.name);
    let last = said.lines().last().unwrap_or_default();
    let numbers: Vec<f64> = last
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    let (peak, processors) = match numbers[..] {
        [peak, user, system] => (Some(peak as u64), 1e3 * (user + system)),
        _ => (None, f64::NAN),
    };
    (Time { clock, processors }, peak)
}

/// Times for the code, instruction by instruction.
fn decode(bytes: &[u8]) -> Time {
    let (begin, before) = (Instant::now(), ratios::on_processor());
    ratios::linear(bytes);
    Time {
        clock: begin.elapsed().as_secs_f64() * 1e3,
        processors: ratios::on_processor() - before,
    }
}

/// Compiles the fixtures in C, hides their names, and links every object many times.
fn made_of_fixtures(folder: &Path) -> PathBuf {
    let mut objects = Vec::new();
    let mut sources: Vec<PathBuf> = std::fs::read_dir(repository().join("fixtures"))
        .expect("there are fixtures")
        .flat_map(|d| {
            std::fs::read_dir(d.expect("a folder").path())
                .into_iter()
                .flatten()
                .flatten()
        })
        .map(|f| f.path())
        .filter(|p| p.extension().is_some_and(|e| e == "c"))
        .collect();
    sources.sort();
    for (number, source) in sources.iter().enumerate() {
        let object = folder.join(format!("{number}.o"));
        let compiled = Command::new("gcc")
            .args(["-O2", "-fopenmp", "-fPIC", "-w", "-c"])
            .arg(source)
            .arg("-o")
            .arg(&object)
            .output()
            .expect("gcc can be started");
        // A few are for other compilers only.
        if compiled.status.success() {
            let hide = ["--wildcard", "--localize-symbol=*"];
            process::run(Command::new("objcopy").args(hide).arg(&object)).ok("objcopy");
            objects.push(object);
        }
    }
    assert!(
        objects.len() > 10,
        "only {} fixtures compile",
        objects.len()
    );
    let library = folder.join("libfixtures.so");
    let mut link = Command::new("gcc");
    link.args(["-shared", "-fopenmp", "-o"]).arg(&library);
    for _ in 0..COPIES {
        link.args(&objects);
    }
    process::run(link.args(["-lm", "-latomic"])).ok("linking");
    library
}
