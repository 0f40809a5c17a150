//! What a report advises is tried on planted programs, in pairs: settings of the environment, and clauses of the source.

use super::{Case, Programs, folder};
use crate::{command, compile, process};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Pairs of runs; the shortest of each side counts.
const PAIRS: usize = 3;

/// What can be applied without asking anybody.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// `OMP_NUM_THREADS`.
    Threads(usize),
    /// A clause of the loop on this line, as `schedule(dynamic,1)`.
    Schedule(u32, String),
    /// Chunks of the loop on this line: so many times as large as they are.
    Chunk(u32, f64),
    /// Fewer tasks with more work each, as the program has them where it is compiled with `LARGER_TASKS`.
    LargerTasks,
}

/// Times with and without it.
#[derive(Debug, Clone)]
pub struct Tried {
    /// What was tried.
    pub advice: Advice,
    /// The program's own time as it is, in seconds.
    pub before_s: f64,
    /// The same with the advice.
    pub after_s: f64,
}

impl Tried {
    /// Whether the program got slower by more than 3 % and 2 ms.
    pub fn is_bad(&self) -> bool {
        self.after_s > 1.03 * self.before_s + 2e-3
    }
}

/// What a report advises.
pub fn advice(report: &Value) -> Vec<Advice> {
    let losses = report["losses"].as_array().map_or(&[][..], Vec::as_slice);
    losses.iter().filter_map(|loss| one(report, loss)).collect()
}

fn one(report: &Value, loss: &Value) -> Option<Advice> {
    let remedy = loss["remedy"].as_str()?;
    if let Some((_, rest)) = remedy.split_once("OMP_NUM_THREADS=") {
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return Some(Advice::Threads(digits.parse().ok()?));
    }
    if remedy.starts_with("create larger tasks: stop at a size") {
        return Some(Advice::LargerTasks);
    }
    let id = &loss["cause"]["at"];
    let regions = report["regions"].as_array()?;
    let region = regions.iter().find(|r| r["id"] == *id)?;
    let line = u32::try_from(region["source"]["line"].as_u64()?).ok()?;
    match remedy {
        "use larger chunks" => return Some(Advice::Chunk(line, 16.0)),
        "use smaller chunks" => return Some(Advice::Chunk(line, 0.25)),
        _ => {}
    }
    let (before, _) = remedy.split_once(" would take ")?;
    let inside = before.rsplit(' ').next()?;
    Some(Advice::Schedule(line, format!("schedule({inside})")))
}

impl Programs {
    /// Tries what the report of a judged case advises. Nothing is tried of ranks.
    ///
    /// # Panics
    /// If the case was not judged before.
    pub fn tried(&mut self, case: &Case) -> Vec<Tried> {
        let folder = self.folder_of(case);
        let out = folder.join("out");
        let report = command::report(&out);
        let program = folder.join(case.source());
        if case.is_mpi() {
            return vec![];
        }
        let of = |advice: Advice| {
            let (changed, threads) = match &advice {
                Advice::Threads(n) => (program.clone(), *n),
                Advice::Schedule(line, clause) => {
                    let clause = |_: &str| clause.clone();
                    (with_clause(case, &folder, *line, &clause)?, case.threads())
                }
                Advice::Chunk(line, times) => {
                    let clause = |now: &str| {
                        let (kind, chunk) = now.split_once(',').unwrap_or((now, "1"));
                        let chunk: f64 = chunk.trim().parse().unwrap_or(1.0);
                        format!("schedule({kind},{})", (chunk * times).max(1.0) as u64)
                    };
                    (with_clause(case, &folder, *line, &clause)?, case.threads())
                }
                Advice::LargerTasks => (with_larger_tasks(case, &folder)?, case.threads()),
            };
            let (mut before_s, mut after_s) = (f64::INFINITY, f64::INFINITY);
            for _ in 0..PAIRS {
                before_s = before_s.min(own_s(case, &program, case.threads()));
                after_s = after_s.min(own_s(case, &changed, threads));
            }
            Some(Tried {
                advice,
                before_s,
                after_s,
            })
        };
        advice(&report).into_iter().filter_map(of).collect()
    }
}

/// The program with its larger tasks. `None`: it has none.
fn with_larger_tasks(case: &Case, out: &Path) -> Option<PathBuf> {
    let source = folder().join(format!("{}.c", case.source()));
    let text = std::fs::read_to_string(&source).expect("a source");
    text.contains("LARGER_TASKS").then_some(())?;
    let program = out.join(format!("{}-advised", case.source()));
    let how = format!("{} -O2 -g -fopenmp -DLARGER_TASKS", case.command());
    compile::files(&[source], &program, &how).then_some(program)
}

/// The program with another clause at a loop, which follows from what is in the parentheses now. `None`: the line has no pragma of a loop.
fn with_clause(
    case: &Case,
    out: &Path,
    line: u32,
    clause: &dyn Fn(&str) -> String,
) -> Option<PathBuf> {
    let source = format!("{}.c", case.source());
    let text = std::fs::read_to_string(folder().join(&source)).expect("a source");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Debug information may name the loop behind its pragma.
    let at = line as usize - 1;
    let is_pragma = |at: &usize| {
        let words: Vec<&str> = lines
            .get(*at)
            .map_or(vec![], |l| l.split_whitespace().collect());
        words.starts_with(&["#pragma", "omp"]) && words.contains(&"for")
    };
    let at = [at, at.wrapping_sub(1)].into_iter().find(is_pragma)?;
    let pragma = &lines[at];
    let (without, now) = match pragma.split_once("schedule(") {
        Some((head, rest)) => {
            let (now, rest) = rest.split_once(')')?;
            (head.to_owned() + rest, now)
        }
        None => (pragma.clone(), "static"),
    };
    lines[at] = format!("{without} {}", clause(now));
    for header in std::fs::read_dir(folder()).ok()?.flatten() {
        if header.path().extension().is_some_and(|e| e == "h") {
            let _ = std::fs::copy(header.path(), out.join(header.file_name()));
        }
    }
    let changed = out.join(&source);
    std::fs::write(&changed, lines.join("\n")).expect("there is room for a source");
    let program = out.join(format!("{}-advised", case.source()));
    let compiler = case.command();
    compile::files(&[changed], &program, &format!("{compiler} -O2 -g -fopenmp")).then_some(program)
}

/// The program's own time, by its clock, in seconds.
fn own_s(case: &Case, program: &Path, threads: usize) -> f64 {
    let mut command = std::process::Command::new(program);
    command.args([case.mode(), &case.words[0]]);
    command.env("OMP_NUM_THREADS", threads.to_string());
    let said = process::run(&mut command).ok(&case.name());
    let truth = super::judge::Truth::read(&said.errors(), false);
    truth.map_or(f64::NAN, |t| t.own)
}
