//! How a run's numbers grow over time: ompP's incremental profile.

use super::overhead::Overhead;
use super::series::SeriesPlace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of this JSON. It grows when a field is removed or changes its meaning, not when one is added.
pub const GROWTH_VERSION: u32 = 1;

/// A run over time. The times of all intervals add up to those of the run's report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthReport {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// The run folder, as the user named it.
    pub run: String,
    /// Number of threads that recorded.
    pub threads: u32,
    /// Where an interval ends.
    pub by: GrowthUnit,
    /// How often neighbouring intervals were merged because there were too many. Each time, intervals become twice as long.
    pub folded: u32,
    /// The intervals in the order of time.
    pub intervals: Vec<GrowthInterval>,
    /// The constructs with the most time, most first. Each interval has the others in `other_s`.
    pub regions: Vec<GrowthRegion>,
    /// The phases in the order of time.
    pub phases: Vec<Phase>,
    /// A new phase begins if more than this share of the code's time would have to move to match the phase, from 0 to 1.
    /// Waits don't count.
    pub phase_distance: f64,
    /// Reasons why the run's numbers are incomplete: notes of its report.
    pub shortcomings: Vec<super::Note>,
}

/// Where an interval ends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum GrowthUnit {
    /// After a fixed time.
    Time {
        /// The requested length, in seconds.
        wanted_s: f64,
        /// The actual length, in seconds.
        length_s: f64,
    },
    /// After executions of parallel regions.
    Instances {
        /// The selector of the regions, as the user wrote it.
        regions: String,
        /// Number of executions in an interval. The time after the last one is another interval.
        each: u64,
    },
}

/// An interval. Times are in seconds, the sum of all threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthInterval {
    /// Begin, in seconds since the run's begin.
    pub begin_s: f64,
    /// End, in seconds since the run's begin.
    pub end_s: f64,
    /// Recorded time of all threads: the sum of regions, serial code and idle workers.
    pub thread_time_s: f64,
    /// Program code in constructs.
    pub work_s: f64,
    /// The classes of overhead in parallel regions; null if the run has none of the class.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// Code outside constructs.
    pub serial_s: f64,
    /// Workers outside parallel regions.
    pub idle_s: f64,
    /// Intervals at unknown places.
    pub unknown_s: f64,
    /// Own time of the regions that are not listed.
    pub other_s: f64,
}

/// A construct over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GrowthRegion {
    /// The construct.
    pub place: SeriesPlace,
    /// Own time with waits, the sum of all threads and intervals: `time_s` of the report's region.
    pub time_s: f64,
    /// The same time for each interval.
    pub interval_s: Vec<f64>,
    /// Program code in it, for each interval: a part of `interval_s`.
    pub interval_work_s: Vec<f64>,
}

/// A stretch of time in which the program executes the same code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Phase {
    /// Begin, in seconds since the run's begin.
    pub begin_s: f64,
    /// End, in seconds since the run's begin.
    pub end_s: f64,
    /// Position of its first interval in `intervals`, from 0.
    pub first: u32,
    /// Number of its intervals.
    pub count: u32,
    /// The construct with most of the program's code; null if that is code outside constructs.
    pub main: Option<SeriesPlace>,
    /// Share of that construct in the program's code, from 0 to 1.
    pub main_share: f64,
    /// Sums of its intervals.
    pub sums: GrowthInterval,
}

impl GrowthInterval {
    /// One without anything.
    pub(crate) fn nothing() -> GrowthInterval {
        GrowthInterval {
            begin_s: 0.0,
            end_s: 0.0,
            thread_time_s: 0.0,
            work_s: 0.0,
            overhead: Overhead::default(),
            serial_s: 0.0,
            idle_s: 0.0,
            unknown_s: 0.0,
            other_s: 0.0,
        }
    }
}
