//! How the units of a region are distributed, where only sums were recorded.

use ompfuse_format::Construct;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Distribution of a region's execution units over all threads, from histograms. No single unit is on record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Own times of the units, in seconds.
    pub time_s: Percentiles,
    /// Counts of the units for each event; an event that was not counted here is absent.
    pub events: BTreeMap<String, Percentiles>,
    /// The units with the longest own times, longest first.
    pub largest: Vec<LargestUnit>,
    /// Number of parts of units beyond the first one (untied tasks). The histograms hold each part by itself, so such units
    /// are longer than they show.
    pub further_parts: u64,
}

/// Percentiles. Each is a range: the bucket of the histogram that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Half of the units are at most this.
    pub p50: Between,
    /// 90 % of the units are at most this.
    pub p90: Between,
    /// 99 % of the units are at most this.
    pub p99: Between,
}

/// Limits of a number that is not known exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Between {
    /// Smallest possible value.
    pub from: f64,
    /// Upper limit, which the value does not reach; null if the histogram has no limit there.
    pub to: Option<f64>,
}

/// One of the longest units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestUnit {
    /// `range`, `section` or `task`.
    pub kind: Construct,
    /// Own time in seconds.
    pub time_s: f64,
    /// First iteration of a range, counted from 0; null for other units.
    pub first_iteration: Option<i64>,
    /// Number of iterations; null for units without iterations.
    pub iterations: Option<u64>,
    /// Number of the section in its construct, from 0; null for other units.
    pub section: Option<i64>,
    /// Number of the task among those created at the same place of the task tree; null for other units. For tasks created
    /// directly in a parallel region it is: thread number + earlier tasks of that thread × team size.
    pub rank: Option<i64>,
    /// Hash of the unit's path from the root of the task tree, in hexadecimal. It is equal in all runs of the program.
    pub path: String,
}
