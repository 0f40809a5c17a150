//! Performance properties: losses of known kinds, each with its place.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A loss of a known kind at a place, after ompP's performance properties.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Property {
    /// Kind of the loss.
    pub kind: PropertyKind,
    /// `id` of the region; null if the place is not known.
    pub region: Option<u32>,
    /// Lost time in seconds, the sum of all threads.
    pub seconds: f64,
    /// Number of occurrences.
    pub count: u64,
    /// `seconds` as a share of `available_s`, from 0 to 1; null if that is not known.
    pub severity: Option<f64>,
}

/// Kinds of losses.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum PropertyKind {
    /// Waiting at a barrier that the program has written.
    WaitAtBarrier,
    /// Waiting at the end of a parallel region.
    ImbalanceInParallelRegion,
    /// Waiting at the end of a loop.
    ImbalanceInLoop,
    /// Waiting at an implicit barrier of no loop, sections or single construct.
    ImbalanceInWorkshare,
    /// Waiting at the end of sections that take different times.
    ImbalanceInSections,
    /// Waiting at the end of sections, if some threads executed more of them than others.
    UnevenSectionDistribution,
    /// Waiting at the end of sections, if there are fewer sections than threads.
    NotEnoughSections,
    /// Waiting to enter a critical section.
    CriticalSectionContention,
    /// Waiting for a lock.
    LockContention,
    /// Waiting for one's turn at an `ordered` block.
    OrderedWait,
    /// Atomic operations in the runtime library, more than 1000 for each second of the available time.
    FrequentAtomic,
    /// Waiting to combine the parts of a reduction.
    ReductionWait,
    /// Waiting while one thread executes a `single` block.
    UnparallelizedInSingle,
    /// Waiting while one thread executes a `master` or `masked` block.
    UnparallelizedInMaster,
    /// Waiting in `taskwait` and `taskgroup` with no task to execute.
    WaitForTasks,
    /// Creating tasks.
    TaskCreation,
    /// Fetching ranges of a loop.
    LoopScheduling,
    /// Waking threads at the begin of a parallel region, and joining them at its end.
    ThreadManagement,
}
