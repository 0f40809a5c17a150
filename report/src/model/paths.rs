//! The call-path profile: regions inside of regions.

use super::overhead::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A region on one path of enclosing regions; the first one is the program. What a task executes is in the construct that created it, in
/// whatever wait it was executed. A region that is on the path already leads back to where it was first met.
/// The `exclusive_s` of all of them add up to `thread_time_s`, and the `inclusive_s` of the program is all of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPath {
    /// Position in `call_paths` of the one around it, before its own; null: this is the program.
    pub parent: Option<u32>,
    /// `id` of the region; null for the program, and for a place that is not known.
    pub region: Option<u32>,
    /// Where a parallel region was called from, an `id` in `contexts`: paths that differ in nothing else have different ones. Absent where it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Executions on this path that are on record, by a team together; of a task construct the tasks.
    pub executions: u64,
    /// Parallel regions: fork to join, all executions on this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Own time on this path, all threads together: as `time_s` of the region. The program's is what threads spent outside of all regions.
    pub exclusive_s: f64,
    /// The same with all that is below.
    pub inclusive_s: f64,
    /// For each thread with time on this path or below.
    pub per_thread: Vec<CallPathThread>,
    /// Per event; one that was not counted all the time is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
}

/// A thread's part of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPathThread {
    /// Process (its number in the operating system).
    pub process: Option<u32>,
    /// MPI rank of the process, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Own time.
    pub exclusive_s: f64,
    /// The same with all that is below.
    pub inclusive_s: f64,
    /// How often the thread came to it on this path, as `exec_count` of a region's times. Absent if it did not: it created tasks that
    /// others executed, or there is more below only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u64>,
    /// Part of `exclusive_s` by class of overhead, in seconds. A class without time is absent. The rest is the program's code, or `idle_s`,
    /// or time that was not divided by thread: a parallel region's begin and end where a part of it is not on record.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<Class, f64>,
    /// Part of `exclusive_s` of the program: a worker thread outside of parallel regions. Absent without such time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// Per event; one that was not counted all the time is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
}

/// Counts of an event. What is not known is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCount {
    /// Of the region itself.
    pub exclusive: Option<u64>,
    /// The same with what is below.
    pub inclusive: Option<u64>,
}
