//! One process's records become sums.

use super::super::collect::{length, step};
use super::super::growth::{Grower, GrowthBy};
use super::super::parallel::Executions;
use super::super::sums::{Numbers, is_first_part};
use super::super::tree::Paths;
use super::coverage::Coverage;
use super::in_region::{At, Key, What, Whole};
use super::pending::{Late, Pending};
use super::regions::Regions;
use crate::run::clock::Clock;
use crate::run::contexts::ProcessContexts;
use crate::run::merge::Merge;
use crate::run::nodes::NodeSet;
use crate::run::streaming::StreamingProcess;
use crate::run::survey::entry;
use crate::run::whereabouts::{Known, NodeMap, RegionId, Whereabouts};
use ompfuse_format::Construct;
use ompfuse_format::record::{Interval, MAX_COUNTERS, NOT_COUNTED, Node, Record, Step};
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, HashMap};

/// Sums of a process.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) sums: Vec<(Key, Whole)>,
    /// By path, likewise.
    pub(super) parallel: BTreeMap<u32, Executions>,
    /// The paths, of records' sites, and of contexts by these numbers.
    pub(super) paths: Paths,
    pub(super) contexts: ProcessContexts,
    pub(super) coverage: Coverage,
    pub(super) xus: u64,
    pub(super) unlabelled: u64,
    /// Nodes of the units that have several parts.
    pub(super) in_parts: Vec<u64>,
    /// Sums over time, if they are wanted.
    pub(super) grower: Option<Grower>,
}

/// Bytes that are read before somebody is told.
const STRETCH: usize = 8 << 20;
/// Intervals after which is asked how many bytes were read.
const OFTEN: usize = 1 << 16;

pub(super) struct Collector<'p, 'f, 'a> {
    process: &'p mut StreamingProcess<'f, 'a>,
    clock: Clock,
    columns: usize,
    nodes: NodeMap,
    regions: Regions,
    paths: Paths,
    contexts: ProcessContexts,
    pending: Pending<'a>,
    /// By thread where its last sums are, of some kinds.
    recent: Vec<[Option<Recent>; RECENT]>,
    units: Units,
    unlabelled: u64,
    /// Sums over time, if they are wanted.
    grower: Option<Grower>,
    by: Option<GrowthBy<'p>>,
    /// By record's site of a region: whether its executions end intervals.
    ends: HashMap<u32, bool>,
}

/// Places of [`Collector::recent`].
const RECENT: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Recent {
    region: RegionId,
    what: What,
    at: At,
}

/// What is known of a parent.
enum Parent {
    /// Where it is, if there is one.
    Is(Option<Whereabouts>),
    NotYet,
    Gone,
}

/// Execution units: most are one interval.
#[derive(Debug, Default)]
struct Units {
    count: u64,
    met: NodeSet,
    /// How many parts those have that have several, by node, as a reading before this one has found.
    in_parts: HashMap<u64, u32>,
    /// Of some of these, the parts so far.
    parts: HashMap<u64, Unit>,
    /// Those that this reading has found.
    found: HashMap<u64, u32>,
}

/// A unit in parts.
#[derive(Debug)]
struct Unit {
    /// Parts that are to come.
    left: u32,
    region: RegionId,
    what: What,
    thread: u32,
    begin: i64,
    end: i64,
    ticks: u64,
    extent: u64,
    counts: Vec<Option<u64>>,
}

impl<'p, 'f, 'a> Collector<'p, 'f, 'a> {
    /// Reads a process's records; `None`: they are in no order. `all`: bytes of all processes. `by`: whether sums over time are wanted.
    pub(super) fn collect(
        process: &'p mut StreamingProcess<'f, 'a>,
        columns: usize,
        all: usize,
        by: Option<GrowthBy<'_>>,
        progress: Progress<'_>,
    ) -> Option<Collected> {
        let mut in_parts = HashMap::new();
        loop {
            process.begin();
            let mut collector = Collector::new(process, columns, std::mem::take(&mut in_parts));
            collector.grow(by);
            collector.read(all, progress);
            collector.settle();
            let found = std::mem::take(&mut collector.units.found);
            if found.is_empty() {
                return collector.finish();
            }
            if !collector.units.in_parts.is_empty() {
                return None; // never: they were known
            }
            in_parts = found;
        }
    }

    fn new(
        process: &'p mut StreamingProcess<'f, 'a>,
        columns: usize,
        in_parts: HashMap<u64, u32>,
    ) -> Collector<'p, 'f, 'a> {
        let clock = process.clock;
        let headers = || process.threads.iter().map(|t| &t.found.file.header);
        let span = |h: &ompfuse_format::record::ThreadHeader| {
            (h.tsc_end != 0).then(|| (clock.at(h.tsc_start), clock.at(h.tsc_end)))
        };
        let threads = headers().map(|h| h.index as usize + 2).max().unwrap_or(0);
        let most = 2 * process.threads.len() + 1024;
        Collector {
            clock,
            columns,
            nodes: NodeMap::new(process.bytes, threads.min(most)),
            regions: Regions::new(headers().map(span).collect()),
            paths: Paths::default(),
            contexts: ProcessContexts::default(),
            pending: Pending::default(),
            recent: vec![[None; RECENT]; process.threads.len()],
            units: Units {
                met: NodeSet::new(process.bytes / 24),
                in_parts,
                ..Units::default()
            },
            unlabelled: 0,
            grower: None,
            by: None,
            ends: HashMap::new(),
            process,
        }
    }

    /// Sums over time are wanted.
    fn grow(&mut self, by: Option<GrowthBy<'p>>) {
        self.by = by;
        let threads = self.process.threads.len();
        self.grower = by.map(|by| match by {
            GrowthBy::Time(width) => Grower::new(Some(width), threads),
            GrowthBy::Instances(_) => Grower::new(None, threads),
        });
        self.regions.around = self.grower.is_some().then(Vec::new);
    }

    /// Adds an interval to the sums over time.
    fn add_over_time(&mut self, thread: usize, i: &Interval<'_>) {
        let Some(grower) = &mut self.grower else {
            return;
        };
        let site = self.process.sites.of(i.site).site;
        let of_thread = (i.construct == Construct::Program).then_some(thread as u32);
        let span = (self.clock.at(i.t0), self.clock.at(i.t1));
        let own_ns = self.clock.length(i.own_ticks);
        grower.interval(thread, (site, i.construct, of_thread), span, own_ns);
        for around in self.regions.around.iter_mut().flat_map(|a| a.drain(..)) {
            grower.around(around);
        }
        let Some(GrowthBy::Instances(wanted)) = self.by.filter(|_| i.construct.is_fork()) else {
            return;
        };
        let sites = &self.process.sites;
        let ends = self.ends.entry(site).or_insert_with(|| {
            let info = sites.info(i.site);
            info.is_some_and(|(module, info)| wanted(&module.binary.path, info))
        });
        if *ends {
            grower.instance(span.1);
        }
    }

    fn read(&mut self, all: usize, progress: Progress<'_>) {
        let records: Vec<_> = (self.process.threads.iter())
            .map(|t| t.found.file.records())
            .collect();
        let mut merge = Merge::new(records.into_iter(), |thread, record| {
            self.note(thread, record);
        });
        let (mut since, mut left) = (0, self.process.bytes);
        while let Some((thread, interval)) = merge.next(|thread, record| self.note(thread, record))
        {
            if self.grower.is_some() {
                self.add_over_time(thread, &interval);
            }
            self.take(thread, interval);
            since += 1;
            if since == OFTEN {
                since = 0;
                let now = merge.left();
                if left - now >= STRETCH {
                    progress.advance((left - now) as f64 / all as f64);
                    progress.release();
                    left = now;
                }
            }
            if self.regions.is_disordered {
                break;
            }
        }
        progress.advance(left as f64 / all.max(1) as f64);
        progress.release();
    }

    /// What waits for nodes that nobody has recorded belongs to nothing.
    fn settle(&mut self) {
        while let Some(missing) = self.pending.missing() {
            for node in missing {
                self.resolve(node, false);
            }
        }
    }

    fn finish(mut self) -> Option<Collected> {
        let coverage = self.regions.finish();
        let is_whole = !self.regions.is_disordered && self.process.has_names();
        if let Some(grower) = &mut self.grower {
            let around = self.regions.around.take();
            around.into_iter().flatten().for_each(|a| grower.around(a));
        }
        is_whole.then_some(Collected {
            sums: self.regions.sums.into_list(),
            parallel: self.regions.stats,
            paths: self.paths,
            contexts: self.contexts,
            coverage,
            xus: self.units.count,
            unlabelled: self.unlabelled,
            in_parts: self.units.in_parts.into_keys().collect(),
            grower: self.grower,
        })
    }

    /// A record that is no interval.
    fn note(
        &mut self,
        thread: usize,
        record: Result<Record<'a>, ompfuse_format::record::RecordError>,
    ) {
        match record {
            Ok(Record::Node(node)) if node.node != 0 => self.node(thread, &node),
            record => self.process.threads[thread].found.note(record),
        }
    }

    /// A node's own record.
    fn node(&mut self, thread: usize, node: &Node) {
        let found = &mut self.process.threads[thread].found;
        found.node_sites.add(node.site, false);
        let context = match node.construct.is_fork() {
            true => self.contexts.of(thread, node, &mut found.contexts),
            false => 0,
        };
        if self.nodes.is_met(node.node) {
            return;
        }
        match self.parent(node.parent) {
            Parent::Is(parent) => {
                self.enter(thread, (node, context), parent);
                self.resolve(node.node, true);
            }
            Parent::NotYet => self.pending.push(Late::Node(thread, *node, context)),
            Parent::Gone => self.regions.is_disordered = true,
        }
    }

    /// Where a parent is.
    #[inline]
    fn parent(&mut self, node: u64) -> Parent {
        if node == 0 {
            return Parent::Is(None);
        }
        match self.find(node) {
            Known::Here(is) => Parent::Is(Some(is)),
            Known::Not => Parent::NotYet,
            Known::Gone => Parent::Gone,
        }
    }

    /// A node and, of a fork, its context.
    fn enter(&mut self, thread: usize, (node, context): (&Node, u32), parent: Option<Whereabouts>) {
        if self.nodes.is_met(node.node) {
            return;
        }
        let region = self.process.sites.of(node.site);
        let above = parent.unwrap_or(Whereabouts::NOWHERE);
        let path = self.path(node.parent, parent, (node.construct, region.site, context));
        let labelled = match node.step {
            Step::Root => true,
            Step::Ranked | Step::TidRanked => above.labelled && region.is_known,
            Step::Range | Step::None => above.labelled,
        };
        let mut inside = above.region;
        if node.construct.is_fork() {
            self.process.threads[thread].forks_outermost |= inside == RegionId::OUTSIDE;
            inside = (self.regions).begin(
                node.construct,
                (region.site, path),
                node.node,
                thread as u32,
                above.region,
            );
        }
        let is = Whereabouts {
            region: inside,
            labelled,
        };
        let regions = &self.regions;
        (self.nodes).enter(node.node, (is, path), |region| regions.is_alive(region));
    }

    /// The path of something, as [`step`] has it, that happened in a node. `parent`: what is known of that.
    #[inline]
    fn path(&mut self, node: u64, parent: Option<Whereabouts>, what: (Construct, u32, u32)) -> u32 {
        let around = match parent {
            Some(_) => self.nodes.path(node),
            None => Paths::ROOT,
        };
        step(&mut self.paths, around, what)
    }

    /// Sees to what waited for a node, and for what waited for that. `came`: otherwise the node won't come.
    #[inline]
    fn resolve(&mut self, node: u64, came: bool) {
        if !self.pending.is_empty() {
            self.resolve_all(node, came);
        }
    }

    fn resolve_all(&mut self, node: u64, came: bool) {
        let mut next = vec![(node, came)];
        while let Some((node, came)) = next.pop() {
            let (more, one) = self.pending.take(node);
            for late in more.into_iter().chain(one) {
                let parent = match came.then(|| self.parent(node)) {
                    None => None,
                    Some(Parent::Is(parent)) => parent,
                    Some(_) => {
                        self.regions.is_disordered = true;
                        return;
                    }
                };
                match late {
                    Late::Node(thread, node, context) => {
                        self.enter(thread, (&node, context), parent);
                        next.push((node.node, true));
                    }
                    Late::Interval(thread, interval) => {
                        if interval.node != 0 {
                            self.enter(thread, (&entry(&interval), 0), parent);
                            next.push((interval.node, true));
                        }
                        self.sum_up(thread, &interval, parent);
                    }
                }
            }
        }
    }

    #[inline]
    fn find(&mut self, node: u64) -> Known {
        let regions = &self.regions;
        self.nodes.find(node, |region| regions.is_alive(region))
    }

    /// The next interval.
    #[inline]
    fn take(&mut self, thread: usize, interval: Interval<'a>) {
        self.process.threads[thread].add(&interval);
        self.regions.moved_on(thread);
        if interval.node != 0 {
            let found = &mut self.process.threads[thread].found;
            found.node_sites.add(interval.site, false);
        }
        let parent = match self.parent(interval.parent) {
            Parent::Is(parent) => parent,
            Parent::NotYet => return self.pending.push(Late::Interval(thread, interval)),
            Parent::Gone => {
                self.regions.is_disordered = true;
                return;
            }
        };
        if interval.node != 0 && !self.nodes.is_met(interval.node) {
            self.enter(thread, (&entry(&interval), 0), parent);
            self.resolve(interval.node, true);
        }
        self.sum_up(thread, &interval, parent);
    }

    /// Adds up an interval. `parent`: where it happened; `None`: that isn't known.
    fn sum_up(&mut self, thread: usize, i: &Interval<'a>, parent: Option<Whereabouts>) {
        let around = parent.unwrap_or(Whereabouts::NOWHERE);
        let site = self.process.sites.of(i.site).site;
        let own = match i.node {
            0 => None,
            node => match self.find(node) {
                Known::Here(is) => Some(is),
                _ => {
                    self.regions.is_disordered = true;
                    return;
                }
            },
        };
        let path = match own {
            // A region's has its context.
            Some(_) if i.construct.is_fork() => self.nodes.path(i.node),
            _ => self.path(i.parent, parent, (i.construct, site, 0)),
        };
        let what = What {
            site,
            construct: i.construct,
            path,
        };
        let (begin, end) = (self.clock.at(i.t0), self.clock.at(i.t1));
        if i.construct.is_xu() {
            let is_labelled = match own {
                Some(own) => own.labelled,
                None => around.labelled && i.construct != Construct::Task,
            };
            return self.unit(thread, i, what, around.region, (begin, end), is_labelled);
        }
        let numbers = Numbers::of(i, length(begin, end), |ticks| self.clock.length(ticks));
        let at = self.add(thread, i, what, around.region, &numbers);
        let region = self.regions.get(around.region);
        // What each thread of a team meets by itself is one instance, and so is the code outside of everything.
        let is_shared = match i.parent {
            0 => i.step == Step::Root,
            parent => region.node == parent,
        };
        match is_shared && own.is_some_and(|own| own.labelled) {
            true => region.sums.count_shared(at, i.step, i.index),
            false => region.sums.count(at),
        }
        let of_thread = thread as u32;
        match i.construct {
            c if c.is_fork() => {
                let id = own.map(|own| own.region);
                (self.regions).join(id, (what, around.region), of_thread, i, (begin, end));
            }
            c if c.is_part() => self.regions.part(around.region, of_thread, begin, end),
            Construct::Program => {
                let header = &self.process.threads[thread].found.file.header;
                // Workers' waits are made of these.
                let is_whole = (i.t0, i.t1) == (header.tsc_start, header.tsc_end);
                self.regions.is_disordered |= !is_whole;
            }
            _ => (self.regions).executed(around.region, of_thread, (begin, end), numbers.own),
        }
    }

    fn unit(
        &mut self,
        thread: usize,
        i: &Interval<'a>,
        what: What,
        around: RegionId,
        (begin, end): (i64, i64),
        is_labelled: bool,
    ) {
        let is_first = is_first_part(&mut self.units.met, i.node);
        self.units.count += u64::from(is_first);
        self.unlabelled += u64::from(is_first && !is_labelled);
        let numbers = Numbers::of(i, length(begin, end), |ticks| self.clock.length(ticks));
        let parts = match self.units.in_parts.is_empty() {
            true => None,
            false => self.units.in_parts.get(&i.node).copied(),
        };
        if let Some(parts) = parts {
            let counts = self.counts(i);
            let unit = self.units.parts.entry(i.node).or_insert_with(|| Unit {
                left: parts,
                region: around,
                what,
                thread: thread as u32,
                begin,
                end,
                ticks: 0,
                extent: numbers.extent,
                counts: vec![Some(0); counts.len()],
            });
            if begin < unit.begin {
                (unit.begin, unit.thread) = (begin, thread as u32);
            }
            unit.end = unit.end.max(end);
            unit.ticks = unit.ticks.wrapping_add(i.own_ticks);
            for (total, count) in unit.counts.iter_mut().zip(counts) {
                *total = total.and_then(|t| Some(t.wrapping_add(count?)));
            }
            unit.left = unit.left.saturating_sub(1);
            if unit.left == 0
                && let Some(unit) = self.units.parts.remove(&i.node)
            {
                self.add_unit(unit);
            }
            return;
        }
        if !is_first {
            *self.units.found.entry(i.node).or_insert(1) += 1;
        }
        let at = self.add(thread, i, what, around, &numbers);
        self.regions.get(around).sums.count(at);
        if i.construct == Construct::Task {
            (self.regions).executed(around, thread as u32, (begin, end), numbers.own);
        }
    }

    /// A unit whose parts have all come.
    fn add_unit(&mut self, unit: Unit) {
        if !self.regions.is_alive(unit.region) {
            self.regions.is_disordered = true;
            return;
        }
        let numbers = Numbers {
            own: self.clock.length(unit.ticks),
            wall: length(unit.begin, unit.end),
            extent: unit.extent,
        };
        let sums = &mut self.regions.get(unit.region).sums;
        let at = sums.find(unit.what, unit.thread, self.columns);
        sums.add(at, &numbers, |column| unit.counts[column]);
        sums.count(at);
        if unit.what.construct == Construct::Task {
            let span = (unit.begin, unit.end);
            (self.regions).executed(unit.region, unit.thread, span, numbers.own);
        }
    }

    /// An interval's counts, by column.
    fn counts(&self, i: &Interval<'_>) -> Vec<Option<u64>> {
        let counts: Vec<u64> = i.counts.iter().collect();
        let counters = self.process.counters(i.set);
        let count = |column: usize| of_column(&counts, counters, column);
        (0..self.columns).map(count).collect()
    }

    /// Adds an interval to the sums of a region.
    #[inline]
    fn add(
        &mut self,
        thread: usize,
        i: &Interval<'_>,
        what: What,
        region: RegionId,
        numbers: &Numbers,
    ) -> At {
        let sums = &mut self.regions.get(region).sums;
        let place = what.site as usize ^ what.construct as usize;
        let recent = &mut self.recent[thread][place % RECENT];
        let at = match recent {
            Some(known) if known.region == region && known.what == what => known.at,
            _ => {
                let at = sums.find(what, thread as u32, self.columns);
                *recent = Some(Recent { region, what, at });
                at
            }
        };
        if self.columns == 0 {
            sums.add(at, numbers, |_| None);
            return at;
        }
        let mut counts = [0; MAX_COUNTERS];
        let len = i.counts.iter().len();
        (counts.iter_mut().zip(i.counts.iter())).for_each(|(to, count)| *to = count);
        let counters = self.process.counters(i.set);
        sums.add(at, numbers, |column| {
            of_column(&counts[..len], counters, column)
        });
        at
    }
}

/// A column's count among those of an interval. A thread can have fewer counters than its process: then it has none of that event.
#[inline]
pub(super) fn of_column(
    counts: &[u64],
    counters: Option<&[Option<usize>]>,
    column: usize,
) -> Option<u64> {
    let counter = counters?.get(column).copied().flatten()?;
    counts.get(counter).copied().filter(|&c| c != NOT_COUNTED)
}
