//! One construct at one place.

use super::distribution::Distribution;
use super::mutex::Mutex;
use super::note::Doubt;
use super::paths::PathCount;
use super::ranks::RegionRanks;
use super::times::Times;
use super::transfer::Transfer;
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A kind of instances that was recorded only in part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InPart {
    /// Kind of the instances: `task`, `range`, or a wait.
    pub kind: Construct,
    /// Number of recorded instances.
    pub recorded: u64,
    /// Number of all instances.
    pub executed: u64,
    /// At the end, some thread recorded one instance in this many. 1 means all.
    pub one_in: u32,
    /// True if the reason is that probes would have cost more than allowed (`--units cost=`).
    pub throttled: bool,
    /// Own time of the instances that are not on record, in seconds.
    pub left_out_s: f64,
    /// Instances shorter than this were left out, in seconds; null without such a limit.
    pub shorter_than_s: Option<f64>,
}

/// One construct at one place of the program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Number of the region in this report, from 1 in the order of addresses.
    pub id: u32,
    /// Link-time address of the construct's begin; null if not known.
    pub address: Option<HexAddress>,
    /// Type of its units in profiles: the address, or the type of a foreign table.
    pub name: String,
    /// Build id or path of the module; null if not known.
    pub module: Option<String>,
    /// File name of the module; null if there is only one.
    pub file: Option<String>,
    /// Kind of the construct; null for units of a foreign table.
    pub construct: Option<Construct>,
    /// Other half of a combined construct: `loop` or `sections` of a parallel region. Null if there is none.
    pub combined_with: Option<Construct>,
    /// Linkage name of the function with the construct; null if not known.
    pub function: Option<String>,
    /// Name of that function in the source: C++ and Fortran names demangled, without parameters. Null if not known.
    pub function_demangled: Option<String>,
    /// Source line of the construct; null if not known.
    pub source: Option<Source>,
    /// Schedule, or name of a critical section; null if there is none.
    pub detail: Option<String>,
    /// Why the region may be more than one construct; null if there is no doubt.
    pub doubt_kind: Option<Doubt>,
    /// Number of executions. What a team executes together counts once (parallel, loop, sections, scope, barriers; a league of teams
    /// likewise), and what one thread executes each time (single, master, critical, tasks, calls).
    pub executions: u64,
    /// Number of execution units: ranges, sections or tasks. 0 for constructs without units.
    pub xus: u64,
    /// Number of recorded iterations; null if there are no ranges and it is no natural loop. Divided by `executions` it is a natural
    /// loop's mean trip count.
    pub iterations: Option<u64>,
    /// For natural loops: most iterations of one execution. Else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iterations_max: Option<u64>,
    /// Kinds of instances that were recorded only in part. All numbers except `executions` then cover only recorded
    /// instances.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_part: Vec<InPart>,
    /// For parallel regions: wall time from fork to join, the sum of all executions. Else null.
    pub wall_s: Option<f64>,
    /// Own time of all threads: code directly in this construct and its units, waits, and runtime library. The own times of
    /// all regions and the times in `serial` add up to `thread_time_s`.
    pub time_s: f64,
    /// `time_s` as a share of `thread_time_s`, from 0 to 1.
    pub share: f64,
    /// `time_s` as a share of `available_s`, from 0 to 1: what text and page show. The same as `share` if `available_s` is null.
    pub of_available: f64,
    /// Part of `time_s`: the program's code.
    pub work_s: f64,
    /// Part of `time_s`: waits (barriers, `taskwait`, entering a critical section). For a parallel region also the workers'
    /// waits between fork and join, before and after their parts.
    pub wait_s: f64,
    /// Part of `time_s`: other time in the runtime library (fork and join, fetching ranges, creating tasks).
    pub runtime_s: f64,
    /// Estimated time of the region's probes, as in `probes` of the report; null if not measured.
    pub probes_estimated_s: Option<f64>,
    /// That time as a share of the processor time, like `share` of the report's `probes`. Null if not measured.
    pub probes_share: Option<f64>,
    /// Mean own time of a unit; null without units.
    pub xu_mean_s: Option<f64>,
    /// Own time of the shortest unit; null without units.
    pub xu_min_s: Option<f64>,
    /// Own time of the longest unit; null without units.
    pub xu_max_s: Option<f64>,
    /// Distribution of `work_s` over the threads.
    pub spread: Spread,
    /// `time_s` with everything executed inside: constructs in it, and tasks that it created, on whichever thread. Null if
    /// paths are not known.
    pub inclusive_s: Option<f64>,
    /// ompP's columns: the parts of its time, of all threads. Null in foreign tables.
    pub times: Option<Times>,
    /// The same times for each thread that took part.
    pub per_thread: Vec<RegionThread>,
    /// The same for each rank of an MPI program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RegionRanks>,
    /// Exclusive count of each event; an event that was not counted here is absent.
    pub events: BTreeMap<String, u64>,
    /// For constructs that admit one thread at a time: times to enter, held, and to leave. `detail` is the construct's name,
    /// if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
    /// For calls of MPI whose arguments tell: the bytes that they handed over. Else absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
    /// For `cancel` and cancellation points: number of executions that found the construct cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// Distribution of its units, if only sums were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

impl Region {
    /// Mean iterations of an execution, of natural loops.
    pub fn mean_iterations(&self) -> Option<f64> {
        let is_loop = self.construct == Some(Construct::NaturalLoop) && self.executions > 0;
        let iterations = self.iterations.filter(|_| is_loop)?;
        Some(iterations as f64 / self.executions as f64)
    }
}

/// Work of one thread in a region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionThread {
    /// Process id; null in foreign tables.
    pub process: Option<u32>,
    /// MPI rank of the process; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Number of the thread whose place among those that are there at once it took, when that had ended; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_place_of: Option<u32>,
    /// Name of the thread (`pthread_setname_np`), where that tells it from the first thread of its process; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread_name: Option<String>,
    /// Number of execution units that began on it.
    pub xus: u64,
    /// The program's code, in seconds.
    pub work_s: f64,
    /// Waits, in seconds.
    pub wait_s: f64,
    /// Other time in the runtime library, in seconds.
    pub runtime_s: f64,
    /// Like `inclusive_s` of the region, for this thread.
    pub inclusive_s: Option<f64>,
    /// Like `times` of the region, for this thread. Null if it only worked on tasks or waits without such columns.
    pub times: Option<Times>,
    /// Counts of each event on this thread, exclusive and inclusive.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
    /// Like `mutex` of the region, for this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
    /// Like `transfer` of the region, for this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer: Option<Transfer>,
}

/// Distribution of work over threads. It covers all threads of the enclosing parallel regions, also those without work in
/// this region.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of threads.
    pub threads: u32,
    /// Least work of a thread, in seconds.
    pub min_s: f64,
    /// Mean work of a thread, in seconds.
    pub mean_s: f64,
    /// Most work of a thread, in seconds.
    pub max_s: f64,
    /// `max_s / mean_s - 1`: 0 is even; at 1 the slowest thread has twice the mean.
    pub imbalance: f64,
}

impl RegionThread {
    /// Threads that lived one after another are in the same place of their process.
    pub(crate) fn place(&self) -> (Option<u32>, Option<u32>, u32) {
        let thread = self.in_place_of.unwrap_or(self.thread);
        (self.mpi_rank, self.process, thread)
    }
}

impl Region {
    /// Work by place, in seconds, in the order of places.
    pub fn work_by_place(&self) -> Vec<f64> {
        let mut works: BTreeMap<_, f64> = BTreeMap::new();
        for thread in &self.per_thread {
            *works.entry(thread.place()).or_default() += thread.work_s;
        }
        works.into_values().collect()
    }
}

impl Spread {
    /// Times in seconds, over so many threads.
    pub fn new(threads: u32, min_s: f64, mean_s: f64, max_s: f64) -> Spread {
        let is_known = mean_s > 0.0;
        Spread {
            threads,
            min_s,
            mean_s,
            max_s,
            imbalance: if is_known { max_s / mean_s - 1.0 } else { 0.0 },
        }
    }
}
