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
