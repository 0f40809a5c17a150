//! The report as data: what is true of a run or profile. It holds no sentence, and no number is rounded.
//!
//! `report --format json` prints it, and some sentences beside (`view::json`). Scripts rely on its names: add, don't rename.

pub(crate) mod contexts;
pub(crate) mod distribution;
mod facts;
pub mod growth;
pub(crate) mod key;
pub(crate) mod loss;
pub(crate) mod mutex;
pub(crate) mod note;
pub(crate) mod overhead;
pub(crate) mod parts;
pub(crate) mod paths;
pub(crate) mod probes;
pub(crate) mod property;
pub(crate) mod ranks;
pub(crate) mod region;
pub mod series;
pub(crate) mod times;

pub use contexts::{ContextCall, ContextCut};
pub use distribution::{Between, Distribution, LargestUnit, Percentiles};
pub use facts::{EventState, ModuleInfo, RunInfo, Serial, ThreadCheck, UnmatchedXus};
pub use loss::{Better, Cause, Loss, LossKind, Predicted, PredictedRegion, RegionScaling, Scaling};
pub use mutex::{Lock, LockKind, Mutex};
pub use note::{Doubt, Incomplete, Note, UnattributedShare, Unmatched};
pub use overhead::{Class, Overhead, OverheadPart, ParallelOverhead, ProgramShares};
pub use parts::{Grain, RegionCount, RegionCounts, Running};
pub use paths::{CallPath, CallPathThread, PathCount};
pub use probes::{FewerProbes, MostProbes, ProbeTime};
pub use property::{Property, PropertyKind};
pub use ranks::{Mpi, Rank, RegionRank, RegionRanks};
pub use region::{InPart, Region, RegionThread, Spread};
pub use times::Times;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the report's JSON. It grows when a field is removed or changes its meaning, not when one is added.
pub const REPORT_VERSION: u32 = 1;

/// What is true of a run or profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// Version of these fields, 1. It grows when a field is removed or changes its meaning, not when one is added.
    pub version: u32,
    /// The program as the user named it.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Host name; empty if not known.
    pub host: String,
    /// Threads that recorded.
    pub threads: u32,
    /// Wall-clock time of the program, if known.
    pub duration_s: Option<f64>,
    /// Time in which at least one of the recorded processes was there, if known: from when recording began to its end, or the program's
    /// duration if that is longer.
    pub lifetime_s: Option<f64>,
    /// The time that was available: the wall times of all recorded processes together, times the size of the largest team.
    pub available_s: Option<f64>,
    /// Time inside outermost parallel regions (fork to join), counted once where they overlap, if the duration is known.
    pub parallel_s: Option<f64>,
    /// Parallel coverage: `parallel_s / lifetime_s`, from 0 to 1.
    pub coverage: Option<f64>,
    /// The part of `lifetime_s` in which no parallel region was executed: `1 - coverage`. Null likewise.
    #[serde(default)]
    pub serial_share: Option<f64>,
    /// Amdahl's law: how many times as fast as in this run the program can be at most, with any number of threads, if nothing but its
    /// parallel regions become faster: `1 / serial_share`. Null where that is 0 or not known.
    #[serde(default)]
    pub speedup_limit: Option<f64>,
    /// Execution units: of the combined profile, or of the only run.
    pub xus: u64,
    /// The runs.
    pub runs: Vec<RunInfo>,
    /// The patched modules, and what in them has no probe.
    pub modules: Vec<ModuleInfo>,
    /// The events that were asked for.
    pub events: Vec<EventState>,
    /// Sum of all threads' recorded time: what the regions' and `serial`'s times add up to.
    pub thread_time_s: f64,
    /// What the probes took of that, estimated; null if what one costs was not measured.
    pub probes: Option<ProbeTime>,
    /// The regions, those with the most own time first.
    pub regions: Vec<Region>,
    /// The regions by path of enclosing regions: the program first, each behind the one around it. Empty for foreign tables and
    /// for runs that an older version has summed up.
    #[serde(default)]
    pub call_paths: Vec<CallPath>,
    /// The calls that parallel regions were called by, callers first. Empty where they weren't recorded.
    #[serde(default)]
    pub contexts: Vec<ContextCall>,
    /// Locks by address, those first with which threads spent the most time; 100 at most. Empty where only sums were recorded.
    #[serde(default)]
    pub locks: Vec<Lock>,
    /// Processor time, and counts of events with the grain `region`: per outermost parallel region and thread.
    pub region_counts: Vec<RegionCounts>,
    /// Whether threads had processors while they worked in parallel regions; null if too little of that is known.
    pub running: Option<Running>,
    /// Code outside every construct.
    pub serial: Serial,
    /// The ranks of an MPI program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// Overheads per parallel region, the longest wall-clock time first.
    pub overheads: Vec<ParallelOverhead>,
    /// Why threads do no work: the losses with their causes, largest first. Empty where the run's time isn't known.
    #[serde(default)]
    pub losses: Vec<Loss>,
    /// The time that the losses' shares are of: from when recording began in the processes to its end, times the largest team. Null if
    /// it isn't known.
    #[serde(default)]
    pub losses_of_s: Option<f64>,
    /// All losses together, those too small for `losses` included; at most `losses_of_s`. Null if it isn't known.
    #[serde(default)]
    pub lost_s: Option<f64>,
    /// Work, span, and predicted times with other numbers of threads; null if single records weren't looked at.
    #[serde(default)]
    pub scaling: Option<Scaling>,
    /// Losses of known kinds, the largest first.
    #[serde(default)]
    pub properties: Vec<Property>,
    /// The check that nothing was counted twice or not at all, per thread of the first run.
    pub accounting: Vec<ThreadCheck>,
    /// Name of the strategy that combined the runs, if several were.
    pub strategy: Option<String>,
    /// XUs that could not be matched.
    pub unmatched: Vec<UnmatchedXus>,
    /// Everything that makes the numbers less than complete or exact.
    pub shortcomings: Vec<Note>,
}
