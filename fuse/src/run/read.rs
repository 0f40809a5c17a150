//! From record files to a [`Run`]'s tables.
//!
//! Two passes over the records: the first gathers the nodes of all threads (a node's record can lie in another thread's
//! file than its children) and the last tick (`survey.rs`); the second makes the rows (`rows.rs`). A run that is larger than memory
//! is read in parts: the first pass keeps only the nodes that something happened in, the second, as often as it is wanted, makes the
//! rows of some places.

use super::account::with_a_root;
use super::clock::{Clock, RateSource};
use super::contexts::AllContexts;
use super::files::RunFiles;
use super::health::{Health, Problem};
use super::locks::{self, LockStat};
use super::messages::{self, MessageStat};
use super::nodes::{NONE, NodeIndex, NodeTable, add_nodes};
use super::open::has_open;
use super::order::{Counters, clocks, counters, events, in_order};
use super::parts::{OfProcess, RegionParts, add_parts};
use super::processes::{
    add_left_out, info, match_processes, not_counted, region_event_infos, without_counters,
};
use super::rows::{Context, Places, Rows, label_ranges_without_node};
use super::sites::{SiteBook, module_map};
use super::survey::{self, Keep, Surveyed};
use super::units::Units;
use super::{
    CountAccount, EventInfo, IntervalTable, LeftBehind, LeftOut, ProcessInfo, Run, ThreadAccount,
    Within, shared,
};
use crate::label::Labels;
use crate::table::{ProcessId, Site, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::record::{NO_SITE, TeamPlace, ThreadFile, USER_MODULE, split_site};
use ompfuse_format::run::{Exit, RunHeader};
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
    left_out: Vec<LeftOut>,
    region_events: Vec<EventInfo>,
    region_parts: Vec<RegionParts>,
    locks: Vec<LockStat>,
    messages: Vec<MessageStat>,
    left_behind: Vec<LeftBehind>,
    pub(super) contexts: AllContexts,
    /// All but what only rows tell.
    pub(super) health: Health,
}

/// A process of it.
#[derive(Debug)]
pub(super) struct Process<'a> {
    pid: u32,
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

    /// What a first pass over all records has found, by process ([`in_order`]); `damaged`: what is wrong with the files.
    pub(super) fn of_surveyed(
        files: &RunFiles<'a>,
        surveyed: Vec<Vec<Surveyed<'a>>>,
        damaged: Vec<Problem>,
    ) -> RunReader<'a> {
        let mut header = files.header.clone();
        let mut health = Health {
            problems: files.problems.clone(),
            ..Health::default()
        };
        health.problems.extend(damaged);
        let ended = header.ended_at_bytes;
        (health.problems).extend(ended.map(|bytes| Problem::EndedAtSize { bytes }));
        let processes = in_order(files);
        let last_tsc = |threads: &Vec<Surveyed<'a>>| threads.iter().map(|p| p.last_tsc).max();
        let last: Vec<u64> = (surveyed.iter().map(last_tsc))
            .map(Option::unwrap_or_default)
            .collect();
        let clocks = clocks(&processes, &last, header.duration_s);
        let (events, counted, shared) = events(files, &processes);
        let region_events = region_event_infos(&header.region_events, &processes);
        let mut book = SiteBook::new(&header.modules);
        let of_threads = surveyed.iter().flatten().map(|t| &t.contexts);
        let contexts = AllContexts::new(of_threads, files.names.as_ref());
        let (mut labels, mut nodes) = (Labels::default(), NodeTable::default());
        let (mut infos, mut left_out, mut prepared) = (Vec::new(), Vec::new(), Vec::new());
        let (mut region_parts, mut locks) = (Vec::new(), Vec::new());
        let lock_names = files.names.iter().flat_map(|n| &n.objects);
        let lock_names = lock_names.map(|o| (o.loaded.as_str(), o)).collect();
        let mut left_behind = Vec::new();
        let mut last_ns = 0;
        let known = processes.iter().zip(surveyed).zip(clocks).zip(last);
        for (((process, mut threads), (clock, source)), last_tsc) in known {
            let pid = process.header.pid;
            last_ns = last_ns.max(clock.at(last_tsc));
            match source {
                RateSource::Measured => {}
                RateSource::Estimated => health.problems.push(Problem::EstimatedClock { pid }),
                RateSource::Unknown if last_tsc == 0 => {}
                RateSource::Unknown => health.problems.push(Problem::NoClock { pid }),
            }
            match &process.end {
                None => {
                    let was_killed = matches!(header.exit, Exit::Signal(_) | Exit::Unknown);
                    let is_open = || has_open(threads.iter().map(|t| &t.file));
                    health.problems.push(match was_killed || is_open() {
                        true => Problem::Killed { pid },
                        false => Problem::Unfinished { pid },
                    });
                }
                // What is lost has a number, and is said once for all processes.
                Some(end) if end.lost > 0 || end.threads_lost > 0 => {}
                Some(end) => {
                    health
                        .problems
                        .extend(end.stopped.iter().map(|reason| Problem::Stopped {
                            pid,
                            reason: reason.clone(),
                        }))
                }
            }
            let lost: u64 = threads.iter().map(|p| p.file.header.lost).sum();
            health.lost_records += lost.max(process.end.as_ref().map_or(0, |e| e.lost));
            let threads_lost = process.end.as_ref().map_or(0, |e| e.threads_lost);
            if threads_lost > 0 {
                health.problems.push(Problem::ThreadsLost {
                    pid,
                    threads: threads_lost,
                });
            }
            let headers = threads.iter().map(|t| &t.file.header);
            infos.push(info(process, clock, last_tsc, headers));

            let modules = module_map(process, &header.modules, &mut health);
            let names = threads.iter().flat_map(|p| &p.names);
            let names: BTreeMap<u32, &str> = names.map(|(s, n)| (*s, n.as_str())).collect();
            let mut places = Places::default();
            let of_nodes = threads.iter().map(|t| &t.node_sites);
            let node_sites = of_nodes.flat_map(|s| s.counts.iter().map(|(site, _)| *site));
            let left = threads
                .iter()
                .flat_map(|t| t.left_out.iter())
                .flat_map(|l| [Some(l.site), l.team.map(|t| t.site)])
                .flatten()
                .filter(|&site| site != NO_SITE);
            let left = left.chain(threads.iter().flat_map(|t| t.parts.sites()));
            let of_rows = threads.iter().map(|t| &t.sites);
            let row_sites = of_rows.flat_map(|s| s.counts.iter().map(|(site, _)| *site));
            for raw in node_sites.chain(left).chain(row_sites) {
                places.entry(raw).or_insert_with(|| {
                    let (module, index) = split_site(raw);
                    if module == USER_MODULE {
                        return names.get(&raw).map(|name| book.user_place(name));
                    }
                    book.place(*modules.get(&module)?, index as usize)
                });
            }
            let place = |raw: u32| places.get(&raw).copied().flatten();
            let counts = threads.iter().flat_map(|t| &t.sites.counts);
            let unknown = counts.filter(|(raw, _)| *raw != NO_SITE && place(*raw).is_none());
            health.unknown_sites += unknown.map(|(_, [a, b])| (a + b) as u64).sum::<u64>();

            let expected = threads.iter().map(|p| p.nodes.len()).sum();
            let mut index = NodeIndex::new(expected);
            let mut entries = vec![];
            for thread in &mut threads {
                match entries.is_empty() {
                    true => entries = std::mem::take(&mut thread.nodes),
                    false => entries.append(&mut thread.nodes),
                }
            }
            add_nodes(
                &mut nodes,
                &mut labels,
                &mut index,
                entries.into_iter(),
                place,
            );
            for thread in &threads {
                for (node, number) in &thread.contexts.of_nodes {
                    if let Some(at) = index.get(*node) {
                        let chain = thread.contexts.chain(*number);
                        nodes.context[at as usize] = contexts.number(chain);
                    }
                }
            }
            let counters = counters(process, &counted, &shared);
            let told =
                (threads.iter()).flat_map(|t| t.left_out.iter().map(|l| (t.file.header.index, l)));
            for (thread, of_thread) in told {
                let own_ns = clock.length(of_thread.ticks);
                let within = match of_thread.team {
                    None => Within::Unknown,
                    Some(TeamPlace { site: NO_SITE, .. }) => Within::Outside,
                    Some(TeamPlace { site, behind }) => match (place(site), behind) {
                        (Some(parallel), false) => Within::Part(parallel.0),
                        (Some(parallel), true) => Within::Behind(parallel.0),
                        (None, _) => Within::Unknown,
                    },
                };
                if let Within::Behind(parallel) = within {
                    left_behind.push(LeftBehind {
                        process: prepared.len() as u16,
                        thread,
                        parallel,
                        own_ns,
                    });
                }
                let is_off = of_thread.construct == Construct::Program;
                if let Some(site) = place(of_thread.site).filter(|_| !is_off) {
                    let least_ns = process.header.min_duration_ns;
                    let shorter = least_ns.filter(|_| of_thread.short);
                    let more = (within, shorter);
                    add_left_out(&mut left_out, site.0, of_thread, own_ns, more);
                }
            }
            let column = |event: &EventInfo| {
                let mut statuses = process.header.region_events.iter();
                statuses.find(|s| s.name == event.name)?.column
            };
            let columns: Vec<Option<u32>> = region_events.iter().map(column).collect();
            let of_process = OfProcess {
                process: prepared.len() as u16,
                clock,
                columns: &columns,
            };
            for thread in &threads {
                let sums = (thread.file.header.index, &thread.parts);
                add_parts(&mut region_parts, &of_process, sums, |raw| {
                    Some(place(raw)?.0)
                });
            }
            locks.extend(locks::of_process(
                of_process.process,
                threads.iter().map(|t| &t.locks),
                |ticks| clock.length(ticks),
                |raw| Some(place(raw)?.0),
                &lock_names,
            ));
            prepared.push(Process {
                pid,
                clock,
                index,
                places,
                counters,
                threads,
            });
        }
        if header.exit == Exit::Unknown {
            header.duration_s = last_ns as f64 / 1e9; // so long it went on at least
        }
        let ids = match_processes(&processes, &infos, &prepared, &mut health);
        let messages = messages_of(&header, &infos, &prepared);
        let sites = Arc::new(book.sites);
        RunReader {
            header,
            processes: prepared,
            infos,
            ids,
            sites,
            events,
            counted,
            shared,
            nodes,
            labels,
            left_out,
            region_events,
            region_parts,
            locks,
            messages,
            left_behind,
            contexts,
            health,
        }
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
                left_behind: self.left_behind.clone(),
                contexts: self.contexts.contexts.clone(),
                health,
            },
            positions,
        }
    }
}

/// What calls of MPI handed over.
fn messages_of(
    header: &RunHeader,
    infos: &[ProcessInfo],
    prepared: &[Process<'_>],
) -> Vec<MessageStat> {
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
    messages::of_run(&processes, hosts.len() < 2)
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
