//! What the probes took.

use ompfuse_format::Construct;
use ompfuse_format::site::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What probes took, estimated: the number of intervals, times what the probes of an empty task cost when the run began. The times
/// of the regions hold it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeTime {
    /// Seconds, all threads together.
    pub estimated_s: f64,
    /// As a share of the processes' processor time, from 0 to 1. Where that is unknown, of the threads' time.
    pub share: f64,
    /// What the probes of one interval took, in seconds.
    pub interval_s: f64,
    /// The region whose probes took most, where they all took more than a tenth.
    pub most_at: Option<MostProbes>,
    /// How to record the program with fewer probes, likewise.
    pub remedy: Option<FewerProbes>,
}

/// The region whose probes took most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MostProbes {
    /// Its `id`.
    pub region: u32,
    /// The construct that begins there, as the scan of the program has it.
    pub construct: Option<Construct>,
    /// The function that it is in: its linkage name.
    pub function: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
}

/// A way to record with fewer probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum FewerProbes {
    /// Count no events: reading the counters takes most of the time.
    NoEvents,
    /// Leave out a region.
    Skip {
        /// The word that selects it.
        region: String,
    },
    /// Record fewer instances of what is so short that its probes cost more than this.
    Throttle {
        /// Percentage of its time.
        percent: u32,
    },
}
