//! What went wrong in a run, as values: nothing is passed over in silence. Reports put it into words.

use schemars::JsonSchema;
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

/// A reason why a run is incomplete or inexact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "problem", rename_all = "kebab-case")]
pub enum Problem {
    /// A file can't be read. The part before the error is used.
    Malformed {
        /// Name in the run folder.
        file: String,
        /// The error.
        error: String,
    },
    /// A record file belongs to a process without a readable header. Its records are not used.
    NoProcess {
        /// Name in the run folder.
        file: String,
        /// The process as in file names: its id, and the number of earlier processes with that id.
        process: String,
    },
    /// The process did not end in an orderly way.
    Killed {
        /// The process.
        pid: u32,
    },
    /// The process did not report its end, but no recorded construct was unfinished.
    Unfinished {
        /// The process.
        pid: u32,
    },
    /// Threads found no space for their records.
    ThreadsLost {
        /// The process.
        pid: u32,
        /// Number of threads.
        threads: u64,
    },
    /// A file that a process has loaded could not be patched: nothing of it is recorded.
    NotPatched {
        /// Its path.
        file: String,
        /// Why, in a line that names it.
        told: String,
    },
    /// Recording stopped before the process ended.
    Stopped {
        /// The process.
        pid: u32,
        /// The reason, in the runtime library's words.
        reason: String,
    },
    /// The rate of the time stamp counter was estimated, from readings at the begin or from the run's duration.
    EstimatedClock {
        /// The process.
        pid: u32,
    },
    /// The rate of the time stamp counter is not known.
    NoClock {
        /// The process.
        pid: u32,
    },
    /// The sites of a module are not in the run's header.
    UnknownModule {
        /// The process.
        pid: u32,
        /// Path of the module.
        path: String,
    },
    /// A counter was not running all the time. The counts of these intervals are left out.
    NotCounted {
        /// The process.
        pid: u32,
        /// The event.
        event: String,
        /// Number of intervals without a count.
        intervals: u64,
    },
    /// The counters of some threads could not be opened.
    WithoutCounters {
        /// The process.
        pid: u32,
        /// Number of threads that count nothing.
        threads: u32,
        /// Number of the process's threads.
        of: u32,
    },
    /// Recording was ended before the program, to keep its records from filling the disk.
    EndedAtSize {
        /// Size of the records in bytes.
        bytes: u64,
    },
    /// Several processes ran at once.
    OverlappingProcesses {
        /// Number of processes.
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
