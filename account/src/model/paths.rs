//! The call-path profile: regions inside of regions.

use super::overhead::Class;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A region on one path of enclosing regions. The first path is the program. A task is below the construct that created it,
/// whichever wait it was executed in. Recursion leads back to the region's first occurrence on the path. All `exclusive_s`
/// add up to `thread_time_s`, and so the program's `inclusive_s` equals it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPath {
    /// Position of the enclosing path in `call_paths`, which is before its own; null for the program.
    pub parent: Option<u32>,
    /// `id` of the region; null for the program and for an unknown place.
    pub region: Option<u32>,
    /// `id` in `contexts`: where a parallel region was called from. Paths can differ only in this. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Number of recorded executions on this path. A team's execution counts once. For a task construct: the number of tasks.
    pub executions: u64,
    /// For parallel regions: wall time from fork to join in seconds, the sum of the executions on this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_s: Option<f64>,
    /// Own time on this path in seconds, the sum of all threads: like `time_s` of the region. For the program: time outside
    /// all regions.
    pub exclusive_s: f64,
    /// Own time with all paths below, in seconds.
    pub inclusive_s: f64,
    /// The same for each thread with time on this path or below.
    pub per_thread: Vec<CallPathThread>,
    /// Counts for each event; an event that was not always counted is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
}

impl CallPath {
    /// A path on which nothing has happened yet.
    pub fn empty(parent: Option<u32>, region: Option<u32>, context: Option<u32>) -> CallPath {
        CallPath {
            parent,
            region,
            context,
            executions: 0,
            wall_s: None,
            exclusive_s: 0.0,
            inclusive_s: 0.0,
            per_thread: vec![],
            events: BTreeMap::new(),
        }
    }
}

/// Times and counts of one thread on a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallPathThread {
    /// Process id; null if not known.
    pub process: Option<u32>,
    /// MPI rank of the process; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Own time, in seconds.
    pub exclusive_s: f64,
    /// Own time with all paths below, in seconds.
    pub inclusive_s: f64,
    /// Number of times that the thread came to it on this path, like `exec_count` of a region's times. Absent if it never
    /// did: it created tasks that others executed, or only paths below have time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visits: Option<u64>,
    /// Parts of `exclusive_s` by class of overhead, in seconds; a class without time is absent. The rest is the program's
    /// code, `idle_s`, or time that could not be divided by thread: begin and end of a parallel region with a missing part.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classes: BTreeMap<Class, f64>,
    /// Part of the program's `exclusive_s`: a worker thread outside parallel regions, in seconds. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_s: Option<f64>,
    /// Counts for each event; an event that was not always counted is absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub events: BTreeMap<String, PathCount>,
}

/// Counts of an event. An unknown count is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PathCount {
    /// Count of the region itself.
    pub exclusive: Option<u64>,
    /// Count of the region and everything below.
    pub inclusive: Option<u64>,
}
