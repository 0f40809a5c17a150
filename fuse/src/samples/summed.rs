//! From a run's samples to what a summary keeps of them.

use super::attribute::{Lines, lines};
use super::collected::Collected;
use super::ending::ending;
use super::region::RegionLines;
use super::sums::{IMPORT, SampledSum, SampledSums};
use crate::run::RunFiles;
use crate::run::places::{SampledPlace, SampledPlaces};
use crate::run::timeline::Timeline;
use crate::table::Site;
use ompfuse_format::run::Exit;
use ompfuse_format::site::Counted;
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, HashMap};

/// Lines and functions of a region that are kept.
const MOST: usize = 20;

/// Sums the samples of a run up. `sites`: those that results refer to, if they aren't the timeline's. `most`: bytes of records that are
/// read for it, at most.
///
/// `None`: there are no samples, or no times to compare theirs with.
pub fn sampled_sums(
    files: &RunFiles<'_>,
    sites: Option<&[Site]>,
    most: usize,
) -> Option<SampledSums> {
    let sampling = files.header.sampling.as_ref()?;
    let places = files.places.as_ref()?;
    let may_tell = sampling.samples > 0 || !matches!(files.header.exit, Exit::Code(_));
    if !may_tell || files.samples.is_empty() || files.has_sums_only() {
        return None;
    }
    let mut sums = SampledSums {
        rate: sampling.rate,
        samples: sampling.samples,
        ..SampledSums::default()
    };
    if files.bytes() > most {
        return Some(sums);
    }
    // Whoever asks for lines is told what is wrong with samples.
    let collected = Collected::read(files).ok()?;
    if collected.files.iter().any(|file| !file.header.has_tsc) {
        return None;
    }
    let timeline = Timeline::new(files, Progress::default()).ok()?;
    let found = lines(&timeline, &collected, places, true);
    let sites = sites.unwrap_or(timeline.sites()).iter().zip(0..);
    let known: HashMap<(&str, &str), u32> = sites.map(|(s, at)| (s.key(), at)).collect();
    let to = |site: u32| {
        let site = timeline.sites().get(site as usize)?;
        known.get(&site.key()).copied()
    };
    let Lines { regions, held, .. } = &found;
    let all = |regions: &[RegionLines]| {
        let known = regions
            .iter()
            .filter(|r| r.site.is_none_or(|s| to(s).is_some()));
        let sum = |r: &RegionLines| SampledSum {
            uneven: r.site.and_then(|site| found.uneven.get(&site).cloned()),
            ..summed(r, r.site.and_then(to), places)
        };
        known
            .filter(|r| r.work > 0 || r.asleep.is_some())
            .map(sum)
            .collect()
    };
    sums.ending = ending(&timeline, &collected, places);
    sums.tells_counted = tells_counted(files);
    (sums.regions, sums.held) = (all(regions), all(held));
    Some(sums)
}

/// Whether some functions count, and it is on record which code is theirs.
fn tells_counted(files: &RunFiles<'_>) -> bool {
    let all = files.header.modules.iter();
    let all: Vec<&Counted> = all.filter_map(|m| m.binary.counted.as_ref()).collect();
    let counts = |c: &&Counted| !c.functions.is_empty();
    all.iter().any(counts) && all.iter().all(|c| c.covers(0).is_some())
}

fn summed(region: &RegionLines, site: Option<u32>, places: &SampledPlaces) -> SampledSum {
    let known = |at: u32| places.places.get(at as usize);
    let mut lines: Vec<(SampledPlace, u64)> = vec![];
    for line in &region.lines {
        let place = line.place.and_then(known).cloned().unwrap_or_default();
        let is_full = lines.len() == MOST;
        match lines.iter_mut().find(|(p, _)| *p == place) {
            Some((_, samples)) => *samples += line.samples, // it calls several functions
            None if is_full => {}                           // the hottest come first
            None => lines.push((place, line.samples)),
        }
    }
    let mut functions: BTreeMap<SampledPlace, u64> = BTreeMap::new();
    let mut importing = 0;
    for function in &region.functions {
        let place = known(function.place).cloned().unwrap_or_default();
        let name = match function.is_outer {
            true => &place.inlined_into,
            false => &place.function,
        };
        if name.as_deref() == Some(IMPORT) {
            importing += function.total;
        }
        if function.own == 0 {
            continue;
        }
        let place = SampledPlace {
            function: name.clone(),
            ..place.of_function()
        };
        *functions.entry(place).or_default() += function.own;
    }
    let mut functions: Vec<(SampledPlace, u64)> = functions.into_iter().collect();
    functions.sort_by_key(|(_, n)| std::cmp::Reverse(*n)); // stable: else by name
    functions.truncate(MOST);
    SampledSum {
        site,
        work: region.work,
        uncounted: region.uncounted,
        lines,
        functions,
        importing: importing.min(region.work),
        asleep: region.asleep.clone(),
        uneven: None,
    }
}
