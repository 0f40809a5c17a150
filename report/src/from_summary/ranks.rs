//! MPI programs: what each rank did, and how unevenly, apart from how uneven the threads of a rank are.

use super::NS;
use super::region::Built;
use crate::model::ranks::{Works, among_ranks, among_threads, imbalance, of_region};
use crate::model::{Mpi, Note, Rank, Transfer};
use ompfuse_format::Construct;
use ompfuse_format::run::{Exit, RankEnd, RankState};
use ompfuse_fuse::summary::{RegionStat, Summary};
use std::collections::{BTreeMap, BTreeSet};

/// The ranks of a summary, and of its regions; `None` if there are no two.
pub(super) fn mpi(summary: &Summary, regions: &mut [Built]) -> Option<Mpi> {
    let run = summary.runs.first()?;
    let told: BTreeMap<u32, &RankEnd> = run.ranks.iter().map(|r| (r.rank, r)).collect();
    let recorded: BTreeSet<u32> = run.processes.iter().filter_map(|p| p.mpi_rank).collect();
    let sizes = run.processes.iter().filter_map(|p| p.mpi_size);
    let size = sizes
        .max()
        .or((!told.is_empty()).then_some(told.len() as u32));
    if recorded.len() < 2 && size.is_none_or(|size| size < 2) {
        return None;
    }
    for Built { region, .. } in regions.iter_mut() {
        region.ranks = of_region(region, &recorded);
    }
    // What a thread works in regions; those that recorded nothing else have none.
    let mut works: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let rank_of = |thread: u32| {
        let account = summary.accounts.get(thread as usize)?;
        run.processes.get(account.process as usize)?.mpi_rank
    };
    for (at, _) in summary.accounts.iter().enumerate() {
        works.extend(rank_of(at as u32).map(|rank| ((rank, at as u32), 0.0)));
    }
    let mut sums: BTreeMap<u32, [f64; 5]> = BTreeMap::new();
    let of_threads = (regions.iter()).flat_map(|b| {
        let is_mpi = b.region.construct == Some(Construct::Mpi);
        let parts = b.region.per_thread.iter().zip(&b.accounts);
        parts.map(move |(part, account)| (part, account, is_mpi))
    });
    for (part, account, is_mpi) in of_threads {
        if let Some((rank, account)) = part.mpi_rank.zip(*account) {
            *works.entry((rank, account)).or_default() += part.work_s;
            let sum = sums.entry(rank).or_default();
            sum[0] += part.work_s;
            sum[1] += part.wait_s;
            sum[2] += part.runtime_s;
            sum[4] += if is_mpi { part.wait_s } else { 0.0 };
        }
    }
    for stat in summary.regions.iter().filter(|r| r.site.is_none()) {
        add_serial(summary, stat, &rank_of, &mut sums);
    }
    let mut mpi_in: BTreeMap<(u32, bool), u64> = BTreeMap::new();
    let calls = summary.regions.iter();
    for stat in calls.filter(|r| r.construct == Some(Construct::Mpi)) {
        for (&thread, &own) in stat.threads.thread.iter().zip(&stat.threads.own_ns) {
            if let Some(rank) = rank_of(thread) {
                *mpi_in.entry((rank, stat.parallel.is_none())).or_default() += own;
            }
        }
    }
    let mut transfers: BTreeMap<u32, Transfer> = BTreeMap::new();
    for part in regions.iter().flat_map(|b| &b.region.per_thread) {
        if let (Some(rank), Some(more)) = (part.mpi_rank, &part.transfer) {
            transfers.entry(rank).or_default().add(more);
        }
    }
    let mut of_ranks: Works = BTreeMap::new();
    for (&(rank, _), &work) in &works {
        of_ranks.entry(rank).or_default().push(work);
    }
    let rank = |&rank: &u32| {
        let own = || {
            run.processes
                .iter()
                .filter(move |p| p.mpi_rank == Some(rank))
        };
        let begin = own().map(|p| p.own_span().0).min().unwrap_or(0);
        let end = own().map(|p| p.own_span().1).max().unwrap_or(0);
        let told = told.get(&rank);
        let [work_s, wait_s, runtime_s, serial_s, mpi_s] =
            sums.get(&rank).copied().unwrap_or_default();
        let threads = of_ranks.get(&rank).map_or(&[][..], |t| t);
        Rank {
            rank,
            host: told.and_then(|r| r.host.clone()),
            exit: told.and_then(|r| match r.state {
                RankState::Ended(exit) => Some(exit),
                _ => None,
            }),
            ended: own().all(|p| p.ended),
            processes: own().count() as u32,
            threads: threads.len() as u32,
            wall_s: (end - begin).max(0) as f64 * NS,
            work_s,
            wait_s,
            mpi_s,
            mpi_serial_s: mpi_in.get(&(rank, true)).map_or(0.0, |&ns| ns as f64 * NS),
            mpi_parallel_s: mpi_in.get(&(rank, false)).map_or(0.0, |&ns| ns as f64 * NS),
            transfer: transfers.get(&rank).copied(),
            runtime_s,
            serial_s,
            imbalance: imbalance(threads.iter().copied()),
        }
    };
    let calls = |is_serial: bool| {
        let calls = summary.regions.iter();
        let calls = calls.filter(|r| r.construct == Some(Construct::Mpi));
        let calls = calls.filter(|r| r.parallel.is_none() == is_serial);
        calls.map(RegionStat::own_ns).sum::<u64>() as f64 * NS
    };
    Some(Mpi {
        size,
        serial_s: calls(true),
        parallel_s: calls(false),
        missing: (0..size.unwrap_or(0))
            .filter(|r| !recorded.contains(r))
            .collect(),
        imbalance_among_ranks: among_ranks(&of_ranks),
        imbalance_among_threads: among_threads(&of_ranks),
        ranks: recorded.iter().map(rank).collect(),
    })
}

/// Adds the time that threads which start regions spend outside of them.
fn add_serial(
    summary: &Summary,
    stat: &RegionStat,
    rank_of: &impl Fn(u32) -> Option<u32>,
    sums: &mut BTreeMap<u32, [f64; 5]>,
) {
    for (&thread, &own) in stat.threads.thread.iter().zip(&stat.threads.own_ns) {
        let is_root = summary
            .accounts
            .get(thread as usize)
            .is_some_and(|a| a.root);
        if let Some(rank) = rank_of(thread).filter(|_| is_root) {
            sums.entry(rank).or_default()[3] += own as f64 * NS;
        }
    }
}

/// Ranks that did not end as they should: a note each, and one for all that never came.
pub(crate) fn ends(ranks: &[RankEnd]) -> Vec<Note> {
    let is_odd = |r: &&RankEnd| {
        !matches!(
            r.state,
            RankState::Ended(Exit::Code(0)) | RankState::Missing
        )
    };
    let mut notes: Vec<Note> = (ranks.iter().filter(is_odd))
        .map(|r| Note::Rank {
            rank: r.rank,
            state: r.state,
        })
        .collect();
    let missing = ranks.iter().filter(|r| r.state == RankState::Missing);
    let missing: Vec<u32> = missing.map(|r| r.rank).collect();
    if !missing.is_empty() {
        notes.push(Note::RanksMissing { ranks: missing });
    }
    notes
}

/// What makes the ranks' numbers less than complete.
pub(super) fn notes(summary: &Summary, mpi: &Mpi) -> Vec<Note> {
    let told = summary.runs.first().map_or(&[][..], |run| &run.ranks);
    let mut notes = ends(told);
    let did_well = RankState::Ended(Exit::Code(0));
    let is_told = |rank: &u32| told.iter().any(|t| t.rank == *rank && t.state != did_well);
    let silent = mpi.missing.iter().filter(|rank| !is_told(rank));
    let silent: Vec<u32> = silent.copied().collect();
    if !silent.is_empty() {
        notes.push(Note::RanksSilent {
            ranks: silent,
            of: mpi.size.unwrap_or(0),
        });
    }
    notes
}
