//! Threads without a part in what runs: outside of parallel regions, and beside smaller teams.

use super::{Found, has_own_threads, scaling, serial_s};
use crate::from_summary::NS;
use crate::from_summary::indexed::Indexed;
use crate::model::{Account, Cause, LossKind, Report, Scaling, State, StatePart, StateTime};
use ompfuse_format::Construct;
use std::collections::BTreeSet;

/// A function with a smaller share of the serial part doesn't say what it is.
const NAMED: f64 = 0.1;

pub(super) fn add(found: &mut Found<'_>, scaling: Option<&Scaling>) {
    let account = found.account;
    starvation(found);
    let idle_s = account.ns(State::IdleSerial) as f64 * NS;
    let cause = serial_part(found, scaling, idle_s);
    found.add(LossKind::Serial, None, idle_s, cause);
    for part in [State::Call, State::Io]
        .into_iter()
        .flat_map(|s| account.parts(s))
    {
        let seconds = part.ns as f64 * NS;
        let cause = match part.region {
            Some(at) => Cause::Call {
                at,
                calls: part.count,
                call_s: seconds / part.count.max(1) as f64,
            },
            None => Cause::Unknown,
        };
        found.add(LossKind::Call, part.parallel, seconds, cause);
    }
}

/// What is known of the code outside of parallel regions. `idle_s`: for how long other threads have nothing to do meanwhile.
fn serial_part(found: &Found<'_>, scaling: Option<&Scaling>, idle_s: f64) -> Cause {
    let account = found.account;
    if has_own_threads(found.summary) {
        let are_two = matches!(found.summary.own[..], [own] if own.threads == 2);
        return Cause::SerialPart {
            // Of two threads one is there while the other has nothing to do.
            wall_s: are_two.then_some(idle_s),
            of_work: None,
            function: None,
        };
    }
    // Meanwhile the root may also be in a call that is recorded.
    let outside = |state: State| -> u64 {
        let parts = account.parts(state).iter();
        parts.filter(|p| p.parallel.is_none()).map(|p| p.ns).sum()
    };
    let wall_ns = [State::Serial, State::Io, State::Call].map(outside);
    let wall_s = wall_ns.iter().sum::<u64>() as f64 * NS;
    // How much faster the program could be is known if all of it is.
    let of_work = scaling
        .filter(|s| s.seen >= scaling::ENOUGH && s.work_s > 0.0)
        .and_then(|s| Some((serial_s(account)? / s.work_s).min(1.0)));
    let functions = account.parts(State::Serial).iter();
    let mut functions = functions.filter(|p| p.what == Construct::Function.name());
    let function = functions.next();
    let function = function.and_then(|p| Some((p.region?, p.ns as f64 * NS)));
    Cause::SerialPart {
        wall_s: Some(wall_s),
        of_work,
        function: function.filter(|(_, own_s)| *own_s >= NAMED * wall_s),
    }
}

/// What teams leave of the program's threads. Threads of nested regions have nothing to do while the threads that started those wait:
/// what these wait for, they do too. Comes behind all waits.
pub(super) fn beside_teams(found: &mut Found<'_>) {
    let account = found.account;
    for part in account.parts(State::IdleTeam) {
        let site = part.parallel.and_then(|id| found.site(id));
        let nested = site.map_or(Nested::None, |site| nested(found.summary, site));
        let seconds = part.ns as f64 * NS;
        let waiting = match nested {
            Nested::None => 0.0,
            Nested::Others => waiting(account, part.parallel),
            // Its own waits and work at one level can't be told from those at the other.
            Nested::Itself => 1.0,
        };
        found.add_alike(part.parallel, seconds * waiting);
        let executions = part.parallel.and_then(|id| found.executions.get(&id));
        let mean = executions.map(|e| e.total_s / e.wall_s.max(f64::MIN_POSITIVE));
        let cause = Cause::SmallerTeam {
            team: mean.unwrap_or(1.0),
            threads: account.threads,
            beside_nested: nested != Nested::None,
        };
        let seconds = seconds * (1.0 - waiting);
        found.add(LossKind::SmallerTeam, part.parallel, seconds, cause);
    }
}

/// Regions with teams of several threads that are inside a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nested {
    None,
    Others,
    /// The region is inside itself.
    Itself,
}

fn nested(summary: &Indexed<'_>, site: u32) -> Nested {
    let inside = |at: u32| {
        let all = summary.in_parallel(at).iter();
        all.filter(|r| r.construct.is_some_and(Construct::is_fork))
            .filter_map(|r| r.site)
    };
    let mut seen: BTreeSet<u32> = inside(site).collect();
    let mut left: Vec<u32> = seen.iter().copied().collect();
    while let Some(at) = left.pop() {
        left.extend(inside(at).filter(|&inner| seen.insert(inner)));
    }
    let has_team = |at: &u32| summary.parallel_at(*at).iter().any(|p| p.team > 1);
    match () {
        () if seen.contains(&site) => Nested::Itself,
        () if seen.iter().any(has_team) => Nested::Others,
        () => Nested::None,
    }
}

/// The share of waiting in what a region's own threads do while they are in no nested one.
fn waiting(account: &Account, parallel: Option<u32>) -> f64 {
    let inside = |p: &&StatePart| p.parallel == parallel;
    let ns = |state: &StateTime| state.parts.iter().filter(inside).map(|p| p.ns).sum::<u64>();
    let waits = |s: &&StateTime| s.state.class().is_some() && s.state != State::Management;
    let waited: u64 = account.states.iter().filter(waits).map(ns).sum();
    let recorded = |s: &&StateTime| s.state != State::IdleTeam;
    let all: u64 = account.states.iter().filter(recorded).map(ns).sum();
    waited as f64 / all.max(1) as f64
}

/// Threads that have no processor while they should work: a part of the useful time.
fn starvation(found: &mut Found<'_>) {
    let seconds = starved_s(found.report, found.account);
    if let Some(cause) = found.no_processor() {
        found.add(LossKind::Starvation, None, seconds, cause);
    }
}

/// Seconds of the useful time without a processor, if they are many.
pub(crate) fn starved_s(report: &Report, account: &Account) -> f64 {
    let starved = report.running.as_ref().filter(|r| r.is_starved);
    let without_s = starved.and_then(|r| r.without_processor_s);
    without_s
        .unwrap_or(0.0)
        .min(account.ns(State::Useful) as f64 * NS)
}
