//! A run of the original or of a variant, and what is known of it.

use super::copies::Copies;
use super::files;
use super::outputs::difference;
use super::turns::Trial;
use crate::interrupt::Interrupted;
use crate::launch::{self, Launch, Moment, Stdout};
use crate::libraries::{self, Libraries};
use crate::output::say;
use crate::select::set::Set;
use anyhow::{Context, Result, bail};
use ompfuse_account::model::Judged;
use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A variant may take so many times as long as the original, and a second.
const LONGER: f64 = 4.0;
/// So many seconds more where it waits for copies of libraries.
const ASKING: f64 = 30.0;
/// The ending of the file with a run's files, beside its output.
const FILES: &str = "files";

/// A program that is run again and again.
#[derive(Default)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    /// What its libraries hand over, if any program's do.
    libraries: Option<Libraries>,
    /// In seconds, turn by turn.
    pub(super) times: Vec<f64>,
}

/// What other programs did while some runs took place.
#[derive(Debug, Default)]
pub(super) struct Load {
    others_s: f64,
    ran_s: f64,
    is_unknown: bool,
}

impl Load {
    fn add(&mut self, ended: &launch::Ended) {
        self.ran_s += ended.duration_s;
        match ended.used.others_s {
            Some(seconds) => self.others_s += seconds,
            None => self.is_unknown = true,
        }
    }

    /// Their share of the time of so many processors.
    pub(super) fn share(&self, processors: f64) -> Option<f64> {
        let all_s = processors * self.ran_s;
        (all_s > 0.0 && !self.is_unknown).then(|| (self.others_s / all_s).min(1.0))
    }
}

impl Program {
    pub(super) fn new(file: PathBuf) -> Program {
        Program {
            file,
            ..Program::default()
        }
    }

    /// Why its libraries don't hand over what they should; `None`: they do.
    pub(super) fn refusal(&self, sets: &[Set]) -> Option<String> {
        let libraries = self.libraries.as_ref().filter(|l| !l.has_patched())?;
        let is_named =
            |set: &Set, file: &str| set.regions.library().is_some() && set.regions.is_about(file);
        // Other files may be refused, too.
        let mut unpatched = libraries.unpatched().into_iter();
        let about = unpatched.find(|of| sets.iter().any(|set| is_named(set, &of.file)));
        let reason = about.map(|of| of.told);
        Some(reason.unwrap_or_else(|| "no file with such a region was loaded".to_owned()))
    }
}

impl Trial<'_> {
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A copy of the original with settings.
    pub(super) fn patch(&self, name: &str, sets: &[Set]) -> Result<PathBuf> {
        self.hold.check()?;
        let copy = self.file(name);
        crate::commands::patch::tuned(&self.programs[0].file, &copy, sets.to_vec())?;
        Ok(copy)
    }

    /// Median time of the original, in seconds.
    pub(super) fn original_s(&self) -> Option<f64> {
        let mut times = self.programs[0].times.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied()
    }

    /// Whether settings are those of the program's own file.
    pub(super) fn is_own(&self, set: &Set) -> bool {
        let path = self.programs[0].file.to_string_lossy();
        self.has_own && set.regions.is_about(&path)
    }

    /// All programs are run as those whose libraries hand over other values.
    /// `modules`: files that it loads.
    pub(super) fn with_libraries(&mut self, modules: Vec<PathBuf>) -> Result<()> {
        self.modules = modules;
        self.programs[0].libraries = Some(self.libraries(&[])?);
        self.take(0) // what else there is to decide is decided once
    }

    fn libraries(&self, sets: &[Set]) -> Result<Libraries> {
        let libraries = Libraries::tuned(sets)?;
        libraries.decide_ahead(&self.modules);
        Ok(libraries)
    }

    /// The program with settings.
    pub(super) fn program(&self, number: usize, sets: &[Set]) -> Result<Program> {
        let (own, others): (Vec<Set>, Vec<Set>) =
            sets.iter().cloned().partition(|set| self.is_own(set));
        let mut program = Program::new(match own.is_empty() {
            true => self.programs[0].file.clone(),
            false => self.patch(&format!("variant-{number}"), &own)?,
        });
        if self.programs[0].libraries.is_some() {
            program.libraries = Some(self.libraries(&others)?);
        }
        Ok(program)
    }

    /// Runs a program. Returns its exit status, and how many seconds it took. `limit`: it is ended after so many.
    pub(super) fn once(&mut self, number: usize, stdout: PathBuf, limit: f64) -> Result<(u8, f64)> {
        self.hold.check()?;
        self.stdin.next(1)?;
        let begun = Instant::now();
        let seen = self.seen.as_ref();
        let meanwhile = |moment: Moment| {
            if let Some(seen) = seen {
                seen.borrow_mut().look(moment.process);
            }
            let pid = Pid::from_raw(moment.process as i32);
            if let Some(pid) = pid.filter(|_| begun.elapsed().as_secs_f64() > limit) {
                let _ = kill_process(pid, Signal::KILL); // it may have ended just now
            }
        };
        let (name, args) = self.command.split_first().expect("clap requires a command");
        let libraries = self.programs[number].libraries.as_ref();
        let env = libraries.map(|l| l.env(std::env::var_os(libraries::AUDIT)));
        let mut env = env.map_or(vec![], Vec::from);
        let variant = number.checked_sub(1).and_then(|at| self.variants.get(at));
        let own = variant.into_iter().flat_map(|v| &v.env);
        env.extend(own.map(|(name, value)| (*name, value.into())));
        let file = &self.programs[number].file;
        let file = std::path::absolute(file)
            .with_context(|| format!("cannot tell where {} is", file.display()))?;
        let folder = self.copies.as_ref().map(Copies::fresh).transpose()?;
        let files = stdout.with_extension(FILES);
        let ended = launch::run(Launch {
            folder,
            is_steady: false,
            file: &file,
            name,
            args,
            env,
            stdout: &Stdout::File(stdout),
            stdin: None,
            meanwhile: Some(&meanwhile),
            sampler: None,
        })?;
        if let Some(signal) = ended.interrupted {
            return Err(Interrupted(signal).into());
        }
        let status = launch::status_of(ended.exit);
        if let Some(copies) = self.copies.as_ref().filter(|_| status == 0) {
            copies.gather(&files)?;
        }
        self.load.add(&ended);
        Ok((status, ended.duration_s))
    }

    /// The original's first runs: they tell what differs in any case. Returns an exit status that isn't 0.
    pub(super) fn begin(&mut self) -> Result<u8> {
        let (first, second) = (self.file("original"), self.file("again"));
        for output in [&first, &second] {
            self.seen = (output == &first).then(RefCell::default);
            let (status, seconds) = self.once(0, output.clone(), f64::INFINITY)?;
            if let Some(seen) = self.seen.take() {
                self.found = seen.into_inner();
                self.tell_files()?;
            }
            if status != 0 {
                return Ok(status);
            }
            self.longest = self.longest.max(seconds);
            if let Some(check) = self.judge.check
                && !self.judge.judge(&first, output)?.is_good()
            {
                bail!("`{check}` of --check refuses the original's own output");
            }
        }
        let recorded = self.file(super::RECORDED);
        self.judge.own = difference(&first, &second)?.and(difference(&first, &recorded)?);
        if self.copies.is_some() {
            let [first, second] = [first, second].map(|file| file.with_extension(FILES));
            self.judge.own_files = difference(&first, &second)?;
        }
        Ok(0)
    }

    /// Says which files the program changes, before it is run many times more.
    fn tell_files(&mut self) -> Result<()> {
        if self.copies.is_some() {
            return Ok(()); // in copies only
        }
        let folder = std::env::current_dir().context("cannot read this folder's name")?;
        self.found.add_to(&mut self.changed, &folder);
        if let Some(files) = files::told(&self.changed) {
            say(format_args!(
                "a run changes {files}, and it is run many times more; --compare-files NAME compares files, with each run in a copy of this folder"
            ));
        }
        Ok(())
    }

    pub(super) fn take(&mut self, number: usize) -> Result<()> {
        let output = self.file("taken");
        let limit = match number {
            0 => f64::INFINITY,
            _ => LONGER * self.longest + 1.0,
        };
        // In its first run it may ask for copies of further files.
        let asks = self.programs[number].libraries.is_some();
        let asks = asks && self.programs[number].times.is_empty();
        let limit = limit + if asks { ASKING } else { 0.0 };
        let (status, seconds) = self.once(number, output.clone(), limit)?;
        self.programs[number].times.push(seconds);
        let Some(at) = number.checked_sub(1) else {
            match status {
                0 => return Ok(()),
                status => {
                    bail!("the program failed when it was run again, with exit status {status}")
                }
            }
        };
        let judged = match status {
            0 => self.judged(&output)?,
            _ => Judged::Failed,
        };
        let variant = &mut self.variants[at];
        if seconds > limit {
            // One of its threads may wait for another one, which is not there.
            variant.give_up(format!("ended after {limit:.1} s: it takes too long"));
        } else if !variant.is_done {
            variant.told.output = Some(judged);
            variant.is_done = !judged.is_good();
        }
        Ok(())
    }

    /// Judges an output, and the files of the same run.
    fn judged(&self, output: &Path) -> Result<Judged> {
        let original = self.file("original");
        let judged = self.judge.judge(&original, output)?;
        if self.copies.is_none() {
            return Ok(judged);
        }
        let [original, files] = [&original, output].map(|file| file.with_extension(FILES));
        Ok(judged.and(self.judge.judge_files(&original, &files)?))
    }
}
