//! From record files to a [`Run`]'s tables.
//!
//! Two passes over the records: the first gathers the nodes of all threads (a node's record can lie in another thread's
//! file than its children) and the last tick; the second makes the rows.

use super::clock::{Clock, RateSource, rate};
use super::files::{ProcessFiles, RunFiles, ThreadBytes};
use super::health::{Health, Problem};
use super::nodes::{NONE, NodeEntry, NodeIndex, NodeTable, add_nodes};
use super::{CountAccount, EventInfo, IntervalTable, ProcessInfo, Run, ThreadAccount};
use crate::label::{LabelId, Labels};
use crate::table::{EventColumn, ProcessId, Site, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::record::{
    Interval, MAX_COUNTERS, NO_SITE, Record, RecordError, ThreadFile, split_site,
};
use ompfuse_format::run::RunModule;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A thread's file after the first pass.
struct Parsed<'a> {
    file: ThreadFile<'a>,
    nodes: Vec<NodeEntry>,
    last_tsc: u64,
    xus: usize,
    intervals: usize,
    /// Whether it has a part of a parallel region.
    in_team: bool,
    error: Option<RecordError>,
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, RecordError> {
    let file = ThreadFile::parse(bytes)?;
    let mut parsed = Parsed {
        file,
        nodes: vec![],
        last_tsc: file.header.tsc_end,
        xus: 0,
        intervals: 0,
        in_team: false,
        error: None,
    };
    for record in file.records() {
        match record {
            Ok(Record::Node(n)) if n.node != 0 => parsed.nodes.push(NodeEntry {
                construct: n.construct,
                step: n.step,
                site: n.site,
                node: n.node,
                parent: n.parent,
                index: n.index,
            }),
            Ok(Record::Node(_)) => {}
            Ok(Record::Interval(i)) => {
                parsed.last_tsc = parsed.last_tsc.max(i.t1);
                parsed.in_team |= i.construct == Construct::ImplicitTask;
                *(if i.construct.is_xu() {
                    &mut parsed.xus
                } else {
                    &mut parsed.intervals
                }) += 1;
                if i.node != 0 {
                    parsed.nodes.push(NodeEntry {
                        construct: i.construct,
                        step: i.step,
                        site: i.site,
                        node: i.node,
                        parent: i.parent,
                        index: i.index,
                    });
                }
            }
            Err(error) => parsed.error = Some(error),
        }
    }
    Ok(parsed)
}

/// The places of all modules, entered as they are met.
struct SiteBook<'a> {
    modules: &'a [RunModule],
    /// Per module what labels add to its addresses: nothing if there is one module, else its position by build id.
    tag: Vec<u64>,
    /// Per module and site the position in `sites`.
    known: Vec<Vec<u32>>,
    sites: Vec<Site>,
}

impl<'a> SiteBook<'a> {
    fn new(modules: &'a [RunModule]) -> SiteBook<'a> {
        let mut order: Vec<usize> = (0..modules.len()).collect();
        order.sort_by_key(|&m| (module_name(&modules[m]), &modules[m].binary.path));
        let mut tag = vec![0; modules.len()];
        for (ordinal, &m) in order.iter().enumerate() {
            tag[m] = (ordinal as u64) << 56;
        }
        let known = modules.iter().map(|m| vec![NONE; m.sites.len()]).collect();
        SiteBook {
            modules,
            tag,
            known,
            sites: Vec::new(),
        }
    }

    /// Position of the region that the site belongs to, and its component in labels.
    fn place(&mut self, module: usize, site: usize) -> Option<(u32, u64)> {
        let sites = &self.modules[module].sites;
        let region = sites.get(site)?.region as usize;
        let site = if region < sites.len() { region } else { site };
        let info = &sites[site];
        let position = &mut self.known[module][site];
        if *position == NONE {
            *position = self.sites.len() as u32;
            self.sites.push(Site {
                name: info.address.to_string(),
                module: module_name(&self.modules[module]).to_owned(),
                id: Some(info.id),
                address: Some(info.address),
                construct: Some(info.construct),
                function: info.function.clone(),
                source: info.source.clone(),
                detail: info.detail.clone(),
            });
        }
        Some((*position, self.tag[module] | info.address.0))
    }
}

/// Build id of a module, or its path where it has none.
fn module_name(module: &RunModule) -> &str {
    module
        .binary
        .build_id
        .as_deref()
        .unwrap_or(&module.binary.path)
}

/// The rows under construction.
struct Rows {
    xus: XuTable,
    xu_node: Vec<u32>,
    xu_parent: Vec<u32>,
    /// Exclusive ticks of this process's XUs; nanoseconds are made of the sum over an XU's parts.
    xu_ticks: Vec<u64>,
    intervals: IntervalTable,
    /// Per node the XU row that it has already.
    row_of_node: Vec<u32>,
}

/// One process as the second pass sees it.
struct Context<'a> {
    process: u16,
    clock: Clock,
    index: &'a NodeIndex,
    nodes: &'a NodeTable,
    /// Per event column of the run the counter in this process's records.
    counter: &'a [Option<usize>],
}

pub(super) fn read(files: &RunFiles<'_>) -> Run {
    let header = files.header.clone();
    let mut health = Health {
        problems: files.problems.clone(),
        ..Health::default()
    };
    let mut processes: Vec<&ProcessFiles<'_>> = files.processes.iter().collect();
    processes.sort_by_key(|p| (p.header.begin.ns, p.header.pid));
    let run_begin = processes.first().map_or(0, |p| p.header.begin.ns);
    let any_rate = processes
        .iter()
        .find_map(|p| rate(p.header.begin, p.end.as_ref()?.end));
    let events = event_infos(&header.events, &processes);
    let counted: Vec<&str> = events
        .iter()
        .filter(|e| e.counted)
        .map(|e| e.name.as_str())
        .collect();

    let parsed: Vec<Vec<Parsed<'_>>> = processes
        .iter()
        .map(|p| parse_threads(p, &mut health))
        .collect();
    let total = |count: fn(&Parsed<'_>) -> usize| parsed.iter().flatten().map(count).sum::<usize>();
    let mut rows = Rows::new(&counted, total(|p| p.xus), total(|p| p.intervals));
    let mut book = SiteBook::new(&header.modules);
    let (mut labels, mut nodes) = (Labels::default(), NodeTable::default());
    let (mut infos, mut threads) = (Vec::new(), Vec::new());
    for (number, (process, parsed)) in processes.iter().zip(&parsed).enumerate() {
        let pid = process.header.pid;
        let number = number as u16;
        let last_tsc = parsed.iter().map(|p| p.last_tsc).max().unwrap_or(0);
        let measured = process
            .end
            .as_ref()
            .and_then(|e| rate(process.header.begin, e.end))
            .or(any_rate);
        let (clock, source) = Clock::new(
            process.header.begin,
            run_begin,
            measured,
            last_tsc,
            header.duration_s,
        );
        match source {
            RateSource::Measured => {}
            RateSource::Estimated => health.problems.push(Problem::EstimatedClock { pid }),
            RateSource::Unknown if last_tsc == 0 => {}
            RateSource::Unknown => health.problems.push(Problem::NoClock { pid }),
        }
        match &process.end {
            None => health.problems.push(Problem::Killed { pid }),
            Some(end) => {
                health
                    .problems
                    .extend(end.stopped.iter().map(|reason| Problem::Stopped {
                        pid,
                        reason: reason.clone(),
                    }))
            }
        }
        let lost: u64 = parsed.iter().map(|p| p.file.header.lost).sum();
        health.lost_records += lost.max(process.end.as_ref().map_or(0, |e| e.lost));
        infos.push(ProcessInfo {
            pid,
            begin_ns: clock.at(process.header.begin.tsc),
            end_ns: clock.at(process
                .end
                .as_ref()
                .map_or(last_tsc.max(process.header.begin.tsc), |e| e.end.tsc)),
            ended: process.end.is_some(),
        });

        let modules = module_map(process, &header.modules, &mut health);
        let mut place = |site: u32| {
            let (module, site) = split_site(site);
            book.place(*modules.get(&module)?, site as usize)
        };
        let expected = parsed.iter().map(|p| p.nodes.len()).sum();
        let entries = parsed.iter().flat_map(|p| p.nodes.iter().copied());
        let index = add_nodes(&mut nodes, &mut labels, entries, expected, &mut place);
        rows.row_of_node.resize(nodes.len(), NONE);
        let counter: Vec<Option<usize>> = counted
            .iter()
            .map(|name| {
                let status = process.header.events.iter().find(|e| e.name == **name)?;
                status
                    .column
                    .map(|c| c as usize)
                    .filter(|&c| c < MAX_COUNTERS)
            })
            .collect();
        let context = Context {
            process: number,
            clock,
            index: &index,
            nodes: &nodes,
            counter: &counter,
        };
        for parsed in parsed {
            let account = rows.add_thread(&context, parsed, &counted, |site| {
                let position = place(site).map_or(NONE, |p| p.0);
                health.unknown_sites += u64::from(position == NONE && site != NO_SITE);
                position
            });
            threads.push(account);
        }
        rows.finish_process(&clock);
    }
    let Rows {
        mut xus,
        xu_node,
        xu_parent,
        intervals,
        ..
    } = rows;
    label_ranges_without_node(&mut xus, &xu_node, &xu_parent, &nodes, &mut labels);
    health.unlabelled_xus = xus.label.iter().filter(|l| !l.is_some()).count() as u64;
    xus.processes = match_processes(&processes, &infos, &xus, &mut health);
    let sites = Arc::new(book.sites);
    xus.sites = Arc::clone(&sites);
    xus.labels = Arc::new(labels);
    Run {
        header,
        processes: infos,
        threads,
        sites,
        events,
        xus,
        xu_node,
        xu_parent,
        intervals,
        nodes,
        health,
    }
}

/// First pass over a process's threads.
fn parse_threads<'a>(process: &ProcessFiles<'a>, health: &mut Health) -> Vec<Parsed<'a>> {
    let results: Vec<(&ThreadBytes<'a>, Result<Parsed<'a>, RecordError>)> = process
        .threads
        .par_iter()
        .map(|t| (t, parse(t.bytes)))
        .collect();
    let mut threads = Vec::new();
    for (thread, result) in results {
        let error = match result {
            Ok(parsed) => {
                let error = parsed.error.clone();
                threads.push(parsed);
                error
            }
            Err(error) => Some(error),
        };
        if let Some(error) = error {
            health.problems.push(Problem::Malformed {
                file: thread.name.clone(),
                error: error.to_string(),
            });
        }
    }
    threads.sort_by_key(|p| p.file.header.index);
    threads
}

/// The events that were asked for, then what processes have beyond them.
fn event_infos(wanted: &[String], processes: &[&ProcessFiles<'_>]) -> Vec<EventInfo> {
    let statuses = || processes.iter().flat_map(|p| &p.header.events);
    let mut names: Vec<&str> = wanted.iter().map(String::as_str).collect();
    names.extend(statuses().map(|s| s.name.as_str()));
    let mut events: Vec<EventInfo> = Vec::new();
    for name in names {
        if events.iter().any(|e| e.name == name) {
            continue;
        }
        let mut of_this = statuses().filter(|s| s.name == name);
        events.push(EventInfo {
            name: name.to_owned(),
            counted: of_this.clone().any(|s| s.column.is_some()),
            reason: of_this.find_map(|s| s.reason.clone()),
        });
    }
    events
}

/// The process's module numbers to positions in the run's modules.
fn module_map(
    process: &ProcessFiles<'_>,
    modules: &[RunModule],
    health: &mut Health,
) -> BTreeMap<u32, usize> {
    let mut map = BTreeMap::new();
    for status in &process.header.modules {
        match modules.iter().position(|m| m.patched == status.path) {
            Some(position) => drop(map.insert(status.module, position)),
            None => health.problems.push(Problem::UnknownModule {
                pid: process.header.pid,
                path: status.path.clone(),
            }),
        }
    }
    map
}

impl Rows {
    fn new(events: &[&str], xus: usize, intervals: usize) -> Rows {
        let columns = |capacity| {
            let column = |name: &&str| EventColumn {
                name: (*name).to_owned(),
                values: Vec::with_capacity(capacity),
                present: None,
            };
            events.iter().map(column).collect()
        };
        let mut rows = Rows {
            xus: XuTable {
                events: columns(xus),
                ..XuTable::default()
            },
            xu_node: Vec::with_capacity(xus),
            xu_parent: Vec::with_capacity(xus),
            xu_ticks: Vec::with_capacity(xus),
            intervals: IntervalTable {
                events: columns(intervals),
                ..IntervalTable::default()
            },
            row_of_node: Vec::new(),
        };
        rows.xus.reserve(xus);
        rows
    }

    /// Second pass over a thread. `place` gives a record's site its position.
    fn add_thread(
        &mut self,
        context: &Context<'_>,
        parsed: &Parsed<'_>,
        events: &[&str],
        mut place: impl FnMut(u32) -> u32,
    ) -> ThreadAccount {
        let header = &parsed.file.header;
        let (mut own_ticks, mut own_counts) = (0u64, [0u64; MAX_COUNTERS]);
        // A thread can have fewer counters than its process: then it has none of that event.
        let counter = |c: &Option<usize>| c.filter(|&c| c < header.counters as usize);
        let counters: Vec<Option<usize>> = context.counter.iter().map(counter).collect();
        let mut counts = [0; MAX_COUNTERS];
        for record in parsed.file.records() {
            let Ok(Record::Interval(interval)) = record else {
                continue;
            };
            own_ticks = own_ticks.wrapping_add(interval.own_ticks);
            for (at, count) in interval.counts.iter().enumerate() {
                counts[at] = count;
                own_counts[at] = own_counts[at].wrapping_add(count);
            }
            let values = counters.iter().map(|c| c.map(|c| counts[c]));
            let node = context.node(interval.node);
            if interval.construct.is_xu() {
                let site = place(interval.site);
                self.add_xu(context, header.index, &interval, node, site, values);
            } else {
                let site = place(interval.site);
                self.add_interval(context, header.index, &interval, node, site, values);
            }
        }
        let ended = header.tsc_end != 0;
        ThreadAccount {
            process: context.process,
            index: header.index,
            tid: header.tid,
            root: context.is_root(parsed),
            lost: header.lost,
            own_ticks,
            total_ticks: ended.then(|| header.tsc_end.wrapping_sub(header.tsc_start)),
            total_ns: ended.then(|| {
                context
                    .clock
                    .length(header.tsc_end.wrapping_sub(header.tsc_start))
            }),
            counts: events
                .iter()
                .zip(&counters)
                .filter_map(|(event, c)| {
                    let c = (*c)?;
                    let total = header.counts_end[c].wrapping_sub(header.counts_start[c]);
                    Some(CountAccount {
                        event: (*event).to_owned(),
                        own: own_counts[c],
                        total: ended.then_some(total),
                    })
                })
                .collect(),
        }
    }

    fn add_xu(
        &mut self,
        context: &Context<'_>,
        thread: u32,
        i: &Interval<'_>,
        node: u32,
        site: u32,
        values: impl Iterator<Item = Option<u64>>,
    ) {
        let (t0, t1) = (context.clock.at(i.t0), context.clock.at(i.t1));
        let xus = &mut self.xus;
        if node != NONE && self.row_of_node[node as usize] != NONE {
            let row = self.row_of_node[node as usize] as usize;
            if t0 < xus.t0_ns[row] {
                (xus.t0_ns[row], xus.thread[row], xus.cpu[row]) = (t0, thread, i.cpu);
            }
            xus.t1_ns[row] = xus.t1_ns[row].max(t1);
            let ticks = &mut self.xu_ticks[row - xus.own_ns.len()];
            *ticks = ticks.wrapping_add(i.own_ticks);
            xus.parts[row] += 1;
            for (column, value) in xus.events.iter_mut().zip(values) {
                column.add(row, value);
            }
            return;
        }
        let row = xus.label.len();
        if node != NONE {
            self.row_of_node[node as usize] = row as u32;
        }
        xus.label.push(
            context
                .nodes
                .label
                .get(node as usize)
                .copied()
                .unwrap_or(LabelId::NONE),
        );
        xus.site.push(site);
        xus.construct.push(Some(i.construct));
        xus.process.push(context.process);
        xus.thread.push(thread);
        xus.cpu.push(i.cpu);
        xus.first.push(i.index);
        xus.iterations.push(if i.construct == Construct::Range {
            i.extent
        } else {
            0
        });
        xus.t0_ns.push(t0);
        xus.t1_ns.push(t1);
        xus.parts.push(1);
        for (column, value) in xus.events.iter_mut().zip(values) {
            column.push(row, value);
        }
        self.xu_ticks.push(i.own_ticks);
        self.xu_node.push(node);
        self.xu_parent.push(context.node(i.parent));
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
        let waits = matches!(
            i.construct,
            Construct::Critical | Construct::Lock | Construct::Ordered | Construct::Atomic
        );
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

    /// Ticks of the XUs that came with this process become nanoseconds.
    fn finish_process(&mut self, clock: &Clock) {
        self.xus
            .own_ns
            .extend(self.xu_ticks.drain(..).map(|ticks| clock.length(ticks)));
    }
}

impl Context<'_> {
    /// Whether the thread runs the program's own code: it forks outside every parallel region, or is in no team at all.
    fn is_root(&self, parsed: &Parsed<'_>) -> bool {
        let outermost = |parent: u64| {
            let enclosing = self.nodes.parallel.get(self.node(parent) as usize);
            enclosing.is_none_or(|&p| p == NONE)
        };
        let mut forks = parsed
            .nodes
            .iter()
            .filter(|n| n.construct == Construct::Parallel);
        !parsed.in_team || forks.any(|n| outermost(n.parent))
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
fn label_ranges_without_node(
    xus: &mut XuTable,
    xu_node: &[u32],
    xu_parent: &[u32],
    nodes: &NodeTable,
    labels: &mut Labels,
) {
    for row in 0..xus.len() {
        let range = matches!(
            xus.construct[row],
            Some(Construct::Range | Construct::Section)
        );
        if range && xu_node[row] == NONE && xu_parent[row] != NONE {
            let parent = nodes.label[xu_parent[row] as usize];
            if parent.is_some() {
                xus.label[row] = labels.push(parent, &[xus.first[row] as u64]);
            }
        }
    }
}

/// How processes are told apart when runs are matched, see [`ProcessId::ordinal`].
fn match_processes(
    files: &[&ProcessFiles<'_>],
    infos: &[ProcessInfo],
    xus: &XuTable,
    health: &mut Health,
) -> Vec<ProcessId> {
    let mut ids: Vec<ProcessId> = infos
        .iter()
        .map(|p| ProcessId {
            pid: p.pid,
            ordinal: 0,
        })
        .collect();
    let mut has_xus = vec![false; infos.len()];
    xus.process.iter().for_each(|&p| has_xus[p as usize] = true);
    let mut groups: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
    for process in (0..infos.len()).filter(|&p| has_xus[p]) {
        let mut modules: Vec<&str> = files[process]
            .header
            .modules
            .iter()
            .map(|m| m.path.as_str())
            .collect();
        modules.sort_unstable();
        groups.entry(modules).or_default().push(process);
    }
    for group in groups.into_values() {
        // In the order of their begin, as `infos` is.
        let overlap = group
            .windows(2)
            .any(|w| infos[w[1]].begin_ns < infos[w[0]].end_ns);
        if overlap {
            health.problems.push(Problem::OverlappingProcesses {
                count: group.len() as u32,
            });
        } else {
            group
                .iter()
                .enumerate()
                .for_each(|(ordinal, &p)| ids[p].ordinal = ordinal as u32);
        }
    }
    ids
}
