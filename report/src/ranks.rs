//! MPI programs: what each rank did, and how unevenly, apart from how uneven the threads of a rank are.

use crate::Region;
use ompfuse_format::run::{Exit, RankEnd, RankState};
use ompfuse_fuse::summary::{RegionStat, Summary};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

const NS: f64 = 1e-9;

/// The ranks of an MPI program, of the first run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mpi {
    /// How many ranks the launcher has started, if it told.
    pub size: Option<u32>,
    /// Ranks of which nothing is on record.
    pub missing: Vec<u32>,
    /// Over the ranks' work in regions: `max / mean - 1`.
    pub imbalance_among_ranks: f64,
    /// Within ranks: the sum of each rank's slowest thread's work, over the sum of each rank's mean, less 1.
    pub imbalance_among_threads: f64,
    /// The ranks by number.
    pub ranks: Vec<Rank>,
}

/// One rank: its processes together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Rank {
    /// Its number.
    pub rank: u32,
    /// Its host, if it was recorded by a command of its own.
    pub host: Option<String>,
    /// How its program ended, likewise.
    pub exit: Option<Exit>,
    /// Whether all of its processes ended in an orderly way.
    pub ended: bool,
    /// Its processes that recorded.
    pub processes: u32,
    /// Their threads that recorded.
    pub threads: u32,
    /// From the begin of its first process's recording to the last end, in seconds.
    pub wall_s: f64,
    /// Own time of regions on its threads: the program's code.
    pub work_s: f64,
    /// Waiting.
    pub wait_s: f64,
    /// In the OpenMP runtime otherwise.
    pub runtime_s: f64,
    /// Code outside every construct, calls of MPI included, of threads that start parallel regions.
    pub serial_s: f64,
    /// Over its threads' work: `max / mean - 1`.
    pub imbalance: f64,
}

/// How a region's work is spread over ranks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionRanks {
    /// As [`Mpi::imbalance_among_ranks`], of this region.
    pub imbalance_among_ranks: f64,
    /// As [`Mpi::imbalance_among_threads`], of this region.
    pub imbalance_among_threads: f64,
    /// The ranks by number; those that never executed it are left out, and count as ranks without work.
    pub per_rank: Vec<RegionRank>,
}

/// A region on one rank.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionRank {
    /// Its number.
    pub rank: u32,
    /// XUs that began on it.
    pub xus: u64,
    /// The program's code.
    pub work_s: f64,
    /// Waiting.
    pub wait_s: f64,
    /// In the OpenMP runtime otherwise.
    pub runtime_s: f64,
}

/// The work of each thread of each rank.
type Works = BTreeMap<u32, Vec<f64>>;

/// `max / mean - 1`.
fn imbalance(works: impl Iterator<Item = f64> + Clone) -> f64 {
    let (count, sum) = works.clone().fold((0, 0.0), |(n, sum), w| (n + 1, sum + w));
    match sum > 0.0 {
        true => works.fold(0.0, f64::max) * f64::from(count) / sum - 1.0,
        false => 0.0,
    }
}

fn among_ranks(works: &Works) -> f64 {
    imbalance(works.values().map(|threads| threads.iter().sum()))
}

fn among_threads(works: &Works) -> f64 {
    let (mut slowest, mut mean) = (0.0, 0.0);
    for threads in works.values().filter(|t| !t.is_empty()) {
        slowest += threads.iter().copied().fold(0.0, f64::max);
        mean += threads.iter().sum::<f64>() / threads.len() as f64;
    }
    match mean > 0.0 {
        true => slowest / mean - 1.0,
        false => 0.0,
    }
}

/// The ranks of a summary, and of its regions; `None` if there are no two.
pub(crate) fn mpi(summary: &Summary, regions: &mut [Region]) -> Option<Mpi> {
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
    for region in regions.iter_mut() {
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
    let mut sums: BTreeMap<u32, [f64; 4]> = BTreeMap::new();
    for part in regions.iter().flat_map(|r| &r.per_thread) {
        if let Some((rank, account)) = part.mpi_rank.zip(part.account) {
            *works.entry((rank, account)).or_default() += part.work_s;
            let sum = sums.entry(rank).or_default();
            sum[0] += part.work_s;
            sum[1] += part.wait_s;
            sum[2] += part.runtime_s;
        }
    }
    for stat in summary.regions.iter().filter(|r| r.site.is_none()) {
        add_serial(summary, stat, &rank_of, &mut sums);
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
        let begin = own().map(|p| p.begin_ns).min().unwrap_or(0);
        let end = own().map(|p| p.end_ns).max().unwrap_or(0);
        let told = told.get(&rank);
        let [work_s, wait_s, runtime_s, serial_s] = sums.get(&rank).copied().unwrap_or_default();
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
            runtime_s,
            serial_s,
            imbalance: imbalance(threads.iter().copied()),
        }
    };
    Some(Mpi {
        size,
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
    sums: &mut BTreeMap<u32, [f64; 4]>,
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

pub(crate) fn of_region(region: &Region, all: &BTreeSet<u32>) -> Option<RegionRanks> {
    let mut works: Works = all.iter().map(|&rank| (rank, Vec::new())).collect();
    let mut per_rank: BTreeMap<u32, RegionRank> = BTreeMap::new();
    for part in &region.per_thread {
        let Some(rank) = part.mpi_rank else { continue };
        works.entry(rank).or_default().push(part.work_s);
        let sum = per_rank.entry(rank).or_insert(RegionRank {
            rank,
            xus: 0,
            work_s: 0.0,
            wait_s: 0.0,
            runtime_s: 0.0,
        });
        sum.xus += part.xus;
        sum.work_s += part.work_s;
        sum.wait_s += part.wait_s;
        sum.runtime_s += part.runtime_s;
    }
    (!per_rank.is_empty()).then(|| RegionRanks {
        imbalance_among_ranks: among_ranks(&works),
        imbalance_among_threads: among_threads(&works),
        per_rank: per_rank.into_values().collect(),
    })
}

/// What is said of ranks that did not end as they should: a line each, and one for all that never came.
pub fn ends(ranks: &[RankEnd]) -> Vec<String> {
    let mut lines: Vec<String> = ranks.iter().filter_map(end).collect();
    let missing = ranks.iter().filter(|r| r.state == RankState::Missing);
    let missing: Vec<u32> = missing.map(|r| r.rank).collect();
    if !missing.is_empty() {
        let (word, it) = match missing.len() {
            1 => ("rank", "it"),
            _ => ("ranks", "them"),
        };
        lines.push(format!(
            "not recorded: {word} {}, since the launcher has started no ompfuse for {it} in this folder",
            listed(&missing)
        ));
    }
    lines
}

/// Numbers in ascending order, with a dash for what follows each other.
fn listed(numbers: &[u32]) -> String {
    let mut parts: Vec<String> = Vec::new();
    for run in numbers.chunk_by(|a, b| a + 1 == *b) {
        match run {
            [first, .., last] if run.len() > 2 => parts.push(format!("{first}-{last}")),
            few => parts.extend(few.iter().map(u32::to_string)),
        }
    }
    parts.join(", ")
}

fn end(rank: &RankEnd) -> Option<String> {
    let number = rank.rank;
    match rank.state {
        RankState::Ended(Exit::Code(0)) => None,
        RankState::Ended(Exit::Code(code)) => {
            Some(format!("rank {number} ended with status {code}"))
        }
        RankState::Ended(Exit::Signal(signal)) => {
            Some(format!("rank {number} was ended by signal {signal}"))
        }
        RankState::Ended(Exit::Unknown) | RankState::Killed => Some(format!(
            "rank {number}: the command that recorded it was killed"
        )),
        RankState::GoesOn => Some(format!("rank {number}: its end was not waited for")),
        RankState::Missing => None,
    }
}

/// What is said of ranks beside their numbers.
pub(crate) fn notes(summary: &Summary, mpi: &Mpi) -> Vec<String> {
    let told = summary.runs.first().map_or(&[][..], |run| &run.ranks);
    let mut notes = ends(told);
    let did_well = RankState::Ended(Exit::Code(0));
    let is_told = |rank: &u32| told.iter().any(|t| t.rank == *rank && t.state != did_well);
    let silent = mpi.missing.iter().filter(|rank| !is_told(rank));
    let silent: Vec<u32> = silent.copied().collect();
    if let [_, rest @ ..] = &silent[..] {
        let word = if rest.is_empty() { "rank" } else { "ranks" };
        let size = mpi.size.unwrap_or(0);
        notes.push(format!(
            "of {word} {} of {size} nothing is on record",
            listed(&silent)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_of_ranks_is_apart_from_that_of_threads() {
        // The ranks differ, their threads don't.
        let works = Works::from([(0, vec![1.0, 1.0]), (1, vec![3.0, 3.0])]);
        assert_eq!((among_ranks(&works), among_threads(&works)), (0.5, 0.0));
        // And the other way round.
        let works = Works::from([(0, vec![1.0, 3.0]), (1, vec![3.0, 1.0])]);
        assert_eq!((among_ranks(&works), among_threads(&works)), (0.0, 0.5));
        // A rank that never comes there has no work.
        let works = Works::from([(0, vec![2.0]), (1, vec![])]);
        assert_eq!((among_ranks(&works), among_threads(&works)), (1.0, 0.0));
        assert_eq!(among_ranks(&Works::new()), 0.0);
    }

    #[test]
    fn ranks_that_did_not_end_well_are_named() {
        let said = |state| {
            end(&RankEnd {
                rank: 3,
                host: None,
                state,
                duration_s: None,
            })
        };
        assert_eq!(said(RankState::Ended(Exit::Code(0))), None);
        for (state, text) in [
            (
                RankState::Ended(Exit::Signal(9)),
                "rank 3 was ended by signal 9",
            ),
            (
                RankState::Ended(Exit::Code(7)),
                "rank 3 ended with status 7",
            ),
            (RankState::Killed, "rank 3: the command"),
        ] {
            assert!(
                said(state).is_some_and(|s| s.starts_with(text)),
                "{state:?}"
            );
        }
    }

    #[test]
    fn ranks_that_never_came_share_a_line() {
        let missing = |rank| RankEnd {
            rank,
            host: None,
            state: RankState::Missing,
            duration_s: None,
        };
        let lines = ends(&[1, 2, 3, 4, 7, 9, 10].map(missing));
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("not recorded: ranks 1-4, 7, 9, 10, "));
        assert!(ends(&[missing(3)])[0].starts_with("not recorded: rank 3, "));
        assert!(ends(&[]).is_empty());
    }
}
