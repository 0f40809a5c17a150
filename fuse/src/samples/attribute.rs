//! Samples to what their threads did then.

use super::asleep::StopKey;
use super::by_stack::ThreadLines;
use super::collected::{Away, Collected, SampleAt};
use super::functions::Functions;
use super::named::{Named, Share};
use super::region::{OfRegion, RegionLines, Work};
use super::uneven::{Names, Uneven, uneven};
use super::units::{UnitKey, Units};
use super::walk::{Event, Moment, Walk, events};
use crate::run::places::SampledPlaces;
use crate::run::timeline::{Doing, Lane, Span, Step, Timeline};
use ompfuse_format::Construct;
use std::cmp::Reverse;
use std::collections::BTreeMap;

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
    pub(super) named: Named<'p>,
    functions: Functions<'p>,
    pub(super) regions: BTreeMap<Option<u32>, OfRegion>,
    held: BTreeMap<Option<u32>, OfRegion>,
    pub(super) out: Lines,
    /// Where they are asked for.
    units: Option<Units>,
    period_ns: u64,
    /// Which count is that of instructions, and room for counts.
    instructions: Option<usize>,
    counts: Vec<Option<u64>>,
    /// The process has ended.
    pub(super) is_over: bool,
}

impl<'p> Sums<'p> {
    pub(super) fn new(
        collected: &'p Collected,
        places: &'p SampledPlaces,
        with_units: bool,
    ) -> Sums<'p> {
        Sums {
            named: Named::new(collected, places),
            functions: Functions::of(places),
            regions: BTreeMap::new(),
            held: BTreeMap::new(),
            out: Lines::default(),
            units: (with_units && collected.are_all()).then(Units::default),
            period_ns: collected.files.first().map_or(0, |f| f.header.period_ns),
            instructions: None,
            counts: vec![],
            is_over: false,
        }
    }
}

/// The event of instructions that a program counts itself.
const INSTRUCTIONS: &str = "instructions:exact";

/// Sums samples up. Where nothing was recorded all of them are outside of constructs. `with_units`: slow units are compared with fast ones,
/// too, if there are samples from begin to end.
pub fn lines(
    timeline: &Timeline<'_>,
    collected: &Collected,
    places: &SampledPlaces,
    with_units: bool,
) -> Lines {
    let mut sums = Sums::new(collected, places, with_units);
    let is_it = |name: &String| name == INSTRUCTIONS;
    sums.instructions = timeline.counted().iter().position(is_it);
    let mut placed = 0;
    for number in 0..timeline.lanes().len() {
        let events = events(timeline, number, collected, true);
        placed += sums.add_lane(timeline, number, &events);
    }
    match timeline.lanes().is_empty() {
        true => sums.add_by_stack(collected),
        false => sums.out.unrecorded = collected.len().saturating_sub(placed),
    }
    sums.finish()
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
        let (mut walk, mut placed) = (Walk::new(events), 0);
        // Sites of critical sections and the like, and when they are left.
        let mut held: Vec<(Option<u32>, i64)> = vec![];
        for step in timeline.steps(number) {
            while let Some(moment) = walk.before(&step) {
                let (file, sample) = match &moment.event {
                    Event::Sample(file, sample) => (*file, sample),
                    Event::Away(file, away) => {
                        self.away(lane, &moment, *file, away);
                        continue;
                    }
                };
                placed += 1;
                held.retain(|(_, until)| *until > moment.ns);
                self.add(&At {
                    span: moment.span,
                    held: held.last().and_then(|(site, _)| *site),
                    is_root: lane.is_root,
                    process: lane.process,
                    site: moment.site,
                    file,
                    sample,
                    unit_is_uncertain: moment.unit_is_uncertain,
                    is_uncertain: moment.is_uncertain,
                });
            }
            if walk.is_over() && self.units.is_none() {
                break;
            }
            walk.pass(&step);
            match step {
                Step::Enter(span) => self.enter(timeline, lane, &span),
                Step::Leave(span, _) => {
                    if let Some(until) = timeline.released_ns(lane, &span) {
                        held.push((span.site, until));
                    }
                }
            }
        }
        placed
    }

    /// A span begins: part of a unit, if it is one.
    fn enter(&mut self, timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) {
        if let (Some(units), Some(key)) = (&mut self.units, unit_key(lane.process, span)) {
            let iterations = match span.construct {
                Construct::Range => span.extent.max(1),
                _ => 1,
            };
            let instructions = self.instructions.and_then(|at| {
                timeline.counts(lane, span, &mut self.counts);
                self.counts.get(at).copied().flatten()
            });
            units.add(key, |unit| {
                unit.own_ns += span.own_ns.unwrap_or(0);
                unit.iterations = iterations;
                unit.instructions += instructions.unwrap_or(0);
                unit.has_no_count |= instructions.is_none();
            });
        }
    }

    /// In a span the thread had no processor for some time.
    fn away(&mut self, lane: &Lane, moment: &Moment<'_, '_>, file: usize, away: &Away) {
        let unit = unit_key(lane.process, moment.span);
        if let (Some(units), Some(key)) = (&mut self.units, unit) {
            units.add(key, |unit| match away.is_preempted {
                true => unit.interrupted_ns += away.ns,
                false => unit.asleep_ns += away.ns,
            });
        }
        // What OpenMP waits for is known by records.
        let is_own = matches!(moment.span.doing(lane.is_root), Doing::Work | Doing::Serial);
        if away.is_preempted || !is_own {
            return;
        }
        let stop = self.stop(file, away);
        let region = self.regions.entry(moment.site).or_default();
        region.stops.add(away.ns, stop);
        if let (Some(units), Some(key), Some(stop)) = (&mut self.units, unit, stop) {
            units.stop(key, stop, away.ns);
        }
    }

    /// Where a thread had stopped, if that was seen.
    pub(super) fn stop(&self, file: usize, away: &Away) -> Option<StopKey> {
        let stop = away.stop.as_ref()?;
        let place = self.named.place(file, &stop.sample.at);
        Some((self.work(file, &stop.sample, place).line, stop.call))
    }

    fn add(&mut self, at: &At<'_>) {
        if let (Some(units), Some(key)) = (&mut self.units, unit_key(at.process, at.span)) {
            units.add(key, |unit| unit.seen += 1);
        }
        let place = self.named.place(at.file, &at.sample.at);
        let share = self.named.share(place, at.span, at.is_root);
        if share == Share::Idle {
            self.out.idle += 1;
            return;
        }
        let work = (share == Share::Work).then(|| self.work(at.file, at.sample, place));
        let region = self.regions.entry(at.site).or_default();
        if at.is_uncertain {
            region.sums.uncertain += 1;
            return;
        }
        let Some(work) = work else {
            match share {
                Share::Recording => region.sums.recording += 1,
                _ => region.sums.runtime += 1,
            }
            return;
        };
        region.add(&work);
        if at.held.is_some() {
            self.held.entry(at.held).or_default().add(&work);
        }
        let unit = unit_key(at.process, at.span).filter(|_| !at.unit_is_uncertain);
        if let (Some(units), Some(unit)) = (&mut self.units, unit) {
            units.sample(unit, &work);
        }
    }

    /// Where a sample of the work is.
    pub(super) fn work(&self, file: usize, sample: &SampleAt, place: Option<u32>) -> Work {
        let known = |place: u32| self.named.known(Some(place));
        let is_told = |place: u32| known(place).is_some_and(|p| p.object.is_none() && p.has_name());
        let calls = self.named.calls(file, sample);
        let (mut line, mut callee) = (place, None);
        let mut functions: Vec<u32> = vec![];
        (place.iter()).for_each(|p| self.functions.add(*p, &mut functions));
        for at in calls.places.into_iter().flatten() {
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
            is_whole: calls.are_whole,
        }
    }

    fn finish(self) -> Lines {
        let finished = |regions: BTreeMap<Option<u32>, OfRegion>| {
            let places = self.named.places;
            let regions = regions.into_iter();
            let mut regions: Vec<RegionLines> = regions
                .map(|(site, region)| region.finish(site, &self.functions, places))
                .collect();
            regions.sort_by_key(|r| (Reverse(r.samples()), r.site));
            regions
        };
        let names = Names {
            places: self.named.places,
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
