//! What the probes took.

use ompfuse_format::Construct;
use ompfuse_format::site::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Estimated time of the probes: the number of intervals, times the cost of an empty task's probes, measured when the run
/// began. The times of the regions include it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeTime {
    /// Time in seconds, the sum of all threads.
    pub estimated_s: f64,
    /// Processor time of the processes, in seconds; or the threads' time if that is not known. 0 in older reports.
    #[serde(default)]
    pub of_s: f64,
    /// `estimated_s` as a share of `of_s`, from 0 to 1.
    pub share: f64,
    /// Cost of one interval's probes, in seconds.
    pub interval_s: f64,
    /// The region with the most probe time; null if all probes took less than a tenth, or it was recorded so already.
    pub most_at: Option<MostProbes>,
    /// How to record the program with fewer probes; null if all probes took less than a tenth.
    pub remedy: Option<FewerProbes>,
}

impl ProbeTime {
    /// What the probes of a part took, as a share of the same processor time. `None`: that isn't known.
    pub(crate) fn share_of(&self, estimated_s: f64) -> Option<f64> {
        (self.of_s > 0.0).then(|| (estimated_s / self.of_s).min(1.0))
    }
}

/// The region with the most probe time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MostProbes {
    /// `id` of the region.
    pub region: u32,
    /// The construct that begins there; null if not known.
    pub construct: Option<Construct>,
    /// Linkage name of its function; null if not known.
    pub function: Option<String>,
    /// Its source line; null if not known.
    pub source: Option<Source>,
}

/// A way to record with fewer probes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum FewerProbes {
    /// Count no events, because reading the counters takes most of the time.
    NoEvents,
    /// Leave out a region.
    Skip {
        /// The selector of the region.
        region: String,
    },
    /// Record fewer instances of constructs whose probes cost more than this.
    Throttle {
        /// Percentage of the construct's time.
        percent: u32,
    },
}
