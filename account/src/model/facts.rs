//! Runs, modules, events, and the checks of a report.

use super::note::Unmatched;
use super::parts::Grain;
use ompfuse_format::Construct;
use ompfuse_format::coverage::Coverage;
use ompfuse_format::run::Exit;
use ompfuse_format::site::Source;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunInfo {
    /// The run folder, as the user named it.
    pub name: String,
    /// Wall-clock time in seconds; null if not known.
    pub duration_s: Option<f64>,
    /// How the program ended; null if not known.
    pub exit: Option<Exit>,
    /// Events that were counted for each interval.
    pub events: Vec<String>,
    /// Events that were counted for each outermost parallel region and thread.
    pub region_events: Vec<String>,
    /// Number of execution units.
    pub xus: u64,
    /// Size of the records in bytes when recording was ended before the program; null if recording went on to the end.
    pub recording_ended_bytes: Option<u64>,
    /// Number of records that could not be written.
    pub lost_records: u64,
    /// Number of times that threads were switched away from a processor; null if not known.
    pub switches: Option<u64>,
    /// Least processor time that counting adds to one switch, in seconds; null if not measured.
    pub switch_cost_s: Option<f64>,
    /// True if only sums were recorded (`--units sums`), and no single unit, wait or region.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sums_only: bool,
}

/// A patched module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleInfo {
    /// Path of the original file.
    pub path: String,
    /// Build id in hexadecimal; null if the file has none.
    pub build_id: Option<String>,
    /// Number of sites with a probe.
    pub patched: u32,
    /// Number of sites without a probe, for each reason.
    pub skipped: BTreeMap<String, u32>,
    /// Number of constructs with and without a probe; a construct has several sites.
    pub constructs: Coverage,
}

/// An event, and the origin of its counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventState {
    /// Name of the event.
    pub name: String,
    /// What the counts belong to. Counts with the grain `region` are in `region_counts`, not in `events` of regions.
    pub grain: Grain,
    /// Number of the run that counted the event, from 1; null if it was not counted.
    pub run: Option<u16>,
    /// Why the event was not counted, with the remedy; null if it was counted.
    pub reason: Option<String>,
    /// True if the event shared the processor's counters with others, so its counts are scaled.
    pub scaled: bool,
    /// Count that probes add to an execution unit, measured with an empty task when the run began; null if not measured.
    pub probe_inside: Option<u64>,
    /// Count that probes add to the construct around a unit, measured with an empty task; null if not measured.
    pub probe_around: Option<u64>,
}

/// A function that was to count its instructions (`--count`) and can't. What is executed in it has no count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UncountedCode {
    /// Name of the function, demangled; its address if it has none.
    pub function: String,
    /// Path of its file.
    pub file: String,
    /// Why it can't.
    pub reason: String,
    /// Number of instructions in its code.
    pub instructions: u32,
    /// Numbers of the regions whose own code it is.
    pub regions: Vec<u32>,
    /// Sum of `work_s` of these regions as a share of that of all regions, from 0 to 1. Null if the function is no region's own code: what
    /// others spend in it is not known.
    pub share: Option<f64>,
}

/// Time outside all constructs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Serial {
    /// Program code outside parallel regions, on threads that start parallel regions.
    pub program_s: f64,
    /// Worker threads between parallel regions: from a join to the next fork.
    pub idle_s: f64,
    /// Intervals at unknown places.
    pub unknown_s: f64,
    /// Total count of each event, in the program's code and in workers outside their parts of parallel regions. Unlike
    /// `idle_s`, this includes the workers' waits between fork and join.
    pub events: BTreeMap<String, u64>,
}

/// Accounting of one thread: the sum of its intervals, compared with the readings at its begin and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadCheck {
    /// Process (its number in the operating system).
    pub process: u32,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Sum of the own ticks of all intervals.
    pub own_ticks: u64,
    /// Ticks in intervals that are not on record because they were switched off.
    pub unrecorded_ticks: u64,
    /// What recording took for itself between the thread's begin and end, in seconds: it is in no interval.
    pub recording_s: f64,
    /// Ticks from the thread's begin to its end; null if it did not end in an orderly way.
    pub total_ticks: Option<u64>,
    /// Sum of the exclusive counts, for each event.
    pub own_counts: BTreeMap<String, u64>,
    /// Counts that belong to no interval, for each event: counters were read only for recorded execution units. With
    /// `own_counts` they add up to `total_counts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unattributed_counts: BTreeMap<String, u64>,
    /// Difference of the readings at begin and end, for each event; an event without such readings is absent.
    pub total_counts: BTreeMap<String, u64>,
    /// Whether sums and readings are equal; null if there is nothing to compare with.
    pub balanced: Option<bool>,
}

/// Execution units of one run and type that no combined row contains.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnmatchedXus {
    /// Number of the run, from 1.
    pub run: u16,
    /// Type of the units.
    pub name: String,
    /// Kind of the units: `range`, `section`, `task`; null in foreign tables.
    pub kind: Option<Construct>,
    /// Construct that the units belong to, as in `regions`: `loop` if `kind` is `range`. Null in foreign tables.
    pub region_construct: Option<Construct>,
    /// Function with the construct; null if not known.
    pub function: Option<String>,
    /// Source line of the construct; null if not known.
    pub source: Option<Source>,
    /// Schedule, or name of a critical section; null if there is none.
    pub detail: Option<String>,
    /// Number of units.
    pub count: u64,
    /// Why they could not be matched.
    pub because: Unmatched,
    /// Label of one of them; null if they have none.
    pub example: Option<String>,
}
