//! Programs with one planted bottleneck or none (`fixtures/planted`), and what is said of them: compiled, recorded and judged through
//! the command line. The benchmark `planted` does all of it, the end-to-end tests a part.

pub mod advice;
pub mod judge;

use crate::{command, compile, process};
use judge::{Said, Truth, Verdict};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What Open MPI wants of root, and of machines with few processors.
const OPEN_MPI: [(&str, &str); 4] = [
    ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
    ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
];

/// A run of a program, as `cases.toml` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Case {
    /// Source and mode, as `waits/single`.
    pub program: String,
    /// The words behind it.
    words: Vec<String>,
}

/// The folder of the programs.
fn folder() -> PathBuf {
    crate::repository().join("fixtures/planted")
}

/// All of `cases.toml`.
///
/// # Panics
/// If a run has a word that nothing knows.
pub fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join("cases.toml")).expect("a list of cases");
    let table: toml::Table = toml::from_str(&text).expect("TOML");
    let sources = table["source"].as_array().expect("a list of sources");
    let mut cases = Vec::new();
    for source in sources {
        let source = source.as_table().expect("a table");
        let name = source["name"].as_str().expect("a name");
        for (mode, runs) in source.iter().filter(|(key, _)| *key != "name") {
            for run in runs.as_array().expect("a list of runs") {
                let words = run.as_str().expect("words").split_whitespace();
                let case = Case {
                    program: format!("{name}/{mode}"),
                    words: words.map(str::to_owned).collect(),
                };
                case.check();
                cases.push(case);
            }
        }
    }
    cases
}

impl Case {
    fn check(&self) {
        let known = ["summary", "stripped", "hidden", "crowded", "ci"];
        let is_known = |w: &String| {
            known.contains(&w.as_str()) || w.starts_with("calls=") || w.starts_with("functions=")
        };
        let right = self.words.len() >= 3
            && ["nap", "spin"].contains(&self.words[0].as_str())
            && ["gcc", "clang", "openmpi", "mpich"].contains(&self.compiler())
            && self.words[2].parse::<usize>().is_ok()
            && self.words[3..].iter().all(is_known);
        assert!(right, "cases.toml: {self:?}");
    }

    /// Program and words.
    pub fn name(&self) -> String {
        format!("{} {}", self.program, self.words.join(" "))
    }

    /// Whether it has a word.
    pub fn has(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }

    /// Whether its units sleep.
    pub fn sleeps(&self) -> bool {
        self.has("nap")
    }

    /// `gcc`, `clang`, or an MPI.
    pub fn compiler(&self) -> &str {
        &self.words[1]
    }

    fn command(&self) -> String {
        match self.compiler() {
            "clang" => "clang-19".to_owned(),
            "gcc" => "gcc".to_owned(),
            mpi => format!("mpicc.{mpi}"),
        }
    }

    fn threads(&self) -> usize {
        self.words[2].parse().expect("checked")
    }

    fn ranks(&self) -> usize {
        if self.is_mpi() { 2 } else { 1 }
    }

    /// Whether it has ranks.
    pub fn is_mpi(&self) -> bool {
        self.program.starts_with("ranks/")
    }

    fn source(&self) -> &str {
        self.program.split('/').next().unwrap_or_default()
    }

    /// Its first argument.
    pub fn mode(&self) -> &str {
        self.program.split('/').nth(1).unwrap_or_default()
    }

    /// What the machine lacks to judge it.
    pub fn lacks(&self) -> Option<String> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads() * self.ranks();
        match (self.sleeps(), self.has("crowded")) {
            (false, false) if threads > processors => Some(format!("{threads} processors")),
            (false, true) if threads <= processors => {
                Some(format!("fewer than {threads} processors"))
            }
            _ => None,
        }
    }
}

/// The sources, compiled where needed into one folder.
#[derive(Debug)]
pub struct Programs {
    folder: PathBuf,
    /// By source and compiler; `false`: the compiler is missing.
    built: BTreeMap<String, bool>,
}

/// A recorded and judged case.
#[derive(Debug)]
pub struct Judged {
    /// What the program said.
    pub truth: Truth,
    /// What the report said.
    pub said: Said,
    /// Whether that is right.
    pub verdict: Verdict,
}

impl Programs {
    /// In this folder, which also gets a folder for each case's runs.
    pub fn new(folder: &Path) -> Programs {
        std::fs::create_dir_all(folder).expect("there is room for programs");
        Programs {
            folder: folder.to_owned(),
            built: BTreeMap::new(),
        }
    }

    /// The program of a case, with symbols and lines. `None`, and said so, without the compiler.
    pub fn build(&mut self, case: &Case) -> Option<PathBuf> {
        let (source, compiler) = (case.source(), case.compiler());
        let name = format!("{source}-{compiler}");
        let out = self.folder.join(&name);
        let is_built = *self.built.entry(name).or_insert_with(|| {
            let command = case.command();
            let file = folder().join(format!("{source}.c"));
            compile::files(&[file], &out, &format!("{command} -O2 -g -fopenmp"))
        });
        is_built.then_some(out)
    }

    fn folder_of(&self, case: &Case) -> PathBuf {
        self.folder.join(case.name().replace(['/', ' ', '*'], "-"))
    }

    /// Compiles, records and judges. `None`, and said so, without the compiler.
    pub fn judge(&mut self, case: &Case) -> Option<Judged> {
        let with_lines = self.build(case)?;
        let folder = self.folder_of(case);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("there is room for runs");
        let program = folder.join(case.source());
        std::fs::copy(&with_lines, &program).expect("there is room for a program");
        if case.has("stripped") {
            process::run(Command::new("strip").arg(&program)).ok("strip");
        }
        let recorded = record(case, &folder, &program);
        let truth = Truth::read(&recorded.errors(), case.has("hidden"))
            .unwrap_or_else(|| panic!("{}: no TRUTH in {recorded:?}", case.name()));
        let out = folder.join("out");
        let report = command::report(&out);
        // For whoever wants to see why.
        let text = command::ok([Path::new("report"), &out]);
        let _ = std::fs::write(folder.join("report.txt"), &text.stdout);
        let _ = std::fs::write(folder.join("truth.txt"), &recorded.stderr);
        let said = Said::read(&report, |address| line_of(&with_lines, address));
        let functions = case.words.iter().any(|w| w.starts_with("functions="));
        let verdict = judge::judge(&truth, &said, functions);
        Some(Judged {
            truth,
            said,
            verdict,
        })
    }
}

fn record(case: &Case, folder: &Path, program: &Path) -> process::Output {
    let mut record = command::with_threads(case.threads());
    record.envs(OPEN_MPI).current_dir(folder);
    record.args(["record", "-o", "out"]);
    for word in &case.words {
        match word.split_once('=') {
            Some((option, value)) => record.arg(format!("--{option}")).arg(value),
            None if word == "summary" => record.arg("--units=sums"),
            None => &mut record,
        };
    }
    record.arg("--");
    if case.is_mpi() {
        record.arg(format!("mpirun.{}", case.compiler()));
        record.arg("-n").arg(case.ranks().to_string());
    }
    record.arg(program).args([case.mode(), &case.words[0]]);
    process::run(&mut record).ok(&case.name())
}

/// The line of an address, from debug information that the recorded program may lack.
fn line_of(program: &Path, address: &str) -> Option<u32> {
    let mut command = Command::new("addr2line");
    let printed = process::run(command.arg("-e").arg(program).arg(address)).text();
    let (_, line) = printed.split_whitespace().next()?.rsplit_once(':')?;
    line.parse().ok()
}
