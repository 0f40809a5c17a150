//! What has neither regions nor ranks, of several ranks together.
//!
//! All of these sums give the same in any order. Each destructures what it adds: a field that is forgotten doesn't compile.

use super::listed::Listed;
use super::regions::Numbers;
use crate::from_summary::uncounted::{by_share, share};
use crate::model::sum::both;
use crate::model::{
    EventState, ModuleInfo, Mpi, ProbeTime, Report, RunInfo, Running, Sampled, Serial,
    UncountedCode, UncountedWork, UnmatchedXus,
};
use ompfuse_format::run::Exit;

/// Adds `other`, of a higher rank. Lists by rank, by region and of what ranks have in common are empty: they are added elsewhere.
pub(super) fn add(first: &mut Report, other: Report) {
    let Report {
        // The same of all, or told of the first.
        version: _,
        program: _,
        args: _,
        host: _,
        strategy: _,
        // Follow from the account.
        available_s: _,
        parallel_s: _,
        coverage: _,
        serial_share: _,
        speedup_limit: _,
        losses_of_s: _,
        // Added elsewhere.
        regions: _,
        call_paths: _,
        account: _,
        losses: _,
        modules: _,
        events: _,
        uncounted: _,
        unmatched: _,
        shortcomings: _,
        // No summary has them.
        contexts: _,
        locks: _,
        region_counts: _,
        overheads: _,
        properties: _,
        accounting: _,
        scaling: _,
        tried: _,
        to_try: _,
        goes_on,
        threads,
        duration_s,
        lifetime_s,
        xus,
        runs,
        thread_time_s,
        probes,
        running,
        serial,
        mpi,
        lost_s,
        lost_is_least,
        sampled,
    } = other;
    first.threads += threads;
    first.duration_s = most(first.duration_s, duration_s);
    first.lifetime_s = most(first.lifetime_s, lifetime_s);
    first.xus += xus;
    first.thread_time_s += thread_time_s;
    first.lost_s = all(first.lost_s, lost_s);
    first.lost_is_least |= lost_is_least;
    let mut more = runs.into_iter();
    for (run, other) in first.runs.iter_mut().zip(more.by_ref()) {
        add_run(run, other);
    }
    first.runs.extend(more);
    add_serial(&mut first.serial, &serial);
    first.goes_on.extend(goes_on);
    first.goes_on.sort_by_key(|of| (of.rank, of.pid));
    first.sampled = match (first.sampled.take(), sampled) {
        (Some(a), Some(b)) => Some(both_sampled(a, b)),
        (one, other) => one.or(other).and_then(endings_only),
    };
    let known = first.probes.take().zip(probes);
    first.probes = known.map(|(a, b)| both_probes(&a, &b));
    let known = first.running.take().zip(running);
    first.running = known.map(|(a, b)| both_running(a, b));
    first.mpi = match (first.mpi.take(), mpi) {
        (Some(a), Some(b)) => Some(both_mpi(a, b)),
        (one, other) => one.or(other),
    };
}

/// What isn't known of one isn't known of both.
fn all(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a + b)
}

fn most(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a.max(b))
}

/// Of what only some ranks have samples, their ends are told.
fn endings_only(some: Sampled) -> Option<Sampled> {
    let is_told = !some.endings.is_empty();
    is_told.then(|| Sampled {
        rate: some.rate,
        samples: 0,
        work: 0,
        uncounted: None,
        regions: vec![],
        held: vec![],
        endings: some.endings,
    })
}

/// By region nothing is told: regions have other numbers on other ranks, and `report --lines` is about one run.
fn both_sampled(a: Sampled, b: Sampled) -> Sampled {
    let Sampled {
        rate,
        samples: _,
        work,
        uncounted,
        regions: _,
        held: _,
        endings,
    } = b;
    Sampled {
        rate: a.rate.max(rate),
        samples: 0,
        work: a.work + work,
        uncounted: UncountedWork::sum([a.uncounted.as_ref(), uncounted.as_ref()]),
        regions: vec![],
        held: vec![],
        endings: [a.endings, endings].concat(),
    }
}

fn add_run(first: &mut RunInfo, other: RunInfo) {
    let RunInfo {
        name: _,
        duration_s,
        exit,
        events,
        region_events,
        xus,
        recording_ended_bytes,
        lost_records,
        switches,
        switch_cost_s,
        sums_only,
    } = other;
    first.duration_s = most(first.duration_s, duration_s);
    first.exit = worse(first.exit, exit);
    for (known, more) in [
        (&mut first.events, events),
        (&mut first.region_events, region_events),
    ] {
        known.extend(more);
        known.sort();
        known.dedup();
    }
    first.xus += xus;
    first.recording_ended_bytes = match (first.recording_ended_bytes, recording_ended_bytes) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    first.lost_records += lost_records;
    first.switches = first.switches.zip(switches).map(|(a, b)| a + b);
    first.switch_cost_s = both(first.switch_cost_s, switch_cost_s, f64::min);
    first.sums_only |= sums_only;
}

/// The end that tells most. A launcher ends the others with SIGTERM when one has failed.
pub fn worse(one: Option<Exit>, other: Option<Exit>) -> Option<Exit> {
    const SIGTERM: i32 = 15;
    let severity = |exit: Option<Exit>| match exit {
        Some(Exit::Code(0)) => (0, 0),
        None => (1, 0),
        Some(Exit::Unknown) => (2, 0),
        Some(Exit::Signal(SIGTERM)) => (3, SIGTERM),
        Some(Exit::Code(code)) => (4, code),
        Some(Exit::Signal(signal)) => (5, signal),
    };
    match severity(other) > severity(one) {
        true => other,
        false => one,
    }
}

fn add_serial(first: &mut Serial, other: &Serial) {
    let Serial {
        program_s,
        idle_s,
        unknown_s,
        events,
    } = other;
    first.program_s += program_s;
    first.idle_s += idle_s;
    first.unknown_s += unknown_s;
    first.events.retain(|name, _| events.contains_key(name));
    for (name, count) in &mut first.events {
        *count += events[name];
    }
}

fn both_mpi(first: Mpi, other: Mpi) -> Mpi {
    let Mpi {
        size: _, // the same
        missing: _,
        is_apart: _,
        imbalance_among_ranks: _,
        imbalance_among_threads: _,
        clocks: _,
        ranks: _,
        serial_s,
        parallel_s,
    } = other;
    Mpi {
        serial_s: first.serial_s + serial_s,
        parallel_s: first.parallel_s + parallel_s,
        ..first
    }
}

/// Both together. Which region has the most of them, and what to do, isn't told of jobs.
fn both_probes(a: &ProbeTime, b: &ProbeTime) -> ProbeTime {
    let ratio = |part: f64, of: f64| if of > 0.0 { part / of } else { 0.0 };
    let ProbeTime {
        estimated_s,
        of_s,
        share: _,
        interval_s,
        most_at: _,
        remedy: _,
    } = b;
    let intervals = |estimated_s: f64, interval_s: f64| ratio(estimated_s, interval_s);
    let both = intervals(a.estimated_s, a.interval_s) + intervals(*estimated_s, *interval_s);
    let (estimated_s, of_s) = (a.estimated_s + estimated_s, a.of_s + of_s);
    ProbeTime {
        estimated_s,
        of_s,
        share: ratio(estimated_s, of_s).min(1.0),
        interval_s: ratio(estimated_s, both),
        most_at: None,
        remedy: None,
    }
}

fn both_running(a: Running, b: Running) -> Running {
    let Running {
        threads,
        processes,
        processors: _, // how many of these are the same is not known
        limit: _,
        stolen_s: _,
        stolen: _,
        used: _,
        taken: _,
        sharing,
        fewer: _,
        wanted_s,
        not_running_s,
        not_running: _,
        worked_s,
        without_processor_s,
        queued_s,
        asleep_s,
        is_starved,
    } = b;
    let wanted_s = a.wanted_s + wanted_s;
    let not_running_s = a.not_running_s + not_running_s;
    Running {
        threads: a.threads + threads,
        processes: a.processes + processes,
        processors: None,
        limit: None,
        stolen_s: None,
        stolen: None,
        used: None,
        taken: None,
        sharing: a.sharing.filter(|_| a.sharing == sharing),
        fewer: None,
        worked_s: all(a.worked_s, worked_s),
        asleep_s: all(a.asleep_s, asleep_s),
        wanted_s,
        not_running_s,
        not_running: match wanted_s > 0.0 {
            true => not_running_s / wanted_s,
            false => 0.0,
        },
        without_processor_s: all(a.without_processor_s, without_processor_s),
        queued_s: all(a.queued_s, queued_s),
        is_starved: a.is_starved || is_starved,
    }
}

/// What ranks have in common.
#[derive(Debug, Default)]
pub(super) struct Common {
    modules: Listed<ModuleInfo>,
    /// With the number of ranks that list the event.
    events: Listed<(EventState, usize)>,
    uncounted: Listed<UncountedCode>,
    unmatched: Listed<UnmatchedXus>,
}

impl Common {
    /// Takes a rank's lists. `numbers`: of its regions in the sum.
    pub(super) fn take(&mut self, rank: u32, ranks: usize, report: &mut Report, numbers: &Numbers) {
        let modules = std::mem::take(&mut report.modules);
        self.modules.add(rank, modules, PartialEq::eq, |_, _| {});
        let events = std::mem::take(&mut report.events);
        let events = events.into_iter().map(|e| (e, ranks));
        let name = |e: &EventState| (e.name.clone(), e.grain);
        let same = |a: &(EventState, usize), b: &(EventState, usize)| name(&a.0) == name(&b.0);
        self.events.add(rank, events, same, add_event);
        let uncounted = std::mem::take(&mut report.uncounted);
        let uncounted = uncounted.into_iter().map(|mut function| {
            let known = |id: u32| numbers.get(&id).copied();
            function.regions = function.regions.into_iter().filter_map(known).collect();
            function
        });
        let same = |a: &UncountedCode, b: &UncountedCode| {
            (&a.function, &a.file, &a.reason) == (&b.function, &b.file, &b.reason)
        };
        self.uncounted.add(rank, uncounted, same, add_uncounted);
        let unmatched = std::mem::take(&mut report.unmatched);
        let same = |a: &UnmatchedXus, b: &UnmatchedXus| {
            (a.run, &a.name, a.kind, a.because) == (b.run, &b.name, b.kind, b.because)
        };
        self.unmatched.add(rank, unmatched, same, add_unmatched);
    }

    /// Gives them to the sum. `numbers`: of regions in it; `ranks`: how many there are.
    pub(super) fn give(self, report: &mut Report, numbers: &Numbers, ranks: usize) {
        report.modules = self.modules.finish();
        let event = |(event, of): (EventState, usize)| {
            let is_of_all = of >= ranks || event.run.is_none();
            let reason = || format!("{of} of {ranks} ranks counted it");
            EventState {
                run: event.run.filter(|_| is_of_all),
                reason: match is_of_all {
                    true => event.reason,
                    false => Some(reason()),
                },
                ..event
            }
        };
        report.events = self.events.finish().into_iter().map(event).collect();
        let of_report = |mut function: UncountedCode| {
            let known = |id: u32| numbers.get(&id).copied();
            let regions = function.regions.into_iter().filter_map(known);
            function.regions = regions.collect();
            function.regions.sort_unstable();
            function.share = share(&function.regions, &report.regions);
            function
        };
        let mut uncounted: Vec<_> = self.uncounted.finish().into_iter().map(of_report).collect();
        uncounted.sort_by(by_share);
        report.uncounted = uncounted;
        report.unmatched = self.unmatched.finish();
    }
}

fn add_event((first, ranks): &mut (EventState, usize), (other, more): (EventState, usize)) {
    let EventState {
        name: _,
        grain: _,
        run,
        reason,
        scaled,
        probe_inside,
        probe_around,
    } = other;
    *ranks += more;
    let reason = first.reason.take().or(reason);
    first.run = first.run.filter(|_| run.is_some());
    first.reason = reason.filter(|_| first.run.is_none());
    first.scaled |= scaled;
    let most = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a.max(b));
    first.probe_inside = most(first.probe_inside, probe_inside);
    first.probe_around = most(first.probe_around, probe_around);
}

fn add_uncounted(first: &mut UncountedCode, other: UncountedCode) {
    let UncountedCode {
        function: _,
        file: _,
        reason: _,
        instructions: _,
        regions,
        share: _, // follows from the regions
    } = other;
    first.regions.extend(regions);
    first.regions.sort_unstable();
    first.regions.dedup();
}

fn add_unmatched(first: &mut UnmatchedXus, other: UnmatchedXus) {
    let UnmatchedXus {
        // What tells the place is the same.
        run: _,
        name: _,
        kind: _,
        region_construct: _,
        function: _,
        source: _,
        detail: _,
        because: _,
        example,
        count,
    } = other;
    first.count += count;
    first.example = first.example.take().or(example);
}
