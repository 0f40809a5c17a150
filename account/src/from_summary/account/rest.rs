//! What is left of a process's available time when all that is on record is taken off.

use super::super::indexed::Indexed;
use super::sums::{NOT_ENDED, Sums, outside};
use crate::model::account::State;
use ompfuse_format::run::Exit;
use ompfuse_fuse::summary::Summary;

/// Own time of a process in nanoseconds. Where a signal ended the program its last moments are not on record: it went on until the
/// command saw its end.
pub(super) fn own_ns(summary: &Summary, process: usize) -> u64 {
    let own = &summary.own[process];
    let run = &summary.runs[0];
    let is_alone = run.processes.len() == 1 && !own.ended;
    match (run.exit, run.duration_s) {
        (Some(Exit::Signal(_)), Some(duration_s)) if is_alone => {
            let until = (duration_s * 1e9) as i64;
            let (begin, _) = run.processes[process].own_span();
            own.own_ns.max((until - begin).max(0) as u64)
        }
        _ => own.own_ns,
    }
}

/// Adds the rest; returns the available time in nanoseconds.
pub(super) fn add(sums: &mut Sums, summary: &Indexed<'_>, process: usize) -> u64 {
    let own = &summary.own[process];
    let number = process as u16;
    let own_ns = own_ns(summary, process);
    let recorded: u64 = sums.of(process).map(|(_, (ns, _))| ns).sum();
    let available = own_ns.saturating_mul(own.threads).max(recorded);
    let mut rest = available - recorded;
    let mut put = |sums: &mut Sums, state, place: Option<u32>, what: &str, ns: u64| {
        let ns = ns.min(rest);
        rest -= ns;
        sums.put(number, state, (place, place), what, (ns, 0));
    };
    if !own.ended || summary.has_exited_inside(number) {
        put(sums, State::Unknown, None, NOT_ENDED, u64::MAX);
        return available;
    }
    let off = off_ns(summary, process, own_ns.saturating_sub(own.handlers_ns));
    put(sums, State::Unknown, None, "switched-off", off);
    let serial = own_ns.saturating_sub(own.parallel_ns);
    let beside = own.threads - 1;
    let in_mpi = outside(sums, process, &[State::Communication]);
    let (in_mpi, idle) = match own.roots {
        0 | 1 => {
            let in_mpi = in_mpi.min(serial);
            (in_mpi * beside, (serial - in_mpi) * beside)
        }
        // Which of several roots was outside while no region was executed isn't known: as many as can be.
        roots => {
            let states = [State::Serial, State::Io, State::Call, State::Communication];
            let present = outside(sums, process, &states).min(serial.saturating_mul(roots));
            (
                0,
                serial.saturating_mul(own.threads).saturating_sub(present),
            )
        }
    };
    put(sums, State::IdleCommunication, None, "mpi", in_mpi);
    put(sums, State::IdleSerial, None, "serial", idle);
    let left = smaller_teams(summary, process);
    let all: u128 = left.iter().map(|(_, ns)| u128::from(*ns)).sum();
    let whole = rest;
    let mut put = |sums: &mut Sums, state, place: Option<u32>, what: &str, ns: u64| {
        let ns = ns.min(rest);
        rest -= ns;
        sums.put(number, state, (place, place), what, (ns, 0));
    };
    for (site, ns) in left {
        let part = u128::from(whole) * u128::from(ns) / all.max(1);
        put(sums, State::IdleTeam, Some(site), "team", part as u64);
    }
    put(sums, State::IdleSerial, None, "serial", u64::MAX);
    available
}

/// By outermost region what its teams leave of the process's threads, in nanoseconds.
fn smaller_teams(summary: &Indexed<'_>, process: usize) -> Vec<(u32, u64)> {
    let threads = summary.own[process].threads;
    let of = |stat: &ompfuse_fuse::summary::ParallelStat| {
        let is_its = |&thread: &u32| {
            let account = summary.accounts.get(thread as usize);
            account.is_some_and(|a| a.process as usize == process)
        };
        let is_here = stat.team_parts.thread.iter().any(is_its);
        if stat.nested == stat.executions || !is_here {
            return None;
        }
        let left = (stat.wall_ns.saturating_mul(threads)).saturating_sub(stat.team_ns);
        // Rounding leaves nanoseconds.
        (left > stat.executions * threads).then_some((stat.site?, left))
    };
    summary.parallel.iter().filter_map(of).collect()
}

/// Time in which a process's threads did what is not on record, in nanoseconds.
fn off_ns(summary: &Indexed<'_>, process: usize, own_ns: u64) -> u64 {
    let own = &summary.own[process];
    let accounts = (summary.accounts.iter()).filter(|a| a.process as usize == process);
    let missing = |a: &ompfuse_fuse::run::ThreadAccount| match (a.total_ns, a.total_ticks) {
        (Some(ns), Some(ticks)) if ticks > 0 => {
            let missing = ticks.saturating_sub(a.own_ticks);
            (u128::from(missing) * u128::from(ns) / u128::from(ticks)) as u64
        }
        _ => 0,
    };
    let missing: u64 = accounts.map(missing).sum();
    // What was left out is known by place.
    let left_out = match summary.own.len() {
        1 => summary.left_out.iter().map(|l| l.own_ns).sum(),
        _ => 0u64,
    };
    let missing = missing.saturating_sub(left_out + left_out / 1000);
    let windows = summary.runs[0].recorded.as_ref();
    let windows = windows.map(|w| w.iter().map(|[from, to]| (to - from).max(0.0)).sum::<f64>());
    let outside = windows.map_or(0, |s| own_ns.saturating_sub((s * 1e9) as u64));
    match missing {
        ns if ns <= 1000 * own.threads => 0,
        ns => ns.max(outside.saturating_mul(own.threads)),
    }
}
