//! Threads without a part in what runs: outside of parallel regions, and beside smaller teams.

use super::{Found, scaling, serial_s};
use crate::from_summary::NS;
use crate::model::{Account, Cause, LossKind, Report, Scaling, State};
use ompfuse_format::Construct;

pub(super) fn add(found: &mut Found<'_>, scaling: Option<&Scaling>) {
    let account = found.account;
    starvation(found);
    // Meanwhile a root may also be in a call that is recorded.
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
    let cause = Cause::SerialPart {
        wall_s,
        of_work,
        function,
    };
    let idle_s = account.ns(State::IdleSerial) as f64 * NS;
    found.add(LossKind::Serial, None, idle_s, cause);
    for part in account.parts(State::IdleTeam) {
        let executions = part.parallel.and_then(|id| found.executions.get(&id));
        let mean = executions.map(|e| e.total_s / e.wall_s.max(f64::MIN_POSITIVE));
        let cause = Cause::SmallerTeam {
            team: mean.unwrap_or(1.0),
            threads: account.threads,
        };
        found.add(
            LossKind::SmallerTeam,
            part.parallel,
            part.ns as f64 * NS,
            cause,
        );
    }
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
