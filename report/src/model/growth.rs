//! How a run's numbers grow over time: ompP's incremental profile.

use super::overhead::Overhead;
use super::series::SeriesPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of this JSON. It grows when a field is removed or changes its meaning, not when one is added.
pub const GROWTH_VERSION: u32 = 1;

/// A run over time. All intervals' times add up to those of the run's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthReport {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// The run folder, as the user named it.
    pub run: String,
    /// Threads that recorded.
    pub threads: u32,
    /// Where an interval ends.
    pub by: GrowthUnit,
    /// How often neighbours became one, since there were too many intervals: each time an interval stands for twice as much.
    pub folded: u32,
    /// The intervals, one after the other.
    pub intervals: Vec<GrowthInterval>,
    /// The constructs with the most time, the first with most; the others are summed up in `other_s` of each interval.
    pub regions: Vec<GrowthRegion>,
    /// The phases, one after the other.
    pub phases: Vec<Phase>,
    /// A phase ends where an interval's work is divided among places otherwise than the phase's, by more than this share of it, from 0
    /// to 1. Waits are in no composition: they say how well the program does what it does.
    pub phase_distance: f64,
    /// What makes the run's numbers less than complete: notes of its report.
    pub shortcomings: Vec<super::Note>,
}

/// Where an interval ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum GrowthUnit {
    /// After a length of time.
    Time {
        /// What was asked for, in seconds.
        wanted_s: f64,
        /// What there is, in seconds.
        length_s: f64,
    },
    /// With executions of parallel regions.
    Instances {
        /// Which ones, as the user named them.
        regions: String,
        /// So many executions are an interval; what comes behind the last one is another interval.
        each: u64,
    },
}

/// An interval. Times are thread time in seconds: of all threads together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthInterval {
    /// Begin, in seconds since the run's begin.
    pub begin_s: f64,
    /// End.
    pub end_s: f64,
    /// All threads' recorded time: regions, serial code and idle workers add up to it.
    pub thread_time_s: f64,
    /// The program's code in constructs.
    pub work_s: f64,
    /// The classes of overhead in parallel regions; null where the run has nothing of the kind.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// Code outside of constructs.
    pub serial_s: f64,
    /// Workers outside of parallel regions.
    pub idle_s: f64,
    /// Intervals whose place is not known.
    pub unknown_s: f64,
    /// Own time of the regions that are not listed.
    pub other_s: f64,
}

/// A construct over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthRegion {
    /// Which one.
    pub place: SeriesPlace,
    /// Own time, waits included, of all threads and intervals: `time_s` of the report's region.
    pub time_s: f64,
    /// The same for each interval.
    pub interval_s: Vec<f64>,
    /// The program's code in it, for each interval: a part of `interval_s`.
    pub interval_work_s: Vec<f64>,
}

/// A stretch of time in which the program does the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Begin, in seconds since the run's begin.
    pub begin_s: f64,
    /// End.
    pub end_s: f64,
    /// The position of its first interval in `intervals`, from 0.
    pub first: u32,
    /// The number of its intervals.
    pub count: u32,
    /// The construct with most of the program's code; null: code outside of all.
    pub main: Option<SeriesPlace>,
    /// Its share in the program's code, inside and outside of constructs; from 0 to 1.
    pub main_share: f64,
    /// The sums of its intervals.
    pub sums: GrowthInterval,
}
