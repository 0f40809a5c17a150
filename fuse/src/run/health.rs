//! What went wrong in a run, as values: nothing is passed over in silence. Reports put it into words.

use serde::{Deserialize, Serialize};

/// What a run's reader found missing or broken.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// Records that could not be written while the program ran.
    pub lost_records: u64,
    /// XUs whose chain of parents is broken: they have no label.
    pub unlabelled_xus: u64,
    /// Intervals that refer to a site which the run's header does not have.
    pub unknown_sites: u64,
    /// Everything else.
    pub problems: Vec<Problem>,
}

impl Health {
    /// Whether nothing was lost or broken.
    pub fn is_good(&self) -> bool {
        *self == Health::default()
    }
}

/// Something that makes a run less than complete or exact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// A file that can't be read; what came before the error is used.
    Malformed {
        /// Name in the run folder.
        file: String,
        /// What is wrong.
        error: String,
    },
    /// A record file whose process left no readable header: its records are not used.
    NoProcess {
        /// Name in the run folder.
        file: String,
        /// The process as file names have it: its number, and how many had that number before.
        process: String,
    },
    /// The process did not end in an orderly way.
    Killed {
        /// The process.
        pid: u32,
    },
    /// The process did not say that it ends, but no construct on record went on then.
    Unfinished {
        /// The process.
        pid: u32,
    },
    /// Threads that found no room for their records.
    ThreadsLost {
        /// The process.
        pid: u32,
        /// How many there were.
        threads: u64,
    },
    /// Recording stopped before the process ended.
    Stopped {
        /// The process.
        pid: u32,
        /// Why, in the runtime library's words.
        reason: String,
    },
    /// The rate of the time stamp counter had to be estimated from readings at the begin, or the run's duration.
    EstimatedClock {
        /// The process.
        pid: u32,
    },
    /// The rate of the time stamp counter is not known.
    NoClock {
        /// The process.
        pid: u32,
    },
    /// A module whose sites are not in the run's header.
    UnknownModule {
        /// The process.
        pid: u32,
        /// The module's path.
        path: String,
    },
    /// A counter was not running all the time: the counts of these intervals are left out.
    NotCounted {
        /// The process.
        pid: u32,
        /// The event.
        event: String,
        /// How many intervals have no count.
        intervals: u64,
    },
    /// Threads whose counters could not be opened.
    WithoutCounters {
        /// The process.
        pid: u32,
        /// How many threads count nothing.
        threads: u32,
        /// How many threads it has.
        of: u32,
    },
    /// Recording was ended before the program did, so that its records don't fill the disk.
    EndedAtSize {
        /// How many bytes they had.
        bytes: u64,
    },
    /// Several processes ran at once.
    OverlappingProcesses {
        /// How many.
        count: u32,
    },
}

impl Problem {
    /// Whether it makes execution units of the run be missing: what is only inexact doesn't.
    pub fn is_loss(&self) -> bool {
        !matches!(
            self,
            Problem::EstimatedClock { .. }
                | Problem::NoClock { .. }
                | Problem::NotCounted { .. }
                | Problem::WithoutCounters { .. }
                | Problem::OverlappingProcesses { .. }
                | Problem::Unfinished { .. }
        )
    }
}
