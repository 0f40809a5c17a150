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
    /// Wall-clock time in seconds, if known.
    pub duration_s: Option<f64>,
    /// How the program ended, if known.
    pub exit: Option<Exit>,
    /// The events that it counted.
    pub events: Vec<String>,
    /// Those that it counted per parallel region and thread.
    pub region_events: Vec<String>,
    /// Its XUs.
    pub xus: u64,
    /// Bytes of records at which recording ended before the program did; null if it went on to the end.
    pub recording_ended_bytes: Option<u64>,
    /// Records that could not be written.
    pub lost_records: u64,
    /// How often threads were switched away from a processor, if known.
    pub switches: Option<u64>,
    /// Processor time that the processor's counters added to a switch, at least, in seconds; if that was measured.
    pub switch_cost_s: Option<f64>,
    /// Only sums were recorded (`--summary`): no unit, wait or region by itself.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub sums_only: bool,
}

/// A patched module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ModuleInfo {
    /// Path of the original.
    pub path: String,
    /// Build id in hexadecimal, where there is one.
    pub build_id: Option<String>,
    /// Sites with a probe.
    pub patched: u32,
    /// Sites without one, by reason.
    pub skipped: BTreeMap<String, u32>,
    /// The same by constructs, of which each has several sites; null in older profiles.
    pub constructs: Option<Coverage>,
}

/// An event, and where its counts come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventState {
    /// Its name.
    pub name: String,
    /// What its counts belong to: those of `region` are in `region_counts`, and in no region's own.
    pub grain: Grain,
    /// The run (from 1) that its counts come from; null if it was not counted.
    pub run: Option<u16>,
    /// Why it was not counted, with the remedy.
    pub reason: Option<String>,
    /// It took turns with others on the processor's counters: its counts are scaled.
    pub scaled: bool,
    /// What its probes add to the count of an execution unit: measured with an empty task when the run began.
    pub probe_inside: Option<u64>,
    /// What they add to what is around it, likewise.
    pub probe_around: Option<u64>,
}

/// Code outside every construct.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Serial {
    /// The program's own: threads that start parallel regions, outside of them.
    pub program_s: f64,
    /// Worker threads outside parallel regions (fork to join): they wait for the next.
    pub idle_s: f64,
    /// Intervals whose place is not known.
    pub unknown_s: f64,
    /// Total per event of the program's own code and of workers outside their parts of parallel regions: here the waiting
    /// between fork and join, which `idle_s` leaves to the regions, is included.
    pub events: BTreeMap<String, u64>,
}

/// One thread's accounting: the exclusive values of its intervals against the readings at its begin and end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadCheck {
    /// Process (its number in the operating system).
    pub process: u32,
    /// Number of the thread in its process.
    pub thread: u32,
    /// Sum of the exclusive ticks of all its intervals.
    pub own_ticks: u64,
    /// Ticks in intervals that are not on record because they were switched off.
    pub unrecorded_ticks: u64,
    /// Ticks between its begin and its end; null if it did not end in an orderly way.
    pub total_ticks: Option<u64>,
    /// Sum of the exclusive counts, per event.
    pub own_counts: BTreeMap<String, u64>,
    /// Counts that are in no interval, per event: counters were read for execution units on record only. They are a part of
    /// `total_counts`, beside `own_counts`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unattributed_counts: BTreeMap<String, u64>,
    /// Difference of the readings, per event; absent as `total_ticks` is null.
    pub total_counts: BTreeMap<String, u64>,
    /// Whether they are equal; null if there is nothing to compare with.
    pub balanced: Option<bool>,
}

/// XUs of one run and type that are in no combined row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnmatchedXus {
    /// The run, from 1.
    pub run: u16,
    /// Their type.
    pub name: String,
    /// Kind of XU: `range`, `section`, `task`; null in foreign tables.
    pub kind: Option<Construct>,
    /// The same; version 2 leaves it out.
    pub construct: Option<Construct>,
    /// The construct that the XUs belong to, as regions have it: `loop` where `kind` is `range`.
    pub region_construct: Option<Construct>,
    /// The function that the construct is in.
    pub function: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
    /// More about it: schedule, a critical section's name.
    pub detail: Option<String>,
    /// How many.
    pub count: u64,
    /// Why they could not be matched.
    pub because: Unmatched,
    /// The label of one of them.
    pub example: Option<String>,
}
