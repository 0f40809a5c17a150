//! Variables of the environment: without a copy of the program, for what its source leaves open.

use super::loses;
use super::settings::needs_no_team;
use crate::from_summary::{decides, set};
use crate::model::{Region, Report, Sharing};
use ompfuse_format::Construct;
use ompfuse_format::detail::{Detail, Kind};
use ompfuse_fuse::summary::Summary;
use std::collections::BTreeSet;

/// A variable and its value.
pub type Variable = (&'static str, String);

/// Regions with a smaller share of the time are no reason.
const LEAST_SHARE: f64 = 0.1;
/// From this share of the time in regions on, a reason of single ones is one for all.
const MOST: f64 = 0.5;
/// So many threads' worth of work a program must have, of those that it has.
const LEAST_USE: f64 = 0.6;
/// From this share of the working time on, threads that wait for a processor though there are enough are a reason to bind them.
const SHARED: f64 = 0.05;
/// On so few processors binding has nothing to choose.
const FEW: f64 = 2.0;
/// Calls that say how many levels of regions have teams.
const LEVELS: &[&str] = &["omp_set_max_active_levels", "omp_set_nested"];
/// Variables that say where threads run.
const BINDING: [&str; 4] = [
    "OMP_PROC_BIND",
    "OMP_PLACES",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
];

/// Variants, each of the variables that it needs.
pub(super) fn proposals(report: &Report, summary: &Summary) -> Vec<Vec<Variable>> {
    let mut found = vec![];
    threads(report, summary, &mut found);
    let calls = |names: &[&str]| {
        let mut entries = summary.modules.iter().flat_map(|m| &m.entries);
        entries.any(|entry| names.iter().any(|name| entry.starts_with(name)))
    };
    // What a program sets itself no variable changes.
    if let Some(levels) = levels(report).filter(|_| !calls(LEVELS)) {
        found.push(vec![levels]);
    }
    found.extend(places(report, summary));
    let all: f64 = report.regions.iter().map(|r| r.time_s).sum();
    let of_runtime = |r: &Region| {
        let detail = r.detail.as_deref().map(Detail);
        let is_runtime = detail.is_some_and(|d| d.kind() == Some(Kind::Runtime));
        let is_large = r.inclusive_s.unwrap_or(r.time_s) >= LEAST_SHARE * all;
        is_runtime && is_large && loses(report, r.id)
    };
    if report.regions.iter().any(of_runtime) && !calls(&["omp_set_schedule"]) {
        let schedules = ["dynamic,1", "dynamic,16", "guided"];
        found.extend(schedules.map(|s| vec![("OMP_SCHEDULE", s.to_owned())]));
    }
    let is_set = |(name, value): &Variable| {
        let mut known = summary.environment.iter();
        known.any(|(n, v)| n == name && v == value)
    };
    found.retain(|all| !all.iter().all(is_set));
    found
}

/// How many threads, and how they wait.
fn threads(report: &Report, summary: &Summary, found: &mut Vec<Vec<Variable>>) {
    let teams = report.regions.iter().filter(|r| is_fork(r));
    let team = teams.map(|r| r.spread.threads).max().unwrap_or(1);
    let running = report.running.as_ref();
    let processors = running
        .and_then(|r| r.processors)
        .map(|p| p.floor().max(1.0) as u32);
    let at_once = running.map_or(u64::from(team), |r| r.threads);
    let name = match decides(summary, at_once) {
        true => "OMP_NUM_THREADS",
        false => "OMP_THREAD_LIMIT", // clauses, calls, or nested regions say how many
    };
    let mut numbers = vec![];
    let crowded = processors.filter(|&p| u64::from(p) < at_once.max(team.into()));
    if let Some(processors) = crowded {
        numbers.push(processors);
        found.push(vec![("OMP_WAIT_POLICY", "passive".to_owned())]);
    }
    // The work of so many threads is done meanwhile, in parallel regions: who idles between them takes nothing from others.
    let is_parallel = report.coverage.is_some_and(|share| share >= LEAST_SHARE);
    let efficiencies = report
        .account
        .as_ref()
        .and_then(|a| a.efficiencies.as_ref());
    let efficiencies = efficiencies.filter(|e| is_parallel && e.serialization > 0.0);
    let busy = efficiencies.map(|e| e.openmp / e.serialization * f64::from(team));
    if let Some(busy) = busy.filter(|&busy| team > 1 && busy < LEAST_USE * f64::from(team)) {
        let fewer = (busy.ceil() as u32).clamp(1, team - 1);
        numbers.push(fewer);
        if busy < 1.0 {
            numbers.push(1);
        }
    }
    if team > 1 && needs_no_teams(report) {
        numbers.insert(0, 1);
    }
    let mut known = BTreeSet::new();
    numbers.retain(|&n| known.insert(n));
    let limit = set(summary, "OMP_THREAD_LIMIT").unwrap_or(u64::MAX);
    numbers.retain(|&n| u64::from(n) < limit);
    let numbers = numbers.into_iter().map(|n| vec![(name, n.to_string())]);
    found.splice(0..0, numbers);
}

/// Whether regions that need no team have most of the time in parallel regions.
fn needs_no_teams(report: &Report) -> bool {
    let forks = || report.regions.iter().filter(|r| is_fork(r));
    let time = |r: &Region| r.inclusive_s.unwrap_or(r.time_s);
    let all: f64 = forks().map(time).sum();
    let those: f64 = forks().filter(|r| needs_no_team(report, r)).map(time).sum();
    those >= MOST * all && all > 0.0
}

/// One level of regions, where regions in regions have teams of their own.
fn levels(report: &Report) -> Option<Variable> {
    let is_nested = |o: &&crate::model::ParallelOverhead| o.nested > 0 && o.team > 1;
    let nested = report.overheads.iter().filter(is_nested);
    let shares = nested.filter_map(|o| o.of_program.map(|p| p.total));
    (shares.sum::<f64>() >= LEAST_SHARE).then(|| ("OMP_MAX_ACTIVE_LEVELS", "1".to_owned()))
}

/// Places, where threads shared processors though there are enough, and nothing says where they run.
fn places(report: &Report, summary: &Summary) -> Vec<Vec<Variable>> {
    let says = |(name, _): &(String, String)| BINDING.contains(&&**name);
    let running = report.running.as_ref();
    let running = running.filter(|_| !summary.environment.iter().any(says));
    let shares = running.is_some_and(|r| {
        let is_alone = !matches!(r.sharing, Some(Sharing::Others | Sharing::Both));
        let is_wide = r.processors.is_some_and(|n| n > FEW) && r.threads > 1 && !r.is_crowded();
        is_wide && is_alone && r.limit.is_none() && r.without_share() >= SHARED
    });
    let bound = ["close", "spread"].into_iter().filter(|_| shares);
    let bound = bound.map(|how| {
        let places = ("OMP_PLACES", "cores".to_owned());
        vec![("OMP_PROC_BIND", how.to_owned()), places]
    });
    bound.collect()
}

fn is_fork(region: &Region) -> bool {
    region.construct.is_some_and(Construct::is_fork)
}

/// As a shell has them.
pub fn text(variables: &[Variable]) -> String {
    let all = variables
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    all.collect::<Vec<String>>().join(" ")
}
