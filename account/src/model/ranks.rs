//! The ranks of an MPI program, and how unevenly they work, apart from how uneven the threads of a rank are.

use super::clocks::{Clocks, Meetings};
use super::region::Region;
use super::transfer::Transfer;
use ompfuse_format::run::Exit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The ranks of an MPI program, of the first run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mpi {
    /// Number of ranks that the launcher started; null if the launcher doesn't tell.
    pub size: Option<u32>,
    /// Ranks without any record.
    pub missing: Vec<u32>,
    /// True if each rank was recorded into a folder of its own. What needs the times of all ranks at each moment is not known
    /// then: parallel coverage and late senders.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_apart: bool,
    /// Own time of MPI calls outside parallel regions, the sum of all ranks, in seconds. Calls without a probe are not in it.
    pub serial_s: f64,
    /// Own time of MPI calls inside parallel regions, the sum of all threads, in seconds. Calls without a probe are not in
    /// it.
    pub parallel_s: f64,
    /// Imbalance of the ranks' work in regions: `max / mean - 1`.
    pub imbalance_among_ranks: f64,
    /// Imbalance within ranks: the sum of each rank's largest work of a thread, divided by the sum of each rank's mean, less
    /// one.
    pub imbalance_among_threads: f64,
    /// The clocks of the ranks' hosts, and who comes late. Null if there are no two ranks with meetings on record.
    pub clocks: Option<Clocks>,
    /// The ranks, by number.
    pub ranks: Vec<Rank>,
}

/// One rank, with all its processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rank {
    /// Number of the rank.
    pub rank: u32,
    /// Its host; null if it was not recorded by its own command.
    pub host: Option<String>,
    /// How its program ended; null if it was not recorded by its own command.
    pub exit: Option<Exit>,
    /// True if all its processes ended in an orderly way.
    pub ended: bool,
    /// Number of its processes that recorded.
    pub processes: u32,
    /// Number of their threads that recorded.
    pub threads: u32,
    /// Time from the begin of its first process's recording to the last end, in seconds.
    pub wall_s: f64,
    /// Own time of regions on its threads: the program's code. In seconds.
    pub work_s: f64,
    /// Waits, with recorded calls of MPI, in seconds.
    pub wait_s: f64,
    /// Recorded calls of MPI, in seconds: a part of `wait_s`.
    pub mpi_s: f64,
    /// Part of `mpi_s`: calls outside of parallel regions.
    pub mpi_serial_s: f64,
    /// Part of `mpi_s`: calls inside parallel regions.
    pub mpi_parallel_s: f64,
    /// Bytes that its calls of MPI handed over. Null if no call tells.
    pub transfer: Option<Transfer>,
    /// Other time in the OpenMP runtime, in seconds.
    pub runtime_s: f64,
    /// Code outside all constructs, on threads that start parallel regions, in seconds. This includes calls of MPI without a
    /// probe.
    pub serial_s: f64,
    /// Imbalance of its threads' work: `max / mean - 1`.
    pub imbalance: f64,
    /// Mean time by which it came to meetings (see `clocks`) after the first rank, in seconds. Null if not known.
    pub late_s: Option<f64>,
    /// When it met all others; only in the report of a rank alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meetings: Option<Meetings>,
}

/// How a region's work is distributed over ranks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionRanks {
    /// Like `imbalance_among_ranks` of the program, for this region.
    pub imbalance_among_ranks: f64,
    /// Like `imbalance_among_threads` of the program, for this region.
    pub imbalance_among_threads: f64,
    /// The ranks that executed the region, by number. The others count as ranks without work. In reports of jobs whose ranks
    /// left a summary each there are at most 256: those with the most work, and the one with the least.
    pub per_rank: Vec<RegionRank>,
}

/// A region on one rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionRank {
    /// Number of the rank.
    pub rank: u32,
    /// Number of its threads that took part.
    pub threads: u32,
    /// Number of execution units that began on it.
    pub xus: u64,
    /// The program's code, in seconds.
    pub work_s: f64,
    /// Waits, in seconds.
    pub wait_s: f64,
    /// Other time in the OpenMP runtime, in seconds.
    pub runtime_s: f64,
    /// Like `transfer` of the region, for this rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// The work of each thread of each rank.
pub(crate) type Works = BTreeMap<u32, Vec<f64>>;

/// `max / mean - 1`.
pub(crate) fn imbalance(works: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = works.clone().count();
    among(works, count)
}

/// The same of `all` ranks, of which those without work may be left out.
pub(crate) fn among(works: impl Iterator<Item = f64>, all: usize) -> f64 {
    let (sum, most) = works.fold((0.0, 0.0), |(sum, most), w| (sum + w, f64::max(most, w)));
    match sum > 0.0 {
        true => most * all as f64 / sum - 1.0,
        false => 0.0,
    }
}

pub(crate) fn among_ranks(works: &Works) -> f64 {
    imbalance(works.values().map(|threads| threads.iter().sum()))
}

pub(crate) fn among_threads(works: &Works) -> f64 {
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

/// Of a region's threads; `None` if no rank is known of any. `all`: every rank that recorded.
pub fn of_region(region: &Region, all: &BTreeSet<u32>) -> Option<RegionRanks> {
    let mut works: Works = all.iter().map(|&rank| (rank, Vec::new())).collect();
    let mut per_rank: BTreeMap<u32, RegionRank> = BTreeMap::new();
    for part in &region.per_thread {
        let Some(rank) = part.mpi_rank else { continue };
        works.entry(rank).or_default().push(part.work_s);
        let sum = per_rank.entry(rank).or_insert(RegionRank {
            rank,
            threads: 0,
            xus: 0,
            work_s: 0.0,
            wait_s: 0.0,
            runtime_s: 0.0,
            transfer: None,
        });
        sum.threads += 1;
        sum.xus += part.xus;
        sum.work_s += part.work_s;
        sum.wait_s += part.wait_s;
        sum.runtime_s += part.runtime_s;
        if let Some(more) = &part.transfer {
            sum.transfer.get_or_insert_default().add(more);
        }
    }
    (!per_rank.is_empty()).then(|| RegionRanks {
        imbalance_among_ranks: among_ranks(&works),
        imbalance_among_threads: among_threads(&works),
        per_rank: per_rank.into_values().collect(),
    })
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
}
