//! From record files to a [`Run`]'s tables.
//!
//! Two passes over the records: the first gathers the nodes of all threads (a node's record can lie in another thread's
//! file than its children) and the last tick (`survey.rs`); the second makes the rows (`rows.rs`). A run that is larger than memory
//! is read in parts: the first pass keeps only the nodes that something happened in, the second, as often as it is wanted, makes the
//! rows of some places.

use super::account::with_a_root;
use super::clock::Clock;
use super::contexts::AllContexts;
use super::files::RunFiles;
use super::health::{Health, Problem};
use super::locks::LockStat;
use super::messages::{self, Meetings, MessageStat};
use super::nodes::{NONE, NodeIndex, NodeTable, add_nodes};
use super::order::{Counters, in_order};
use super::parts::RegionParts;
use super::processes::{not_counted, without_counters};
use super::rows::{Context, Places, Rows, label_ranges_without_node};
use super::survey::{self, Keep, Surveyed};
use super::units::Units;
use super::{
    CountAccount, EventInfo, IntervalTable, LeftBehind, LeftOut, ProcessInfo, Run, ThreadAccount,
    shared,
};
use crate::label::Labels;
use crate::table::{ProcessId, Site, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::record::ThreadFile;
use ompfuse_format::run::RunHeader;
use ompfuse_progress::Progress;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A run after the first pass.
#[derive(Debug)]
pub struct RunReader<'a> {
    pub(super) header: RunHeader,
    pub(super) processes: Vec<Process<'a>>,
    pub(super) infos: Vec<ProcessInfo>,
    /// How processes are told apart.
    pub(super) ids: Vec<ProcessId>,
    pub(super) sites: Arc<Vec<Site>>,
    pub(super) events: Vec<EventInfo>,
    /// Those that have a column.
    pub(super) counted: Vec<String>,
    /// Those of them that took turns on the processor's counters, by position.
    pub(super) shared: Vec<usize>,
    pub(super) nodes: NodeTable,
    pub(super) labels: Labels,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) region_events: Vec<EventInfo>,
    pub(super) region_parts: Vec<RegionParts>,
    pub(super) locks: Vec<LockStat>,
    pub(super) messages: Vec<MessageStat>,
    pub(super) meetings: Vec<Meetings>,
    pub(super) left_behind: Vec<LeftBehind>,
    pub(super) contexts: AllContexts,
    /// All but what only rows tell.
    pub(super) health: Health,
}

/// A process of it.
#[derive(Debug)]
pub(super) struct Process<'a> {
    pub(super) pid: u32,
    pub(super) clock: Clock,
    pub(super) index: NodeIndex,
    pub(super) places: Places,
    pub(super) counters: Counters,
    pub(super) threads: Vec<Surveyed<'a>>,
}

impl Process<'_> {
    /// What of its threads was not counted.
    pub(super) fn uncounted(&self, threads: &[ThreadAccount]) -> Vec<Problem> {
        let first_set = self.counters.get(&0);
        let mut problems = not_counted(self.pid, threads);
        problems.extend(without_counters(self.pid, threads, first_set));
        problems
    }
}

/// What is at a place, in records (an execution unit in several parts has one for each).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AtPlace {
    /// Position in the run's sites, or [`NONE`].
    pub site: u32,
    /// Execution units.
    pub xus: usize,
    /// Everything else.
    pub intervals: usize,
}

/// What of a run is wanted: a position in its sites (or [`NONE`]) and a kind.
pub type Wanted<'w> = &'w dyn Fn(u32, Construct) -> bool;

/// Some rows of a run.
#[derive(Debug)]
pub struct RunPart {
    /// The run with these rows only. All its positions are those of the whole, but for nodes beyond those that the reader keeps.
    pub run: Run,
    /// Where the execution units are among those of the whole.
    pub positions: Vec<u32>,
}

impl<'a> RunReader<'a> {
    /// Reads what is needed to read it in parts.
    pub fn new(files: &RunFiles<'a>) -> RunReader<'a> {
        RunReader::keeping(files, Keep::Inner, Progress::default())
    }

    /// The same, for somebody who waits.
    pub(super) fn for_pieces(files: &RunFiles<'a>, progress: Progress<'_>) -> RunReader<'a> {
        RunReader::keeping(files, Keep::Inner, progress)
    }

    fn keeping(files: &RunFiles<'a>, keep: Keep, progress: Progress<'_>) -> RunReader<'a> {
        let mut health = Health::default();
        let processes = in_order(files);
        let all = processes.iter().flat_map(|p| &p.threads);
        let records = all.filter_map(|t| Some(ThreadFile::parse(t.bytes).ok()?.records().left()));
        let bytes = records.sum::<usize>().max(1);
        let surveyed: Vec<Vec<Surveyed<'a>>> = processes
            .iter()
            .map(|p| {
                survey::threads(p, keep, &mut health, &|read| {
                    progress.steps(read, bytes);
                    progress.release();
                })
            })
            .collect();
        RunReader::of_surveyed(files, surveyed, health.problems)
    }

    /// What there is, by place.
    pub fn places(&self) -> Vec<AtPlace> {
        let mut counts: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
        for process in &self.processes {
            for (raw, [xus, others]) in process.threads.iter().flat_map(|t| &t.sites.counts) {
                let place = process.places.get(raw).copied().flatten();
                let entry = counts.entry(place.map_or(NONE, |p| p.0)).or_default();
                *entry = [entry[0] + xus, entry[1] + others];
            }
        }
        let of_place = |(site, [xus, intervals]): (u32, [usize; 2])| AtPlace {
            site,
            xus,
            intervals,
        };
        counts.into_iter().map(of_place).collect()
    }

    /// Reads some of the rows.
    pub fn read(&mut self, wanted: Wanted<'_>) -> RunPart {
        let (mut nodes, mut labels) = (self.nodes.clone(), self.labels.clone());
        let mut added = vec![];
        for process in &mut self.processes {
            let Process {
                places,
                index,
                threads,
                ..
            } = process;
            let is_wanted = |node: u64, raw: u32, construct: Construct| {
                let place = places.get(&raw).copied().flatten();
                wanted(place.map_or(NONE, |p| p.0), construct) && index.get(node).is_none()
            };
            let of_thread = |t: &Surveyed<'a>| survey::nodes(&t.file, is_wanted, &|_| ());
            let entries: Vec<_> = threads.iter().flat_map(of_thread).collect();
            added.push(entries.iter().map(|e| e.node).collect::<Vec<u64>>());
            let place = |raw: u32| places.get(&raw).copied().flatten();
            add_nodes(&mut nodes, &mut labels, index, entries.into_iter(), place);
        }
        let part = self.rows(nodes, labels, Some(wanted), &|_| ());
        for (process, added) in self.processes.iter_mut().zip(added) {
            added.into_iter().for_each(|n| process.index.remove(n));
        }
        part
    }

    /// Sums of what was counted part of the time are no counts.
    pub(super) fn leave_out_scaled(&self, threads: &mut [ThreadAccount]) {
        let is_scaled =
            |c: &CountAccount| self.shared.iter().any(|&at| self.counted[at] == c.event);
        for thread in threads {
            thread.counts.retain(|c| !is_scaled(c));
        }
    }

    /// The run with these accounts of its threads, by process, and without any rows; and what records' sites are in it.
    pub(super) fn without_rows(
        self,
        accounts: Vec<Vec<ThreadAccount>>,
        unlabelled: u64,
    ) -> (Run, Vec<Places>, AllContexts) {
        let mut health = self.health.clone();
        for (process, threads) in self.processes.iter().zip(&accounts) {
            health.problems.extend(process.uncounted(threads));
        }
        health.unlabelled_xus = unlabelled;
        let mut threads: Vec<ThreadAccount> = accounts.into_iter().flatten().collect();
        self.leave_out_scaled(&mut threads);
        let run = Run {
            header: self.header,
            processes: self.infos,
            threads,
            xus: XuTable {
                processes: self.ids,
                sites: Arc::clone(&self.sites),
                ..XuTable::default()
            },
            sites: self.sites,
            events: self.events,
            xu_node: vec![],
            xu_parent: vec![],
            xu_set: vec![],
            xu_scaled: vec![],
            region_events: self.region_events,
            region_parts: self.region_parts,
            locks: self.locks,
            messages: self.messages,
            meetings: self.meetings,
            intervals: IntervalTable::default(),
            nodes: self.nodes,
            left_behind: self.left_behind,
            left_out: self.left_out,
            contexts: self.contexts.contexts.clone(),
            health,
        };
        let places = self.processes.into_iter().map(|p| p.places);
        (run, places.collect(), self.contexts)
    }

    fn rows(
        &self,
        nodes: NodeTable,
        mut labels: Labels,
        wanted: Option<Wanted<'_>>,
        read: &dyn Fn(usize),
    ) -> RunPart {
        let mut health = self.health.clone();
        let total = |which: usize| {
            let of_place = |p: &AtPlace| [p.xus, p.intervals][which];
            match wanted {
                None => self.places().iter().map(of_place).sum(),
                Some(_) => 0,
            }
        };
        let columns = shared::with_times(&self.counted, &self.shared);
        let mut rows = Rows::new(&columns, total(0), total(1));
        rows.row_of_node.resize(nodes.len(), NONE);
        let mut threads = Vec::new();
        for (number, process) in (0..).zip(&self.processes) {
            let context = Context {
                process: number,
                clock: process.clock,
                index: &process.index,
                nodes: &nodes,
                places: &process.places,
                counters: &process.counters,
                wanted,
                read,
            };
            let first_thread = threads.len();
            rows.begin_process(&process.threads);
            let of_process = process.threads.iter();
            let of_process = of_process.map(|t| rows.add_thread(&context, t, &self.counted));
            threads.extend(with_a_root(of_process.collect()));
            let problems = process.uncounted(&threads[first_thread..]);
            health.problems.extend(problems);
            rows.units.finish(&process.clock);
        }
        self.leave_out_scaled(&mut threads);
        let Rows {
            units: Units { mut xus, .. },
            xu_node,
            xu_parent,
            xu_set,
            mut intervals,
            positions,
            ..
        } = rows;
        let xu_scaled = shared::scale(&mut xus.events, &self.shared);
        intervals.scaled = shared::scale(&mut intervals.events, &self.shared);
        label_ranges_without_node(&mut xus, &xu_node, &xu_parent, &nodes, &mut labels);
        health.unlabelled_xus = xus.label.iter().filter(|l| !l.is_some()).count() as u64;
        xus.processes.clone_from(&self.ids);
        xus.sites = Arc::clone(&self.sites);
        xus.labels = Arc::new(labels);
        RunPart {
            run: Run {
                header: self.header.clone(),
                processes: self.infos.clone(),
                threads,
                sites: Arc::clone(&self.sites),
                events: self.events.clone(),
                xus,
                xu_node,
                xu_parent,
                xu_set,
                xu_scaled,
                intervals,
                nodes,
                left_out: self.left_out.clone(),
                region_events: self.region_events.clone(),
                region_parts: self.region_parts.clone(),
                locks: self.locks.clone(),
                messages: self.messages.clone(),
                meetings: self.meetings.clone(),
                left_behind: self.left_behind.clone(),
                contexts: self.contexts.contexts.clone(),
                health,
            },
            positions,
        }
    }
}

/// What calls of MPI handed over, and when processes met all others. `run_begin_ns`: what clocks count from.
pub(super) fn messages_of(
    header: &RunHeader,
    infos: &[ProcessInfo],
    prepared: &[Process<'_>],
    run_begin_ns: u64,
) -> (Vec<MessageStat>, Vec<Meetings>) {
    let hosts: BTreeSet<&str> = (header.ranks.iter())
        .filter_map(|r| r.host.as_deref())
        .collect();
    let of_process = infos.iter().zip(prepared).map(|(info, process)| {
        let Process {
            clock,
            threads,
            places,
            ..
        } = process;
        messages::OfProcess {
            rank: info.mpi_rank,
            clock: *clock,
            threads,
            places,
        }
    });
    let processes: Vec<_> = of_process.collect();
    let meetings = messages::meetings_of(&processes, run_begin_ns);
    (messages::of_run(&processes, hosts.len() < 2), meetings)
}

/// What the first pass is of the time, and the second; the nodes are the rest.
const OF_SURVEY: f64 = 0.3;
const OF_ROWS: f64 = 0.6;

pub(super) fn read(files: &RunFiles<'_>, progress: Progress<'_>) -> Run {
    let mut reader = RunReader::keeping(files, Keep::All, progress.part(OF_SURVEY));
    let of_place = |p: AtPlace| p.xus + p.intervals;
    let records: usize = reader.places().into_iter().map(of_place).sum();
    let nodes = std::mem::take(&mut reader.nodes);
    let labels = std::mem::take(&mut reader.labels);
    progress.advance(1.0 - OF_SURVEY - OF_ROWS);
    let read = |n: usize| progress.part(OF_ROWS).steps(n, records.max(n));
    reader.rows(nodes, labels, None, &read).run
}
