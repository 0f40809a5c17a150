//! Times of constructs that one thread at a time is in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Times of a critical section, lock, `ordered` block or locked atomic operation: of all threads, or of one. Held time is in
/// no other time of this region, as the code inside belongs to the construct around it and to constructs inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mutex {
    /// Number of entries.
    pub entries: u64,
    /// Time to enter, in seconds: the wait. A part of the region's `wait_s`.
    pub enter_s: f64,
    /// Time from entering to leaving, in seconds. Null if leaving was not seen: the runtime library does the whole construct
    /// in one call, or other threads release the lock.
    pub held_s: Option<f64>,
    /// Time to leave, in seconds: a part of the region's `runtime_s`. Null if leaving was not seen.
    pub exit_s: Option<f64>,
}

/// Times of one lock. Several critical sections and calls can use one lock, and one call can use several locks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Lock {
    /// Kind of the lock.
    pub kind: LockKind,
    /// Symbol of its variable; null if it has none or is not a variable.
    pub symbol: Option<String>,
    /// Bytes from the variable's begin; null if `symbol` is null.
    pub offset: Option<u64>,
    /// What of the variable it is, as in the source (`[5].m`); null if debug information doesn't tell.
    pub member: Option<String>,
    /// Path of the file with the variable; null for memory that the program allocated.
    pub module: Option<String>,
    /// Link-time address in the file, or address in the process if it is in no file. Null if not known, and for libgomp's
    /// single lock of all critical sections without a name.
    pub address: Option<u64>,
    /// Process id; null if not known.
    pub process: Option<u32>,
    /// `id` of the regions that take it.
    pub regions: Vec<u32>,
    /// Number of threads that took it.
    pub threads: u32,
    /// The times, of all threads.
    #[serde(flatten)]
    pub times: Mutex,
}

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LockKind {
    /// Critical sections of one name.
    Critical,
    /// All critical sections without a name.
    UnnamedCritical,
    /// An OpenMP lock (`omp_set_lock` and similar functions), or a mutex of POSIX or C11 threads (`--calls pthread`).
    Lock,
}
