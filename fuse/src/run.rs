//! A recorded run: what the runtime library and the starting command left in a run folder, as tables.
//!
//! [`RunFiles::from_folder`] takes names and bytes of the folder's files, [`Run::read`] makes the tables. Neither opens a
//! file. What is broken or missing is in [`Run::health`]; nothing is guessed.

mod account;
mod chunks;
pub(crate) mod clock;
pub(crate) mod contexts;
mod files;
mod health;
mod locks;
pub(crate) mod merge;
mod messages;
pub(crate) mod nodes;
mod open;
mod order;
mod parts;
pub(crate) mod places;
mod processes;
mod read;
pub(crate) mod rows;
pub(crate) mod shared;
mod sites;
pub(crate) mod streaming;
pub(crate) mod survey;
mod surveyed;
#[cfg(test)]
mod tests;
pub mod timeline;
mod units;
pub(crate) mod whereabouts;

pub use chunks::{Chunks, InParts};
pub use clock::rate_at_start;
pub use contexts::{
    Addresses, ContextFrame, ContextNames, ContextObject, Contexts, Cut, DataName, FrameName,
    NAMES_FILE, NamedObject,
};
pub use files::{ProcessFiles, RunError, RunFiles, ThreadBytes};
pub use health::{Health, Problem};
pub use locks::{LockPlace, LockStat};
pub use messages::{Matched, Meetings, MessageStat};
pub use nodes::{NONE, NodeTable};
pub use parts::RegionParts;
pub use read::{AtPlace, RunPart, RunReader, Wanted};

use crate::label::LabelId;
use crate::table::{EventColumn, Site, XuTable};
use ompfuse_format::Construct;
use ompfuse_format::run::{ProbeCount, RunHeader};
use ompfuse_progress::Progress;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An event of the run's set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventInfo {
    /// Name.
    pub name: String,
    /// Whether at least one process counted it. Otherwise there is no column for it: it is not 0, it is not known.
    pub counted: bool,
    /// Why a process could not count it, with the remedy.
    pub reason: Option<String>,
    /// It took turns with others on the processor's counters: its counts are scaled.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub scaled: bool,
}

/// A process that recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// Its number in the operating system.
    pub pid: u32,
    /// Its MPI rank, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_rank: Option<u32>,
    /// How many ranks there are, as far as it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi_size: Option<u32>,
    /// When recording began, in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// When it ended, or the last that was heard of it.
    pub end_ns: i64,
    /// Whether it ended in an orderly way.
    pub ended: bool,
    /// What a boundary (reading clock and counters once) cost it, in picoseconds, where that was measured.
    pub boundary_ps: Option<u64>,
    /// What the probes of an interval cost it, where that was measured.
    pub interval: Option<IntervalPs>,
    /// What the probes of an execution unit add to its counts, where that was measured.
    pub probes: Vec<ProbeCount>,
    /// How often its threads were switched away from a processor, if it ended in an orderly way.
    pub switches: Option<u64>,
    /// Processors that its first thread was allowed to run on.
    pub processors: Option<u32>,
    /// Processors that its threads could run on when it ended, all of them together. `None`: not known of all threads.
    pub bound: Option<u32>,
    /// What reading a thread's part of a region cost it, in nanoseconds, where that was measured.
    pub part_ns: Option<u64>,
    /// Its processor time in nanoseconds, likewise.
    pub cpu_ns: Option<u64>,
    /// Whether gcc's calls said how many threads a team is to have; `None`: not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sized_teams: Option<bool>,
    /// Most memory that it had in use at once, in bytes, likewise.
    pub peak_bytes: Option<u64>,
    /// When recording began to be prepared, in nanoseconds since the run's begin.
    pub started_ns: i64,
    /// When that was done: the process's own time begins. `None`: not known.
    pub prepared_ns: Option<i64>,
    /// When the program began to exit: its own time ends, and its records are completed. `None`: not known, since it was killed, left by
    /// `_exit` or became another program.
    pub exiting_ns: Option<i64>,
    /// How long its other exit handlers and its destructors took behind that, in nanoseconds, beside what completing records took. 0: not
    /// known, or it is on record.
    pub handlers_ns: u64,
}

impl ProcessInfo {
    /// The process's own time in nanoseconds since the run's begin: from when, and until when, as if its exit handlers had followed at
    /// once. `None`: one of the two is not known.
    pub fn own_time(&self) -> Option<(i64, i64)> {
        self.prepared_ns.zip(self.ending_ns())
    }

    /// The same, as far as it is known: else from the begin of recording, or to the last that was heard of the process.
    pub fn own_span(&self) -> (i64, i64) {
        let begin = self.prepared_ns.unwrap_or(self.begin_ns);
        (begin, self.ending_ns().unwrap_or(self.end_ns).max(begin))
    }

    fn ending_ns(&self) -> Option<i64> {
        let exiting_ns = self.exiting_ns?;
        Some(exiting_ns.saturating_add_unsigned(self.handlers_ns))
    }

    /// What preparing and completing the recording took, in nanoseconds. `None`: not known.
    pub fn recording_ns(&self) -> Option<u64> {
        let before = self.prepared_ns?.saturating_sub(self.started_ns);
        let behind = self.end_ns.saturating_sub(self.exiting_ns?);
        let behind = (behind.max(0) as u64).saturating_sub(self.handlers_ns);
        Some(before.max(0) as u64 + behind)
    }
}

/// What the probes of an interval cost, in picoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntervalPs {
    /// All of them, its record included.
    pub all: u64,
    /// One reading of the clock.
    pub clock: u64,
}

/// A thread that recorded, with the check that nothing was counted twice or not at all: the exclusive values of all its
/// intervals against the difference of the readings at its end and begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadAccount {
    /// Position in the run's processes.
    pub process: u16,
    /// Number in its process, by the order of first records.
    pub index: u32,
    /// Kernel's thread number.
    pub tid: u32,
    /// Its name, where that tells it from the first thread of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether its code outside every construct is the program's own; a worker thread only waits there.
    pub root: bool,
    /// Records that it could not write.
    pub lost: u64,
    /// Sum of the exclusive ticks of all its intervals.
    pub own_ticks: u64,
    /// Ticks in intervals that are not on record because they were switched off.
    pub unrecorded_ticks: u64,
    /// Ticks between its begin and its end, without what recording took for itself; `None` if it did not end in an orderly way.
    pub total_ticks: Option<u64>,
    /// Length of `total_ticks` in nanoseconds.
    pub total_ns: Option<u64>,
    /// When it began to record, in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// When it ended, or its process began to exit; later if it was at work yet. `None` as for `total_ticks`.
    pub end_ns: Option<i64>,
    /// How long it was prepared for recording, until `begin_ns`.
    pub prepared_ns: u64,
    /// What recording took for itself from then to its end, in no interval and not in `total_ticks`.
    pub ours_ns: u64,
    /// How long its records were completed, from `end_ns` on. 0 for a thread that the process's end has ended: it is told there.
    pub completed_ns: u64,
    /// Time from `begin_ns` to `end_ns` in which it was ready to run and had no processor, in nanoseconds. `None`: it ended before its
    /// process, or the kernel doesn't tell.
    pub queued_ns: Option<u64>,
    /// Time before `begin_ns` in which it was ready to run and had no processor. `None`: not known.
    pub queued_before_ns: Option<u64>,
    /// Time from `begin_ns` to `end_ns` in which it had a processor, likewise.
    pub ran_ns: Option<u64>,
    /// Per counter, in the order of the run's columns: name, sum over all intervals, and difference of the readings.
    pub counts: Vec<CountAccount>,
}

/// Instances of a region that were executed and are in no table, all threads together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Position in the sites.
    pub site: u32,
    /// Kind.
    pub construct: Construct,
    /// How many.
    pub count: u64,
    /// Their own time in nanoseconds.
    pub own_ns: u64,
    /// At last one in so many was recorded, on some thread.
    pub one_in: u32,
    /// Because probes would have cost more than they were allowed to.
    pub throttled: bool,
    /// Because they were shorter than this, in nanoseconds.
    pub shorter_than_ns: Option<u64>,
    /// Where they were executed.
    pub within: Within,
}

/// Where something that is not on record was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Within {
    /// Not known: nothing is known of the region's site.
    Unknown,
    /// Outside of all parallel regions.
    Outside,
    /// In threads' parts of the parallel region at this position in the sites.
    Part(u32),
    /// Behind the threads' parts of it: at the region's end.
    Behind(u32),
}

/// Own time of what a thread executed behind its parts of a parallel region, and did not record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftBehind {
    /// Position of its process.
    pub process: u16,
    /// Number of the thread in it.
    pub thread: u32,
    /// The region's position in the sites.
    pub parallel: u32,
    /// Nanoseconds.
    pub own_ns: u64,
}

/// See [`ThreadAccount::counts`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountAccount {
    /// The event.
    pub event: String,
    /// Sum of the exclusive counts of all intervals.
    pub own: u64,
    /// What was counted and is in no interval: counters were read for execution units on record only. `None`: they weren't, or it
    /// is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unattributed: Option<u64>,
    /// Difference of the readings; `None` if the thread did not end in an orderly way, or with gaps of what the kernel counts.
    pub total: Option<u64>,
    /// Intervals for which it was not counted, or not all the time.
    pub gaps: u64,
}

impl CountAccount {
    /// What is in intervals, and what is known to be in none.
    fn known(&self) -> u64 {
        self.own.wrapping_add(self.unattributed.unwrap_or(0))
    }
}

impl ThreadAccount {
    /// Whether the sums agree with the readings; `None` if there are no readings at the end.
    pub fn balanced(&self) -> Option<bool> {
        let total = self.total_ticks?;
        Some(
            total == self.own_ticks.wrapping_add(self.unrecorded_ticks)
                && self
                    .counts
                    .iter()
                    .all(|c| c.gaps > 0 || c.total.is_none_or(|t| t == c.known())),
        )
    }
}

/// Intervals that are no XUs: regions, waits, dispatches, the program's own code. One row each; equal column lengths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalTable {
    /// Kind.
    pub construct: Vec<Construct>,
    /// Position in [`Run::sites`], or [`NONE`] (the program, an unknown site).
    pub site: Vec<u32>,
    /// Position in [`Run::processes`].
    pub process: Vec<u16>,
    /// Number of the thread in its process.
    pub thread: Vec<u32>,
    /// Logical processor at the end, `u16::MAX` if not known.
    pub cpu: Vec<u16>,
    /// Own node in [`Run::nodes`], or [`NONE`].
    pub node: Vec<u32>,
    /// Node that it happened in, or [`NONE`].
    pub parent: Vec<u32>,
    /// Begin in nanoseconds since the run's begin.
    pub t0_ns: Vec<i64>,
    /// End, likewise.
    pub t1_ns: Vec<i64>,
    /// Exclusive time in nanoseconds.
    pub own_ns: Vec<u64>,
    /// Parallel: team size; teams: number of teams. Implicit task: thread number in the team; team: its number. Critical, lock,
    /// ordered, atomic, reduction: nanoseconds spent waiting to enter (a part of `own_ns`). Otherwise as recorded.
    pub extent: Vec<u64>,
    /// As [`XuTable::disturbed`].
    pub disturbed: Vec<Option<bool>>,
    /// Exclusive counts.
    pub events: Vec<EventColumn>,
    /// As [`Run::xu_scaled`].
    pub scaled: Vec<EventColumn>,
}

impl IntervalTable {
    /// Number of intervals.
    pub fn len(&self) -> usize {
        self.construct.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.construct.is_empty()
    }
}

/// A run, read.
#[derive(Debug, Clone)]
pub struct Run {
    /// Its header.
    pub header: RunHeader,
    /// The processes, in the order of their begin.
    pub processes: Vec<ProcessInfo>,
    /// The threads, by process and number.
    pub threads: Vec<ThreadAccount>,
    /// The places that intervals refer to: those where a construct begins.
    pub sites: Arc<Vec<Site>>,
    /// The events of its set.
    pub events: Vec<EventInfo>,
    /// Execution units, by process, thread and time of writing.
    pub xus: XuTable,
    /// For each XU its node in [`Run::nodes`], or [`NONE`].
    pub xu_node: Vec<u32>,
    /// Node that each XU was executed in (its label's parent), or [`NONE`].
    pub xu_parent: Vec<u32>,
    /// The event set that each XU was counted with; `None`: its parts were counted with several.
    pub xu_set: Vec<Option<u8>>,
    /// What the XUs' scaled counts were made of: for each such event the raw count, and the nanoseconds that it was counted and
    /// that it was to be counted.
    pub xu_scaled: Vec<EventColumn>,
    /// All other intervals.
    pub intervals: IntervalTable,
    /// Construct instances and XUs as a tree.
    pub nodes: NodeTable,
    /// What was executed and not recorded, since one in so many was to be.
    pub left_out: Vec<LeftOut>,
    /// The events that were counted per outermost parallel region and thread.
    pub region_events: Vec<EventInfo>,
    /// Processor time and such counts, by region and thread.
    pub region_parts: Vec<RegionParts>,
    /// Locks, by address.
    pub locks: Vec<LockStat>,
    /// What calls of MPI handed over, by place and thread.
    pub messages: Vec<MessageStat>,
    /// When processes met all others.
    pub meetings: Vec<Meetings>,
    /// What of that was executed behind threads' parts of parallel regions, by thread.
    pub left_behind: Vec<LeftBehind>,
    /// Where parallel regions were called from.
    pub contexts: Contexts,
    /// What was lost or broken.
    pub health: Health,
}

impl Run {
    /// Makes the tables. Never fails: what can't be read is in [`Run::health`].
    pub fn read(files: &RunFiles<'_>) -> Run {
        read::read(files, Progress::default())
    }

    /// As [`Run::read`], for somebody who waits.
    pub fn read_watched(files: &RunFiles<'_>, progress: Progress<'_>) -> Run {
        read::read(files, progress)
    }

    /// The label of a node, if its chain of parents is whole.
    pub fn node_label(&self, node: u32) -> Option<LabelId> {
        self.nodes
            .label
            .get(node as usize)
            .copied()
            .filter(|l| l.is_some())
    }
}
