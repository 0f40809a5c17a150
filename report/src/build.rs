//! From a summary to a [`Report`].

pub(crate) mod parts;
mod region;
mod window;

use crate::model::{
    EventState, Grain, ModuleInfo, Region, Report, RunInfo, Serial, ThreadCheck, UnmatchedXus,
};
use crate::overhead::overheads;
use crate::probes;
use crate::ranks;
use crate::units::{count, seconds};
use ompfuse_format::Construct;
use ompfuse_format::run::ProbeCount;
use ompfuse_fuse::combine::{INSTANCES, Reason, Unmatched};
use ompfuse_fuse::run::{Problem, ThreadAccount};
use ompfuse_fuse::summary::{EventOrigin, ModuleSummary, RegionStat, RunSummary, Summary};
use region::{event_totals, region};

pub(crate) const NS: f64 = 1e-9;

impl Report {
    /// The report of a run's or profile's summary.
    pub fn new(summary: &Summary) -> Report {
        let ids = region_ids(summary);
        let thread_ns: u64 = summary.regions.iter().map(RegionStat::own_ns).sum();
        let mut regions: Vec<Region> = (0..summary.sites.len() as u32)
            .filter_map(|site| region(summary, site, ids[site as usize], thread_ns))
            .collect();
        regions.sort_by(|a, b| b.time_s.total_cmp(&a.time_s).then(a.id.cmp(&b.id)));
        let mpi = ranks::mpi(summary, &mut regions);
        let known_parallel = summary.duration_s.is_some();
        let parallel_s = known_parallel.then_some(summary.parallel_ns as f64 * NS);
        let first = summary.runs.first();
        // A process was there before it recorded; the first one for as long as the command waited for it.
        let at_least = |ns: Option<u64>| {
            let recorded = ns.map(|ns| ns as f64 * NS);
            summary.duration_s.map(|d| recorded.map_or(d, |r| r.max(d)))
        };
        let lifetime_s = at_least(first.and_then(RunSummary::lifetime_ns));
        let processes_s = at_least(first.and_then(RunSummary::processes_ns));
        let serial = serial(summary);
        let probes = probes::probe_time(summary, thread_ns as f64 * NS - serial.idle_s);
        let largest_team = summary.parallel.iter().map(|p| p.team).max().unwrap_or(1);
        let coverage = lifetime_s
            .filter(|&life| life > 0.0)
            .zip(parallel_s)
            .map(|(life, parallel)| (parallel / life).min(1.0));
        let matching = summary.matching.as_ref();
        let mut notes = notes(summary);
        notes.extend(mpi.iter().flat_map(|mpi| ranks::notes(summary, mpi)));
        Report {
            program: summary.program.clone(),
            args: summary.args.clone(),
            host: summary.host.clone(),
            threads: summary.threads,
            duration_s: summary.duration_s,
            lifetime_s,
            available_s: processes_s.map(|s| s * largest_team.max(1) as f64),
            parallel_s,
            coverage,
            xus: matching.map_or_else(|| summary.runs.iter().map(|r| r.xus).sum(), |m| m.matched),
            runs: summary.runs.iter().map(run_info).collect(),
            modules: summary.modules.iter().map(module_info).collect(),
            events: events(summary),
            thread_time_s: thread_ns as f64 * NS,
            regions,
            region_counts: parts::counts(summary, &ids),
            running: parts::running(summary),
            mpi,
            serial,
            probes,
            overheads: overheads(summary, processes_s, |site| ids[site as usize]),
            accounting: accounting(summary),
            strategy: matching.map(|m| m.strategy.clone()),
            unmatched: matching
                .map_or_else(Vec::new, |m| m.unmatched.iter().map(unmatched).collect()),
            notes,
        }
    }

    /// The report as JSON, with line breaks.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only string keys and finite parts")
    }
}

/// Numbers of the sites in the report: from 1, in the order of modules and addresses.
fn region_ids(summary: &Summary) -> Vec<u32> {
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

fn run_info(run: &ompfuse_fuse::summary::RunSummary) -> RunInfo {
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

fn unmatched(u: &Unmatched) -> UnmatchedXus {
    UnmatchedXus {
        run: u.run + 1,
        name: u.site.name.clone(),
        construct: u.construct.map(Construct::name),
        function: u.site.function.clone(),
        source: u.site.source.clone(),
        count: u.count,
        reason: reason(u),
        example: u.example.clone(),
    }
}

fn reason(u: &Unmatched) -> String {
    match u.reason {
        Reason::Absent { run } if u.construct == Some(Construct::Range) => {
            let schedule = u
                .site
                .detail
                .as_ref()
                .map_or(String::new(), |d| format!(" ({d})"));
            format!(
                "run {} has other ranges: the schedule depends on timing{schedule}",
                run + 1
            )
        }
        Reason::Absent { run } => format!("run {} has none with the same label", run + 1),
        Reason::Ambiguous { run } => {
            format!(
                "run {} has several with the same label (several root threads or processes)",
                run + 1
            )
        }
        // Tables of other recorders know types, not constructs.
        Reason::Unlabelled if u.construct.is_none() => "it has no label".to_owned(),
        Reason::Unlabelled => "the records of the constructs around it are missing".to_owned(),
        Reason::Surplus { run } => format!("run {} has fewer of this type", run + 1),
        Reason::Uncounted => {
            "an event that it is matched by, or was to give, was not counted for it".to_owned()
        }
        _ => "not matched".to_owned(),
    }
}

/// Share of the threads' time from which on it is said what counting costs at switches.
const WORTH_SAYING: f64 = 0.01;

/// How often a run's threads were switched; `None`: not all of it is known.
fn switches(run: &RunSummary) -> Option<u64> {
    let of_all = run.processes.iter().map(|p| p.switches);
    of_all
        .sum::<Option<u64>>()
        .filter(|_| !run.processes.is_empty())
}

/// What the processor's counters cost where threads were switched, if that is much of a run.
fn switching(summary: &Summary, run: &RunSummary) -> Option<String> {
    let each = run.switch_cost_ns? as f64 * NS;
    let Some(switches) = switches(run) else {
        let killed = run.processes.iter().filter(|p| p.switches.is_none());
        let killed = killed.count();
        return (killed > 0).then(|| {
            format!(
                "counting the processor's events costs at least {} at each switch of a thread here; how many there were is not \
                 known of {killed} of {} processes, which did not end in an orderly way",
                seconds(each),
                run.processes.len()
            )
        });
    };
    let time = run.duration_s? * f64::from(summary.threads.max(1));
    let cost = each * switches as f64;
    (cost > WORTH_SAYING * time).then(|| {
        format!(
            "counting the processor's events costs at least {} at each switch of a thread here: for {} switches {} of the \
             threads' {}, most of it in what waits",
            seconds(each),
            count(switches),
            seconds(cost),
            seconds(time)
        )
    })
}

fn notes(summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    for (at, run) in summary.runs.iter().enumerate() {
        let which = if summary.runs.len() > 1 {
            format!("run {}: ", at + 1)
        } else {
            String::new()
        };
        let health = run.health.notes().into_iter();
        notes.extend(health.map(|note| format!("{which}{note}")));
        notes.extend(window::note(run).map(|note| format!("{which}{note}")));
        notes.extend(switching(summary, run).map(|note| format!("{which}{note}")));
    }
    let sum = |ticks: fn(&ThreadAccount) -> u64| summary.accounts.iter().map(ticks).sum::<u64>();
    let (own, off) = (sum(|a| a.own_ticks), sum(|a| a.unrecorded_ticks));
    if off > 0 {
        let why = match summary.left_out.as_slice() {
            [] => "regions were switched off meanwhile, or the program paused the recording",
            _ => "of what is recorded in part, or was switched off meanwhile",
        };
        notes.push(format!(
            "{:.1}% of the threads' time is in no region here: {why}; coverage and overheads are those of what is on record",
            100.0 * off as f64 / (own + off) as f64
        ));
    }
    notes.extend(parts::nobodys(summary));
    let strategy = summary.matching.as_ref().map(|m| m.strategy.as_str());
    if strategy == Some(INSTANCES) {
        notes.push(
            "event sets took turns in one run: the counts of one row are those of several executions of the same region, one \
             for each set"
                .to_owned(),
        );
    }
    let unbalanced = summary
        .accounts
        .iter()
        .filter(|a| a.balanced() == Some(false))
        .count();
    if unbalanced > 0 {
        notes.push(format!(
            "{unbalanced} of {} threads: the intervals' own times and counts don't add up to the thread's",
            summary.accounts.len()
        ));
    }
    notes
}
