//! What makes numbers less than complete or exact, as values. The sentences are in `report/src/words/notes.rs`.

use ompfuse_format::run::RankState;
use ompfuse_fuse::Problem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reason why a report is incomplete or inexact. Runs count from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Note {
    /// Records could not be written while the program ran. Their counts and times are missing.
    LostRecords {
        /// The run.
        run: u16,
        /// Number of records.
        records: u64,
    },
    /// Execution units have no label, so they match no other run.
    UnlabelledXus {
        /// The run.
        run: u16,
        /// Number of execution units.
        xus: u64,
    },
    /// Intervals are at unknown places of the program.
    UnknownSites {
        /// The run.
        run: u16,
        /// Number of intervals.
        intervals: u64,
    },
    /// A process left something missing or broken, or something was not counted.
    Problem {
        /// The run.
        run: u16,
        /// The problem.
        #[serde(flatten)]
        problem: Problem,
    },
    /// Only a part of the run was recorded, as requested. Regions that began at other times are missing.
    Window {
        /// The run.
        run: u16,
        /// Begin and end of recording, in seconds from the program's start. Empty if nothing was recorded.
        spans_s: Vec<[f64; 2]>,
        /// Wall-clock time of the run in seconds; null if not known.
        of_s: Option<f64>,
    },
    /// Counting took much of the threads' time, because it makes each switch of threads slower.
    Switching {
        /// The run.
        run: u16,
        /// Least cost of one switch, in seconds.
        each_s: f64,
        /// Number of switches.
        switches: u64,
        /// Cost of all switches, in seconds.
        cost_s: f64,
        /// The threads' time in seconds, of which `cost_s` is a part.
        of_s: f64,
    },
    /// Counting makes each switch of threads slower, but the number of switches is not known for some processes.
    SwitchingUnknown {
        /// The run.
        run: u16,
        /// Least cost of one switch, in seconds.
        each_s: f64,
        /// Number of processes without that number: they did not end in an orderly way.
        unknown: u32,
        /// Number of all processes.
        processes: u32,
    },
    /// A share of the threads' time is in no region, because regions were not recorded all the time.
    Unrecorded {
        /// The share, from 0 to 1.
        share: f64,
        /// True if some regions were recorded in part, as requested.
        in_part: bool,
    },
    /// Counts belong to no region, because counters were read only for recorded execution units.
    Unattributed {
        /// The events.
        events: Vec<UnattributedShare>,
    },
    /// There were too many paths of enclosing regions. The others are counted for their parallel region.
    PathsFolded {
        /// Number of separate paths.
        most: u64,
    },
    /// Only sums were recorded: no single unit, wait or region.
    SumsOnly {
        /// The run.
        run: u16,
    },
    /// Event sets took turns in one run. The counts of a row come from several executions of the region.
    Instances,
    /// The intervals of some threads don't add up to the thread's times and counts.
    Unbalanced {
        /// Number of such threads.
        threads: u32,
        /// Number of all threads.
        of: u32,
    },
    /// An MPI rank did not end as it should.
    Rank {
        /// Number of the rank.
        rank: u32,
        /// How it ended.
        state: RankState,
    },
    /// MPI ranks started no `ompfuse`.
    RanksMissing {
        /// Numbers of the ranks.
        ranks: Vec<u32>,
    },
    /// Nothing is on record of these MPI ranks, although no error is known.
    RanksSilent {
        /// Numbers of the ranks.
        ranks: Vec<u32>,
        /// Number of all ranks.
        of: u32,
    },
    /// The folder of a job's rank can't be read.
    RankUnreadable {
        /// The folder.
        folder: String,
        /// Why it can't be read.
        reason: String,
    },
    /// A job's ranks have something in common that makes their numbers incomplete.
    AtRanks {
        /// Numbers of the ranks.
        ranks: Vec<u32>,
        /// What is said of the first of them. Numbers of the others may differ.
        note: Box<Note>,
    },
    /// A rank's summary had no room for its smallest regions. Sums have their time.
    RegionsLeftOut {
        /// Number of these regions.
        regions: u32,
        /// Their time in seconds.
        seconds: f64,
    },
}

impl Note {
    /// Whether another one is of the same kind.
    pub(crate) fn is_like(&self, other: &Note) -> bool {
        let kind = std::mem::discriminant(self) == std::mem::discriminant(other);
        kind && match (self, other) {
            (Note::Problem { problem: a, .. }, Note::Problem { problem: b, .. }) => {
                std::mem::discriminant(a) == std::mem::discriminant(b)
            }
            _ => true,
        }
    }
}

/// An event with counts that belong to no region.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnattributedShare {
    /// The event.
    pub event: String,
    /// Share of those counts, from 0 to 1.
    pub share: f64,
}

/// Why some overheads of a parallel region are unknown or inexact.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Incomplete {
    /// Executions lack a thread's part. Waiting at the region's end, startup and shutdown are not known.
    MissingParts {
        /// Number of such executions.
        executions: u64,
        /// Number of all executions.
        of: u64,
    },
    /// Regions were switched off for a time. Waits of that time are in no class, so work is not known.
    SwitchedOff,
    /// Intervals were left out, here or elsewhere. Neither work nor waiting at the region's end is known.
    Unplaced {
        /// Time of these intervals in seconds.
        seconds: f64,
    },
    /// Waiting at the region's end includes the shutdown, because tasks executed there were left out.
    ShutdownIncluded,
    /// The recorded intervals take longer than the region, so no class is known.
    TooLong,
}

/// Why a region may be more than one construct.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// Two loops may share this code.
    SharedCode,
}

/// Why execution units match none of another run. Runs count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Unmatched {
    /// That run has no unit with the same label.
    Absent {
        /// The run without it.
        run: u16,
    },
    /// That run has several units with the same label.
    Ambiguous {
        /// The run with several.
        run: u16,
    },
    /// The units have no label.
    Unlabelled,
    /// That run has fewer units of this type.
    Surplus {
        /// The run with the fewest units.
        run: u16,
    },
    /// An event was not counted for them: one used for the match, or one that they should provide.
    Uncounted,
    /// Another reason.
    Other,
}
