//! How the units of a region are distributed, where only sums were recorded.

use ompfuse_format::Construct;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Of a region's execution units, all threads together, from histograms: no unit is on record by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Their own times in seconds.
    pub time_s: Percentiles,
    /// Their counts per event; an event that was not counted here is absent.
    pub events: BTreeMap<String, Percentiles>,
    /// The units with the longest own times, the longest first.
    pub largest: Vec<LargestUnit>,
    /// Parts of units (untied tasks) beyond the first ones: the histograms hold each part by itself, so such units are longer than
    /// they say.
    pub further_parts: u64,
}

/// Percentiles. Each is a range: the histogram's bucket that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Percentiles {
    /// Half of them.
    pub p50: Between,
    /// Nine in ten.
    pub p90: Between,
    /// 99 in a hundred.
    pub p99: Between,
}

/// A number that is known to lie between two others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Between {
    /// The least that it can be.
    pub from: f64,
    /// What it is below; null: the histogram has no end there.
    pub to: Option<f64>,
}

/// One of the longest units.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestUnit {
    /// Range, section or task.
    pub kind: Construct,
    /// Own time in seconds.
    pub time_s: f64,
    /// First iteration, counted from 0; null for what has none.
    pub first_iteration: Option<i64>,
    /// Iterations; null for what has none.
    pub iterations: Option<u64>,
    /// Number of a section in its construct, from 0; null for others.
    pub section: Option<i64>,
    /// Rank of a task among those that were created in the same place of the task tree; null for others. Directly in a parallel region
    /// it is thread number + earlier ones of the thread * team size.
    pub rank: Option<i64>,
    /// A hash of the unit's path from the root of the task tree, in hexadecimal: equal in all runs of the program.
    pub path: String,
}
