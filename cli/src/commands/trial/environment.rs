//! Variables that are worth trying, from a report: without a copy of the program, for what its source leaves open.

use ompfuse_format::Construct;
use ompfuse_report::{Region, Report};

/// A variable and its value.
pub(super) type Variable = (&'static str, String);

/// Regions with a smaller share of the time are no reason.
const LEAST_SHARE: f64 = 0.1;
/// So many threads' worth of work a program must have, of those that it has.
const LEAST_USE: f64 = 0.6;

/// Variables, each in a variant of its own. `is_set`: whether one has a value already.
pub(super) fn candidates(
    report: &Report,
    is_set: impl Fn(&str, &str) -> bool,
) -> Vec<Vec<Variable>> {
    let mut found: Vec<Vec<Variable>> = vec![];
    let mut add = |name: &'static str, value: String| {
        if !is_set(name, &value) {
            found.push(vec![(name, value)]);
        }
    };
    let teams = report.regions.iter().filter(|r| is_fork(r));
    let team = teams.map(|r| r.spread.threads).max().unwrap_or(1);
    let running = report.running.as_ref();
    let processors = running
        .and_then(|r| r.processors)
        .map(|p| p.floor().max(1.0) as u32);
    if let Some(processors) = processors.filter(|&p| p < team) {
        add("OMP_NUM_THREADS", processors.to_string());
        add("OMP_WAIT_POLICY", "passive".to_owned());
    }
    // The work of so many threads is done meanwhile.
    let busy = report.account.as_ref().and_then(|account| {
        let efficiency = account.efficiencies.as_ref()?.parallel;
        Some(efficiency * f64::from(team))
    });
    if let Some(busy) = busy.filter(|&busy| team > 1 && busy < LEAST_USE * f64::from(team)) {
        let fewer = (busy.ceil() as u32).clamp(1, team - 1);
        if processors != Some(fewer) {
            add("OMP_NUM_THREADS", fewer.to_string());
        }
        if fewer > 1 && busy < 1.0 {
            add("OMP_NUM_THREADS", "1".to_owned());
        }
    }
    let all: f64 = report.regions.iter().map(|r| r.time_s).sum();
    let of_runtime = |r: &Region| {
        let is_runtime = r
            .detail
            .as_deref()
            .is_some_and(|d| d.starts_with("runtime"));
        is_runtime && r.inclusive_s.unwrap_or(r.time_s) >= LEAST_SHARE * all
    };
    if report.regions.iter().any(of_runtime) {
        for schedule in ["dynamic,1", "dynamic,16", "guided"] {
            add("OMP_SCHEDULE", schedule.to_owned());
        }
    }
    found
}

fn is_fork(region: &Region) -> bool {
    region.construct.is_some_and(Construct::is_fork)
}

/// As a shell has it.
pub(super) fn text((name, value): &Variable) -> String {
    format!("{name}={value}")
}
