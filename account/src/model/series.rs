//! One program with several numbers of threads: where thread time goes as the number grows.

use super::account::State;
use super::overhead::{Class, Overhead};
use super::region::Region;
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
    /// It stays the same. With n times the threads the program should take one n-th of the time.
    Strong,
    /// It grows with the threads. The program should always take the same time.
    Weak,
}

/// One program with several numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// The program's arguments in the first run.
    pub args: Vec<String>,
    /// How the amount of work is assumed to depend on the number of threads.
    pub scaling: Scaling,
    /// The runs by number of threads. The first point has the smallest number; the others are compared with it.
    pub points: Vec<SeriesPoint>,
    /// The parallel regions; the one that loses most with the largest number of threads comes first.
    pub regions: Vec<SeriesRegion>,
    /// The number of threads with the most work per second. With `strong` it has the least wall time.
    pub fastest: u32,
    /// The largest number of threads that pays off. A number pays off if the program is at least a fifth faster than with the last one
    /// that does; for less than twice the threads a fifth of the share of threads added is enough. Null if the largest number of all
    /// pays off.
    pub pays_off_until: Option<u32>,
    /// What limits the program with the largest number of threads: the largest loss of the parallel region, or of the code
    /// outside, that loses most. Null if nothing is lost or it is not known.
    pub limit: Option<Loss>,
    /// Reasons why the series is incomplete or not comparable.
    pub notes: Vec<SeriesNote>,
}

/// The runs with one number of threads. Values are means of these runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPoint {
    /// Size of the largest team in these runs.
    pub threads: u32,
    /// The run folders or profiles, as the user named them.
    pub runs: Vec<String>,
    /// Own time of the program: wall-clock time without what recording takes around it.
    pub wall: Repeated,
    /// Speed relative to the smallest number of threads; speed is work divided by own time.
    pub speedup: f64,
    /// `speedup` divided by the growth of the threads: 1 is perfect.
    pub efficiency: f64,
    /// Speed that each thread added since the last number brings, relative to the speed of a thread at the smallest number.
    /// Null at the smallest number.
    pub marginal_efficiency: Option<f64>,
    /// Wall times of all processes, times `threads`, in seconds. The parts of `stack` add up to it.
    pub available_s: f64,
    /// `available_s` if the program scaled perfectly from the smallest number of threads, in seconds.
    pub ideal_s: f64,
    /// Use of the available thread time; null if parallel regions overlap in time, so that it can't be divided.
    pub stack: Option<Stack>,
    /// `stack.work_s` divided by `threads`, in seconds; useful if the work grows with the threads. Null if `stack` is null.
    pub work_per_thread_s: Option<f64>,
    /// What makes `available_s` larger than `ideal_s`: place and kind, largest first. Parts that got smaller are negative.
    /// These losses and `other_losses_s` add up to `available_s - ideal_s`.
    pub losses: Vec<Loss>,
    /// Sum of the losses and gains that are too small for the list, in seconds.
    pub other_losses_s: f64,
    /// Number of processors that the program could use, not always a whole number; null if not known.
    pub processors: Option<f64>,
    /// What the run with the fewest threads predicts for this number; null if it predicts nothing, or for that run itself.
    pub told: Option<Told>,
    /// Share of the working time in which threads were not running, from 0 to 1; null if small or not known.
    pub starved: Option<f64>,
    /// Estimated share of the probes in the threads' time, from 0 to 1; null if the cost of a probe was not measured.
    pub probes_share: Option<f64>,
}

/// A prediction beside what came.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Told {
    /// Number of threads of the run that predicts.
    pub from_threads: u32,
    /// Predicted own time of the program, in seconds: the median of its repetitions.
    pub seconds: f64,
    /// Between what and what it was said to lie, in seconds.
    pub between_s: [f64; 2],
    /// `seconds` divided by the program's own time as it was measured; 1 is exact.
    pub of_measured: f64,
}

/// A time that was measured several times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeated {
    /// Number of runs.
    pub runs: u32,
    /// Mean, in seconds.
    pub mean_s: f64,
    /// Smallest value, in seconds.
    pub min_s: f64,
    /// Largest value, in seconds.
    pub max_s: f64,
    /// Standard deviation of one run, in seconds; null if there is one run.
    pub deviation_s: Option<f64>,
}

/// Use of thread time, in seconds. Thread time is own time times threads. A part is null if nothing of it was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Stack {
    /// The program's code in parallel regions, without overhead.
    pub work_s: f64,
    /// The classes of overhead in parallel regions.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// Outside parallel regions: the thread that works.
    pub serial_s: f64,
    /// Outside parallel regions: all other threads, which are idle.
    pub serial_idle_s: f64,
    /// Threads without a part in a parallel region, because its team was smaller than the largest one.
    pub unused_s: f64,
    /// Calls of MPI, and threads that idle meanwhile.
    pub communication_s: f64,
    /// Recorded calls of other libraries that wait.
    pub call_s: f64,
    /// Time in parallel regions that is either work or overhead.
    pub unknown_s: f64,
}

/// Use of thread time.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SeriesCause {
    /// The program's code in parallel regions takes more thread time than with fewer threads.
    Work,
    /// The class of overhead synchronization.
    Synchronization,
    /// The class of overhead imbalance.
    Imbalance,
    /// The class of overhead limited parallelism.
    LimitedParallelism,
    /// The class of overhead management.
    Management,
    /// Code outside parallel regions, on the thread that executes it.
    Serial,
    /// Code outside parallel regions: all other threads, which are idle.
    SerialIdle,
    /// Threads without a part in a smaller team.
    Unused,
    /// Calls of MPI, and threads that idle meanwhile.
    Communication,
    /// Recorded calls of other libraries.
    Call,
    /// Either work or overhead.
    Unknown,
}

impl From<State> for SeriesCause {
    fn from(state: State) -> SeriesCause {
        match state {
            State::Useful => SeriesCause::Work,
            State::Serial => SeriesCause::Serial,
            State::Communication | State::IdleCommunication => SeriesCause::Communication,
            State::Call | State::Io => SeriesCause::Call,
            State::Synchronization => SeriesCause::Synchronization,
            State::Imbalance => SeriesCause::Imbalance,
            State::LimitedParallelism => SeriesCause::LimitedParallelism,
            State::Management => SeriesCause::Management,
            State::IdleSerial => SeriesCause::SerialIdle,
            State::IdleTeam => SeriesCause::Unused,
            State::Unknown => SeriesCause::Unknown,
        }
    }
}

impl Stack {
    /// Adds thread time, in seconds.
    pub fn add(&mut self, cause: SeriesCause, seconds: f64) {
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
            SeriesCause::Communication => self.communication_s += seconds,
            SeriesCause::Call => self.call_s += seconds,
            SeriesCause::Unknown => self.unknown_s += seconds,
        }
    }
}

/// A construct at one place of the program. Two are equal if they have the same address in one build.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SeriesPlace {
    /// Build id or path of the module; null if not known.
    pub module: Option<String>,
    /// Link-time address; null if not known.
    pub address: Option<HexAddress>,
    /// Type of its units in profiles.
    pub name: String,
    /// Kind of the construct; null if not known.
    pub construct: Option<Construct>,
    /// Linkage name of the function with the construct; null if not known.
    pub function: Option<String>,
    /// Source line of the construct; null if not known.
    pub source: Option<Source>,
    /// Schedule, or name of a critical section; null if there is none.
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

/// A reason why more threads bring less than they could.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Loss {
    /// The construct; null for code outside parallel regions.
    pub place: Option<SeriesPlace>,
    /// The outermost parallel region around the construct, or the construct itself; null for code outside.
    pub region: Option<SeriesPlace>,
    /// Use of the thread time.
    pub cause: SeriesCause,
    /// Thread time beyond perfect scaling from the smallest number of threads, in seconds.
    pub seconds: f64,
    /// All thread time of this kind at this place, in seconds.
    pub all_s: f64,
    /// `seconds` divided by the whole loss `available_s - ideal_s`; null if nothing is lost.
    pub share: Option<f64>,
    /// Of work: how many times as long the same iterations or tasks take as with the smallest number of threads. Null if that isn't known.
    pub inflation: Option<Inflation>,
    /// Same as `inflation.times`.
    pub times: Option<f64>,
}

/// How many times as long the same units take as with the smallest number of threads. Units are the same if their place, the execution of
/// their loop and their iterations are. Those that the kernel disturbed are left out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Inflation {
    /// The median of all pairs of a run with the smallest number of threads and a run with this one.
    pub times: f64,
    /// The least and the most of these pairs.
    pub between: [f64; 2],
    /// The share of the units' time that could be compared, from 0 to 1: the least of these pairs.
    pub compared: f64,
}

/// A parallel region with several numbers of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRegion {
    /// The region.
    pub place: SeriesPlace,
    /// True if it was executed inside another region in some run. The program's stack has its time in that region.
    pub is_nested: bool,
    /// One entry for each number of threads that executed it.
    pub points: Vec<RegionPoint>,
    /// Thread time beyond perfect scaling with the largest number of threads, in seconds. Null unless it was executed with
    /// both the smallest and the largest number.
    pub lost_s: Option<f64>,
    /// The largest part of that; null if `lost_s` is null or nothing is lost.
    pub mostly: Option<SeriesCause>,
}

/// A parallel region with one number of threads. Values are means of the runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionPoint {
    /// Like `threads` of the program's point.
    pub threads: u32,
    /// Mean number of executions in a run.
    pub executions: f64,
    /// Size of its largest team.
    pub team: u32,
    /// Wall time from fork to join in seconds, the sum of a run's executions.
    pub wall_s: f64,
    /// Like the program's; null if it was not executed with the smallest number of threads.
    pub speedup: Option<f64>,
    /// Like the program's; null if `speedup` is null.
    pub efficiency: Option<f64>,
    /// `wall_s` times `threads`, in seconds. The parts of `stack` add up to it.
    pub available_s: f64,
    /// Use of that time.
    pub stack: Stack,
}

/// A reason why a series is incomplete or not comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum SeriesNote {
    /// There were more threads than processors, so threads took turns.
    MoreThreadsThanProcessors {
        /// The smallest such number of threads.
        threads: u32,
        /// Number of processors.
        processors: f64,
    },
    /// Threads were not running for much of their working time.
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
    /// Some instances are not on record (sampling, throttling, a window), so work is not certain.
    InPart {
        /// Number of threads.
        threads: u32,
    },
    /// Parallel regions overlap in time in a process, so the program's thread time can't be divided.
    Overlapping {
        /// Number of threads.
        threads: u32,
    },
    /// Parallel regions were executed inside others. Their time is part of the outer regions' work.
    Nested {
        /// Number of such regions.
        regions: u32,
    },
    /// There is one run for each number of threads, so the noise is not known.
    Single,
    /// Runs had different arguments. Their work is assumed to be the same.
    ArgumentsDiffer,
    /// Runs were recorded on different hosts.
    HostsDiffer,
    /// Probes took a large part of the threads' time.
    Probes {
        /// Number of threads.
        threads: u32,
        /// Share of the threads' time, from 0 to 1.
        share: f64,
    },
}

impl SeriesPlace {
    /// That of a region.
    pub fn of(region: &Region) -> SeriesPlace {
        SeriesPlace {
            module: region.module.clone(),
            address: region.address,
            name: region.name.clone(),
            construct: region.construct,
            function: region.function.clone(),
            source: region.source.clone(),
            detail: region.detail.clone(),
        }
    }
}
