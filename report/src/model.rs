//! The report as data: what `report --format json` prints. Names are relied on by scripts: add, don't rename.

pub(crate) mod key;
mod parts;

pub use parts::{Grain, RegionCount, RegionCounts, Running};

use crate::mutex::Mutex;
use crate::ranks::{Mpi, RegionRanks};
use ompfuse_format::coverage::Coverage;
use ompfuse_format::run::Exit;
use ompfuse_format::site::{HexAddress, Source};
use serde::Serialize;
use std::collections::BTreeMap;

pub use ompfuse_format::construct::OverheadClass as Class;

/// A report. Times in seconds. What was not measured is absent or null, never 0.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
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
    /// Processor time, and counts of events with the grain `region`: per outermost parallel region and thread.
    pub region_counts: Vec<RegionCounts>,
    /// Whether threads had processors while they worked in parallel regions; null if too little of that is known.
    pub running: Option<Running>,
    /// Code outside every construct.
    pub serial: Serial,
    /// The ranks of an MPI program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// Overheads per parallel region, the longest wall-clock time first.
    pub overheads: Vec<ParallelOverhead>,
    /// The check that nothing was counted twice or not at all, per thread of the first run.
    pub accounting: Vec<ThreadCheck>,
    /// Name of the strategy that combined the runs, if several were.
    pub strategy: Option<String>,
    /// XUs that could not be matched.
    pub unmatched: Vec<UnmatchedXus>,
    /// Everything that makes the numbers less than complete or exact, as sentences.
    pub notes: Vec<String>,
}

/// What probes took, estimated: the number of intervals, times what the probes of an empty task cost when the run began. The times
/// of the regions hold it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProbeTime {
    /// Seconds, all threads together.
    pub estimated_s: f64,
    /// As a share of the processes' processor time; of what the threads did, where that isn't known. From 0 to 1.
    pub share: f64,
    /// What the probes of one interval took.
    pub interval_s: f64,
    /// The region whose probes took most, where they all took more than a tenth.
    pub most: Option<String>,
    /// A command that records the program with fewer probes, likewise.
    pub command: Option<String>,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunInfo {
    /// What the user calls it.
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
}

/// A patched module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventState {
    /// Name.
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

/// What is on record only in part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InPart {
    /// Kind: `task`, `range`, a wait.
    pub construct: &'static str,
    /// Instances that are on record.
    pub recorded: u64,
    /// All instances.
    pub executed: u64,
    /// At last one in so many was recorded, on some thread.
    pub one_in: u32,
    /// Because probes would have cost more than they were allowed to.
    pub throttled: bool,
    /// Own time of those that are not on record.
    pub left_out_s: f64,
    /// Because they were shorter than this.
    pub shorter_than_s: Option<f64>,
}

/// One construct at one place.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Region {
    /// Number in this report, from 1 in the order of addresses.
    pub id: u32,
    /// Link-time address of its begin.
    pub address: Option<HexAddress>,
    /// The type's text in profiles (the address, or what a foreign table says).
    pub name: String,
    /// Build id (or path) of the module; null if not known.
    pub module: Option<String>,
    /// File name of the module, where there are several.
    pub file: Option<String>,
    /// Its kind; null for the XUs of a foreign table.
    pub construct: Option<&'static str>,
    /// A combined construct's other half: `loop` or `sections` of a parallel region.
    pub combined_with: Option<&'static str>,
    /// The function that it is in: its linkage name.
    pub function: Option<String>,
    /// The function as the source has it: C++ and Fortran names demangled, without parameters.
    pub function_demangled: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
    /// More about it: schedule, a critical section's name.
    pub detail: Option<String>,
    /// Why the region may be more than one: what `scan` says of it.
    pub doubt: Option<&'static str>,
    /// Executions, by a team together; of a task construct the tasks.
    pub executions: u64,
    /// Execution units: ranges, sections or tasks. 0 for constructs that have none.
    pub xus: u64,
    /// Where one in so many was recorded: how many were executed, and how many of them are on record. All else that is told
    /// of the region, but `executions`, is of those on record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_part: Vec<InPart>,
    /// Parallel regions: fork to join, all executions.
    pub wall_s: Option<f64>,
    /// Own time: code directly in this construct (its XUs' too), waits and runtime library included; all threads. The own times
    /// of all regions and of `serial` add up to `thread_time_s`.
    pub time_s: f64,
    /// `time_s` as a share of `thread_time_s`, from 0 to 1.
    pub share: f64,
    /// Part of `time_s`: the program's code.
    pub work_s: f64,
    /// Part of `time_s`: waiting (barriers, taskwait, entering a critical section; in a parallel region what its workers
    /// wait between fork and join, before and after their parts).
    pub wait_s: f64,
    /// Part of `time_s`: in the runtime library otherwise (fork and join, fetching ranges, creating tasks).
    pub runtime_s: f64,
    /// What the region's probes took of the threads' time, estimated as [`Report::probes`].
    pub probes_estimated_s: Option<f64>,
    /// The same as a share of `time_s`, at most 1: probes lie in the code around the region too.
    pub probes_share: Option<f64>,
    /// Mean own time of an XU; null without XUs.
    pub xu_mean_s: Option<f64>,
    /// Shortest XU.
    pub xu_min_s: Option<f64>,
    /// Longest XU.
    pub xu_max_s: Option<f64>,
    /// How `work_s` is spread over the threads.
    pub spread: Spread,
    /// Per thread.
    pub per_thread: Vec<RegionThread>,
    /// Per rank, of an MPI program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<RegionRanks>,
    /// Total per event, exclusive as `time_s`; an event that was not counted here is absent.
    pub events: BTreeMap<String, u64>,
    /// Constructs that one thread at a time is in (`detail` is their name, if they have one): entering, held, leaving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
    /// Of `cancel` and cancellation points: how many of the executions found that the construct is cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cancelled: Option<u64>,
}

/// A region's work on one thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegionThread {
    /// Process (its number in the operating system); null in foreign tables.
    pub process: Option<u32>,
    /// MPI rank of the process, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// Position in the summary's threads.
    #[serde(skip)]
    pub(crate) account: Option<u32>,
    /// Number of the thread in its process.
    pub thread: u32,
    /// XUs that began on it.
    pub xus: u64,
    /// The program's code.
    pub work_s: f64,
    /// Waiting.
    pub wait_s: f64,
    /// In the runtime library otherwise.
    pub runtime_s: f64,
    /// As [`Region::mutex`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutex: Option<Mutex>,
}

/// How evenly threads are used. Over the threads that took part in the enclosing parallel regions, even if they got
/// nothing of this region.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// Number of threads.
    pub threads: u32,
    /// Least work on a thread.
    pub min_s: f64,
    /// Mean.
    pub mean_s: f64,
    /// Most.
    pub max_s: f64,
    /// `max_s / mean_s - 1`: 0 is even, 1 says that the slowest thread has twice the mean.
    pub imbalance: f64,
}

/// Code outside every construct.
#[derive(Debug, Clone, PartialEq, Serialize)]
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

/// A parallel region's overheads. The basis is the time that its threads are bound to it: fork to join times team size. What is not
/// known is null, never 0 or less.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParallelOverhead {
    /// [`Region::id`] of the parallel region.
    pub region: u32,
    /// Its address.
    pub address: Option<HexAddress>,
    /// Executions.
    pub executions: u64,
    /// Those inside another parallel region.
    pub nested: u64,
    /// Largest team.
    pub team: u64,
    /// Fork to join, all executions.
    pub wall_s: f64,
    /// `wall_s` as a share of the processes' wall times, from 0 to 1; null if that isn't known, or executions overlap in a process.
    pub of_run: Option<f64>,
    /// Fork to join times team size.
    pub total_s: f64,
    /// `total_s` less all overheads; null if some of those could not be measured.
    pub work_s: Option<f64>,
    /// The part of `total_s` that is in no class, where `work_s` is null: work, and overheads that are not known. With it the
    /// classes and work add up to `total_s`.
    pub unknown_s: f64,
    /// The classes.
    #[serde(flatten)]
    pub overhead: Overhead,
    /// What the classes consist of.
    pub parts: Vec<OverheadPart>,
    /// What is missing in these numbers or not certain, and why, if anything is.
    pub incomplete: Option<String>,
    /// The region's threads were not running for so much of the time that they worked in it that its overheads hold waiting for a
    /// processor: that share, from 0 to 1, at least. Null where it is little, or not known.
    pub starved: Option<f64>,
}

/// Seconds per class, all threads together; null if nothing of the kind was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
#[expect(missing_docs, reason = "documented at OverheadClass")]
pub struct Overhead {
    pub synchronization_s: Option<f64>,
    pub imbalance_s: Option<f64>,
    pub limited_parallelism_s: Option<f64>,
    pub management_s: Option<f64>,
}

impl Overhead {
    /// The seconds of a class.
    pub fn get(&self, class: Class) -> Option<f64> {
        match class {
            Class::Synchronization => self.synchronization_s,
            Class::Imbalance => self.imbalance_s,
            Class::LimitedParallelism => self.limited_parallelism_s,
            Class::Management => self.management_s,
        }
    }

    pub(crate) fn add(&mut self, class: Class, seconds: f64) {
        let slot = match class {
            Class::Synchronization => &mut self.synchronization_s,
            Class::Imbalance => &mut self.imbalance_s,
            Class::LimitedParallelism => &mut self.limited_parallelism_s,
            Class::Management => &mut self.management_s,
        };
        *slot = Some(slot.unwrap_or(0.0) + seconds);
    }

    /// All classes together.
    pub fn sum(&self) -> f64 {
        Class::ALL.iter().filter_map(|&class| self.get(class)).sum()
    }
}

/// One source of overhead in a parallel region.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverheadPart {
    /// What: `barrier`, `taskwait`, `critical`, `loop-end`, `region-end`, `startup`, ...
    pub what: String,
    /// Its class.
    pub class: Class,
    /// Seconds, all threads together.
    pub seconds: f64,
    /// How often.
    pub count: u64,
}

/// One thread's accounting: the exclusive values of its intervals against the readings at its begin and end.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unattributed_counts: BTreeMap<String, u64>,
    /// Difference of the readings, per event; absent as `total_ticks` is null.
    pub total_counts: BTreeMap<String, u64>,
    /// Whether they are equal; null if there is nothing to compare with.
    pub balanced: Option<bool>,
}

/// XUs of one run and type that are in no combined row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnmatchedXus {
    /// The run, from 1.
    pub run: u16,
    /// Their type.
    pub name: String,
    /// Kind of XU.
    pub construct: Option<&'static str>,
    /// The function that the construct is in.
    pub function: Option<String>,
    /// Its source line.
    pub source: Option<Source>,
    /// How many.
    pub count: u64,
    /// Why, as a sentence.
    pub reason: String,
    /// The label of one of them.
    pub example: Option<String>,
}
