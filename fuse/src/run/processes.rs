//! What is known of a run's processes beside their rows.

use super::clock::Clock;
use super::files::{ProcessFiles, RunFiles};
use super::health::{Health, Problem};
use super::read::Process;
use super::{EventInfo, IntervalPs, LeftOut, ProcessInfo, ThreadAccount, Within};
use crate::table::ProcessId;
use ompfuse_format::event::exact;
use ompfuse_format::record::{self, ThreadHeader};
use ompfuse_format::run::EventStatus;
use std::collections::BTreeMap;

/// A problem per event with gaps in a process's threads. What patched code counts has them where functions don't count: that is no problem
/// of the process.
pub(super) fn not_counted(pid: u32, threads: &[ThreadAccount]) -> Vec<Problem> {
    let mut gaps: BTreeMap<&str, u64> = BTreeMap::new();
    for count in threads
        .iter()
        .flat_map(|t| &t.counts)
        .filter(|c| c.gaps > 0 && !exact::is(&c.event))
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

/// The problem of threads that have recorded, and count none of the events that their process counts. `counters`: the process's,
/// of its first event set.
pub(super) fn without_counters(
    pid: u32,
    threads: &[ThreadAccount],
    counters: Option<&Vec<Option<usize>>>,
) -> Option<Problem> {
    counters?.iter().flatten().next()?;
    let counts_nothing = |t: &&ThreadAccount| t.counts.is_empty() && t.own_ticks > 0;
    let uncounted = threads.iter().filter(counts_nothing).count();
    (uncounted > 0).then_some(Problem::WithoutCounters {
        pid,
        threads: uncounted as u32,
        of: threads.len() as u32,
    })
}

/// What is said of a process.
pub(super) fn info<'a>(
    process: &ProcessFiles<'_>,
    clock: Clock,
    last_tsc: u64,
    threads: impl Iterator<Item = &'a ThreadHeader>,
) -> ProcessInfo {
    let end = process.end.as_ref();
    let last = last_tsc.max(process.header.begin.tsc);
    ProcessInfo {
        pid: process.header.pid,
        mpi_rank: process.header.mpi_rank,
        mpi_size: process.header.mpi_size,
        begin_ns: clock.at(process.header.begin.tsc),
        end_ns: clock.at(end.map_or(last, |e| e.end.tsc)),
        ended: end.is_some(),
        boundary_ps: process.costs.boundary.and_then(|b| {
            clock
                .length(b.ticks.saturating_mul(1000))
                .checked_div(b.boundaries)
        }),
        interval: process.costs.interval.and_then(|i| {
            let each = |ticks: u64| {
                clock
                    .length(ticks.saturating_mul(1000))
                    .checked_div(i.intervals)
            };
            Some(IntervalPs {
                all: each(i.ticks)?,
                clock: each(i.clock_ticks)?,
            })
        }),
        probes: process.costs.probes.clone(),
        switches: end.and_then(|e| e.switches),
        processors: process.header.processors,
        bound: end.and_then(|e| e.bound),
        part_ns: process
            .costs
            .part
            .and_then(|p| clock.length(p.ticks).checked_div(p.boundaries)),
        cpu_ns: end.and_then(|e| e.cpu_ns),
        sized_teams: end.map(|e| e.sized_teams),
        peak_bytes: end.and_then(|e| e.peak_bytes),
        started_ns: clock.at(process.header.started),
        prepared_ns: prepared(process, threads).map(|tsc| clock.at(tsc)),
        exiting_ns: end.and_then(|e| e.exiting).map(|tsc| clock.at(tsc)),
        handlers_ns: end.map_or(0, |e| {
            let [from, to] = e.handlers.unwrap_or_default();
            let behind = e.end.tsc.saturating_sub(e.exiting.unwrap_or(e.end.tsc));
            clock.length(to.saturating_sub(from).min(behind))
        }),
    }
}

/// When a recording had been prepared. Where the process tells no end, its first thread does, which has recorded since then if it was
/// prepared together with the process.
fn prepared<'a>(
    process: &ProcessFiles<'_>,
    mut threads: impl Iterator<Item = &'a ThreadHeader>,
) -> Option<u64> {
    let started = process.header.started;
    let told = process.end.as_ref().and_then(|e| e.prepared);
    told.or_else(|| {
        let first = threads.find(|t| t.index == 0)?;
        let begun = first.tsc_start.wrapping_sub(first.prepared_ticks);
        (begun == started).then_some(first.tsc_start)
    })
}

pub(super) fn add_left_out(
    all: &mut Vec<LeftOut>,
    site: u32,
    of_thread: &record::LeftOut,
    own_ns: u64,
    (within, shorter_than_ns): (Within, Option<u64>),
) {
    let construct = of_thread.construct;
    let known = all
        .iter()
        .position(|l| (l.site, l.construct, l.within) == (site, construct, within));
    let at = known.unwrap_or_else(|| {
        all.push(LeftOut {
            site,
            construct,
            count: 0,
            own_ns: 0,
            one_in: 1,
            throttled: false,
            shorter_than_ns: None,
            within,
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

impl RunFiles<'_> {
    /// The events that were counted, in the order of the columns: what processes wrote beside their records tells it.
    pub fn counted(&self) -> Vec<String> {
        let processes: Vec<&ProcessFiles<'_>> = self.processes.iter().collect();
        let events = event_infos(&self.header.events, &processes).into_iter();
        events.filter(|e| e.counted).map(|e| e.name).collect()
    }

    /// Whether counts are scaled, since events took turns on the processor's counters.
    pub fn is_scaled(&self) -> bool {
        let processes: Vec<&ProcessFiles<'_>> = self.processes.iter().collect();
        event_infos(&[], &processes).iter().any(|e| e.scaled)
    }
}

/// The events that were asked for, then what processes have beyond them; without those that processes count per region.
pub(super) fn event_infos(wanted: &[String], processes: &[&ProcessFiles<'_>]) -> Vec<EventInfo> {
    let headers = || processes.iter().map(|p| &p.header);
    let of_units = || {
        headers().flat_map(|h| {
            let further = h.sets.iter().flat_map(|s| &s.events);
            h.events.iter().chain(further)
        })
    };
    let of_regions = || headers().flat_map(|h| &h.region_events);
    let is_kept = |name: &&String| {
        let is_it = |s: &EventStatus| s.name == **name;
        of_units().any(is_it) || !of_regions().any(is_it)
    };
    infos(wanted.iter().filter(is_kept), &of_units)
}

/// The same, of the events that are counted per region.
pub(super) fn region_event_infos(
    wanted: &[String],
    processes: &[&ProcessFiles<'_>],
) -> Vec<EventInfo> {
    let of_regions = || processes.iter().flat_map(|p| &p.header.region_events);
    infos(wanted.iter(), &of_regions)
}

fn infos<'a, I: Iterator<Item = &'a EventStatus> + Clone>(
    wanted: impl Iterator<Item = &'a String>,
    statuses: &dyn Fn() -> I,
) -> Vec<EventInfo> {
    let mut names: Vec<&str> = wanted.map(String::as_str).collect();
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
            scaled: of_this.clone().any(|s| s.shared.is_some()),
            reason: of_this.find_map(|s| s.reason.clone()),
        });
    }
    events
}

/// How processes are told apart when runs are matched, see [`ProcessId::ordinal`].
pub(super) fn match_processes(
    files: &[&ProcessFiles<'_>],
    infos: &[ProcessInfo],
    prepared: &[Process<'_>],
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
    let has_xus = |p: &usize| prepared[*p].threads.iter().any(|t| t.sites.total()[0] > 0);
    let mut groups: BTreeMap<(Option<u32>, Vec<&str>), Vec<usize>> = BTreeMap::new();
    for process in (0..infos.len()).filter(has_xus) {
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
