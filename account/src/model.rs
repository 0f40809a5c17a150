//! The report as data: what is true of a run or profile. It holds no sentence, and no number is rounded.
//!
//! `report --format json` prints it, and some sentences beside (`view::json`). Scripts rely on its names: add, don't rename.

pub mod account;
pub(crate) mod clocks;
pub(crate) mod contexts;
pub(crate) mod distribution;
mod facts;
pub mod growth;
pub mod key;
pub(crate) mod loss;
pub(crate) mod mutex;
pub(crate) mod note;
pub(crate) mod overhead;
pub(crate) mod parts;
pub(crate) mod paths;
pub(crate) mod probes;
pub(crate) mod property;
pub mod ranks;
pub(crate) mod region;
pub mod sampled;
pub mod series;
pub mod sum;
pub(crate) mod times;
pub(crate) mod transfer;
pub(crate) mod tried;

pub use account::{Account, Efficiencies, ProcessTime, State, StatePart, StateTime};
pub use clocks::{Clocks, HostClock, Latest, Meetings};
pub use contexts::{ContextCall, ContextCut, Language};
pub use distribution::{Between, Distribution, LargestUnit, Percentiles};
pub use facts::{
    EventState, ModuleInfo, RunInfo, Serial, ThreadCheck, UncountedCode, UnmatchedXus,
};
pub use loss::{
    Behind, Better, BusiestRank, Cause, Loss, LossKind, MostIn, OnPath, Predicted, PredictedRegion,
    RegionScaling, Scaling, Silent,
};
pub use mutex::{Lock, LockKind, Mutex};
pub use note::{Doubt, Incomplete, Note, UnattributedShare, Unmatched};
pub use overhead::{Class, Overhead, OverheadPart, ParallelOverhead, ProgramShares};
pub use parts::{FewerThreads, Grain, RegionCount, RegionCounts, Running, Sharing};
pub use paths::{CallPath, CallPathThread, PathCount};
pub use probes::{FewerProbes, MostProbes, ProbeTime};
pub use property::{Property, PropertyKind};
pub use ranks::{Mpi, Rank, RegionRank, RegionRanks};
pub use region::{InPart, Region, RegionThread, Spread};
pub use sampled::{Sampled, SampledFunction, SampledLine, SampledWork, UncountedWork};
pub use times::Times;
pub use transfer::{LateSender, Transfer};
pub use tried::{ChangedFile, FileState, Judged, Tried, TriedVariant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the report's JSON. It grows when a field is removed or changes its meaning, not when one is added.
pub const REPORT_VERSION: u32 = 2;

/// The values of a report on a run or profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// The program's arguments.
    pub args: Vec<String>,
    /// Host name; empty if not known.
    pub host: String,
    /// Number of threads that recorded.
    pub threads: u32,
    /// Wall-clock time of the program; null if not known.
    pub duration_s: Option<f64>,
    /// Own time: from when recording was prepared to when the process began to exit; of several processes the time in which at
    /// least one had own time; of ranks that were recorded apart the longest. Null if not known.
    pub lifetime_s: Option<f64>,
    /// Available time: own time of all recorded processes, times the most threads that each had at once. Null if not known.
    pub available_s: Option<f64>,
    /// Time inside outermost parallel regions, from fork to join. Overlapping times count once. Null if the duration is not
    /// known.
    pub parallel_s: Option<f64>,
    /// Parallel coverage, from 0 to 1: `parallel_s / lifetime_s`. Null if one of them is null.
    pub coverage: Option<f64>,
    /// Share of `lifetime_s` outside parallel regions, from 0 to 1: `1 - coverage`. Null if `coverage` is null.
    pub serial_share: Option<f64>,
    /// Amdahl's law: the highest speed-up over this run if only its parallel regions become faster. It is `1 / serial_share`;
    /// null if that share is 0 or null.
    pub speedup_limit: Option<f64>,
    /// Number of execution units in the combined profile, or in the only run.
    pub xus: u64,
    /// The runs of the report.
    pub runs: Vec<RunInfo>,
    /// The patched modules, with the number of their sites that have no probe.
    pub modules: Vec<ModuleInfo>,
    /// The requested events.
    pub events: Vec<EventState>,
    /// Functions that were to count their instructions and can't; the one with the most time comes first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub uncounted: Vec<UncountedCode>,
    /// What samples tell; absent if there are none, or reading them takes too long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// Recorded time of all threads: the sum of the own times of all regions and of the times in `serial`.
    pub thread_time_s: f64,
    /// Estimated time of the probes; null if the cost of a probe was not measured.
    pub probes: Option<ProbeTime>,
    /// The regions; the one with the most own time comes first.
    pub regions: Vec<Region>,
    /// The regions by path of enclosing regions. The program comes first, and each path comes after the one around it. Empty
    /// for foreign tables.
    pub call_paths: Vec<CallPath>,
    /// The calls that led to parallel regions; callers come first. Empty if they were not recorded.
    pub contexts: Vec<ContextCall>,
    /// At most 100 locks by address; the one with which threads spent the most time comes first. Empty if only sums were
    /// recorded.
    pub locks: Vec<Lock>,
    /// Processor time, and counts of events with the grain `region`, for each outermost parallel region and thread.
    pub region_counts: Vec<RegionCounts>,
    /// Whether threads had processors while they worked in parallel regions; null if too little is known about it.
    pub running: Option<Running>,
    /// Time outside all constructs.
    pub serial: Serial,
    /// The ranks of an MPI program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// Overheads of each parallel region; the one with the longest wall-clock time comes first.
    pub overheads: Vec<ParallelOverhead>,
    /// What the available time went to. Null if it is not known, as for foreign tables.
    pub account: Option<Account>,
    /// Losses of thread time with their causes, largest first. Empty if the run's time is not known.
    pub losses: Vec<Loss>,
    /// The time of which the losses are shares: the same as `available_s`. Null if not known.
    pub losses_of_s: Option<f64>,
    /// All that is lost, also what is too small for `losses`; at most `losses_of_s`. Null if not known.
    pub lost_s: Option<f64>,
    /// True if losses are lower bounds: a part of the time is not known, probes make work look longer, or threads lacked processors.
    pub lost_is_least: bool,
    /// Work, span, and predicted times with other numbers of threads; null if no single records were analysed.
    pub scaling: Option<Scaling>,
    /// Performance properties: losses of known kinds, largest first.
    pub properties: Vec<Property>,
    /// What `ompfuse try` has measured beside this run; absent if nothing was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tried: Option<Tried>,
    /// What `ompfuse try` would begin with: settings as `--set` takes them, and variables of the environment. Empty if this run shows
    /// nothing that can be tried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_try: Vec<String>,
    /// Processes that went on recording when the report was made; empty if all had ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goes_on: Vec<sampled::GoesOn>,
    /// For each thread of the first run: the check that every tick and event was counted exactly once.
    pub accounting: Vec<ThreadCheck>,
    /// Name of the strategy that combined the runs; null if there is one run.
    pub strategy: Option<String>,
    /// XUs that could not be matched.
    pub unmatched: Vec<UnmatchedXus>,
    /// Reasons why the numbers are incomplete or inexact.
    pub shortcomings: Vec<Note>,
}
