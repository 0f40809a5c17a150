//! Times of constructs that one thread at a time is in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times of a critical section, lock, `ordered` block or locked atomic operation, all its threads together or one's. Held time
/// is in no other time of this region: what is executed inside belongs to the code around it, and to constructs inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mutex {
    /// Times that it was entered.
    pub entries: u64,
    /// Seconds spent entering: waiting for it. A part of the region's `wait_s`.
    pub enter_s: f64,
    /// Seconds from having it to releasing it, whatever is executed meanwhile. Null if no release was seen: the runtime
    /// library has the whole construct in one call, or other threads release the lock.
    pub held_s: Option<f64>,
    /// Seconds spent releasing it: a part of the region's `runtime_s`. Null likewise.
    pub exit_s: Option<f64>,
}

/// What threads did with one lock. Several critical sections and calls may be about one lock, and one call about several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Whether it is that of critical sections, or an OpenMP lock.
    pub kind: LockKind,
    /// Its variable's symbol; null where it has none, or isn't a variable.
    pub symbol: Option<String>,
    /// Bytes from the variable's begin; null likewise.
    pub offset: Option<u64>,
    /// Path of the file that the variable is in; null for memory that the program allocated.
    pub module: Option<String>,
    /// Its address: in the file as it is linked, else in the process. Null for libgomp's lock of all critical sections without a
    /// name, and where it isn't known.
    pub address: Option<u64>,
    /// Process (its number in the operating system), if known.
    pub process: Option<u32>,
    /// The regions that take it, by id.
    pub regions: Vec<u32>,
    /// Threads that have taken it.
    pub threads: u32,
    /// The times, all threads together.
    #[serde(flatten)]
    pub times: Mutex,
}

/// What a lock is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// Critical sections of one name.
    Critical,
    /// All critical sections without a name.
    UnnamedCritical,
    /// `omp_set_lock` and its like.
    Lock,
}
