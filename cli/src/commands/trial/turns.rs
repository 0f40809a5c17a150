//! Original and variants, run in turns.

use super::Variant;
use super::outputs::{Judge, difference};
use crate::interrupt::{Hold, Interrupted};
use crate::launch::{self, Input, Launch, Moment, Stdout};
use crate::libraries::{self, Libraries};
use crate::output::note;
use crate::select::Selector;
use crate::select::set::Set;
use anyhow::{Result, bail};
use ompfuse_format::site::Parameter;
use ompfuse_report::compare::statistics::paired::{Paired, is_look, paired};
use ompfuse_report::model::Judged;
use ompfuse_report::trying::Variable;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The fewest turns that decide something.
const FEWEST: u32 = 4;
/// Turns that confirm a gain go on until its interval is no wider than this share of it.
const NARROW: f64 = 0.5;
/// A variant may take so many times as long as the original, and a second.
const LONGER: f64 = 4.0;
/// So many seconds more where it waits for copies of libraries.
const ASKING: f64 = 30.0;

/// A program that is run again and again.
#[derive(Default)]
pub(super) struct Program {
    pub(super) file: PathBuf,
    /// What its libraries hand over, if any program's do.
    libraries: Option<Libraries>,
    /// In seconds, turn by turn.
    pub(super) times: Vec<f64>,
}

/// Trying, under way.
pub(super) struct Trial<'a> {
    pub(super) command: &'a [OsString],
    /// Files that are looked for regions where libraries hand over other values.
    pub(super) modules: Vec<PathBuf>,
    /// The program's own file has calls that can be set.
    pub(super) has_own: bool,
    /// The original first, then the variants.
    pub(super) programs: Vec<Program>,
    pub(super) variants: Vec<Variant>,
    /// Where outputs and patched copies go.
    pub(super) folder: tempfile::TempDir,
    pub(super) stdin: Input,
    /// Signals wait until nothing is left behind.
    pub(super) hold: Hold,
    pub(super) judge: Judge<'a>,
    /// Of the original's first runs, in seconds.
    pub(super) longest: f64,
    pub(super) ends: Instant,
    pub(super) most: u32,
}

/// Runs that the fewest turns of a winner and the original take.
const CONFIRMING: u32 = 2 * FEWEST;

impl Program {
    pub(super) fn new(file: PathBuf) -> Program {
        Program {
            file,
            ..Program::default()
        }
    }

    /// Why its libraries don't hand over what they should; `None`: they do.
    fn refusal(&self, sets: &[Set]) -> Option<String> {
        let libraries = self.libraries.as_ref().filter(|l| !l.has_patched())?;
        let mut reasons = libraries.refusals().into_iter();
        // Other files may be refused, too. A reason begins with the path, unless it is about a setting.
        let is_about = |reason: &String| {
            let path = reason.split(": ").next().unwrap_or_default();
            let mut regions = sets.iter().map(|set| &set.regions);
            reason.starts_with("cannot set")
                || regions.any(|r| r.library().is_some() && r.is_about(path))
        };
        let reason = reasons.find(is_about);
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
    fn program(&self, number: usize, sets: &[Set]) -> Result<Program> {
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
        let end = |moment: Moment| {
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
        let ended = launch::run(Launch {
            is_steady: false,
            file: &self.programs[number].file,
            name,
            args,
            env,
            stdout: &Stdout::File(stdout),
            stdin: None,
            meanwhile: Some(&end),
            sampler: None,
        })?;
        match ended.interrupted {
            Some(signal) => Err(Interrupted(signal).into()),
            None => Ok((launch::status_of(ended.exit), ended.duration_s)),
        }
    }

    /// The original's first runs: they tell what differs in any case. Returns an exit status that isn't 0.
    pub(super) fn begin(&mut self) -> Result<u8> {
        let (first, second) = (self.file("original"), self.file("again"));
        for output in [&first, &second] {
            let (status, seconds) = self.once(0, output.clone(), f64::INFINITY)?;
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
        Ok(0)
    }

    /// Leaves out the variants that the budget has no turns for, the last ones first.
    ///
    /// # Errors
    /// It can't decide about any.
    pub(super) fn check_budget<T>(&self, variants: &mut Vec<T>) -> Result<()> {
        let left = self.ends.saturating_duration_since(Instant::now());
        // The original and each variant, once before and then in turns; the best one again.
        let runs = f64::from(FEWEST + 1);
        let confirming = f64::from(CONFIRMING);
        let all = left.as_secs_f64() / self.longest.max(1e-3) - confirming;
        let most = all / runs - 1.0;
        let needed = |variants: usize| (runs * (variants + 1) as f64 + confirming) * self.longest;
        if variants.is_empty() || most >= variants.len() as f64 {
            return Ok(());
        }
        if most < 1.0 {
            bail!(
                "the program takes {:.1} s: {FEWEST} turns with one variant need {:.0} s, with all {} {:.0} s; give such a --budget",
                self.longest,
                needed(1),
                variants.len(),
                needed(variants.len())
            );
        }
        let all = variants.len();
        variants.truncate(most as usize);
        note(format_args!(
            "{} of {all} variants are left out, because the budget has no turns for them; --budget {:.0}s has",
            all - variants.len(),
            needed(all)
        ));
        Ok(())
    }

    /// Adds a variant. Its first run is not measured.
    pub(super) fn add(&mut self, sets: Vec<Set>, env: Vec<Variable>) -> Result<()> {
        let number = self.programs.len();
        let program = self.program(number, &sets);
        let mut variant = Variant::new(sets, env);
        match program {
            Ok(program) => self.programs.push(program),
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) => {
                variant.give_up(crate::one_line(&error));
                self.programs.push(Program::default());
            }
        }
        let is_there = !variant.is_done;
        let in_libraries = variant.sets.iter().any(|set| !self.is_own(set));
        self.variants.push(variant);
        if is_there {
            self.take(number)?;
            self.programs[number].times.clear();
            let refusal = self.programs[number].refusal(&self.variants[number - 1].sets);
            if let Some(reason) = refusal.filter(|_| in_libraries) {
                self.variants[number - 1].give_up(reason);
            }
        }
        Ok(())
    }

    /// When the search ends, so that its winner can be confirmed.
    fn search_ends(&self) -> Instant {
        let confirming = Duration::from_secs_f64(f64::from(CONFIRMING) * self.longest);
        self.ends.checked_sub(confirming).unwrap_or(self.ends)
    }

    /// Takes turns until all variants from this one on are decided, or there is no time left.
    pub(super) fn go_on(&mut self, first: usize) -> Result<()> {
        self.turns(first..self.variants.len(), self.search_ends())
    }

    /// Takes turns until these variants are decided, or until then; one turn in any case.
    fn turns(&mut self, variants: Range<usize>, ends: Instant) -> Result<()> {
        if self.variants[variants.clone()].iter().all(|v| v.is_done) {
            return Ok(());
        }
        self.programs[0].times.clear();
        for turn in 1..=self.most {
            let open: Vec<usize> = variants
                .clone()
                .filter(|&at| !self.variants[at].is_done)
                .collect();
            if open.is_empty() || (turn > 1 && Instant::now() >= ends) {
                break;
            }
            // The original is first and last by turns, and variants go round.
            let mut order: Vec<usize> = open.iter().map(|at| at + 1).collect();
            order.rotate_left(turn as usize % open.len());
            match turn % 2 {
                1 => order.insert(0, 0),
                _ => order.push(0),
            }
            for number in order {
                self.take(number)?;
            }
            for at in open {
                self.look(at, turn);
            }
        }
        Ok(())
    }

    /// The variant that helps most, by turns that were not used to find it: the best of several is partly luck. One that isn't confirmed is
    /// undecided, and the next one is asked.
    pub(super) fn confirmed(&mut self) -> Result<Option<usize>> {
        loop {
            let all = self.variants.iter().enumerate();
            let helping = all.filter_map(|(at, v)| Some((at, v.told.helps()?)));
            let Some((best, _)) = helping.min_by(|a, b| a.1.total_cmp(&b.1)) else {
                return Ok(None);
            };
            let variant = &mut self.variants[best];
            variant.is_done = false;
            variant.told.is_fresh = true;
            variant.told.time = None;
            self.programs[best + 1].times.clear();
            self.turns(best..best + 1, self.ends)?;
            if self.variants[best].told.helps().is_some() {
                return Ok(Some(best));
            }
        }
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
            0 => self.judge.judge(&self.file("original"), &output)?,
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

    /// Whether a variant is decided.
    pub(super) fn look(&mut self, at: usize, turn: u32) {
        let variant = &mut self.variants[at];
        if variant.is_done {
            return;
        }
        let (original, own) = (&self.programs[0].times, &self.programs[at + 1].times);
        let pairs = original.len().min(own.len());
        variant.told.turns = pairs as u32;
        variant.told.time = paired(&original[..pairs], &own[..pairs], self.most);
        let is_decided = variant.told.time.is_some_and(|found| found.is_decided);
        // What is told to users is narrower than what is enough for the search.
        let is_narrow = |t: Paired| t.high - t.low <= NARROW * t.change.abs();
        let is_wide = variant.told.is_fresh
            && !variant.told.time.is_some_and(is_narrow)
            && Instant::now() < self.ends;
        variant.is_done = is_look(turn, self.most) && is_decided && !is_wide;
    }

    /// Tries twice and half of the best chunk of each region.
    pub(super) fn refine(&mut self, regions: &[Selector]) -> Result<()> {
        let first = self.variants.len();
        for regions in regions {
            let of_region = self.variants[..first].iter().filter_map(|v| {
                let [set] = &v.sets[..] else { return None };
                let chunk = set.values.get(&Parameter::Chunk)?;
                (set.regions == *regions).then_some((v.told.helps()?, *chunk))
            });
            let best = of_region.min_by(|a, b| a.0.total_cmp(&b.0));
            let Some((_, chunk)) = best else { continue };
            let others = [chunk / 2, chunk * 2].into_iter().filter(|&n| n > 0);
            for chunk in others {
                self.add(vec![Set::chunk(regions, chunk)], vec![])?;
            }
        }
        self.go_on(first)
    }

    /// Measures what helps as one: of several values for the same regions, the best.
    pub(super) fn together(&mut self) -> Result<()> {
        let variants = self.variants.iter();
        let mut helping: Vec<(f64, &Variant)> = variants
            .filter_map(|v| Some((v.told.helps()?, v)))
            .collect();
        helping.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut env: Vec<Variable> = vec![];
        for variable in helping.iter().flat_map(|(_, v)| &v.env) {
            if env.iter().all(|known| known.0 != variable.0) {
                env.push(variable.clone());
            }
        }
        let mut sets: Vec<Set> = vec![];
        for set in helping.iter().flat_map(|(_, v)| &v.sets) {
            let is_new = sets.iter().all(|known| {
                let mut parameters = set.values.keys();
                known.regions != set.regions || parameters.all(|p| !known.values.contains_key(p))
            });
            if is_new {
                sets.push(set.clone());
            }
        }
        if sets.len() + env.len() < 2 || Instant::now() >= self.search_ends() {
            return Ok(());
        }
        let first = self.variants.len();
        self.add(sets, env)?;
        self.go_on(first)
    }
}
