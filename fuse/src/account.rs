//! What all shares of a run are of: each process's own time, and the threads that it had at once.
//!
//! *Own time* is the program's: from the end of our preparation to the entry of our exit handler, and what other exit handlers and
//! destructors take behind that. *Threads at once* are the most that
//! were in teams or were roots at the same moment. A *root* is a thread whose code outside of all constructs is the program's. The
//! product is the *available time*. At each moment no more threads than that do anything that is on record, so what is left of the
//! product when all recorded time is taken off is idle, or unknown (docs/reference/classes.md).

mod peak;

pub(crate) use peak::Peak;

use serde::{Deserialize, Serialize};

/// Of one process. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnTime {
    /// The program's own time.
    pub own_ns: u64,
    /// Most threads in teams and roots at once, at least 1.
    pub threads: u64,
    /// Time in which an outermost parallel region on record was executed; counted once where several overlap.
    pub parallel_ns: u64,
    /// What of the own time its exit handlers and destructors took without a record of it: one thread was in them.
    pub handlers_ns: u64,
    /// Root threads.
    pub roots: u64,
    /// The process ended in an orderly way: otherwise nobody knows what its threads did at the end.
    pub ended: bool,
}

impl OwnTime {
    /// The time that its threads could have used, in nanoseconds.
    pub fn available_ns(&self) -> u64 {
        self.own_ns.saturating_mul(self.threads)
    }
}
