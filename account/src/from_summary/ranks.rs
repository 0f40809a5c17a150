//! MPI programs: what each rank did, and how unevenly, apart from how uneven the threads of a rank are.

use super::NS;
use super::region::Built;
use crate::clocks::aligned;
use crate::model::ranks::{Works, among_ranks, among_threads, imbalance, of_region};
use crate::model::{Meetings, Mpi, Note, Rank, Transfer};
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
    let rank_of = |thread: u32| {
        let account = summary.accounts.get(thread as usize)?;
        run.processes.get(account.process as usize)?.mpi_rank
    };
    let sums = Sums::new(summary, regions, &rank_of);
    let of_ranks = works(summary, regions, &rank_of);
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
            sums.times.get(&rank).copied().unwrap_or_default();
        let mpi_in = |is_serial: bool| sums.mpi_ns.get(&(rank, is_serial)).copied().unwrap_or(0);
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
            mpi_serial_s: mpi_in(true) as f64 * NS,
            mpi_parallel_s: mpi_in(false) as f64 * NS,
            transfer: sums.transfers.get(&rank).copied(),
            runtime_s,
            serial_s,
            imbalance: imbalance(threads.iter().copied()),
            late_s: None,
            meetings: meetings(summary, rank),
        }
    };
    let mut ranks: Vec<Rank> = recorded.iter().map(rank).collect();
    // A job aligns what its ranks have left.
    let clocks = (ranks.len() > 1).then(|| aligned(&mut ranks)).flatten();
    let calls = |is_serial: bool| {
        let calls = calls(summary).filter(|r| r.parallel.is_none() == is_serial);
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
        is_apart: false,
        clocks,
        ranks,
    })
}

/// When a rank met all others: of one process, since which of several they met is not known.
fn meetings(summary: &Summary, rank: u32) -> Option<Meetings> {
    let processes = &summary.runs.first()?.processes;
    let is_its = |process: u16| {
        let process = processes.get(usize::from(process));
        process.is_some_and(|p| p.mpi_rank == Some(rank))
    };
    let mut known = summary.meetings.iter().filter(|m| is_its(m.process));
    let found = known.next().filter(|_| known.next().is_none())?;
    Some(Meetings {
        all: found.all,
        times: found.times.clone(),
    })
}

/// Calls of MPI.
fn calls(summary: &Summary) -> impl Iterator<Item = &RegionStat> {
    let all = summary.regions.iter();
    all.filter(|r| r.construct == Some(Construct::Mpi))
}

/// What each thread of a rank works in regions; those that recorded nothing else have none.
fn works(summary: &Summary, regions: &[Built], rank_of: &impl Fn(u32) -> Option<u32>) -> Works {
    let mut works: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    for at in 0..summary.accounts.len() as u32 {
        works.extend(rank_of(at).map(|rank| ((rank, at), 0.0)));
    }
    for Built { region, accounts } in regions {
        for (part, account) in region.per_thread.iter().zip(accounts) {
            if let Some(key) = part.mpi_rank.zip(*account) {
                *works.entry(key).or_default() += part.work_s;
            }
        }
    }
    let mut of_ranks = Works::new();
    for ((rank, _), work) in works {
        of_ranks.entry(rank).or_default().push(work);
    }
    of_ranks
}

/// Sums by rank.
#[derive(Default)]
struct Sums {
    /// Seconds of work, waits and runtime in regions, outside of them, and in MPI.
    times: BTreeMap<u32, [f64; 5]>,
    /// Nanoseconds in MPI, outside of parallel regions (true) and inside.
    mpi_ns: BTreeMap<(u32, bool), u64>,
    transfers: BTreeMap<u32, Transfer>,
}

impl Sums {
    fn new(summary: &Summary, regions: &[Built], rank_of: &impl Fn(u32) -> Option<u32>) -> Sums {
        let mut sums = Sums::default();
        for Built { region, accounts } in regions {
            let is_mpi = region.construct == Some(Construct::Mpi);
            for (part, account) in region.per_thread.iter().zip(accounts) {
                let Some(rank) = part.mpi_rank else { continue };
                if account.is_some() {
                    let sum = sums.times.entry(rank).or_default();
                    sum[0] += part.work_s;
                    sum[1] += part.wait_s;
                    sum[2] += part.runtime_s;
                    sum[4] += if is_mpi { part.wait_s } else { 0.0 };
                }
                if let Some(more) = &part.transfer {
                    sums.transfers.entry(rank).or_default().add(more);
                }
            }
        }
        for stat in summary.regions.iter().filter(|r| r.site.is_none()) {
            add_serial(summary, stat, rank_of, &mut sums.times);
        }
        for stat in calls(summary) {
            for (&thread, &own) in stat.threads.thread.iter().zip(&stat.threads.own_ns) {
                if let Some(rank) = rank_of(thread) {
                    let is_serial = stat.parallel.is_none();
                    *sums.mpi_ns.entry((rank, is_serial)).or_default() += own;
                }
            }
        }
        sums
    }
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
pub fn ends(ranks: &[RankEnd]) -> Vec<Note> {
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
