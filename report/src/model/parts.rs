//! What is known per outermost parallel region and thread, and no execution unit has a share of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What counts belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Each interval of the program has its own: execution units, waits, and all else.
    Unit,
    /// An outermost parallel region on one thread of its team, nested regions included.
    Region,
}

/// What one thread of a region's team executed. Processor time and counts are of the parts that were read: only some where
/// parts are short. Nothing is extrapolated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionCounts {
    /// `id` of the outermost parallel region.
    pub region: u32,
    /// Process (its number in the operating system).
    pub process: Option<u32>,
    /// Number of the thread in the region's team.
    pub team_thread: u32,
    /// Number of the thread in its process, if it was always the same one.
    pub thread: Option<u32>,
    /// Parts that were executed: one for each execution, and those of threads of nested regions.
    pub executed: u64,
    /// Parts that were read.
    pub covered: u64,
    /// Begin to end of all parts.
    pub wall_s: f64,
    /// Begin to end of those that were read.
    pub covered_wall_s: f64,
    /// Processor time of those; null where it is not known.
    pub processor_s: Option<f64>,
    /// Time of those in which the thread waited for others, and may have slept.
    pub wait_s: f64,
    /// Counts; an event that was not counted here is absent.
    pub events: BTreeMap<String, RegionCount>,
}

/// An event's count in a region on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionCount {
    /// The count.
    pub count: u64,
    /// Parts that it is of, in the run that it comes from.
    pub covered: u64,
}

/// Whether threads had processors while they worked in parallel regions, from the parts that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// Largest team, or what several processes and nested regions have together at least.
    pub threads: u64,
    /// Processors that the program could use at once: by its affinity mask, and its control group's quota.
    pub processors: Option<f64>,
    /// Time in parallel regions less waiting for other threads.
    pub wanted_s: f64,
    /// What of it a thread was not running, at least: it had no processor, or the program itself waited (files, sleep).
    pub not_running_s: f64,
    /// `not_running_s` as a share of `wanted_s`, from 0 to 1.
    pub not_running: f64,
    /// Whether that is so much that times tell more of the machine than of the program.
    pub is_starved: bool,
}
