//! From record files to a [`Run`]'s tables.
//!
//! Two passes over the records: the first gathers the nodes of all threads (a node's record can lie in another thread's
//! file than its children) and the last tick; the second makes the rows.

use super::clock::{Clock, RateSource, rate};
use super::files::{ProcessFiles, RunFiles, ThreadBytes};
use super::health::{Health, Problem};
use super::nodes::{NONE, NodeEntry, NodeTable, add_nodes};
use super::rows::{Context, Rows, label_ranges_without_node};
use super::sites::{SiteBook, module_map};
use super::{EventInfo, LeftOut, ProcessInfo, Run, ThreadAccount};
use crate::label::Labels;
use crate::table::{ProcessId, XuTable};
use ompfuse_format::record::{
    self, MAX_COUNTERS, NO_SITE, Record, RecordError, ThreadFile, USER_MODULE, split_site,
};
use ompfuse_format::run::EventStatus;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A thread's file after the first pass.
pub(super) struct Parsed<'a> {
    pub(super) file: ThreadFile<'a>,
    pub(super) nodes: Vec<NodeEntry>,
    /// What the program calls regions of its own, by site.
    names: Vec<(u32, String)>,
    left_out: Vec<record::LeftOut>,
    pub(super) last_tsc: u64,
    pub(super) xus: usize,
    pub(super) intervals: usize,
    /// Whether it has a part of a parallel region.
    pub(super) in_team: bool,
    pub(super) error: Option<RecordError>,
}

/// A problem per event with gaps in a process's threads.
fn not_counted(pid: u32, threads: &[ThreadAccount]) -> Vec<Problem> {
    let mut gaps: BTreeMap<&str, u64> = BTreeMap::new();
    for count in threads
        .iter()
        .flat_map(|t| &t.counts)
        .filter(|c| c.gaps > 0)
    {
        *gaps.entry(&count.event).or_default() += count.gaps;
    }
    gaps.into_iter()
        .map(|(event, intervals)| Problem::NotCounted {
            pid,
            event: event.to_owned(),
            intervals,
        })
        .collect()
}

fn parse(bytes: &[u8]) -> Result<Parsed<'_>, RecordError> {
    let file = ThreadFile::parse(bytes)?;
    let mut parsed = Parsed {
        file,
        nodes: vec![],
        names: vec![],
        left_out: vec![],
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
            Ok(Record::LeftOut(l)) => parsed.left_out.push(l),
            Ok(Record::Name(n)) => {
                let text = String::from_utf8_lossy(n.text).into_owned();
                parsed.names.push((n.site, text));
            }
            Ok(Record::Interval(i)) => {
                parsed.last_tsc = parsed.last_tsc.max(i.t1);
                parsed.in_team |= i.construct.is_part();
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
    let (mut infos, mut threads, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
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
            boundary_ps: process.costs.boundary.and_then(|b| {
                clock
                    .length(b.ticks.saturating_mul(1000))
                    .checked_div(b.boundaries)
            }),
            probes: process.costs.probes.clone(),
            switches: process.end.as_ref().and_then(|e| e.switches),
        });

        let modules = module_map(process, &header.modules, &mut health);
        let names = parsed.iter().flat_map(|p| &p.names);
        let names: BTreeMap<u32, &str> = names.map(|(s, n)| (*s, n.as_str())).collect();
        let mut place = |site: u32| {
            let (module, index) = split_site(site);
            if module == USER_MODULE {
                return names.get(&site).map(|name| book.user_place(name));
            }
            book.place(*modules.get(&module)?, index as usize)
        };
        let expected = parsed.iter().map(|p| p.nodes.len()).sum();
        let entries = parsed.iter().flat_map(|p| p.nodes.iter().copied());
        let index = add_nodes(&mut nodes, &mut labels, entries, expected, &mut place);
        rows.row_of_node.resize(nodes.len(), NONE);
        let counters_of = |set: &[EventStatus]| -> Vec<Option<usize>> {
            let column = |name: &&str| {
                let status = set.iter().find(|e| e.name == **name)?;
                let column = status.column.map(|c| c as usize);
                column.filter(|&c| c < MAX_COUNTERS)
            };
            counted.iter().map(column).collect()
        };
        let first = (0, counters_of(&process.header.events));
        let further = process.header.sets.iter();
        let counters: BTreeMap<u8, Vec<Option<usize>>> = further
            .filter_map(|s| Some((u8::try_from(s.set).ok()?, counters_of(&s.events))))
            .chain([first])
            .collect();
        let context = Context {
            process: number,
            clock,
            index: &index,
            nodes: &nodes,
            counters: &counters,
        };
        for of_thread in parsed.iter().flat_map(|p| &p.left_out) {
            if let Some(site) = place(of_thread.site) {
                let own_ns = clock.length(of_thread.ticks);
                let least_ns = process.header.min_duration_ns;
                let shorter = least_ns.filter(|_| of_thread.short);
                add_left_out(&mut left_out, site.0, of_thread, own_ns, shorter);
            }
        }
        let first_thread = threads.len();
        for parsed in parsed {
            let account = rows.add_thread(&context, parsed, &counted, |site| {
                let position = place(site).map_or(NONE, |p| p.0);
                health.unknown_sites += u64::from(position == NONE && site != NO_SITE);
                position
            });
            threads.push(account);
        }
        health
            .problems
            .extend(not_counted(pid, &threads[first_thread..]));
        rows.finish_process(&clock);
    }
    let Rows {
        mut xus,
        xu_node,
        xu_parent,
        xu_set,
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
        xu_set,
        intervals,
        nodes,
        left_out,
        health,
    }
}

fn add_left_out(
    all: &mut Vec<LeftOut>,
    site: u32,
    of_thread: &record::LeftOut,
    own_ns: u64,
    shorter_than_ns: Option<u64>,
) {
    let construct = of_thread.construct;
    let known = all
        .iter()
        .position(|l| (l.site, l.construct) == (site, construct));
    let at = known.unwrap_or_else(|| {
        all.push(LeftOut {
            site,
            construct,
            count: 0,
            own_ns: 0,
            one_in: 1,
            throttled: false,
            shorter_than_ns: None,
        });
        all.len() - 1
    });
    let entry = &mut all[at];
    entry.count += of_thread.count;
    entry.own_ns += own_ns;
    entry.one_in = entry.one_in.max(of_thread.one_in);
    entry.throttled |= of_thread.throttled;
    entry.shorter_than_ns = entry.shorter_than_ns.max(shorter_than_ns);
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

impl RunFiles<'_> {
    /// The events that were counted, in the order of the columns: what processes wrote beside their records tells it.
    pub fn counted(&self) -> Vec<String> {
        let processes: Vec<&ProcessFiles<'_>> = self.processes.iter().collect();
        let events = event_infos(&self.header.events, &processes).into_iter();
        events.filter(|e| e.counted).map(|e| e.name).collect()
    }
}

/// The events that were asked for, then what processes have beyond them.
fn event_infos(wanted: &[String], processes: &[&ProcessFiles<'_>]) -> Vec<EventInfo> {
    let headers = || processes.iter().map(|p| &p.header);
    let statuses = || {
        headers().flat_map(|h| {
            let further = h.sets.iter().flat_map(|s| &s.events);
            h.events.iter().chain(further)
        })
    };
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

/// How processes are told apart when runs are matched, see [`ProcessId::ordinal`].
fn match_processes(
    files: &[&ProcessFiles<'_>],
    infos: &[ProcessInfo],
    xus: &XuTable,
    health: &mut Health,
) -> Vec<ProcessId> {
    let mut ids: Vec<ProcessId> = infos
        .iter()
        .zip(files)
        .map(|(p, files)| ProcessId {
            pid: p.pid,
            mpi_rank: files.header.mpi_rank,
            ordinal: files.header.mpi_rank.map_or(0, |rank| (rank + 1) << 16),
        })
        .collect();
    let mut has_xus = vec![false; infos.len()];
    xus.process.iter().for_each(|&p| has_xus[p as usize] = true);
    let mut groups: BTreeMap<(Option<u32>, Vec<&str>), Vec<usize>> = BTreeMap::new();
    for process in (0..infos.len()).filter(|&p| has_xus[p]) {
        let mut modules: Vec<&str> = files[process]
            .header
            .modules
            .iter()
            .map(|m| m.path.as_str())
            .collect();
        modules.sort_unstable();
        let rank = files[process].header.mpi_rank;
        groups.entry((rank, modules)).or_default().push(process);
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
                .for_each(|(ordinal, &p)| ids[p].ordinal |= ordinal as u32);
        }
    }
    ids
}
