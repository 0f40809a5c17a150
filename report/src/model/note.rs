//! What makes numbers less than complete or exact, as values. The sentences are in [`words`](crate::words).

use ompfuse_format::run::RankState;
use ompfuse_fuse::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that makes a report less than complete or exact. Runs count from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Note {
    /// Records could not be written while the program ran: their counts and times are missing.
    LostRecords {
        /// The run.
        run: u16,
        /// How many records.
        records: u64,
    },
    /// XUs without a label: they match no other run.
    UnlabelledXus {
        /// The run.
        run: u16,
        /// How many XUs.
        xus: u64,
    },
    /// Intervals whose place in the program is not known.
    UnknownSites {
        /// The run.
        run: u16,
        /// How many intervals.
        intervals: u64,
    },
    /// Something is missing or broken in what a process left, or something was not counted.
    Problem {
        /// The run.
        run: u16,
        /// What it is.
        #[serde(flatten)]
        problem: Problem,
    },
    /// A part of the run was recorded, as asked for. Regions that began at other times were not recorded.
    Window {
        /// The run.
        run: u16,
        /// When it was recorded: begin and end in seconds from the program's start. Empty: at no time.
        spans_s: Vec<[f64; 2]>,
        /// Wall-clock time of the run in seconds, if known.
        of_s: Option<f64>,
    },
    /// The processor's counters took much of the threads' time where threads were switched.
    Switching {
        /// The run.
        run: u16,
        /// What one switch costs at least, in seconds.
        each_s: f64,
        /// How often threads were switched.
        switches: u64,
        /// What all switches cost, in seconds.
        cost_s: f64,
        /// The threads' time that this is a part of, in seconds.
        of_s: f64,
    },
    /// The processor's counters cost time where threads are switched, and how often that was is not known of some processes.
    SwitchingUnknown {
        /// The run.
        run: u16,
        /// What one switch costs at least, in seconds.
        each_s: f64,
        /// Processes of which it is not known: they did not end in an orderly way.
        unknown: u32,
        /// All processes.
        processes: u32,
    },
    /// A share of the threads' time is in no region, since regions were not recorded all the time.
    Unrecorded {
        /// That share, from 0 to 1.
        share: f64,
        /// Whether some regions were recorded in part, as asked for.
        in_part: bool,
    },
    /// Counts that belong to no region: counters were read for execution units on record only.
    Unattributed {
        /// The events.
        events: Vec<UnattributedShare>,
    },
    /// There were too many paths of enclosing regions: what came on further ones stands below its parallel region.
    PathsFolded {
        /// Paths that are kept apart.
        most: u64,
    },
    /// Only sums were recorded: no unit, wait or region is on record by itself.
    SumsOnly {
        /// The run.
        run: u16,
    },
    /// Event sets took turns in one run: the counts of one row are those of several executions of the same region.
    Instances,
    /// Threads whose intervals' times and counts don't add up to the thread's.
    Unbalanced {
        /// How many threads.
        threads: u32,
        /// All threads.
        of: u32,
    },
    /// An MPI rank did not end as it should.
    Rank {
        /// Its number.
        rank: u32,
        /// What has become of it.
        state: RankState,
    },
    /// MPI ranks that started no `ompfuse`.
    RanksMissing {
        /// Their numbers.
        ranks: Vec<u32>,
    },
    /// MPI ranks of which nothing is on record, though nothing is known to be wrong with them.
    RanksSilent {
        /// Their numbers.
        ranks: Vec<u32>,
        /// Number of ranks.
        of: u32,
    },
}

/// An event, and which share of its counts belongs to no region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnattributedShare {
    /// The event.
    pub event: String,
    /// The share, from 0 to 1.
    pub share: f64,
}

/// Why the overheads of a parallel region are not all known, or not exact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Incomplete {
    /// Executions lack a thread's part: waiting at the region's end, startup and shutdown are not known.
    MissingParts {
        /// How many executions.
        executions: u64,
        /// All executions.
        of: u64,
    },
    /// Regions were switched off for a time: what threads waited there is in no class, so work is not known.
    SwitchedOff,
    /// Intervals that were left out may have been here or elsewhere: neither work nor waiting at the region's end is known.
    Unplaced {
        /// Their time in seconds.
        seconds: f64,
    },
    /// Waiting at the region's end includes its shutdown: tasks that were executed there were left out.
    ShutdownIncluded,
    /// The intervals on record take longer than the region, so no class is known.
    TooLong,
}

/// Why a region may be more than one construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Doubt {
    /// Two loops may share this code.
    SharedCode,
}

/// Why XUs match none of another run. Runs count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unmatched {
    /// No XU of that run has the same label.
    Absent {
        /// The run that does not have it.
        run: u16,
    },
    /// Several XUs of that run have the same label.
    Ambiguous {
        /// The run where it is ambiguous.
        run: u16,
    },
    /// They have no label.
    Unlabelled,
    /// That run has fewer XUs of this type.
    Surplus {
        /// The run with the fewest.
        run: u16,
    },
    /// An event that they are matched by, or were to give, was not counted for them.
    Uncounted,
    /// Something else.
    Other,
}
