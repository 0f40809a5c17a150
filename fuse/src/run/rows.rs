//! Second pass: a row per XU and per other interval.

use super::account::Account;
use super::clock::Clock;
use super::nodes::{NONE, NodeIndex, NodeSet, NodeTable};
use super::order::Counters;
use super::read::Wanted;
use super::survey::Surveyed;
use super::units::{Units, Whose, event_columns};
use super::{IntervalTable, ThreadAccount};
use crate::label::{LabelId, Labels};
use crate::table::XuTable;
use ompfuse_format::Construct;
use ompfuse_format::record::{Interval, MAX_COUNTERS, NOT_COUNTED, Record};
use rustc_hash::FxHashMap;

/// By a record's site: its position in the run's sites, and its component in labels.
pub(crate) type Places = FxHashMap<u32, Option<(u32, u64)>>;

/// The rows under construction.
pub(super) struct Rows {
    pub(super) units: Units,
    pub(super) xu_node: Vec<u32>,
    pub(super) xu_parent: Vec<u32>,
    pub(super) xu_set: Vec<Option<u8>>,
    pub(super) intervals: IntervalTable,
    /// Per node the XU row that it has already.
    pub(super) row_of_node: Vec<u32>,
    /// If only some rows are wanted: where the XUs are among all, how many of these there were, and those of this process that are
    /// not wanted and have nodes.
    pub(super) positions: Vec<u32>,
    all_xus: u32,
    passed: NodeSet,
}

/// One process as the second pass sees it.
pub(super) struct Context<'a> {
    pub(super) process: u16,
    pub(super) clock: Clock,
    pub(super) index: &'a NodeIndex,
    pub(super) nodes: &'a NodeTable,
    pub(super) places: &'a Places,
    /// The rows that are made; `None`: all.
    pub(super) wanted: Option<Wanted<'a>>,
    pub(super) counters: &'a Counters,
    /// Told of intervals that were read.
    pub(super) read: &'a dyn Fn(usize),
}

/// So many intervals are read before somebody is told.
const STRETCH: usize = 1 << 14;

impl Rows {
    pub(super) fn new(events: &[String], xus: usize, intervals: usize) -> Rows {
        Rows {
            units: Units::new(events, xus),
            xu_node: Vec::with_capacity(xus),
            xu_parent: Vec::with_capacity(xus),
            xu_set: Vec::with_capacity(xus),
            intervals: IntervalTable {
                events: event_columns(events, intervals),
                ..IntervalTable::default()
            },
            row_of_node: Vec::new(),
            positions: Vec::new(),
            all_xus: 0,
            passed: NodeSet::default(),
        }
    }

    /// Node numbers are a process's own.
    pub(super) fn begin_process(&mut self, threads: &[Surveyed<'_>]) {
        let xus = threads.iter().map(|t| t.sites.total()[0]).sum();
        self.passed = NodeSet::new(xus);
    }

    /// Second pass over a thread.
    pub(super) fn add_thread(
        &mut self,
        context: &Context<'_>,
        surveyed: &Surveyed<'_>,
        events: &[String],
    ) -> ThreadAccount {
        let header = &surveyed.file.header;
        let mut account = Account::new(header);
        let nothing = vec![None; self.units.xus.events.len()];
        let counters = |set: u8| context.counters.get(&set).unwrap_or(&nothing);
        let mut counts = [0; MAX_COUNTERS];
        let mut read = 0;
        for record in surveyed.file.records() {
            let Ok(Record::Interval(interval)) = record else {
                continue;
            };
            read += 1;
            if read == STRETCH {
                (context.read)(std::mem::take(&mut read));
            }
            account.add(&interval);
            for (at, count) in interval.counts.iter().enumerate() {
                counts[at] = count;
            }
            // A thread can have fewer counters than its process: then it has none of that event.
            let len = interval.counts.iter().len();
            let known = |c: usize| (c < len && counts[c] != NOT_COUNTED).then_some(counts[c]);
            let values = counters(interval.set).iter().map(|c| c.and_then(known));
            let node = context.node(interval.node);
            let site = context.place(interval.site);
            let is_xu = interval.construct.is_xu();
            if let Some(wanted) = context.wanted {
                if !wanted(site, interval.construct) {
                    let is_new = is_xu && (interval.node == 0 || self.passed.insert(interval.node));
                    self.all_xus += u32::from(is_new);
                    continue;
                }
                if is_xu && (node == NONE || self.row_of_node[node as usize] == NONE) {
                    self.positions.push(self.all_xus);
                    self.all_xus += 1;
                }
            }
            let disturbed = (header.has_marks != 0).then_some(interval.disturbed);
            if is_xu {
                let label = context.nodes.label.get(node as usize);
                let whose = Whose {
                    label: label.copied().unwrap_or(LabelId::NONE),
                    site,
                    process: context.process,
                    thread: header.index,
                    disturbed,
                };
                self.add_xu(context, whose, &interval, node, values);
            } else {
                self.add_interval(context, header.index, &interval, node, site, values);
                self.intervals.disturbed.push(disturbed);
            }
        }
        (context.read)(read);
        let first = context.counters.get(&0).unwrap_or(&nothing);
        ThreadAccount {
            process: context.process,
            root: is_root(surveyed, context.nodes, context.index),
            ..account.finish(header, &context.clock, events, first)
        }
    }

    fn add_xu(
        &mut self,
        context: &Context<'_>,
        whose: Whose,
        i: &Interval<'_>,
        node: u32,
        values: impl Iterator<Item = Option<u64>>,
    ) {
        if node != NONE && self.row_of_node[node as usize] != NONE {
            let row = self.row_of_node[node as usize] as usize;
            self.units.merge(row, &context.clock, whose, i, values);
            if self.xu_set[row] != Some(i.set) {
                self.xu_set[row] = None;
            }
            return;
        }
        let row = self.units.push(&context.clock, whose, i, values);
        if node != NONE {
            self.row_of_node[node as usize] = row as u32;
        }
        self.xu_node.push(node);
        self.xu_parent.push(context.node(i.parent));
        self.xu_set.push(Some(i.set));
    }

    fn add_interval(
        &mut self,
        context: &Context<'_>,
        thread: u32,
        i: &Interval<'_>,
        node: u32,
        site: u32,
        values: impl Iterator<Item = Option<u64>>,
    ) {
        let rows = &mut self.intervals;
        let row = rows.construct.len();
        let waits = i.construct.is_exclusive();
        rows.construct.push(i.construct);
        rows.site.push(site);
        rows.process.push(context.process);
        rows.thread.push(thread);
        rows.cpu.push(i.cpu);
        rows.node.push(node);
        rows.parent.push(context.node(i.parent));
        rows.t0_ns.push(context.clock.at(i.t0));
        rows.t1_ns.push(context.clock.at(i.t1));
        rows.own_ns.push(context.clock.length(i.own_ticks));
        rows.extent.push(if waits {
            context.clock.length(i.extent)
        } else {
            i.extent
        });
        for (column, value) in rows.events.iter_mut().zip(values) {
            column.push(row, value);
        }
    }
}

/// Whether a thread runs the program's own code: it forks outside every parallel region, or is in no team at all.
pub(super) fn is_root(surveyed: &Surveyed<'_>, nodes: &NodeTable, index: &NodeIndex) -> bool {
    let outermost = |&parent: &u64| {
        let at = index.get(parent).filter(|_| parent != 0);
        let enclosing = at.and_then(|at| nodes.parallel.get(at as usize));
        enclosing.is_none_or(|&p| p == NONE)
    };
    (!surveyed.in_team || surveyed.forks_in.iter().any(outermost)) && surveyed.has_met
}

impl Context<'_> {
    /// Position of a record's site, or [`NONE`].
    fn place(&self, raw: u32) -> u32 {
        let place = self.places.get(&raw).copied().flatten();
        place.map_or(NONE, |p| p.0)
    }

    /// Position of a node in the run's nodes, or [`NONE`].
    fn node(&self, node: u64) -> u32 {
        if node == 0 {
            NONE
        } else {
            self.index.get(node).unwrap_or(NONE)
        }
    }
}

/// Ranges that nothing refers to may have no node of their own; their label follows from parent and index alone.
pub(super) fn label_ranges_without_node(
    xus: &mut XuTable,
    xu_node: &[u32],
    xu_parent: &[u32],
    nodes: &NodeTable,
    labels: &mut Labels,
) {
    for row in 0..xus.len() {
        let range = xus.construct[row].is_some_and(Construct::is_share);
        if range && xu_node[row] == NONE && xu_parent[row] != NONE {
            let parent = nodes.label[xu_parent[row] as usize];
            if parent.is_some() {
                xus.label[row] = labels.push(parent, &[xus.first[row] as u64]);
            }
        }
    }
}
