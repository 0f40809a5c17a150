//! The account of time: each nanosecond of a recorded interval is put into one state, and what is left of the available time is
//! idle or unknown.

pub(crate) mod efficiency;
mod rest;
mod sums;

use super::indexed::Indexed;
use crate::model::account::{Account, ProcessTime, State, StatePart, StateTime};
use std::collections::BTreeMap;
pub(super) use sums::of_work;
use sums::{Key, Sums};

/// `None`: nothing is known of the processes. `ids`: the sites' numbers in the report.
pub(super) fn account(summary: &Indexed<'_>, ids: &[u32]) -> Option<Account> {
    let processes = &summary.runs.first()?.processes;
    if summary.own.is_empty() || summary.own.len() != processes.len() {
        return None;
    }
    let mut sums = Sums::default();
    sums.add_recorded(summary);
    sums.add_left_out(summary);
    sums.add_around_parts(summary);
    sums.add_handlers(summary);
    let available: Vec<u64> = (0..summary.own.len())
        .map(|process| rest::add(&mut sums, summary, process))
        .collect();
    let of_process = |at: usize| -> BTreeMap<State, u64> {
        let mut states = BTreeMap::new();
        for (key, (ns, _)) in sums.of(at) {
            *states.entry(key.state).or_default() += ns;
        }
        states
    };
    let by_process: Vec<BTreeMap<State, u64>> = (0..available.len()).map(of_process).collect();
    let list: Vec<ProcessTime> = (processes.iter().zip(&summary.own).enumerate())
        .map(|(at, (info, own))| ProcessTime {
            process: info.pid,
            mpi_rank: info.mpi_rank,
            own_ns: rest::own_ns(summary, at),
            threads: own.threads,
            available_ns: available[at],
            states: by_process[at].iter().map(|(s, ns)| (*s, *ns)).collect(),
            efficiencies: efficiency::of_states(&by_process[at], available[at], None),
        })
        .collect();
    let available_ns: u64 = available.iter().sum();
    let states = states(&sums, available_ns, ids);
    let mut all: BTreeMap<State, u64> = states.iter().map(|s| (s.state, s.ns)).collect();
    all.retain(|_, ns| *ns > 0);
    let alike = efficiency::lost_alike(summary);
    let mut efficiencies = efficiency::of_states(&all, available_ns, alike);
    if let Some(e) = &mut efficiencies {
        let ranks = &summary.runs[0].ranks;
        let host = |rank: Option<u32>| {
            let told = ranks.iter().find(|told| Some(told.rank) == rank)?;
            told.host.as_deref()
        };
        efficiency::among_processes(e, &list, &host);
    }
    let of_ranks = list.iter().any(|p| p.mpi_rank.is_some());
    Some(Account {
        own_ns: list.iter().map(|p| p.own_ns).sum(),
        recording_ns: processes.iter().map(|p| p.recording_ns()).sum(),
        threads: summary.own.iter().map(|o| o.threads).max().unwrap_or(1),
        available_ns,
        states,
        efficiencies,
        processes: if list.len() > 1 || of_ranks {
            list
        } else {
            vec![]
        },
    })
}

/// All processes' time by state and place.
fn states(sums: &Sums, available_ns: u64, ids: &[u32]) -> Vec<StateTime> {
    let mut by_place: BTreeMap<Key, (u64, u64)> = BTreeMap::new();
    for (key, (ns, count)) in sums.all() {
        let sum = by_place.entry(key.clone()).or_default();
        sum.0 += ns;
        sum.1 += count;
    }
    let id = |site: Option<u32>| site.and_then(|s| ids.get(s as usize)).copied();
    let mut states: BTreeMap<State, Vec<StatePart>> = BTreeMap::new();
    for (key, (ns, count)) in by_place.into_iter().filter(|(_, (ns, _))| *ns > 0) {
        states.entry(key.state).or_default().push(StatePart {
            region: id(key.site),
            parallel: id(key.parallel),
            what: key.what,
            ns,
            count,
        });
    }
    let state = |(state, mut parts): (State, Vec<StatePart>)| {
        let place = |p: &StatePart| (p.parallel, p.region);
        parts.sort_by(|a, b| {
            let same = || (place(a), &a.what).cmp(&(place(b), &b.what));
            b.ns.cmp(&a.ns).then_with(same)
        });
        let ns = parts.iter().map(|p| p.ns).sum();
        StateTime {
            state,
            ns,
            share: ns as f64 / available_ns.max(1) as f64,
            parts,
        }
    };
    states.into_iter().map(state).collect()
}
