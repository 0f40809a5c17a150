//! Samples to what their threads did then.

use super::collected::{Collected, OfFile, SampleAt};
use crate::run::places::{Code, SampledPlaces};
use crate::run::timeline::{Doing, Kind, Span, Step, Timeline};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, HashMap};

/// What the two clocks may differ by, in nanoseconds. A sample nearer to the begin or end of a span may belong to its neighbour.
///
/// More isn't needed: the kernel stamps a sample while the thread is stopped, so every boundary that the thread has recorded before is
/// earlier than the stamp, and every later one later. Interrupting a thread takes longer than this.
const CLOCKS_NS: i64 = 200;

/// Samples at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSum {
    /// Position in [`SampledPlaces::places`]; `None`: code that nothing is known of.
    pub place: Option<u32>,
    /// How many.
    pub samples: u64,
}

/// The samples of a region, or of what is outside of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RegionLines {
    /// Position in the run's sites; `None`: the code outside of constructs.
    pub site: Option<u32>,
    /// In the program's code and that of its libraries.
    pub work: u64,
    /// In the OpenMP runtime, or waiting: neither line nor function of the program.
    pub runtime: u64,
    /// In what records.
    pub recording: u64,
    /// So near to a begin or end that they may be of another region; they are in no other sum.
    pub uncertain: u64,
    /// The work by place, the hottest first.
    pub lines: Vec<LineSum>,
}

impl RegionLines {
    /// All samples.
    pub fn samples(&self) -> u64 {
        self.work + self.runtime + self.recording + self.uncertain
    }
}

/// All samples of a run, by region and place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lines {
    /// The regions, those with most samples first.
    pub regions: Vec<RegionLines>,
    /// Samples of threads that had nothing to do, outside of constructs.
    pub idle: u64,
    /// Samples of what isn't on record: other processes and threads, or times at which nothing was recorded.
    pub unrecorded: u64,
    /// Sums by execution unit, where they were asked for: its node, with process and thread of the sample.
    pub units: Vec<OfUnit>,
}

/// A sample in an execution unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfUnit {
    /// Position of the process in the timeline.
    pub process: u16,
    /// The unit's node, unique in its process.
    pub node: u64,
    /// Its first iteration, section or rank.
    pub first: i64,
    /// As [`RegionLines::site`].
    pub site: Option<u32>,
    /// As [`LineSum::place`].
    pub place: Option<u32>,
    /// Whether it may be one of the unit before, or behind.
    pub is_uncertain: bool,
}

/// A region's sums under construction, and its work by place.
type OfRegion = (RegionLines, FxHashMap<Option<u32>, u64>);

/// Sums under construction.
struct Sums<'p> {
    places: &'p SampledPlaces,
    /// By file and object, what is known of it.
    offsets: Vec<Vec<Option<&'p BTreeMap<u64, u32>>>>,
    regions: BTreeMap<Option<u32>, OfRegion>,
    out: Lines,
    with_units: bool,
}

/// Sums samples up. Where nothing was recorded all of them are outside of constructs. `with_units`: those in execution units also one by one.
pub fn lines(
    timeline: &Timeline<'_>,
    collected: &Collected,
    places: &SampledPlaces,
    with_units: bool,
) -> Lines {
    let known: HashMap<&str, &BTreeMap<u64, u32>> = (places.objects.iter())
        .map(|o| (o.path.as_str(), &o.offsets))
        .collect();
    let of_file = |file: &OfFile| {
        let of_object = |path: &String| known.get(path.as_str()).copied();
        file.objects.iter().map(of_object).collect()
    };
    let mut sums = Sums {
        places,
        offsets: collected.files.iter().map(of_file).collect(),
        regions: BTreeMap::new(),
        out: Lines::default(),
        with_units,
    };
    let mut placed = 0;
    for number in 0..timeline.lanes().len() {
        let lane = &timeline.lanes()[number];
        let key = (timeline.processes()[lane.process as usize].pid, lane.tid);
        for (at, file) in collected.files.iter().enumerate() {
            let Some(samples) = file.threads.get(&key) else {
                continue;
            };
            let timed = samples.iter().filter_map(|s| {
                let ns = timeline.at(lane, file.tsc(s.raw_ns)?);
                // Another process or thread may have had the numbers before, or after.
                (lane.begin_ns..=lane.end_ns)
                    .contains(&ns)
                    .then_some((ns, at, *s))
            });
            let timed: Vec<(i64, usize, SampleAt)> = timed.collect();
            placed += sums.add_lane(timeline, number, &timed);
        }
    }
    match timeline.lanes().is_empty() {
        true => sums.add_all(collected),
        false => sums.out.unrecorded = collected.len().saturating_sub(placed),
    }
    sums.finish()
}

/// A sample, and what its thread did.
struct At<'s> {
    /// The spans that it was in.
    open: &'s [Span<'s>],
    is_root: bool,
    process: u16,
    site: Option<u32>,
    file: usize,
    sample: &'s SampleAt,
    unit_is_uncertain: bool,
    is_uncertain: bool,
}

impl Sums<'_> {
    /// Of a run without any record.
    fn add_all(&mut self, collected: &Collected) {
        let (sums, lines) = self.regions.entry(None).or_default();
        for (at, file) in collected.files.iter().enumerate() {
            for sample in file.threads.values().flatten() {
                let offsets = sample.object.and_then(|o| self.offsets[at][o as usize]);
                let place = offsets.and_then(|o| o.get(&sample.offset)).copied();
                let code = place.and_then(|p| self.places.places.get(p as usize));
                match code.map_or(Code::User, |p| p.code) {
                    Code::Runtime => sums.runtime += 1,
                    Code::Recording => sums.recording += 1,
                    Code::User => {
                        sums.work += 1;
                        *lines.entry(place).or_default() += 1;
                    }
                }
            }
        }
    }

    /// Returns how many were in a span.
    fn add_lane(
        &mut self,
        timeline: &Timeline<'_>,
        number: usize,
        samples: &[(i64, usize, SampleAt)],
    ) -> u64 {
        if samples.is_empty() {
            return 0;
        }
        let lane = &timeline.lanes()[number];
        let (mut open, mut next, mut placed): (Vec<Span<'_>>, usize, u64) = (vec![], 0, 0);
        // When another span began to be the innermost one, and when one of another region did.
        let (mut since, mut since_region, mut region) = (i64::MIN, i64::MIN, None);
        for step in timeline.steps(number) {
            let now = match &step {
                Step::Enter(span) => span.begin_ns,
                Step::Leave(_, at) => *at,
            };
            while let Some((ns, file, sample)) = samples.get(next).filter(|(ns, ..)| *ns < now) {
                next += 1;
                if !open.is_empty() {
                    placed += 1;
                    let is_near = |since: i64| {
                        ns.saturating_sub(since).min(now.saturating_sub(*ns)) < CLOCKS_NS
                    };
                    self.add(At {
                        open: &open,
                        is_root: lane.is_root,
                        process: lane.process,
                        site: region,
                        file: *file,
                        sample,
                        unit_is_uncertain: is_near(since),
                        is_uncertain: is_near(since_region),
                    });
                }
            }
            if next == samples.len() {
                break;
            }
            match step {
                Step::Enter(span) => open.push(span),
                Step::Leave(..) => drop(open.pop()),
            }
            since = now;
            let site = open.iter().rev().find_map(|span| span.site);
            if site != region {
                (region, since_region) = (site, now);
            }
        }
        placed
    }

    fn add(&mut self, at: At<'_>) {
        let At {
            open,
            is_root,
            process,
            site,
            file,
            sample,
            unit_is_uncertain,
            is_uncertain,
        } = at;
        let Some(span) = open.last() else {
            return;
        };
        let offsets = sample
            .object
            .and_then(|o| self.offsets[file].get(o as usize).copied());
        let place = offsets
            .flatten()
            .and_then(|o| o.get(&sample.offset))
            .copied();
        let code = place.and_then(|p| self.places.places.get(p as usize));
        let is_program = code.is_some_and(|p| p.object.is_none());
        let code = code.map_or(Code::User, |p| p.code);
        let doing = span.doing(is_root);
        // A wait calls the C library, too.
        let waits = matches!(doing, Doing::Lost(_) | Doing::Idle) && !is_program;
        let code = match code {
            Code::User if waits => Code::Runtime,
            code => code,
        };
        if doing == Doing::Idle && code != Code::User {
            self.out.idle += 1;
            return;
        }
        let (sums, lines) = self.regions.entry(site).or_default();
        if is_uncertain {
            sums.uncertain += 1;
            return;
        }
        match code {
            Code::Runtime => sums.runtime += 1,
            Code::Recording => sums.recording += 1,
            Code::User => {
                sums.work += 1;
                *lines.entry(place).or_default() += 1;
            }
        }
        if self.with_units && span.is_unit() && code == Code::User && span.kind == Kind::Interval {
            self.out.units.push(OfUnit {
                process,
                node: span.node,
                first: span.first(),
                site,
                place,
                is_uncertain: unit_is_uncertain,
            });
        }
    }

    fn finish(mut self) -> Lines {
        for (site, (sums, lines)) in self.regions {
            let line = |(place, samples)| LineSum { place, samples };
            let mut lines: Vec<LineSum> = lines.into_iter().map(line).collect();
            lines.sort_by_key(|l| (std::cmp::Reverse(l.samples), l.place));
            self.out.regions.push(RegionLines {
                site,
                lines,
                ..sums
            });
        }
        let by_samples = |r: &RegionLines| (std::cmp::Reverse(r.samples()), r.site);
        self.out.regions.sort_by_key(by_samples);
        self.out
    }
}
