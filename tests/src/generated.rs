//! Programs that nobody wrote by hand: drawn by number, with phases whose losses their own clocks and a small model tell. A report's first
//! block has to say the same. The benchmark `generated` does hundreds, the end-to-end tests some dozens.

mod draw;
mod exclusion;
pub mod followed;
pub mod judge;
mod loops;
pub mod model;
mod tasks;
mod teams;
pub mod writer;

use crate::planted::judge::Verdict;
use crate::{command, compile, process};
pub use draw::{Draw, KINDS};
use judge::Judged;
use model::Known;
use std::path::{Path, PathBuf};
use std::process::Command;
use writer::Writer;

/// Numbers far from each other for numbers that follow each other (the finaliser of MurmurHash3).
fn scattered(number: u64) -> u64 {
    let number = (number ^ number >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let number = (number ^ number >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    number ^ number >> 33
}

/// Times that a program is tried while others disturb it.
const TRIES: usize = 4;
/// Ticks of processor time that the hypervisor may take meanwhile. A run takes a second, and a tick is the hundredth part.
const STOLEN: u64 = 2;

/// Ticks of processor time that the hypervisor took since the machine began: the eighth number of the first line of `/proc/stat`.
fn stolen() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let ticks = stat.split_whitespace().nth(8);
    ticks.and_then(|t| t.parse().ok()).unwrap_or(0)
}

/// A drawn program with its compiler.
#[derive(Debug)]
pub struct Program {
    /// Its number.
    pub number: u64,
    /// What is known of it.
    pub drawn: Writer,
    /// Whether it competes with whatever else runs. If not, its threads run as soon as they wake from
    /// sleep, as far as that is permitted.
    pub competes: bool,
    folder: PathBuf,
}

impl Program {
    /// The program of this number, in a folder of its own inside of `folder`.
    pub fn draw(number: u64, folder: &Path) -> Program {
        Program {
            number,
            drawn: draw::draw(number),
            competes: false,
            folder: folder.join(number.to_string()),
        }
    }

    /// What it is drawn for.
    pub fn kind(&self) -> &'static str {
        KINDS[self.number as usize % KINDS.len()].0
    }

    /// Whether clang compiles it.
    pub fn by_clang(&self) -> bool {
        !self.drawn.only_gcc && scattered(self.number ^ 0xc1a6).is_multiple_of(2)
    }

    /// Kind, number, compiler and threads.
    pub fn name(&self) -> String {
        let compiler = if self.by_clang() { "clang" } else { "gcc" };
        let threads = self.drawn.threads;
        format!("{} {} {compiler} {threads}", self.number, self.kind())
    }

    /// Compiles it. `None`, and said so, without the compiler.
    pub fn build(&self) -> Option<PathBuf> {
        self.build_as("program", &self.drawn.source())
    }

    fn build_as(&self, name: &str, source: &str) -> Option<PathBuf> {
        std::fs::create_dir_all(&self.folder).expect("there is room for a program");
        let (cc, cxx) = match self.by_clang() {
            true => ("clang-19", "clang++-19"),
            false => ("gcc", "g++"),
        };
        let clock = crate::repository().join("tests/sources/generated");
        let object = self.folder.join("own_clock.o");
        let files = [clock.join("own_clock.c")];
        compile::files(&files, &object, &format!("{cc} -O2 -c")).then_some(())?;
        let (compiler, extension) = match self.drawn.is_cxx {
            true => (cxx, "cc"),
            false => (cc, "c"),
        };
        let file = self.folder.join(format!("{name}.{extension}"));
        std::fs::write(&file, source).expect("there is room for a source");
        let out = self.folder.join(name);
        let how = format!("{compiler} -O2 -g -fopenmp -I{}", clock.display());
        compile::files(&[file, object], &out, &how).then_some(out)
    }

    fn in_its_environment<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        command.envs(self.drawn.environment.iter().cloned());
        match (self.drawn.computes, self.competes) {
            (true, _) => _ = command.env("COMPUTE", "1"),
            // Late ones would be the machine's.
            (false, false) => _ = command.env("IN_TIME", "1"),
            (false, true) => {}
        }
        command.current_dir(&self.folder)
    }

    /// What it lost in a run without us, with so many threads.
    fn alone(&self, program: &Path, threads: usize) -> Option<Known> {
        self.alone_with(program, threads, None)
    }

    /// The same with one more variable in its environment.
    fn alone_with(
        &self,
        program: &Path,
        threads: usize,
        variable: Option<(&String, &String)>,
    ) -> Option<Known> {
        let mut command = Command::new(program);
        process::clean(&mut command, threads);
        self.in_its_environment(&mut command).envs(variable);
        let ran = process::run(&mut command).ok(&self.name());
        Known::read(&self.drawn, &ran.errors())
    }

    /// Compiles, records and judges it. `None`, and said so, without the compiler. What is wrong while the hypervisor takes the processors is
    /// tried again, unless it is to compete.
    pub fn judge(&self) -> Option<Judged> {
        for _ in 1..TRIES {
            let before = stolen();
            let judged = self.judge_once()?;
            let is_wrong = matches!(judged.verdict, Verdict::Wrong(_));
            if self.competes || !is_wrong || stolen() - before < STOLEN {
                return Some(judged);
            }
        }
        self.judge_once()
    }

    fn judge_once(&self) -> Option<Judged> {
        let program = self.build()?;
        let out = self.folder.join("out");
        let _ = std::fs::remove_dir_all(&out);
        let mut record = command::with_threads(self.drawn.threads);
        record
            .args(["record", "-o", "out"])
            .args(&self.drawn.options);
        record.arg("--").arg(&program);
        let recorded = process::run(self.in_its_environment(&mut record)).ok(&self.name());
        let known = Known::read(&self.drawn, &recorded.errors());
        let known = known.unwrap_or_else(|| panic!("{}: no clock in {recorded:?}", self.name()));
        let report = command::report(&out);
        let text = command::ok([Path::new("report"), &out]).text();
        // For whoever wants to see why.
        let _ = std::fs::write(self.folder.join("report.txt"), &text);
        let _ = std::fs::write(self.folder.join("clock.txt"), recorded.errors());
        let mut judged = judge::judge(&self.drawn, known, &report, &text);
        let block = judge::first_block(&text);
        judged.add(self.false_prediction(&program, &report, &block));
        let _ = std::fs::write(self.folder.join("judged.txt"), format!("{judged:#?}"));
        Some(judged)
    }
}
