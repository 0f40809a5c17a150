//! The clocks of several hosts, and who came late to meetings: operations of all ranks that none can leave before the last one has come.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a rank met all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Meetings {
    /// Number of meetings.
    pub all: u64,
    /// At most 64 of them, the same ones on all ranks: the number from 0, when the rank came and when it left, in nanoseconds of its
    /// host's clock.
    pub times: Vec<(u64, i64, i64)>,
}

/// The clocks of the ranks' hosts, aligned by meetings: a rank leaves one after each other rank has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Clocks {
    /// Number of meetings that all these ranks took part in.
    pub meetings: u64,
    /// Number of meetings whose times are known.
    pub used: u32,
    /// The hosts; clocks are compared with that of the first one.
    pub hosts: Vec<HostClock>,
    /// Ranks that are left out: they ended in no orderly way, have other numbers of meetings, or their clocks contradict the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<u32>,
    /// The most that a clock can be wrong after alignment, in seconds.
    pub error_s: f64,
    /// The rank that came latest to meetings, in the mean.
    pub latest: Option<Latest>,
}

/// A host's clock.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostClock {
    /// The host; null if not known.
    pub host: Option<String>,
    /// Number of its ranks.
    pub ranks: u32,
    /// What its clock is ahead of that of the first host at the first meeting, in seconds.
    pub offset_s: f64,
    /// The same at the last meeting. In between it is taken to grow evenly.
    pub offset_at_end_s: f64,
    /// The most that these can be wrong, in seconds.
    pub error_s: f64,
}

/// A rank that comes late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Latest {
    /// Its number.
    pub rank: u32,
    /// Mean time by which it came after the first rank, in seconds.
    pub late_s: f64,
    /// Number of meetings, of those that are used, to which it came last.
    pub last: u32,
}
