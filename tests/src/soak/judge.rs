//! What is asked of a drawn program.

use super::draw;
use super::program::Program;
use super::source::source;
use crate::counted::{Stepper, total};
use crate::hostile::Random;
use crate::matrix::{self, Compiler, Link, Matrix};
use crate::process::{self, Output};
use crate::scan::Scan;
use crate::{command, fixture, table};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program takes milliseconds. What takes so many seconds hangs.
const SECONDS: &str = "15";
/// So many seconds it may take to step through a program.
const STEPPED: u32 = 8;
/// Status of `timeout` for what was ended.
const ENDED: i32 = 124;
/// How often the original is run once more before anything is said against the patched program.
const AGAIN: usize = 40;
/// The same where the patched program hangs. libgomp 12 hangs in teams of another size than the one before inside a
/// `taskgroup task_reduction` that no team is around (297 of 300 runs of a small program), in a drawn one once in 20 runs,
/// and more often where its threads come later.
const AGAIN_IF_ENDED: usize = 400;
/// Bytes that freed memory is filled with in further runs of the original: in teams that end inside such a `taskgroup` libgomp's
/// threads read what was freed, and what they find there depends on where memory came from, which one more library
/// in the process is enough to change (0 of 1,500 runs of a program hung, 82 of 100 with such bytes, 1 in 6 with our library loaded
/// but nothing patched; valgrind names the read).
const FILLED: [&str; 8] = ["1", "17", "85", "102", "128", "170", "240", "255"];
/// Attempts to make a failing program smaller.
const ATTEMPTS: usize = 150;

/// A program with the way it is built and run.
#[derive(Debug, Clone)]
pub struct Case {
    number: u64,
    program: Program,
    compiler: &'static Compiler,
    command: &'static str,
    extension: &'static str,
    level: &'static str,
    set: &'static Link,
    threads: usize,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All was as it should be; with the number of XUs that were recorded.
    Right(u64),
    /// The original can't be compared with, for this reason.
    Useless(String),
    /// This was wrong.
    Wrong(String),
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (level, set) = (self.level, &self.set.name);
        let (command, threads) = (self.command, self.threads);
        write!(
            f,
            "{}: {command} {level} ({set}), {threads} threads",
            self.number
        )
    }
}

impl Case {
    /// The case of this number; `None` if its compiler isn't installed, or the machine can't run what it would build.
    pub fn draw(number: u64) -> Option<Case> {
        let matrix = Matrix::get();
        let mut random = Random::new(draw::scattered(number));
        let extension = ["c", "c", "cpp"][random.below(3)];
        let known: Vec<(&'static Compiler, &'static str)> = matrix
            .versions
            .iter()
            .filter_map(|c| Some((c, c.command(extension)?)))
            .collect();
        let (compiler, command) = known[random.below(known.len())];
        let level = &matrix.levels[random.below(matrix.levels.len())];
        let set = &matrix.sets[random.below(matrix.sets.len())];
        let threads = [1, 2, 3, 4, 6][random.below(5)];
        let without = |what: &String| compiler.without.contains(what);
        let missing = matrix::version(command).is_none() || set.lacks().is_some();
        (!missing && !without(level) && !without(&set.name)).then(|| Case {
            number,
            program: draw::draw(number),
            compiler,
            command,
            extension,
            level,
            set,
            threads,
        })
    }

    /// Builds it, patches it, runs both, records.
    pub fn judge(&self) -> Verdict {
        let folder = tempfile::tempdir().expect("there is room for a program");
        self.judge_in(folder.path())
            .unwrap_or_else(|verdict| verdict)
    }

    fn judge_in(&self, folder: &Path) -> Result<Verdict, Verdict> {
        let original = self.build(folder)?;
        let before = self.run([original.as_os_str()]);
        if before.status >= ENDED || self.run([original.as_os_str()]) != before {
            let status = before.status;
            return Err(Verdict::Useless(format!(
                "the original isn't repeatable (status {status})"
            )));
        }
        let patched = folder.join("patched");
        self.ompfuse(
            "patch",
            &[original.as_os_str(), "-o".as_ref(), patched.as_os_str()],
        )?;
        let [original_file, patched_file] = [&original, &patched].map(|p| p.as_os_str());
        self.ompfuse("verify", &[original_file, patched_file])?;
        let equal = |now: Said, how: &str| {
            if now == before {
                return Ok(());
            }
            // What happens once in many times happens to the original too.
            let again = match now.status {
                ENDED => AGAIN_IF_ENDED,
                _ => AGAIN,
            };
            let same = (0..again).all(|_| self.run([original.as_os_str()]) == before)
                && FILLED.iter().all(|byte| {
                    let filled = format!("MALLOC_PERTURB_={byte}");
                    self.run(["env".as_ref(), filled.as_ref(), original_file]) == before
                });
            Err(match same {
                true => Verdict::Wrong(format!("{how}: {now:?}; before: {before:?}")),
                false => Verdict::Useless("the original isn't repeatable".to_owned()),
            })
        };
        equal(self.run([patched.as_os_str()]), "patched")?;

        let out = folder.join("run");
        let mut words: Vec<OsString> = vec![command::path().into(), "record".into()];
        words.extend(table::ONE_EVENT.map(OsString::from));
        words.extend(["-o".into(), out.clone().into(), "--".into()]);
        words.push(patched.clone().into());
        let recorded = self.run(&words);
        equal(recorded, "recorded")?;
        let runs = table::runs(&out);
        let [run] = &runs[..] else {
            return Err(Verdict::Wrong(format!("{} runs", runs.len())));
        };
        self.compare(&before.stdout, &Scan::of(&original), run)
    }

    /// Builds it, and compares what it counts of its instructions, alone on one thread, with what is executed when it is stepped through.
    pub fn judge_counts(&self) -> Verdict {
        let folder = tempfile::tempdir().expect("there is room for a program");
        self.judge_counts_in(folder.path())
            .unwrap_or_else(|verdict| verdict)
    }

    fn judge_counts_in(&self, folder: &Path) -> Result<Verdict, Verdict> {
        let useless = |why: &str| Verdict::Useless(why.to_owned());
        let program = self.build(folder)?;
        let out = folder.join("run");
        let mut record = command::with_threads(1);
        record.env("OMP_THREAD_LIMIT", "1");
        record.args(["record", "-q", "--count", "--events", "none", "-o"]);
        record.arg(&out).arg("--").arg(&program);
        let said = process::run(&mut record);
        // Programs have statuses of their own.
        if table::runs(&out).is_empty() {
            let nothing = ["nothing was recorded", "nothing to patch"];
            let errors = said.errors();
            return Err(match nothing.iter().any(|n| errors.contains(n)) {
                true => useless("nothing to patch"),
                false => Verdict::Wrong(format!("{said:?}")),
            });
        }
        let counted = total(&command::report(&out));
        if counted == 0 {
            return Err(useless("it has no count"));
        }
        let stepper = Stepper::new(folder).ok_or_else(|| useless("no gcc"))?;
        let steps = stepper.steps(&program, STEPPED);
        let steps = steps.ok_or_else(|| useless("too long, or with several threads"))?;
        match counted == steps {
            true => Ok(Verdict::Right(steps)),
            false => Err(Verdict::Wrong(format!(
                "{counted} instructions counted, {steps} executed"
            ))),
        }
    }

    /// Compares what was recorded with what the program counted.
    fn compare(&self, stdout: &str, scan: &Scan, run: &Path) -> Result<Verdict, Verdict> {
        let own = fixture::counts(stdout);
        let xus = table::export(run);
        let skipped = |constructs: &[&str]| {
            scan.sites
                .iter()
                .any(|s| s.outcome == "skipped" && constructs.contains(&s.construct.as_str()))
        };
        let of = |construct: &str| xus.iter().filter(|x| x.construct == construct).count() as u64;
        let ranges = xus.iter().filter(|x| x.construct == "range");
        let iterations = ranges.map(|x| x.number("iterations")).sum::<u64>();
        let loops = ["loop", "parallel", "distribute"];
        let mut wrong = Vec::new();
        for (what, recorded, gaps) in [
            ("tasks", of("task"), skipped(&["task", "taskloop"])),
            ("iterations", iterations, skipped(&loops)),
            (
                "sections",
                of("section"),
                scan.merges_sections() || skipped(&["sections", "parallel"]),
            ),
        ] {
            let counted = own.get(what).copied().unwrap_or(0);
            if recorded > counted || recorded < counted && !gaps {
                wrong.push(format!("{recorded} of {counted} {what}"));
            }
        }
        match wrong.is_empty() {
            true => Ok(Verdict::Right(xus.len() as u64)),
            false => Err(Verdict::Wrong(wrong.join(", "))),
        }
    }

    fn build(&self, folder: &Path) -> Result<PathBuf, Verdict> {
        let file = folder.join(format!("program.{}", self.extension));
        std::fs::write(&file, self.source()).expect("there is room for a source");
        let path = folder.join("program");
        let known = |f: &&String| !self.compiler.unknown.contains(f);
        let mut compile = Command::new(self.command);
        compile
            .args(["-fopenmp", "-g", "-w", self.level])
            .args(self.set.flags.iter().filter(known))
            .args(&self.compiler.flags)
            .arg("-o")
            .arg(&path)
            .arg(&file);
        let said = process::run(compile.env("LC_ALL", "C"));
        match said.status {
            0 => Ok(path),
            _ => Err(Verdict::Useless(format!(
                "doesn't compile: {}",
                said.errors()
            ))),
        }
    }

    /// Its source.
    pub fn source(&self) -> String {
        source(&self.program)
    }

    /// A command of ompfuse, which has to succeed.
    fn ompfuse(&self, verb: &str, args: &[&std::ffi::OsStr]) -> Result<(), Verdict> {
        let said = process::run(command::with_threads(2).arg(verb).args(args));
        let nothing = ["nothing to patch", "no OpenMP"];
        match said.status {
            0 => Ok(()),
            1 if nothing.iter().any(|n| said.errors().contains(n)) => {
                Err(Verdict::Useless("nothing to patch".to_owned()))
            }
            _ => Err(Verdict::Wrong(format!("{verb}: {said:?}"))),
        }
    }

    fn run<S: AsRef<std::ffi::OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Said {
        let mut command = Command::new("timeout");
        command.args(["-k", "1", SECONDS]).args(words);
        Said::of(&process::run(process::clean(&mut command, self.threads)))
    }

    /// The smallest program found that is still wrong, and what is wrong with it.
    pub fn shrink(&self, wrong: String) -> (Case, String) {
        let mut best = (self.clone(), wrong);
        let (mut change, mut attempts) = (0, 0);
        while let Some(program) = best
            .0
            .program
            .smaller(change)
            .filter(|_| attempts < ATTEMPTS)
        {
            attempts += 1;
            let case = Case {
                program,
                ..best.0.clone()
            };
            match case.judge() {
                Verdict::Wrong(wrong) => best = (case, wrong),
                _ => change += 1,
            }
        }
        best
    }

    /// Its number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Number of its parts.
    pub fn size(&self) -> usize {
        self.program.size()
    }
}

/// What two runs are compared by.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    status: i32,
    stdout: String,
}

impl Said {
    fn of(output: &Output) -> Said {
        Said {
            status: output.status,
            stdout: output.text(),
        }
    }
}
