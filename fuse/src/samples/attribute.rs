//! Samples to what their threads did then.

use super::asleep::StopKey;
use super::by_stack::ThreadLines;
use super::collected::{Away, Callers, CodeAt, Collected, OfFile, SampleAt};
use super::functions::Functions;
use super::region::{OfRegion, RegionLines, Work};
use super::uneven::{Names, Uneven, uneven};
use super::units::{UnitKey, Units};
use crate::run::places::{Code, Mark, SampledObject, SampledPlace, SampledPlaces};
use crate::run::timeline::{Doing, Lane, Span, Step, Timeline};
use ompfuse_format::Construct;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// What the two clocks may differ by, in nanoseconds. A sample nearer to the begin or end of a span may belong to its neighbour.
///
/// More isn't needed: the kernel stamps a sample while the thread is stopped, so every boundary that the thread has recorded before is
/// earlier than the stamp, and every later one later. Interrupting a thread takes longer than this.
const CLOCKS_NS: i64 = 200;

/// All samples of a run, by region and place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lines {
    /// The regions, those with most samples first.
    pub regions: Vec<RegionLines>,
    /// Work while a thread was in a critical section or the like, by that construct. It is in `regions`, too.
    pub held: Vec<RegionLines>,
    /// Samples of threads that had nothing to do, outside of constructs.
    pub idle: u64,
    /// Samples of what isn't on record: other processes and threads, or times at which nothing was recorded.
    pub unrecorded: u64,
    /// By site: slow units against fast ones, where units are uneven and it was asked for.
    pub uneven: BTreeMap<u32, Uneven>,
    /// Where there are no records: the threads.
    pub threads: Vec<ThreadLines>,
}

/// Sums under construction.
pub(super) struct Sums<'p> {
    pub(super) places: &'p SampledPlaces,
    /// By file and object, what is known of it.
    objects: Vec<Vec<Option<&'p SampledObject>>>,
    /// What had called samples, by file.
    pub(super) callers: Vec<&'p [Callers]>,
    functions: Functions<'p>,
    pub(super) regions: BTreeMap<Option<u32>, OfRegion>,
    held: BTreeMap<Option<u32>, OfRegion>,
    pub(super) out: Lines,
    /// Where they are asked for.
    units: Option<Units>,
    period_ns: u64,
}

/// Sums samples up. Where nothing was recorded all of them are outside of constructs. `with_units`: slow units are compared with fast ones,
/// too, if there are samples from begin to end.
pub fn lines(
    timeline: &Timeline<'_>,
    collected: &Collected,
    places: &SampledPlaces,
    with_units: bool,
) -> Lines {
    let objects = places.objects.iter();
    let known: HashMap<&str, &SampledObject> = objects.map(|o| (o.path.as_str(), o)).collect();
    let of_file = |file: &OfFile| {
        let of_object = |path: &String| known.get(path.as_str()).copied();
        file.objects.iter().map(of_object).collect()
    };
    let mut sums = Sums {
        places,
        objects: collected.files.iter().map(of_file).collect(),
        callers: collected.files.iter().map(|f| &f.callers[..]).collect(),
        functions: Functions::of(places),
        regions: BTreeMap::new(),
        held: BTreeMap::new(),
        out: Lines::default(),
        units: (with_units && collected.are_all()).then(Units::default),
        period_ns: collected.files.first().map_or(0, |f| f.header.period_ns),
    };
    let mut placed = 0;
    for number in 0..timeline.lanes().len() {
        let lane = &timeline.lanes()[number];
        let key = (timeline.processes()[lane.process as usize].pid, lane.tid);
        let mut events = vec![];
        for (at, file) in collected.files.iter().enumerate() {
            // Another process or thread may have had the numbers before, or after.
            let at_ns = |raw_ns: u64| {
                let ns = timeline.at(lane, file.tsc(raw_ns)?);
                (lane.begin_ns..=lane.end_ns).contains(&ns).then_some(ns)
            };
            let samples = file.threads.get(&key).into_iter().flatten();
            events.extend(samples.filter_map(|s| Some((at_ns(s.raw_ns)?, Event::Sample(at, *s)))));
            let away = file.away.get(&key).into_iter().flatten();
            let away = away.filter(|a| !a.is_open); // it has ended
            let at_away = |a: &Away| Some((at_ns(a.raw_ns)?, Event::Away(at, *a)));
            events.extend(away.filter_map(at_away));
        }
        events.sort_by_key(|(ns, _)| *ns); // stable
        placed += sums.add_lane(timeline, number, &events);
    }
    match timeline.lanes().is_empty() {
        true => sums.add_by_stack(collected),
        false => sums.out.unrecorded = collected.len().saturating_sub(placed),
    }
    sums.finish()
}

/// What is known of a thread at a time.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A sample of one of the files.
    Sample(usize, SampleAt),
    /// It lost its processor then, in one of the files.
    Away(usize, Away),
}

/// A sample, and what its thread did.
struct At<'s> {
    /// The innermost span that it was in.
    span: &'s Span<'s>,
    is_root: bool,
    process: u16,
    site: Option<u32>,
    /// What it was in that admits one thread at a time.
    held: Option<u32>,
    file: usize,
    sample: &'s SampleAt,
    unit_is_uncertain: bool,
    is_uncertain: bool,
}

impl Sums<'_> {
    /// Returns how many were in a span.
    fn add_lane(&mut self, timeline: &Timeline<'_>, number: usize, events: &[(i64, Event)]) -> u64 {
        // Units without samples are units, too.
        if events.is_empty() && self.units.is_none() {
            return 0;
        }
        let lane = &timeline.lanes()[number];
        let (mut open, mut next, mut placed): (Vec<Span<'_>>, usize, u64) = (vec![], 0, 0);
        // When another span began to be the innermost one, and when one of another region did.
        let (mut since, mut since_region, mut region) = (i64::MIN, i64::MIN, None);
        // Sites of critical sections and the like, and when they are left.
        let mut held: Vec<(Option<u32>, i64)> = vec![];
        for step in timeline.steps(number) {
            let now = match &step {
                Step::Enter(span) => span.begin_ns,
                Step::Leave(_, at) => *at,
            };
            while let Some((ns, event)) = events.get(next).filter(|(ns, _)| *ns < now) {
                next += 1;
                let Some(span) = open.last() else {
                    continue;
                };
                let (file, sample) = match event {
                    Event::Sample(file, sample) => (*file, sample),
                    Event::Away(file, away) => {
                        self.away(lane, span, region, (*file, away));
                        continue;
                    }
                };
                placed += 1;
                let is_near =
                    |since: i64| ns.saturating_sub(since).min(now.saturating_sub(*ns)) < CLOCKS_NS;
                held.retain(|(_, until)| *until > *ns);
                self.add(&At {
                    span,
                    held: held.last().and_then(|(site, _)| *site),
                    is_root: lane.is_root,
                    process: lane.process,
                    site: region,
                    file,
                    sample,
                    unit_is_uncertain: is_near(since),
                    is_uncertain: is_near(since_region),
                });
            }
            if next == events.len() && self.units.is_none() {
                break;
            }
            match step {
                Step::Enter(span) => {
                    self.enter(lane, &span);
                    open.push(span);
                }
                Step::Leave(span, _) => {
                    open.pop();
                    if let Some(until) = timeline.released_ns(lane, &span) {
                        held.push((span.site, until));
                    }
                }
            }
            since = now;
            let site = open.iter().rev().find_map(|span| span.site);
            if site != region {
                (region, since_region) = (site, now);
            }
        }
        placed
    }

    /// A span begins: part of a unit, if it is one.
    fn enter(&mut self, lane: &Lane, span: &Span<'_>) {
        if let (Some(units), Some(key)) = (&mut self.units, unit_key(lane.process, span)) {
            let iterations = match span.construct {
                Construct::Range => span.extent.max(1),
                _ => 1,
            };
            units.add(key, |unit| {
                unit.own_ns += span.own_ns.unwrap_or(0);
                unit.iterations = iterations;
            });
        }
    }

    /// In a span the thread had no processor for some time.
    fn away(
        &mut self,
        lane: &Lane,
        span: &Span<'_>,
        site: Option<u32>,
        (file, away): (usize, &Away),
    ) {
        let unit = unit_key(lane.process, span);
        if let (Some(units), Some(key)) = (&mut self.units, unit) {
            units.add(key, |unit| match away.is_preempted {
                true => unit.interrupted_ns += away.ns,
                false => unit.asleep_ns += away.ns,
            });
        }
        // What OpenMP waits for is known by records.
        let is_own = matches!(span.doing(lane.is_root), Doing::Work | Doing::Serial);
        if away.is_preempted || !is_own {
            return;
        }
        let stop = self.stop(file, away);
        let region = self.regions.entry(site).or_default();
        region.stops.add(away.ns, stop);
        if let (Some(units), Some(key), Some(stop)) = (&mut self.units, unit, stop) {
            units.stop(key, stop, away.ns);
        }
    }

    /// Where a thread had stopped, if that was seen.
    pub(super) fn stop(&self, file: usize, away: &Away) -> Option<StopKey> {
        let stop = away.stop.as_ref()?;
        let place = self.place(file, &stop.sample.at);
        Some((self.work(file, &stop.sample, place).line, stop.call))
    }

    fn add(&mut self, at: &At<'_>) {
        if let (Some(units), Some(key)) = (&mut self.units, unit_key(at.process, at.span)) {
            units.add(key, |unit| unit.seen += 1);
        }
        let place = self.place(at.file, &at.sample.at);
        let code = place.and_then(|p| self.places.places.get(p as usize));
        let is_program = code.is_some_and(|p| p.object.is_none());
        let code = code.map_or(Code::User, |p| p.code);
        let doing = at.span.doing(at.is_root);
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
        let work = (code == Code::User).then(|| self.work(at.file, at.sample, place));
        let region = self.regions.entry(at.site).or_default();
        if at.is_uncertain {
            region.sums.uncertain += 1;
            return;
        }
        let Some(work) = work else {
            match code {
                Code::Recording => region.sums.recording += 1,
                Code::Runtime | Code::User => region.sums.runtime += 1,
            }
            return;
        };
        region.add(&work);
        if at.held.is_some() {
            self.held.entry(at.held).or_default().add(&work);
        }
        let unit = unit_key(at.process, at.span).filter(|_| !at.unit_is_uncertain);
        if let (Some(units), Some(unit)) = (&mut self.units, unit) {
            units.sample(unit, work.line, &work.functions);
        }
    }

    /// Where a sample of the work is.
    pub(super) fn work(&self, file: usize, sample: &SampleAt, place: Option<u32>) -> Work {
        let known = |place: u32| self.places.places.get(place as usize);
        // Code of a linkage table has neither.
        let has_name = |p: &SampledPlace| p.function.is_some() || p.line.is_some();
        let is_told = |place: u32| known(place).is_some_and(|p| p.object.is_none() && has_name(p));
        let callers = self.callers[file].get(sample.callers as usize);
        let calls = callers.map_or(&[][..], |callers| &callers.calls);
        let mut is_whole = callers.is_some_and(|callers| callers.is_whole);
        let (mut line, mut callee) = (place, None);
        let mut functions: Vec<u32> = vec![];
        (place.iter()).for_each(|p| self.functions.add(*p, &mut functions));
        for call in calls {
            let place = self.place(file, call);
            let Some((at, what)) = place.and_then(|p| Some((p, known(p)?))) else {
                continue;
            };
            if what.code != Code::User {
                // Below it is what is around the region.
                is_whole = true;
                break;
            }
            self.functions.add(at, &mut functions);
            if line.is_none_or(|line| !is_told(line)) {
                // Of what the program calls the outermost function is its business.
                let is_library = |p: &u32| known(*p).is_some_and(|p| p.object.is_some());
                callee = line.filter(is_library).or(callee);
                line = Some(at);
            }
        }
        functions.sort_unstable();
        functions.dedup();
        Work {
            line: match line.is_some_and(is_told) {
                true => (line, callee),
                false => (place, None),
            },
            own: place.and_then(|p| self.functions.innermost(p)),
            functions,
            is_counted: place.and_then(known).is_some_and(|p| p.is_counted),
            is_whole,
        }
    }

    /// What is known of code.
    pub(super) fn place(&self, file: usize, code: &CodeAt) -> Option<u32> {
        let object = self.objects[file].get(code.object? as usize)?.as_ref()?;
        object.offsets.get(&code.offset).copied()
    }

    /// What code in a stack tells of constructs.
    pub(super) fn mark(&self, file: usize, code: &CodeAt) -> Option<Mark> {
        let object = self.objects[file].get(code.object? as usize)?.as_ref()?;
        object.marks.get(&code.offset).copied()
    }

    fn finish(self) -> Lines {
        let finished = |regions: BTreeMap<Option<u32>, OfRegion>| {
            let regions = regions.into_iter();
            let mut regions: Vec<RegionLines> = regions
                .map(|(site, region)| region.finish(site, &self.functions, self.places))
                .collect();
            regions.sort_by_key(|r| (Reverse(r.samples()), r.site));
            regions
        };
        let names = Names {
            places: self.places,
            functions: &self.functions.all(),
        };
        let units = self.units.map(Units::finish).unwrap_or_default();
        let period_s = self.period_ns as f64 * 1e-9;
        let uneven = units
            .iter()
            .filter_map(|(site, units)| Some((*site, uneven(units, period_s, names)?)));
        let uneven = uneven.collect();
        Lines {
            regions: finished(self.regions),
            held: finished(self.held),
            uneven,
            ..self.out
        }
    }
}

/// Which unit a span is a part of.
fn unit_key(process: u16, span: &Span<'_>) -> Option<UnitKey> {
    let site = span.site.filter(|_| span.is_unit())?;
    Some((site, process, span.node))
}
