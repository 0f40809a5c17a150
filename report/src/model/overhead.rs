//! Classes of overhead per parallel region.

use super::note::Incomplete;
use ompfuse_format::site::HexAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use ompfuse_format::construct::OverheadClass as Class;

/// A parallel region's overheads. The basis is the time that its threads are bound to it: fork to join times team size. What is not
/// known is null, never 0 or less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParallelOverhead {
    /// `id` of the parallel region.
    pub region: u32,
    /// Its address.
    pub address: Option<HexAddress>,
    /// Executions.
    pub executions: u64,
    /// Those inside another parallel region.
    pub nested: u64,
    /// Largest team.
    pub team: u64,
    /// Fork to join, all executions.
    pub wall_s: f64,
    /// `wall_s` as a share of the processes' wall times, from 0 to 1; null if that isn't known, or executions overlap in a process.
    pub of_run: Option<f64>,
    /// Fork to join times team size.
    pub total_s: f64,
    /// `total_s` less all overheads; null if some of those could not be measured.
    pub work_s: Option<f64>,
    /// The part of `total_s` that is in no class, where `work_s` is null: work, and overheads that are not known. With it the
    /// classes and work add up to `total_s`.
    pub unknown_s: f64,
    /// The classes.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// The classes as shares of the program's available time, from 0 to 1; null if that is not known.
    #[serde(default)]
    pub of_program: Option<ProgramShares>,
    /// What the classes consist of.
    pub parts: Vec<OverheadPart>,
    /// What is missing in these numbers or not certain, and why.
    pub incomplete_because: Vec<Incomplete>,
    /// Set if the region's threads were not running for much of their working time: at least this share, from 0 to 1. Its
    /// overheads then include waiting for a processor. Null where it is little, or not known.
    pub starved: Option<f64>,
}

/// Shares of the program's available time (`available_s` of the report), from 0 to 1. What is not known is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramShares {
    /// The time that the region's threads are bound to it: `total_s`.
    pub total: f64,
    /// All classes together.
    pub overheads: f64,
    /// See the class.
    pub synchronization: Option<f64>,
    /// See the class.
    pub imbalance: Option<f64>,
    /// See the class.
    pub limited_parallelism: Option<f64>,
    /// See the class.
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

/// Seconds per class, all threads together; null if nothing of the kind was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overhead {
    /// Barriers, taskwait, entering critical sections and locks, atomics, flush.
    pub synchronization_s: Option<f64>,
    /// Waiting at the end of parallel regions and work-sharing for slower threads.
    pub imbalance_s: Option<f64>,
    /// Waiting because there was not enough to do: behind what one thread executes, too few sections.
    pub limited_parallelism_s: Option<f64>,
    /// Starting and ending threads' parts, creating tasks, fetching ranges.
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
    /// What: `barrier`, `taskwait`, `critical`, `loop-end`, `region-end`, `startup`, ...
    pub what: String,
    /// Its class.
    pub class: Class,
    /// Seconds, all threads together.
    pub seconds: f64,
    /// How often.
    pub count: u64,
}
