//! Original and variants, run in turns.

use super::Variant;
use super::copies::Copies;
use super::files::Seen;
use super::outputs::Judge;
use super::runs::{Load, Program};
use crate::interrupt::{Hold, Interrupted};
use crate::launch::Input;
use crate::output::note;
use crate::select::Selector;
use crate::select::set::Set;
use anyhow::{Result, bail};
use ompfuse_account::model::ChangedFile;
use ompfuse_account::paired::{Paired, is_look, paired};
use ompfuse_account::trying::Variable;
use ompfuse_format::site::Parameter;
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The fewest turns that decide something.
const FEWEST: u32 = 4;
/// Turns that confirm a gain go on until its interval is no wider than this share of it.
const NARROW: f64 = 0.5;

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
    /// Copies of its folder, if it is run in these.
    pub(super) copies: Option<Copies>,
    /// What is seen of a process while it runs, if somebody looks.
    pub(super) seen: Option<RefCell<Seen>>,
    /// What was seen of the original.
    pub(super) found: Seen,
    /// Files that a run changes.
    pub(super) changed: Vec<ChangedFile>,
    pub(super) load: Load,
}

/// Runs that the fewest turns of a winner and the original take.
const CONFIRMING: u32 = 2 * FEWEST;

impl Trial<'_> {
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
                "the program takes {:.1} s: {FEWEST} turns with one variant need {:.0} s, with all {} {:.0} s; give it that by --for",
                self.longest,
                needed(1),
                variants.len(),
                needed(variants.len())
            );
        }
        let all = variants.len();
        variants.truncate(most as usize);
        note(format_args!(
            "{} of {all} variants are left out, because the budget has no turns for them; --for {:.0}s has",
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
            self.load = Load::default();
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
