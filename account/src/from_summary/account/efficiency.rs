//! POP's efficiencies, in TALP's documented order: serialization first, then load balance, then scheduling.

use super::super::indexed::Indexed;
use crate::model::account::{Efficiencies, ProcessTime, State};
use std::collections::BTreeMap;

/// With a larger share of unknown time efficiencies say nothing.
const MOST_UNKNOWN: f64 = 0.01;

/// What states count as in POP's model.
const USEFUL: [State; 4] = [State::Useful, State::Serial, State::Io, State::Call];
const OUTSIDE: [State; 2] = [State::IdleSerial, State::IdleCommunication];
const INSIDE: [State; 5] = [
    State::Synchronization,
    State::Imbalance,
    State::LimitedParallelism,
    State::Management,
    State::IdleTeam,
];

fn sum(states: &BTreeMap<State, u64>, of: &[State]) -> f64 {
    let known = of.iter().filter_map(|s| states.get(s));
    known.map(|&ns| ns as f64).sum()
}

/// Of one partition. `alike`: what of the time in teams all threads lose alike, in nanoseconds, if it is known.
pub(crate) fn of_states(
    states: &BTreeMap<State, u64>,
    available_ns: u64,
    alike: Option<u64>,
) -> Option<Efficiencies> {
    let all = available_ns as f64;
    if available_ns == 0 || sum(states, &[State::Unknown]) > MOST_UNKNOWN * all {
        return None;
    }
    let (outside, inside) = (sum(states, &OUTSIDE), sum(states, &INSIDE));
    let alike = alike.map(|ns| (ns as f64).min(inside));
    let uneven = alike.map(|alike| inside - alike);
    let ratio = |part: f64, of: f64| {
        if of > 0.0 {
            (part / of).clamp(0.0, 1.0)
        } else {
            1.0
        }
    };
    Some(Efficiencies {
        parallel: ratio(sum(states, &USEFUL), all),
        openmp: ratio(all - outside - inside, all),
        serialization: ratio(all - outside, all),
        load_balance: uneven.map(|u| ratio(all - outside - u, all - outside)),
        scheduling: uneven.map(|u| ratio(all - outside - inside, all - outside - u)),
        mpi: None,
        mpi_communication: None,
        mpi_load_balance: None,
        mpi_load_balance_inside_nodes: None,
        mpi_load_balance_between_nodes: None,
    })
}

/// What of the time in teams all threads lose alike, in nanoseconds, from the efficiencies that were made of it.
pub(crate) fn alike(
    states: &BTreeMap<State, u64>,
    available_ns: u64,
    made: &Efficiencies,
) -> Option<u64> {
    let outside = sum(states, &OUTSIDE);
    let uneven = (1.0 - made.load_balance?) * (available_ns as f64 - outside);
    Some((sum(states, &INSIDE) - uneven).max(0.0).round() as u64)
}

/// What all threads of teams lose alike: summed up execution by execution.
pub(super) fn lost_alike(summary: &Indexed<'_>) -> Option<u64> {
    let is_known = |p: &&ompfuse_fuse::summary::ParallelStat| p.least_idle_of == p.executions;
    let all = &summary.parallel;
    if all.iter().filter(is_known).count() != all.len() {
        return None;
    }
    Some(all.iter().map(|p| p.least_idle_ns).sum())
}

/// Adds what compares processes, where any calls MPI. `host`: of a rank, if it is known.
pub(crate) fn among_processes<'h>(
    all: &mut Efficiencies,
    processes: &[ProcessTime],
    host: &impl Fn(Option<u32>) -> Option<&'h str>,
) {
    let ns = |p: &ProcessTime, of: State| -> u64 {
        let found = p.states.iter().find(|(state, _)| *state == of);
        found.map_or(0, |s| s.1)
    };
    // On the clock: a process is in MPI while its first thread is, or for a thread's share.
    let in_mpi = |p: &ProcessTime| {
        let mpi = ns(p, State::Communication) as f64;
        let idle = ns(p, State::IdleCommunication) as f64;
        (mpi + idle) / p.threads.max(1) as f64
    };
    if !processes.iter().any(|p| in_mpi(p) > 0.0) {
        return;
    }
    let outside: Vec<f64> = (processes
        .iter()
        .map(|p| (p.own_ns as f64 - in_mpi(p)).max(0.0)))
    .collect();
    let longest = outside.iter().copied().fold(0.0, f64::max);
    let elapsed = processes
        .iter()
        .map(|p| p.own_ns as f64)
        .fold(0.0, f64::max);
    let available: f64 = processes.iter().map(|p| p.available_ns as f64).sum();
    let weighted = |p: &ProcessTime| (p.own_ns as f64 - in_mpi(p)).max(0.0) * p.threads as f64;
    if longest <= 0.0 || elapsed <= 0.0 || available <= 0.0 {
        return;
    }
    all.mpi = Some(processes.iter().map(weighted).sum::<f64>() / available);
    all.mpi_communication = Some(longest / elapsed);
    let mean = outside.iter().sum::<f64>() / outside.len() as f64;
    all.mpi_load_balance = Some(mean / longest);
    let mut hosts: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (process, outside) in processes.iter().zip(&outside) {
        let Some(host) = host(process.mpi_rank) else {
            return;
        };
        let sum = hosts.entry(host).or_default();
        sum.0 += outside;
        sum.1 += 1.0;
    }
    if hosts.len() > 1 {
        let largest = hosts.values().map(|(sum, n)| sum / n).fold(0.0, f64::max);
        all.mpi_load_balance_inside_nodes = Some(largest / longest);
        all.mpi_load_balance_between_nodes = Some(mean / largest);
    }
}
