//! One construct at one place.

use super::distribution::Distribution;
use super::mutex::Mutex;
use super::note::Doubt;
use super::paths::PathCount;
use super::ranks::RegionRanks;
use super::times::Times;
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is on record only in part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InPart {
    /// Kind of the instances: `task`, `range`, a wait.
    pub kind: Construct,
    /// The same; version 2 leaves it out.
    pub construct: Construct,
    /// Instances that are on record.
    pub recorded: u64,
    /// All instances.
    pub executed: u64,
    /// At the end, one in this many was recorded on some thread. 1: all.
    pub one_in: u32,
    /// Whether that is because probes would have cost more than they were allowed to.
    pub throttled: bool,
    /// Own time of those that are not on record.
    pub left_out_s: f64,
    /// Instances that were shorter than this were left out, in seconds; null without such a limit.
    pub shorter_than_s: Option<f64>,
}

/// One construct at one place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// Number in this report, from 1 in the order of addresses.
    pub id: u32,
    /// Link-time address of its begin.
    pub address: Option<HexAddress>,
    /// The type's text in profiles (the address, or what a foreign table says).
    pub name: String,
    /// Build id (or path) of the module; null if not known.
    pub module: Option<String>,
    /// File name of the module, where there are several.
    pub file: Option<String>,
    /// Its kind; null for the XUs of a foreign table.
    pub construct: Option<Construct>,
    /// A combined construct's other half: `loop` or `sections` of a parallel region.
    pub combined_with: Option<Construct>,
    /// The function that it is in: its linkage name.
    pub function: Option<String>,
    /// The function as the source has it: C++ and Fortran names demangled, without parameters.
    pub function_demangled: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
    /// More about it: schedule, a critical section's name.
    pub detail: Option<String>,
    /// Why the region may be more than one construct.
    pub doubt_kind: Option<Doubt>,
    /// Executions, by a team together; of a task construct the tasks.
    pub executions: u64,
    /// Execution units: ranges, sections or tasks. 0 for constructs that have none.
    pub xus: u64,
    /// Iterations of its ranges that are on record; null where there are no ranges.
    pub iterations: Option<u64>,
    /// Its parts that were recorded only in part. All numbers but `executions` are then of what was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_part: Vec<InPart>,
    /// Parallel regions: fork to join, all executions.
    pub wall_s: Option<f64>,
    /// Own time: code directly in this construct (its XUs' too), waits and runtime library included; all threads. The own times
    /// of all regions and of `serial` add up to `thread_time_s`.
    pub time_s: f64,
    /// `time_s` as a share of `thread_time_s`, from 0 to 1.
    pub share: f64,
    /// Part of `time_s`: the program's code.
    pub work_s: f64,
    /// Part of `time_s`: waiting (barriers, taskwait, entering a critical section; in a parallel region what its workers
    /// wait between fork and join, before and after their parts).
    pub wait_s: f64,
    /// Part of `time_s`: in the runtime library otherwise (fork and join, fetching ranges, creating tasks).
    pub runtime_s: f64,
    /// What the region's probes took of the threads' time, estimated as `probes` of the report.
    pub probes_estimated_s: Option<f64>,
    /// The same as a share of `time_s`, at most 1: probes lie in the code around the region too.
    pub probes_share: Option<f64>,
    /// Mean own time of an XU; null without XUs.
    pub xu_mean_s: Option<f64>,
    /// Own time of the shortest XU; null without XUs.
    pub xu_min_s: Option<f64>,
    /// Own time of the longest XU; null without XUs.
    pub xu_max_s: Option<f64>,
    /// How `work_s` is spread over the threads.
    pub spread: Spread,
    /// `time_s` with all that was executed inside: constructs in it, and tasks that it created, wherever they were executed. Null where paths
    /// are not known.
    #[serde(default)]
    pub inclusive_s: Option<f64>,
    /// What its time consists of, all threads together: the columns of ompP. Null in foreign tables.
    #[serde(default)]
    pub times: Option<Times>,
    /// The same times for each thread that took part.
    pub per_thread: Vec<RegionThread>,
    /// Per rank, of an MPI program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RegionRanks>,
    /// Total per event, exclusive as `time_s`; an event that was not counted here is absent.
    pub events: BTreeMap<String, u64>,
    /// Constructs that one thread at a time is in (`detail` is their name, if they have one): entering, held, leaving.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
    /// Of `cancel` and cancellation points: how many of the executions found that the construct is cancelled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
    /// How its XUs are distributed, where only sums were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

/// A region's work on one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionThread {
    /// Process (its number in the operating system); null in foreign tables.
    pub process: Option<u32>,
    /// MPI rank of the process, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// Number of the thread in its process.
    pub thread: u32,
    /// XUs that began on it.
    pub xus: u64,
    /// The program's code.
    pub work_s: f64,
    /// Waiting.
    pub wait_s: f64,
    /// In the runtime library otherwise.
    pub runtime_s: f64,
    /// As `inclusive_s` of the region, of this thread.
    #[serde(default)]
    pub inclusive_s: Option<f64>,
    /// As `times` of the region, of this thread; null if it only worked for tasks or waits that have no such columns.
    #[serde(default)]
    pub times: Option<Times>,
    /// Counts per event, of this thread, exclusive and inclusive.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
    /// As `mutex` of the region, of this thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
}

/// How evenly threads are used. Over the threads that took part in the enclosing parallel regions, even if they got
/// nothing of this region.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of threads.
    pub threads: u32,
    /// Least work on a thread.
    pub min_s: f64,
    /// Mean work of a thread.
    pub mean_s: f64,
    /// Most work on a thread.
    pub max_s: f64,
    /// `max_s / mean_s - 1`: 0 is even, 1 says that the slowest thread has twice the mean.
    pub imbalance: f64,
}
