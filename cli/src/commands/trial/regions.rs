//! The parallel regions that variants are about: what the original's report says is lost in them, and how long they take with and without
//! a variant. The latter is recorded in turns, with probes of these regions only.

use super::Variant;
use super::predicted::Recorded;
use super::recorded;
use super::turns::Trial;
use crate::interrupt::Interrupted;
use crate::select::means_region;
use crate::select::set::Set;
use crate::{load, memory, progress};
use anyhow::{Result, bail};
use ompfuse_account::model::ModuleInfo;
use ompfuse_account::paired::{Paired, paired};
use ompfuse_account::trying;
use ompfuse_account::{Region, Report};
use ompfuse_format::Construct;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

/// The most recorded turns, and the least that tell something.
const MOST: u32 = 6;
const LEAST: usize = 4;

/// Probes that take a larger share of a region's time disturb it.
const MOST_PROBES: f64 = 0.02;

/// A recorded run.
pub(super) fn read(run: &Path) -> Result<Recorded> {
    let bar = progress::whole("reading");
    let summary = load::summary(run, memory::available(), bar.progress())?;
    Ok(Recorded::new(&summary))
}

/// A region's place in the program, the same in all runs.
type Place = (Option<String>, u64);

fn place(region: &Region) -> Option<Place> {
    Some((region.module.clone(), region.address?.0))
}

fn is_fork(region: &Region) -> bool {
    region.construct.is_some_and(Construct::is_fork)
}

/// How `--select` names a region's file, before its place there.
fn prefix(report: &Report, program: &Path, region: &Region) -> String {
    let name = region.module.as_deref();
    let is_it = |m: &&ModuleInfo| m.build_id.as_deref() == name || Some(&*m.path) == name;
    let module = name.and_then(|_| report.modules.iter().find(is_it));
    let path = module.map(|m| Path::new(&m.path));
    let path = path.filter(|path| path.canonicalize().ok() != program.canonicalize().ok());
    let library = path.and_then(|path| path.file_name()?.to_str());
    library.map_or(String::new(), |name| format!("lib:{name}:"))
}

/// The numbers of the regions that are set, and of the parallel regions that they are, or are in.
fn around(report: &Report, sets: &[Set]) -> (BTreeSet<u32>, BTreeSet<u32>) {
    let is_meant = |r: &&Region| (sets.iter()).any(|set| means_region(&set.regions, report, r));
    let meant = report.regions.iter().filter(is_meant);
    let meant: BTreeSet<u32> = meant.map(|r| r.id).collect();
    let found = trying::forks_around(report, &meant);
    (meant, found)
}

/// The share of the time that is lost there.
pub(super) fn lost(report: &Report, sets: &[Set]) -> Option<f64> {
    trying::lost_in(report, &around(report, sets).1)
}

/// What a recorded run says of regions.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// From fork to join, in seconds.
    wall: f64,
    /// The share of probes.
    probes: f64,
}

impl Times {
    /// `None`: one of the places, or what its probes take, isn't known.
    fn of(report: &Report, places: &BTreeSet<Place>) -> Option<Times> {
        let (mut wall, mut probes, mut all) = (0.0, 0.0, 0.0);
        for wanted in places {
            let mut regions = report.regions.iter();
            let region = regions.find(|r| place(r).as_ref() == Some(wanted))?;
            if is_fork(region) {
                wall += region.wall_s?;
            }
            probes += region.probes_estimated_s?;
            all += region.time_s;
        }
        let is_known = wall > 0.0 && all > 0.0;
        is_known.then(|| Times {
            wall,
            probes: probes / all,
        })
    }
}

/// A variant's regions, and what was recorded of them in turns: without and with it.
struct Compared {
    variant: usize,
    places: BTreeSet<Place>,
    times: Vec<Option<[Times; 2]>>,
}

impl Compared {
    /// How the time changes, or why that isn't known.
    fn change(&self) -> Result<Option<Paired>, String> {
        let known: Option<Vec<[Times; 2]>> = self.times.iter().copied().collect();
        let known = known.ok_or("it isn't recorded in each run")?;
        if known.len() < LEAST {
            return Err("no time was left".to_owned());
        }
        let all = known.iter().flatten();
        let probes = all.map(|times| times.probes).fold(0.0, f64::max);
        if probes > MOST_PROBES {
            return Err(format!("probes take {:.0}% of it", 100.0 * probes));
        }
        let of = |side: usize| known.iter().map(|t| t[side].wall).collect::<Vec<f64>>();
        Ok(paired(&of(0), &of(1), MOST))
    }
}

impl Trial<'_> {
    /// Records the original and what helps in turns, as long as there is time, and compares the parallel regions around.
    pub(super) fn compare_regions(&mut self, original: &Report) -> Result<()> {
        let helping = self.variants.iter().enumerate();
        // A variable is about all regions.
        let is_its = |v: &Variant| v.env.is_empty() && v.told.helps().is_some();
        let helping = helping.filter(|(_, variant)| is_its(variant));
        let mut chosen = BTreeSet::new();
        let mut all = vec![];
        for (variant, found) in helping {
            let (meant, around) = around(original, &found.sets);
            let is_its = |r: &&Region| meant.contains(&r.id) || around.contains(&r.id);
            let mut places = BTreeSet::new();
            for region in original.regions.iter().filter(is_its) {
                let Some(place) = place(region) else { continue };
                let file = prefix(original, &self.programs[0].file, region);
                chosen.insert(format!("--select={file}{:#x}", place.1));
                places.insert(place);
            }
            all.push(Compared {
                variant,
                places,
                times: vec![],
            });
        }
        if self.copies.is_some() {
            for of_variant in &all {
                let told = &mut self.variants[of_variant.variant].told;
                told.region_reason = Some("it would be recorded in the folder itself".to_owned());
            }
            return Ok(());
        }
        let compared = self.take_recorded(&chosen, &mut all);
        for of_variant in &all {
            let change = match &compared {
                Err(error) if !error.is::<Interrupted>() => Err(crate::one_line(error)),
                _ => of_variant.change(),
            };
            let variant = &mut self.variants[of_variant.variant];
            match change {
                Ok(change) => variant.told.region_time = change,
                Err(reason) => variant.told.region_reason = Some(reason),
            }
        }
        compared.or_else(|error| match error.is::<Interrupted>() {
            true => Err(error),
            false => Ok(()), // what was found without recording stays
        })
    }

    /// Records turns. `chosen`: options that say what gets probes.
    fn take_recorded(&mut self, chosen: &BTreeSet<String>, all: &mut [Compared]) -> Result<()> {
        for turn in 0..MOST {
            if all.is_empty() || Instant::now() >= self.ends {
                break;
            }
            let mut without = match turn % 2 {
                0 => Some(self.record(chosen, &[])?),
                _ => None,
            };
            let mut with = vec![];
            for of_variant in &*all {
                let sets = self.variants[of_variant.variant].sets.clone();
                let report = self.record(chosen, &sets)?;
                with.push(Times::of(&report, &of_variant.places));
            }
            if without.is_none() {
                without = Some(self.record(chosen, &[])?);
            }
            for (of_variant, with) in all.iter_mut().zip(with) {
                let report = without.as_ref();
                let without = report.and_then(|report| Times::of(report, &of_variant.places));
                of_variant
                    .times
                    .push(without.zip(with).map(|(a, b)| [a, b]));
            }
        }
        Ok(())
    }

    /// The report of a run of the original with settings, and with probes of chosen regions only.
    fn record(&mut self, chosen: &BTreeSet<String>, sets: &[Set]) -> Result<Report> {
        self.hold.check()?;
        self.stdin.next(1)?;
        let folder = self.file("regions");
        let sets = sets.iter().map(|set| format!("--set={}", set.text));
        let options = chosen.iter().cloned().chain(sets);
        let options: Vec<String> = options.chain(["--units=sums".to_owned()]).collect();
        let recording = recorded(self.command, &options, &folder, &self.file("taken"))?;
        if recording.status() != 0 {
            bail!("the program failed when it was recorded again");
        }
        let Some(run) = recording.runs.first() else {
            bail!("nothing was recorded");
        };
        let report = read(&run.path).map(|recorded| recorded.report);
        let _ = std::fs::remove_dir_all(&folder); // it is in a folder that is removed, too
        report
    }
}
