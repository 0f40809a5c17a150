//! What is known per outermost parallel region and thread, and no execution unit has a share of.

use ompfuse_fuse::summary::ProcessorLimit;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What counts belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Each interval has its own count: execution units, waits, and all others.
    Unit,
    /// An outermost parallel region has one count for each thread of its team, nested regions included.
    Region,
}

/// Work of one thread of a region's team. Processor time and counts come from the parts that were read. If parts are short,
/// only some of them are read. Nothing is extrapolated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionCounts {
    /// `id` of the outermost parallel region.
    pub region: u32,
    /// Process id; null if not known.
    pub process: Option<u32>,
    /// Number of the thread in the region's team.
    pub team_thread: u32,
    /// Number of the thread in its process; null if it was not always the same one.
    pub thread: Option<u32>,
    /// Number of executed parts: one for each execution, and those of threads of nested regions.
    pub executed: u64,
    /// Number of parts that were read.
    pub covered: u64,
    /// Time of all parts from begin to end, in seconds.
    pub wall_s: f64,
    /// Time of the read parts from begin to end, in seconds.
    pub covered_wall_s: f64,
    /// Processor time of the read parts, in seconds; null if not known.
    pub processor_s: Option<f64>,
    /// Time in the read parts in which the thread waited for others and may have slept, in seconds.
    pub wait_s: f64,
    /// Counts for each event; an event that was not counted here is absent.
    pub events: BTreeMap<String, RegionCount>,
}

/// An event's count in a region on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RegionCount {
    /// The count.
    pub count: u64,
    /// Number of parts that the count comes from, in its run.
    pub covered: u64,
}

/// Whether threads had processors while they worked in parallel regions. It comes from the parts that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Running {
    /// The most threads at once, the sum of all processes that there were then.
    pub threads: u64,
    /// In how many processes they were; 0 in older reports.
    #[serde(default)]
    pub processes: u64,
    /// Number of processors that the program could use at once, by its affinity mask and the quota of its control group; null
    /// if not known.
    pub processors: Option<f64>,
    /// Why there weren't more; null if they are all that the machine has, or it is not known.
    #[serde(default)]
    pub limit: Option<ProcessorLimit>,
    /// Processor time that the hypervisor took from the whole machine during the run, in seconds; null if not known.
    #[serde(default)]
    pub stolen_s: Option<f64>,
    /// `stolen_s` as a share of the processors' time, from 0 to 1; null if not known.
    #[serde(default)]
    pub stolen: Option<f64>,
    /// Time in parallel regions without waits for other threads, in seconds.
    pub wanted_s: f64,
    /// Least time of `wanted_s` in which a thread was not running, in seconds. It had no processor, or the program itself
    /// waited (files, sleep).
    pub not_running_s: f64,
    /// `not_running_s` as a share of `wanted_s`, from 0 to 1.
    pub not_running: f64,
    /// Least time of `wanted_s` in which a thread was ready and had no processor, in seconds. Null if the kernel doesn't tell, or threads ended before the program.
    #[serde(default)]
    pub without_processor_s: Option<f64>,
    /// Time of all its threads in which they were ready and had no processor, in seconds, also outside of regions. Null as
    /// `without_processor_s`.
    #[serde(default)]
    pub queued_s: Option<f64>,
    /// True if the share without a processor is larger than on an idle machine, so that times depend on the machine, too.
    pub is_starved: bool,
}

impl Running {
    /// Least share of the working time in which threads were ready and had no processor, from 0 to 1.
    pub(crate) fn without_share(&self) -> f64 {
        self.without_processor_s.unwrap_or(0.0) / self.wanted_s.max(f64::MIN_POSITIVE)
    }
}
