//! The units of a run's threads, read one thread after the other.

use super::{SHOWN, SiteUnits, Unit, Units};
use ompfuse_format::Construct;
use ompfuse_fuse::run::InParts;
use ompfuse_fuse::run::timeline::{Lane, Span, Step, Timeline};
use ompfuse_progress::Progress;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Which units have several parts: these are known when all threads were read.
#[derive(Debug)]
pub struct Gather(Option<Vec<FxHashSet<u64>>>);

impl Gather {
    /// `in_parts`: as an earlier reading has found it; `None`: it isn't known, so all units with a node are kept until the end.
    pub fn new(in_parts: Option<&InParts>) -> Gather {
        Gather(in_parts.map(|in_parts| {
            let nodes = in_parts.nodes().map(|nodes| nodes.iter().copied());
            nodes.map(FxHashSet::from_iter).collect()
        }))
    }

    /// Begins a thread, by its number.
    pub(crate) fn lane<'t, 'a>(
        &'t self,
        timeline: &'t Timeline<'a>,
        number: usize,
    ) -> OfLane<'t, 'a> {
        OfLane {
            timeline,
            lane: &timeline.lanes()[number],
            number,
            gather: self,
            seen: 0,
            sites: vec![],
            late: vec![],
            counts: vec![],
        }
    }

    fn is_late(&self, process: u16, node: u64) -> bool {
        match &self.0 {
            None => node != 0,
            Some(of) => {
                let of = of.get(process as usize).filter(|of| !of.is_empty());
                of.is_some_and(|of| of.contains(&node))
            }
        }
    }
}

/// Units of one thread.
pub(crate) struct OfLane<'t, 'a> {
    timeline: &'t Timeline<'a>,
    lane: &'t Lane,
    number: usize,
    gather: &'t Gather,
    seen: u64,
    /// By position in the timeline's sites.
    sites: Vec<SiteUnits>,
    late: Vec<Span<'a>>,
    counts: Vec<Option<u64>>,
}

impl<'a> OfLane<'_, 'a> {
    /// A span has ended.
    pub(crate) fn add(&mut self, span: &Span<'a>) {
        if !span.is_unit() {
            return;
        }
        if self.gather.is_late(self.lane.process, span.node) {
            return self.late.push(*span);
        }
        self.seen += 1;
        let Some(site) = span.site else {
            return;
        };
        let at = site as usize;
        if self.sites.len() <= at {
            self.sites.resize_with(at + 1, SiteUnits::default);
        }
        let hash = hash(self.number, self.seen);
        let (timeline, lane, counts) = (self.timeline, self.lane, &mut self.counts);
        self.sites[at].take(
            hash,
            span.own_ns.unwrap_or(0),
            || {
                timeline.counts(lane, span, counts);
                unit(timeline, lane, span, counts.clone())
            },
            || label(timeline, lane, span),
        );
    }
}

/// Equal each time, and as good as random.
fn hash(lane: usize, seen: u64) -> u64 {
    xxh3_64(&((lane as u64) << 40 | seen).to_le_bytes())
}

fn unit(timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>, counts: Vec<Option<u64>>) -> Unit {
    let iterates = matches!(span.construct, Construct::Range | Construct::Task);
    Unit {
        own_ns: span.own_ns.unwrap_or(0),
        rank: timeline.processes()[lane.process as usize].mpi_rank,
        thread: lane.thread,
        kind: Some(span.construct),
        first: span.first(),
        iterations: if iterates { span.extent } else { 0 },
        begin_ns: span.begin_ns,
        counts,
        label: None,
    }
}

fn label(timeline: &Timeline<'_>, lane: &Lane, span: &Span<'_>) -> Option<String> {
    Some(timeline.label(lane, span, SHOWN)?.to_string())
}

impl Units {
    /// Those of a run, read once.
    pub fn of_run(timeline: &Timeline<'_>, gather: &Gather, progress: Progress<'_>) -> Units {
        let all = timeline.intervals() as usize;
        let read = |number: usize| {
            let mut lane = gather.lane(timeline, number);
            timeline.steps(number).for_each(|step| {
                if let Step::Leave(span, _) = &step {
                    lane.add(span);
                }
            });
            progress.steps(lane.lane.intervals as usize, all);
            progress.release();
            lane
        };
        let lanes = (0..timeline.lanes().len()).into_par_iter().map(read);
        Units::of_lanes(timeline, lanes.collect::<Vec<_>>())
    }

    /// Puts all threads together.
    pub(crate) fn of_lanes<'t, 'a: 't>(
        timeline: &Timeline<'_>,
        lanes: impl IntoIterator<Item = OfLane<'t, 'a>>,
    ) -> Units {
        let mut units = Units {
            events: timeline.counted().to_vec(),
            ..Units::default()
        };
        let mut sites = vec![SiteUnits::default(); timeline.sites().len()];
        let mut late: Vec<(usize, Span<'_>)> = vec![];
        for lane in lanes {
            units.seen += lane.seen;
            for (all, of_lane) in sites.iter_mut().zip(&lane.sites) {
                all.merge(of_lane);
            }
            late.extend(lane.late.into_iter().map(|span| (lane.number, span)));
        }
        units.add_late(timeline, &mut sites, &late);
        for (site, of_site) in timeline.sites().iter().zip(sites) {
            if of_site.histogram.count() > 0 {
                let key = (site.module.clone(), site.name.clone());
                match units.sites.get_mut(&key) {
                    Some(known) => known.merge(&of_site),
                    None => drop(units.sites.insert(key, of_site)),
                }
            }
        }
        units
    }

    /// Adds units in parts: what they are is told by the first part, their time and counts are sums.
    fn add_late(
        &mut self,
        timeline: &Timeline<'_>,
        sites: &mut [SiteUnits],
        late: &[(usize, Span<'_>)],
    ) {
        let mut counts = vec![];
        let mut known: FxHashMap<(u16, u64), usize> = FxHashMap::default();
        let mut whole: Vec<(usize, Unit)> = vec![];
        for (at, (number, span)) in late.iter().enumerate() {
            let lane = &timeline.lanes()[*number];
            timeline.counts(lane, span, &mut counts);
            let part = unit(timeline, lane, span, counts.clone());
            let Some(&row) = known.get(&(lane.process, span.node)) else {
                known.insert((lane.process, span.node), whole.len());
                whole.push((at, part));
                continue;
            };
            let (first, unit) = &mut whole[row];
            unit.own_ns += part.own_ns;
            for (sum, count) in unit.counts.iter_mut().zip(part.counts) {
                *sum = sum.and_then(|sum| Some(sum.wrapping_add(count?)));
            }
            if part.begin_ns < unit.begin_ns {
                (unit.begin_ns, unit.thread, *first) = (part.begin_ns, part.thread, at);
            }
        }
        for (at, unit) in whole {
            self.seen += 1;
            let (number, span) = &late[at];
            let Some(of_site) = span.site.and_then(|site| sites.get_mut(site as usize)) else {
                continue;
            };
            let lane = &timeline.lanes()[*number];
            let hash = hash(timeline.lanes().len(), self.seen);
            let own_ns = unit.own_ns;
            of_site.take(hash, own_ns, || unit, || label(timeline, lane, span));
        }
    }
}
