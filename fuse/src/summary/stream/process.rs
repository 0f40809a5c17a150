//! One process's records become sums.

mod sum_up;

use super::super::collect::step;
use super::super::growth::{Grower, GrowthBy};
use super::super::parallel::Executions;
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
use ompfuse_format::record::{Interval, NOT_COUNTED, Node, Record, Step};
use ompfuse_progress::Progress;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use sum_up::Units;

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
    /// The most threads in teams and roots at once.
    pub(super) threads: u64,
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
    ends: FxHashMap<u32, bool>,
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

impl<'p, 'f, 'a> Collector<'p, 'f, 'a> {
    /// Reads a process's records; `None`: they are in no order. `all`: bytes of all processes. `by`: whether sums over time are wanted.
    pub(super) fn collect(
        process: &'p mut StreamingProcess<'f, 'a>,
        columns: usize,
        all: usize,
        by: Option<GrowthBy<'_>>,
        progress: Progress<'_>,
    ) -> Option<Collected> {
        let mut in_parts = FxHashMap::default();
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
        in_parts: FxHashMap<u64, u32>,
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
            ends: FxHashMap::default(),
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
        let enter_ns = (i.construct.is_exclusive()).then(|| self.clock.length(i.extent));
        let own = (own_ns, enter_ns);
        grower.interval(thread, (site, i.construct, of_thread), span, own);
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
        // Roots whose end is not on record.
        let last = self.process.threads.iter().map(|t| t.found.last_tsc);
        let last = self.clock.at(last.max().unwrap_or(0));
        for thread in &self.process.threads {
            let header = &thread.found.file.header;
            if thread.is_root() && header.tsc_end == 0 {
                let begin = self.clock.at(header.tsc_start);
                self.regions.peak.add(begin, last.max(begin + 1), 1);
            }
        }
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
            threads: self.regions.peak.most(),
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
                thread as u32,
                above.region,
            );
        }
        let is = Whereabouts {
            region: inside,
            labelled,
            is_region: node.construct.is_fork() || node.construct.is_code() && above.is_region,
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
