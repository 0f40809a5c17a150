//! From what a first pass over all records has found to a reader of the run: process by process.

use super::clock::{Clock, RateSource};
use super::contexts::AllContexts;
use super::files::{ProcessFiles, RunFiles};
use super::health::{Health, Problem};
use super::locks;
use super::nodes::{NodeIndex, NodeTable, add_nodes};
use super::open::has_open;
use super::order::{clocks, counters, events, in_order};
use super::parts::{OfProcess, RegionParts, add_parts};
use super::processes::{add_left_out, info, match_processes, region_event_infos};
use super::read::{Process, RunReader, messages_of};
use super::rows::Places;
use super::sites::{SiteBook, module_map};
use super::survey::Surveyed;
use super::{EventInfo, LeftBehind, LeftOut, ProcessInfo, Within};
use crate::label::Labels;
use ompfuse_format::Construct;
use ompfuse_format::record::{NO_SITE, TeamPlace, USER_MODULE, split_site};
use ompfuse_format::run::{Exit, RunHeader};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is gathered of all processes.
struct Gathering<'f, 'a> {
    header: RunHeader,
    health: Health,
    book: SiteBook<'f>,
    nodes: NodeTable,
    labels: Labels,
    contexts: AllContexts,
    infos: Vec<ProcessInfo>,
    left_out: Vec<LeftOut>,
    left_behind: Vec<LeftBehind>,
    region_events: Vec<EventInfo>,
    region_parts: Vec<RegionParts>,
    prepared: Vec<Process<'a>>,
}

impl<'a> RunReader<'a> {
    /// What a first pass over all records has found, by process ([`in_order`]); `damaged`: what is wrong with the files.
    pub(super) fn of_surveyed(
        files: &RunFiles<'a>,
        surveyed: Vec<Vec<Surveyed<'a>>>,
        damaged: Vec<Problem>,
    ) -> RunReader<'a> {
        let header = files.header.clone();
        let mut health = Health {
            problems: files.problems.clone(),
            ..Health::default()
        };
        health.problems.extend(damaged);
        let ended = header.ended_at_bytes;
        (health.problems).extend(ended.map(|bytes| Problem::EndedAtSize { bytes }));
        let unpatched = header.unpatched.iter().cloned();
        (health.problems).extend(unpatched.map(|u| Problem::NotPatched {
            file: u.file,
            told: u.told,
        }));
        let processes = in_order(files);
        let last_tsc = |threads: &Vec<Surveyed<'a>>| threads.iter().map(|p| p.last_tsc).max();
        let last: Vec<u64> = (surveyed.iter().map(last_tsc))
            .map(Option::unwrap_or_default)
            .collect();
        let clocks = clocks(&processes, &last, header.duration_s);
        let (events, counted, shared) = events(files, &processes);
        let of_threads = surveyed.iter().flatten().map(|t| &t.contexts);
        let mut all = Gathering {
            book: SiteBook::new(&files.header.modules),
            contexts: AllContexts::new(of_threads, files.names.as_ref()),
            region_events: region_event_infos(&header.region_events, &processes),
            header,
            health,
            nodes: NodeTable::default(),
            labels: Labels::default(),
            infos: vec![],
            left_out: vec![],
            left_behind: vec![],
            region_parts: vec![],
            prepared: vec![],
        };
        let lock_names = files.names.iter().flat_map(|n| &n.objects);
        let lock_names = lock_names.map(|o| (o.loaded.as_str(), o)).collect();
        let mut locks = vec![];
        let mut last_ns = 0;
        let known = processes.iter().zip(surveyed).zip(clocks).zip(last);
        for (((process, mut threads), (clock, source)), last_tsc) in known {
            last_ns = last_ns.max(clock.at(last_tsc));
            all.tell_clock(process.header.pid, source, last_tsc);
            all.tell_end(process, &threads);
            let headers = threads.iter().map(|t| &t.file.header);
            (all.infos).push(info(process, clock, last_tsc, headers));
            let places = all.find_places(process, &threads);
            let index = all.add_nodes(&mut threads, &places);
            all.add_left_out(process, &threads, (clock, &places));
            all.add_parts(process, &threads, (clock, &places));
            locks.extend(locks::of_process(
                all.prepared.len() as u16,
                threads.iter().map(|t| &t.locks),
                |ticks| clock.length(ticks),
                |raw| Some(at(&places, raw)?.0),
                &lock_names,
            ));
            all.prepared.push(Process {
                pid: process.header.pid,
                clock,
                index,
                places,
                counters: counters(process, &counted, &shared),
                threads,
            });
        }
        if all.header.exit == Exit::Unknown {
            all.header.duration_s = last_ns as f64 / 1e9; // so long it went on at least
        }
        let ids = match_processes(&processes, &all.infos, &all.prepared, &mut all.health);
        let run_begin_ns = processes.first().map_or(0, |p| p.header.begin.ns);
        let (messages, meetings) =
            messages_of(&all.header, &all.infos, &all.prepared, run_begin_ns);
        RunReader {
            header: all.header,
            processes: all.prepared,
            infos: all.infos,
            ids,
            sites: Arc::new(all.book.sites),
            events,
            counted,
            shared,
            nodes: all.nodes,
            labels: all.labels,
            left_out: all.left_out,
            region_events: all.region_events,
            region_parts: all.region_parts,
            locks,
            messages,
            meetings,
            left_behind: all.left_behind,
            contexts: all.contexts,
            health: all.health,
        }
    }
}

/// What a site of records is in the run.
fn at(places: &Places, raw: u32) -> Option<(u32, u64)> {
    places.get(&raw).copied().flatten()
}

impl<'a> Gathering<'_, 'a> {
    fn tell_clock(&mut self, pid: u32, source: RateSource, last_tsc: u64) {
        match source {
            RateSource::Measured => {}
            RateSource::Estimated => (self.health.problems).push(Problem::EstimatedClock { pid }),
            RateSource::Unknown if last_tsc == 0 => {}
            RateSource::Unknown => self.health.problems.push(Problem::NoClock { pid }),
        }
    }

    /// How a process ended, and what of it was lost.
    fn tell_end(&mut self, process: &ProcessFiles<'_>, threads: &[Surveyed<'a>]) {
        let pid = process.header.pid;
        let problems = &mut self.health.problems;
        match &process.end {
            None => {
                let was_killed = matches!(self.header.exit, Exit::Signal(_) | Exit::Unknown);
                let is_open = || has_open(threads.iter().map(|t| &t.file));
                problems.push(match was_killed || is_open() {
                    true => Problem::Killed { pid },
                    false => Problem::Unfinished { pid },
                });
            }
            // What is lost has a number, and is said once for all processes.
            Some(end) if end.lost > 0 || end.threads_lost > 0 => {}
            Some(end) => problems.extend(end.stopped.iter().map(|reason| Problem::Stopped {
                pid,
                reason: reason.clone(),
            })),
        }
        let threads_lost = process.end.as_ref().map_or(0, |e| e.threads_lost);
        if threads_lost > 0 {
            problems.push(Problem::ThreadsLost {
                pid,
                threads: threads_lost,
            });
        }
        let lost: u64 = threads.iter().map(|p| p.file.header.lost).sum();
        self.health.lost_records += lost.max(process.end.as_ref().map_or(0, |e| e.lost));
    }

    /// What the sites of a process's records are in the run.
    fn find_places(&mut self, process: &ProcessFiles<'_>, threads: &[Surveyed<'a>]) -> Places {
        let modules = module_map(process, &self.header.modules, &mut self.health);
        let names = threads.iter().flat_map(|p| &p.names);
        let names: BTreeMap<u32, &str> = names.map(|(s, n)| (*s, n.as_str())).collect();
        let mut places = Places::default();
        let of_nodes = threads.iter().map(|t| &t.node_sites);
        let node_sites = of_nodes.flat_map(|s| s.counts.iter().map(|(site, _)| *site));
        let left = threads
            .iter()
            .flat_map(|t| t.left_out.iter())
            .flat_map(|l| [Some(l.site), Some(l.team.site)])
            .flatten()
            .filter(|&site| site != NO_SITE);
        let left = left.chain(threads.iter().flat_map(|t| t.parts.sites()));
        let of_rows = threads.iter().map(|t| &t.sites);
        let row_sites = of_rows.flat_map(|s| s.counts.iter().map(|(site, _)| *site));
        for raw in node_sites.chain(left).chain(row_sites) {
            places.entry(raw).or_insert_with(|| {
                let (module, index) = split_site(raw);
                if module == USER_MODULE {
                    return names.get(&raw).map(|name| self.book.user_place(name));
                }
                self.book.place(*modules.get(&module)?, index as usize)
            });
        }
        let counts = threads.iter().flat_map(|t| &t.sites.counts);
        let unknown = counts.filter(|(raw, _)| *raw != NO_SITE && at(&places, *raw).is_none());
        self.health.unknown_sites += unknown.map(|(_, [a, b])| (a + b) as u64).sum::<u64>();
        places
    }

    /// Takes over the threads' nodes.
    fn add_nodes(&mut self, threads: &mut [Surveyed<'a>], places: &Places) -> NodeIndex {
        let mut index = NodeIndex::new(threads.iter().map(|p| p.nodes.len()).sum());
        let mut entries = vec![];
        for thread in &mut *threads {
            match entries.is_empty() {
                true => entries = std::mem::take(&mut thread.nodes),
                false => entries.append(&mut thread.nodes),
            }
        }
        let (nodes, labels) = (&mut self.nodes, &mut self.labels);
        let place = |raw| at(places, raw);
        add_nodes(nodes, labels, &mut index, entries.into_iter(), place);
        for thread in threads {
            for (node, number) in &thread.contexts.of_nodes {
                if let Some(at) = index.get(*node) {
                    let chain = thread.contexts.chain(*number);
                    self.nodes.context[at as usize] = self.contexts.number(chain);
                }
            }
        }
        index
    }

    /// What threads executed and did not record.
    fn add_left_out(
        &mut self,
        process: &ProcessFiles<'_>,
        threads: &[Surveyed<'a>],
        (clock, places): (Clock, &Places),
    ) {
        let told =
            (threads.iter()).flat_map(|t| t.left_out.iter().map(|l| (t.file.header.index, l)));
        for (thread, of_thread) in told {
            let own_ns = clock.length(of_thread.ticks);
            let within = match of_thread.team {
                TeamPlace { site: NO_SITE, .. } => Within::Outside,
                TeamPlace { site, behind } => match (at(places, site), behind) {
                    (Some(parallel), false) => Within::Part(parallel.0),
                    (Some(parallel), true) => Within::Behind(parallel.0),
                    (None, _) => Within::Unknown,
                },
            };
            if let Within::Behind(parallel) = within {
                self.left_behind.push(LeftBehind {
                    process: self.prepared.len() as u16,
                    thread,
                    parallel,
                    own_ns,
                });
            }
            let is_off = of_thread.construct == Construct::Program;
            if let Some(site) = at(places, of_thread.site).filter(|_| !is_off) {
                let least_ns = process.header.min_duration_ns;
                let shorter = least_ns.filter(|_| of_thread.short);
                let more = (within, shorter);
                add_left_out(&mut self.left_out, site.0, of_thread, own_ns, more);
            }
        }
    }

    /// Threads' parts of outermost parallel regions.
    fn add_parts(
        &mut self,
        process: &ProcessFiles<'_>,
        threads: &[Surveyed<'a>],
        (clock, places): (Clock, &Places),
    ) {
        let column = |event: &EventInfo| {
            let mut statuses = process.header.region_events.iter();
            statuses.find(|s| s.name == event.name)?.column
        };
        let columns: Vec<Option<u32>> = self.region_events.iter().map(column).collect();
        let of_process = OfProcess {
            process: self.prepared.len() as u16,
            clock,
            columns: &columns,
        };
        for thread in threads {
            let sums = (thread.file.header.index, &thread.parts);
            let place = |raw| Some(at(places, raw)?.0);
            add_parts(&mut self.region_parts, &of_process, sums, place);
        }
    }
}
