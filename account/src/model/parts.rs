//! What is known per outermost parallel region and thread, and no execution unit has a share of.

use ompfuse_fuse::summary::ProcessorLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What counts belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Grain {
    /// Each interval has its own count: execution units, waits, and all others.
    Unit,
    /// An outermost parallel region has one count for each thread of its team, nested regions included.
    Region,
}

/// Work of one thread of a region's team. Processor time and counts come from the parts that were read. If parts are short,
/// only some of them are read. Nothing is extrapolated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RegionCount {
    /// The count.
    pub count: u64,
    /// Number of parts that the count comes from, in its run.
    pub covered: u64,
}

/// Whether threads had processors while they worked in parallel regions. It comes from the parts that were read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Running {
    /// The most threads at once, the sum of all processes that there were then.
    pub threads: u64,
    /// In how many processes they were.
    pub processes: u64,
    /// Number of processors that the program could use at once, by its affinity mask and the quota of its control group; null
    /// if not known.
    pub processors: Option<f64>,
    /// Why there weren't more; null if they are all that the machine has, or it is not known.
    pub limit: Option<ProcessorLimit>,
    /// Processor time that the hypervisor took from the whole machine during the run, in seconds; null if not known.
    pub stolen_s: Option<f64>,
    /// `stolen_s` as a share of the processors' time, from 0 to 1; null if not known.
    pub stolen: Option<f64>,
    /// Share of these processors' time that the program used from its begin to its end, from 0 to 1; null if not known.
    pub used: Option<f64>,
    /// The most of it that other programs used, from 0 to 1; null if not known.
    pub taken: Option<f64>,
    /// Who had the processors that threads were ready for, if any were; null if not known.
    pub sharing: Option<Sharing>,
    /// How the program would have no more threads than processors; null if that might make it slower, or it isn't known how.
    pub fewer: Option<FewerThreads>,
    /// Time in parallel regions without waits for other threads, in seconds.
    pub wanted_s: f64,
    /// Least time of `wanted_s` in which a thread was not running, in seconds. It had no processor, or the program itself
    /// waited (files, sleep).
    pub not_running_s: f64,
    /// `not_running_s` as a share of `wanted_s`, from 0 to 1.
    pub not_running: f64,
    /// Time in which threads executed the program's code in parallel regions, in seconds. Null as `without_processor_s`.
    pub worked_s: Option<f64>,
    /// Least time of `worked_s` in which a thread was ready and had no processor, in seconds. Of threads that ended before the program nothing is known. Null if the kernel tells of none.
    pub without_processor_s: Option<f64>,
    /// Time of all its threads in which they were ready and had no processor, in seconds, also outside of regions. Null as
    /// `without_processor_s`.
    pub queued_s: Option<f64>,
    /// Least time of `worked_s` in which a thread neither had a processor nor was ready for one, in seconds: the program's code slept
    /// or waited. Null as `without_processor_s`.
    pub asleep_s: Option<f64>,
    /// True if the share without a processor is larger than on an idle machine, so that times depend on the machine, too.
    pub is_starved: bool,
}

/// Who had the processors that a program's threads were ready for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// Other threads of the program.
    Own,
    /// Threads of the program, and other programs.
    Both,
    /// Other programs.
    Others,
}

/// How a program has no more threads than processors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FewerThreads {
    /// `OMP_NUM_THREADS` decides how many there are.
    Variable {
        /// As many as it should be.
        threads: u64,
    },
    /// The source may decide it, or nested teams add up: `OMP_THREAD_LIMIT` holds for all.
    Limit {
        /// As many as it should be.
        threads: u64,
    },
    /// There are fewer processors than processes.
    Processes,
}

impl Running {
    /// Least share of the working time in which threads were ready and had no processor, from 0 to 1.
    pub fn without_share(&self) -> f64 {
        self.of_work(self.without_processor_s)
    }

    /// Least share of it in which they slept by their own choice.
    pub fn asleep_share(&self) -> f64 {
        self.of_work(self.asleep_s)
    }

    fn of_work(&self, seconds: Option<f64>) -> f64 {
        let worked_s = self.worked_s.unwrap_or(0.0).max(f64::MIN_POSITIVE);
        seconds.unwrap_or(0.0) / worked_s
    }

    /// Whether there are more threads than processors.
    pub fn is_crowded(&self) -> bool {
        self.threads > 1 && self.processors.is_some_and(|n| self.threads as f64 > n)
    }
}
