//! Classes of overhead per parallel region.

use super::note::Incomplete;
use ompfuse_format::site::HexAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ompfuse_format::construct::OverheadClass as Class;

/// Overheads of a parallel region. They are shares of its team time: wall time from fork to join, times team size. An unknown
/// value is null, never 0.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelOverhead {
    /// `id` of the parallel region.
    pub region: u32,
    /// Link-time address of the region; null if not known.
    pub address: Option<HexAddress>,
    /// Number of executions.
    pub executions: u64,
    /// Number of executions inside another parallel region.
    pub nested: u64,
    /// Size of the largest team.
    pub team: u64,
    /// Wall time from fork to join, the sum of all executions.
    pub wall_s: f64,
    /// `wall_s` as a share of the processes' wall times, from 0 to 1. Null if not known, or if executions overlap in a
    /// process.
    pub of_run: Option<f64>,
    /// Team time: wall time from fork to join, times team size.
    pub total_s: f64,
    /// `total_s` without all overheads; null if some overhead could not be measured.
    pub work_s: Option<f64>,
    /// Time that is in no class if `work_s` is null: work, and unknown overheads. The classes, work and this add up to
    /// `total_s`.
    pub unknown_s: f64,
    /// Seconds in each class.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// The classes as shares of the program's available time, from 0 to 1; null if that time is not known.
    pub of_program: Option<ProgramShares>,
    /// The sources of overhead.
    pub parts: Vec<OverheadPart>,
    /// What is missing in these numbers or uncertain, and why.
    pub incomplete_because: Vec<Incomplete>,
}

/// Shares of the program's available time (`available_s` of the report), from 0 to 1. An unknown value is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramShares {
    /// Share of the team time `total_s`.
    pub total: f64,
    /// Share of all classes together.
    pub overheads: f64,
    /// Share of the class synchronization; null if not known.
    pub synchronization: Option<f64>,
    /// Share of the class imbalance; null if not known.
    pub imbalance: Option<f64>,
    /// Share of the class limited parallelism; null if not known.
    pub limited_parallelism: Option<f64>,
    /// Share of the class management; null if not known.
    pub management: Option<f64>,
}

impl ProgramShares {
    /// Of a region's time and overheads.
    pub(crate) fn of(total_s: f64, overhead: &Overhead, available_s: f64) -> ProgramShares {
        let share = |s: Option<f64>| s.map(|s| s / available_s);
        ProgramShares {
            total: total_s / available_s,
            overheads: overhead.sum() / available_s,
            synchronization: share(overhead.synchronization_s),
            imbalance: share(overhead.imbalance_s),
            limited_parallelism: share(overhead.limited_parallelism_s),
            management: share(overhead.management_s),
        }
    }

    /// The share of a class.
    pub fn get(&self, class: Class) -> Option<f64> {
        match class {
            Class::Synchronization => self.synchronization,
            Class::Imbalance => self.imbalance,
            Class::LimitedParallelism => self.limited_parallelism,
            Class::Management => self.management,
        }
    }
}

/// Seconds in each class, the sum of all threads; null if nothing of the class was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Barriers, `taskwait`, entering critical sections and locks, atomics, `flush`. In seconds.
    pub synchronization_s: Option<f64>,
    /// Waiting for slower threads at the end of parallel regions and work-sharing. In seconds.
    pub imbalance_s: Option<f64>,
    /// Waiting because there was too little to do: one thread executed a block, or there were too few sections. In seconds.
    pub limited_parallelism_s: Option<f64>,
    /// Starting and ending threads' parts, creating tasks, fetching ranges. In seconds.
    pub management_s: Option<f64>,
}

impl Overhead {
    /// The seconds of a class.
    pub fn get(&self, class: Class) -> Option<f64> {
        match class {
            Class::Synchronization => self.synchronization_s,
            Class::Imbalance => self.imbalance_s,
            Class::LimitedParallelism => self.limited_parallelism_s,
            Class::Management => self.management_s,
        }
    }

    pub(crate) fn add(&mut self, class: Class, seconds: f64) {
        let slot = match class {
            Class::Synchronization => &mut self.synchronization_s,
            Class::Imbalance => &mut self.imbalance_s,
            Class::LimitedParallelism => &mut self.limited_parallelism_s,
            Class::Management => &mut self.management_s,
        };
        *slot = Some(slot.unwrap_or(0.0) + seconds);
    }

    /// All classes together.
    pub fn sum(&self) -> f64 {
        Class::ALL.iter().filter_map(|&class| self.get(class)).sum()
    }
}

/// One source of overhead in a parallel region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverheadPart {
    /// The source: `barrier`, `taskwait`, `critical`, `loop-end`, `region-end`, `startup`, ...
    pub what: String,
    /// Its class.
    pub class: Class,
    /// Seconds, the sum of all threads.
    pub seconds: f64,
    /// Number of occurrences.
    pub count: u64,
}
