//! From a summary to a [`Report`].

mod account;
mod classes;
mod contexts;
mod distribution;
mod growth;
pub(crate) mod indexed;
mod mutex;
mod notes;
mod overhead;
mod parts;
mod path_parts;
mod paths;
pub mod probes;
mod property;
pub mod ranks;
mod region;
mod running;
pub mod sampled;
mod times;
mod transfer;
pub(crate) mod uncounted;

use crate::model::{
    Account, EventState, Grain, ModuleInfo, ProgramShares, REPORT_VERSION, Region, Report, RunInfo,
    Serial, ThreadCheck, Unmatched, UnmatchedXus,
};
pub(crate) use account::efficiency;
pub use growth::growth;
use indexed::Indexed;
pub use mutex::critical_name;
pub(crate) use mutex::of_region as mutex_of;
use ompfuse_format::Construct;
use ompfuse_format::run::ProbeCount;
use ompfuse_fuse::combine;
use ompfuse_fuse::run::Problem;
use ompfuse_fuse::summary::{EventOrigin, ModuleSummary, RegionStat, RunSummary, Summary};
use region::{Built, event_totals, region};
pub(crate) use running::{Queues, decides, queues, set, unequal_ns};

pub(crate) const NS: f64 = 1e-9;

/// What a run's or profile's summary says itself, without causes. `ids`: the numbers of its sites.
pub(crate) fn facts(summary: &Indexed<'_>, ids: &[u32]) -> Report {
    let thread_ns: u64 = summary.regions.iter().map(RegionStat::own_ns).sum();
    let on_paths = paths::sums(summary);
    let inclusive = paths::by_region(summary, &on_paths);
    let mut regions: Vec<Built> = (0..summary.sites.len() as u32)
        .filter_map(|site| {
            let inclusive = inclusive.get(&site);
            region(summary, site, ids[site as usize], thread_ns, inclusive)
        })
        .collect();
    let order = |b: &Built| (b.region.time_s, b.region.id);
    regions.sort_by(|a, b| {
        let ((a_s, a_id), (b_s, b_id)) = (order(a), order(b));
        b_s.total_cmp(&a_s).then(a_id.cmp(&b_id))
    });
    let mpi = ranks::mpi(summary, &mut regions);
    let serial = serial(summary);
    let busy_s = thread_ns as f64 * NS - serial.idle_s;
    let probes = probes::probe_time(summary, busy_s, |site| ids[site as usize]);
    let account = account::account(summary, ids);
    let parallel_s = account.as_ref().map(|_| summary.parallel_ns as f64 * NS);
    let lifetime_s = lifetime_s(summary, account.as_ref());
    let coverage = lifetime_s
        .filter(|&life| life > 0.0)
        .zip(parallel_s)
        .map(|(life, parallel)| (parallel / life).min(1.0));
    let serial_share = coverage.map(|c: f64| 1.0 - c);
    let available_s = account.as_ref().map(|a| a.available_ns as f64 * NS);
    let processes_s = account.as_ref().map(|a| a.own_ns as f64 * NS);
    let mut overheads = overhead::overheads(summary, processes_s, |site| ids[site as usize]);
    for o in &mut overheads {
        let available_s = available_s.filter(|&s| s > 0.0);
        o.of_program = available_s.map(|s| ProgramShares::of(o.total_s, &o.overhead, s));
    }
    for Built { region, .. } in &mut regions {
        let known = available_s.filter(|&s| s > 0.0);
        region.of_available = known.map_or(region.share, |s| region.time_s / s);
        let estimated_s = region.probes_estimated_s;
        region.probes_share = probes.as_ref().and_then(|p| p.share_of(estimated_s?));
    }
    let matching = summary.matching.as_ref();
    let mut shortcomings = notes::notes(summary);
    shortcomings.extend(mpi.iter().flat_map(|mpi| ranks::notes(summary, mpi)));
    let regions: Vec<Region> = regions.into_iter().map(|b| b.region).collect();
    let (contexts, context_ids) = contexts::calls(&summary.contexts);
    Report {
        version: REPORT_VERSION,
        program: summary.program.clone(),
        args: summary.args.clone(),
        host: summary.host.clone(),
        threads: summary.threads,
        duration_s: summary.duration_s,
        lifetime_s,
        available_s,
        parallel_s,
        coverage,
        serial_share,
        speedup_limit: serial_share.filter(|&s| s > 0.0).map(f64::recip),
        xus: xus(summary),
        runs: summary.runs.iter().map(run_info).collect(),
        modules: summary.modules.iter().map(module_info).collect(),
        events: events(summary),
        uncounted: uncounted::functions(summary, &regions, ids),
        sampled: sampled::sampled(summary, ids),
        thread_time_s: thread_ns as f64 * NS,
        regions,
        call_paths: paths::call_paths(summary, &on_paths, ids, &context_ids),
        contexts,
        locks: mutex::locks(summary, ids),
        region_counts: parts::counts(summary, ids),
        running: running::running(summary),
        mpi,
        serial,
        probes,
        properties: property::properties(summary, &overheads, available_s, ids),
        overheads,
        accounting: accounting(summary),
        strategy: matching
            .filter(|_| !summary.runs.iter().any(|run| run.sums_only))
            .map(|m| m.strategy.clone()),
        unmatched: matching.map_or_else(Vec::new, |m| m.unmatched.iter().map(unmatched).collect()),
        shortcomings,
        account,
        losses: vec![],
        tried: None,
        to_try: vec![],
        goes_on: vec![],
        losses_of_s: None,
        lost_s: None,
        lost_is_least: false,
        scaling: None,
    }
}

/// Own time of the program. Nobody knows when a process began to end that was killed.
fn lifetime_s(summary: &Summary, account: Option<&Account>) -> Option<f64> {
    let ns = match account {
        Some(account) if summary.own.len() == 1 => Some(account.own_ns),
        _ => summary.runs.first().and_then(RunSummary::lifetime_ns),
    };
    ns.map(|ns| ns as f64 * NS)
}

/// Units of the combined profile, or of the only run; of the first of several that have sums only, as all numbers but counts are.
fn xus(summary: &Summary) -> u64 {
    match (&summary.runs[..], &summary.matching) {
        ([first, ..], _) if first.sums_only => first.xus,
        (_, Some(matching)) => matching.matched,
        (runs, None) => runs.iter().map(|r| r.xus).sum(),
    }
}

/// Numbers of the sites in the report: from 1, in the order of modules and addresses.
pub fn region_ids(summary: &Summary) -> Vec<u32> {
    let mut order: Vec<usize> = (0..summary.sites.len()).collect();
    order.sort_by_key(|&site| summary.sites[site].sort_key());
    let mut ids = vec![0; order.len()];
    for (position, site) in order.into_iter().enumerate() {
        ids[site] = position as u32 + 1;
    }
    ids
}

fn pid(summary: &Summary, process: u16) -> Option<u32> {
    summary.processes.get(process as usize).map(|p| p.pid)
}

fn serial(summary: &Summary) -> Serial {
    let outside: Vec<&RegionStat> = summary
        .regions
        .iter()
        .filter(|r| r.site.is_none())
        .collect();
    let (mut program, mut idle, mut unknown) = (0, 0, 0u64);
    for stat in &outside {
        for (&thread, &own) in stat.threads.thread.iter().zip(&stat.threads.own_ns) {
            let root = summary
                .accounts
                .get(thread as usize)
                .is_some_and(|a| a.root);
            *match (stat.construct == Some(Construct::Program), root) {
                (false, _) => &mut unknown,
                (true, true) => &mut program,
                (true, false) => &mut idle,
            } += own;
        }
    }
    let in_regions: u64 = summary.parallel.iter().flat_map(|p| &p.workers.ns).sum();
    let idle = idle.saturating_sub(in_regions);
    Serial {
        program_s: program as f64 * NS,
        idle_s: idle as f64 * NS,
        unknown_s: unknown as f64 * NS,
        events: event_totals(summary, &outside),
    }
}

fn run_info(run: &RunSummary) -> RunInfo {
    RunInfo {
        name: run.name.clone(),
        duration_s: run.duration_s,
        exit: run.exit,
        recording_ended_bytes: run.health.problems.iter().find_map(|p| match p {
            Problem::EndedAtSize { bytes } => Some(*bytes),
            _ => None,
        }),
        events: run
            .events
            .iter()
            .filter(|e| e.counted)
            .map(|e| e.name.clone())
            .collect(),
        region_events: run
            .region_events
            .iter()
            .filter(|e| e.counted)
            .map(|e| e.name.clone())
            .collect(),
        xus: run.xus,
        lost_records: run.health.lost_records,
        switches: switches(run),
        switch_cost_s: run.switch_cost_ns.map(|ns| ns as f64 * NS),
        sums_only: run.sums_only,
    }
}

fn module_info(module: &ModuleSummary) -> ModuleInfo {
    ModuleInfo {
        path: module.path.clone(),
        build_id: module.build_id.clone(),
        patched: module.patched,
        skipped: module.skipped.iter().cloned().collect(),
        constructs: module.coverage.clone(),
    }
}

fn events(summary: &Summary) -> Vec<EventState> {
    let state = |e: &EventOrigin| {
        let probes = e.run.and_then(|run| probe_count(summary, run, &e.name));
        EventState {
            name: e.name.clone(),
            grain: Grain::Unit,
            run: e.run.map(|run| run + 1),
            reason: e.reason.clone(),
            scaled: e.scaled,
            probe_inside: probes.map(|p| p.inside),
            probe_around: probes.map(|p| p.around),
        }
    };
    let of_units = summary.events.iter().map(state);
    of_units.chain(parts::events(summary)).collect()
}

/// What probes add to an event's counts in a run: as its first process that knows has measured it.
fn probe_count<'a>(summary: &'a Summary, run: u16, event: &str) -> Option<&'a ProbeCount> {
    let processes = &summary.runs.get(run as usize)?.processes;
    let mut measured = processes.iter().flat_map(|p| &p.probes);
    measured.find(|p| p.event == event)
}

fn accounting(summary: &Summary) -> Vec<ThreadCheck> {
    summary
        .accounts
        .iter()
        .map(|a| ThreadCheck {
            process: pid(summary, a.process).unwrap_or(0),
            thread: a.index,
            own_ticks: a.own_ticks,
            unrecorded_ticks: a.unrecorded_ticks,
            recording_s: a.ours_ns as f64 * NS,
            total_ticks: a.total_ticks,
            own_counts: a.counts.iter().map(|c| (c.event.clone(), c.own)).collect(),
            unattributed_counts: a
                .counts
                .iter()
                .filter_map(|c| Some((c.event.clone(), c.unattributed?)))
                .collect(),
            total_counts: a
                .counts
                .iter()
                .filter_map(|c| Some((c.event.clone(), c.total?)))
                .collect(),
            balanced: a.balanced(),
        })
        .collect()
}

fn unmatched(u: &combine::Unmatched) -> UnmatchedXus {
    UnmatchedXus {
        run: u.run + 1,
        name: u.site.name.clone(),
        kind: u.construct,
        region_construct: u.site.construct,
        function: u.site.function.clone(),
        source: u.site.source.clone(),
        detail: u.site.detail.clone(),
        count: u.count,
        because: because(u.reason),
        example: u.example.clone(),
    }
}

fn because(reason: combine::Reason) -> Unmatched {
    match reason.with_runs(|run| run + 1) {
        combine::Reason::Absent { run } => Unmatched::Absent { run },
        combine::Reason::Ambiguous { run } => Unmatched::Ambiguous { run },
        combine::Reason::Unlabelled => Unmatched::Unlabelled,
        combine::Reason::Surplus { run } => Unmatched::Surplus { run },
        combine::Reason::Uncounted => Unmatched::Uncounted,
        _ => Unmatched::Other,
    }
}

/// How often a run's threads were switched; `None`: not all of it is known.
fn switches(run: &RunSummary) -> Option<u64> {
    let of_all = run.processes.iter().map(|p| p.switches);
    of_all
        .sum::<Option<u64>>()
        .filter(|_| !run.processes.is_empty())
}
