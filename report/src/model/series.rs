//! One program with several numbers of threads: where thread time goes as the number grows.

use super::overhead::{Class, Overhead};
use ompfuse_format::Construct;
use ompfuse_format::site::{HexAddress, Source};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// Version of the series' JSON. It grows when a field is removed or changes its meaning, not when one is added.
pub const SERIES_VERSION: u32 = 1;

/// How the amount of work depends on the number of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Scaling {
    /// It stays the same: with n times the threads the program should take one n-th of the time.
    Strong,
    /// It grows with the threads: the program should always take the same time.
    Weak,
}

/// One program with several numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// Its arguments, of the first run.
    pub args: Vec<String>,
    /// What the amount of work is taken to do.
    pub scaling: Scaling,
    /// The runs by number of threads, the smallest first: what the others are compared with.
    pub points: Vec<SeriesPoint>,
    /// The parallel regions, those that lose most with the largest number of threads first.
    pub regions: Vec<SeriesRegion>,
    /// The number of threads with which the program gets most done per second: with `strong` the least wall time.
    pub fastest: u32,
    /// The largest number of threads that pays off: compared with the last number below it that does, each thread more brought at
    /// least half of what a thread brings at the smallest number. Null if it is the largest number of all.
    pub pays_off_until: Option<u32>,
    /// What limits the program with the largest number of threads: of the parallel region, or the code outside of all, that loses
    /// most, the largest loss. Null if nothing is lost, or that isn't known.
    pub limit: Option<Loss>,
    /// What makes the series less than complete or comparable.
    pub notes: Vec<SeriesNote>,
}

/// The runs with one number of threads. Values are means over them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// The largest team of threads in these runs.
    pub threads: u32,
    /// The run folders or profiles, as the user named them.
    pub runs: Vec<String>,
    /// Wall-clock time of the program.
    pub wall: Repeated,
    /// Speed: work done per wall time, over that of the smallest number of threads.
    pub speedup: f64,
    /// `speedup` over the threads' growth: 1 is perfect.
    pub efficiency: f64,
    /// Of the step from the number of threads before to this one: the speed that each added thread brought, over the speed of a
    /// thread at the smallest number. Null at the smallest number.
    pub marginal_efficiency: Option<f64>,
    /// The wall times of all processes together times `threads`, in seconds. All parts of `stack` add up to it.
    pub available_s: f64,
    /// `available_s` of a program that scales perfectly, from the smallest number of threads.
    pub ideal_s: f64,
    /// Where the available thread time went; null if parallel regions overlap in time, so that this can't be told.
    pub stack: Option<Stack>,
    /// `stack.work_s` over `threads`; of interest where the work grows with the threads.
    pub work_per_thread_s: Option<f64>,
    /// What makes `available_s` more than `ideal_s`, the largest first: a place, and how. Parts that got smaller are negative. All of
    /// them and `other_losses_s` add up to `available_s - ideal_s`.
    pub losses: Vec<Loss>,
    /// Losses and gains that are too small to be listed, together.
    pub other_losses_s: f64,
    /// Processors that the program could use, if known: not always a whole number.
    pub processors: Option<f64>,
    /// Share of the time in which threads that worked were not running, from 0 to 1, if it was much.
    pub starved: Option<f64>,
    /// Share of the threads' time that probes took, estimated; null if what one costs was not measured.
    pub probes_share: Option<f64>,
}

/// A time that was measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// Number of runs.
    pub runs: u32,
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Least, in seconds.
    pub min_s: f64,
    /// Most, in seconds.
    pub max_s: f64,
    /// Standard deviation of a run, in seconds; null of one run.
    pub deviation_s: Option<f64>,
}

/// Thread time in seconds: wall time times threads, by what it went to. What nothing was recorded of is null.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// In parallel regions, no overhead.
    pub work_s: f64,
    /// The classes of overhead in parallel regions.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// Outside of parallel regions: the thread that executes it.
    pub serial_s: f64,
    /// Outside of parallel regions: all other threads, which have nothing to do meanwhile.
    pub serial_idle_s: f64,
    /// Threads that a parallel region's team left out, since it was smaller than the largest one.
    pub unused_s: f64,
    /// Work or overhead of parallel regions, which of them isn't known.
    pub unknown_s: f64,
}

/// What thread time goes to.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SeriesCause {
    /// The program's code in parallel regions: it takes more thread time than with fewer threads.
    Work,
    /// A class of overhead.
    Synchronization,
    /// A class of overhead.
    Imbalance,
    /// A class of overhead.
    LimitedParallelism,
    /// A class of overhead.
    Management,
    /// Code outside of parallel regions, on the thread that executes it.
    Serial,
    /// All other threads meanwhile.
    SerialIdle,
    /// Threads that a smaller team left out.
    Unused,
    /// Not known.
    Unknown,
}

impl From<Class> for SeriesCause {
    fn from(class: Class) -> SeriesCause {
        match class {
            Class::Synchronization => SeriesCause::Synchronization,
            Class::Imbalance => SeriesCause::Imbalance,
            Class::LimitedParallelism => SeriesCause::LimitedParallelism,
            Class::Management => SeriesCause::Management,
        }
    }
}

impl Stack {
    /// Adds thread time, in seconds.
    pub(crate) fn add(&mut self, cause: SeriesCause, seconds: f64) {
        match cause {
            SeriesCause::Work => self.work_s += seconds,
            SeriesCause::Synchronization => self.overhead.add(Class::Synchronization, seconds),
            SeriesCause::Imbalance => self.overhead.add(Class::Imbalance, seconds),
            SeriesCause::LimitedParallelism => {
                self.overhead.add(Class::LimitedParallelism, seconds);
            }
            SeriesCause::Management => self.overhead.add(Class::Management, seconds),
            SeriesCause::Serial => self.serial_s += seconds,
            SeriesCause::SerialIdle => self.serial_idle_s += seconds,
            SeriesCause::Unused => self.unused_s += seconds,
            SeriesCause::Unknown => self.unknown_s += seconds,
        }
    }
}

/// A construct at one place of the program. Two are equal if they are at the same address of one build, whatever else is told of them.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPlace {
    /// Build id (or path) of the module; null if not known.
    pub module: Option<String>,
    /// Link-time address.
    pub address: Option<HexAddress>,
    /// The type's text in profiles.
    pub name: String,
    /// Its kind.
    pub construct: Option<Construct>,
    /// The function that it is in: its linkage name.
    pub function: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
    /// More about it: schedule, a critical section's name.
    pub detail: Option<String>,
}

impl SeriesPlace {
    fn identity(&self) -> (&Option<String>, &Option<HexAddress>, &str) {
        (&self.module, &self.address, &self.name)
    }
}

impl PartialEq for SeriesPlace {
    fn eq(&self, other: &SeriesPlace) -> bool {
        self.identity() == other.identity()
    }
}

impl Eq for SeriesPlace {}

impl PartialOrd for SeriesPlace {
    fn partial_cmp(&self, other: &SeriesPlace) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for SeriesPlace {
    fn cmp(&self, other: &SeriesPlace) -> Ordering {
        self.identity().cmp(&other.identity())
    }
}

/// A reason why a larger number of threads brings less than it could.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The construct; null for the code outside of parallel regions.
    pub place: Option<SeriesPlace>,
    /// The outermost parallel region that it is in, or that it is; null for the code outside.
    pub region: Option<SeriesPlace>,
    /// What the thread time goes to.
    pub cause: SeriesCause,
    /// Thread time more than perfect scaling from the smallest number of threads would have, in seconds.
    pub seconds: f64,
    /// Thread time of this kind at this place, in seconds.
    pub all_s: f64,
    /// `seconds` over all thread time that is lost, `available_s - ideal_s`; null if nothing is.
    pub share: Option<f64>,
}

/// A parallel region with several numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRegion {
    /// Which one.
    pub place: SeriesPlace,
    /// Whether it was executed inside another one, in any run: the program's stack has its time in that one then.
    pub is_nested: bool,
    /// With each number of threads with which it was executed.
    pub points: Vec<RegionPoint>,
    /// Thread time more than perfect scaling would have, with the largest number of threads, in seconds; null where it was not
    /// executed with both the smallest and the largest.
    pub lost_s: Option<f64>,
    /// What most of that is.
    pub mostly: Option<SeriesCause>,
}

/// A parallel region with one number of threads. Values are means over the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPoint {
    /// As `threads` of the program's point.
    pub threads: u32,
    /// Executions, a run's mean.
    pub executions: f64,
    /// Its largest team.
    pub team: u32,
    /// Fork to join, all executions of a run.
    pub wall_s: f64,
    /// As the program's; null where it was not executed with the smallest number of threads.
    pub speedup: Option<f64>,
    /// As the program's.
    pub efficiency: Option<f64>,
    /// `wall_s` times `threads`: all parts of `stack` add up to it.
    pub available_s: f64,
    /// Where that went.
    pub stack: Stack,
}

/// What makes a series less than complete or comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SeriesNote {
    /// There were more threads than processors: they took turns.
    MoreThreadsThanProcessors {
        /// The smallest number of threads of which that is true.
        threads: u32,
        /// The processors.
        processors: f64,
    },
    /// Threads were not running for much of the time that they worked.
    Starved {
        /// Number of threads.
        threads: u32,
        /// Share of the time, from 0 to 1.
        share: f64,
    },
    /// A run did not end in an orderly way, or failed.
    Failed {
        /// The run.
        run: String,
    },
    /// Some of what was executed is not on record (sampling, throttling, a window): work is not known for certain.
    InPart {
        /// Number of threads.
        threads: u32,
    },
    /// Parallel regions overlap in time in a process: the program's thread time can't be divided.
    Overlapping {
        /// Number of threads.
        threads: u32,
    },
    /// Parallel regions were executed inside others, whose work their time is part of.
    Nested {
        /// How many regions.
        regions: u32,
    },
    /// One run for each number of threads: how much runs differ by chance isn't known.
    Single,
    /// Runs had different arguments, and the work is taken to be the same.
    ArgumentsDiffer,
    /// Runs were recorded on different hosts.
    HostsDiffer,
    /// Probes took more of the threads' time than is small.
    Probes {
        /// Number of threads.
        threads: u32,
        /// Share of the threads' time, from 0 to 1.
        share: f64,
    },
}
