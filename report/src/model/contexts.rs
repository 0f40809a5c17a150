//! Where parallel regions were called from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call on the way to a parallel region. A calling context is the chain from its innermost call outwards. The frames of
/// the OpenMP runtime are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextCall {
    /// Its number; `context` of a call path is that of its innermost call.
    pub id: u32,
    /// `id` of the call around it; null: the outermost that is known.
    pub caller: Option<u32>,
    /// Path of the program or library that the calling code is in; null: in no file, as code that was made at run time.
    pub file: Option<String>,
    /// Build id of that file.
    pub build_id: Option<String>,
    /// Where the call returns to: link-time address in hexadecimal; in no file that of the process.
    pub address: String,
    /// The calling function's symbol; null if the file names none there.
    pub function: Option<String>,
    /// The function as the source has it: C++ and Fortran names demangled, without parameters.
    pub function_demangled: Option<String>,
    /// Bytes from the function's begin to `address`.
    pub offset: Option<u64>,
    /// Source file of the call, where debug information tells it.
    pub source: Option<String>,
    /// Its line there.
    pub line: Option<u32>,
    /// Why the chain ends here, if it isn't whole: more calls were not wanted (`depth`), or their stack can't be read (`unknown`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<ContextCut>,
}

/// Why a chain of calls ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextCut {
    /// No more calls were wanted (`record --context-depth`).
    Depth,
    /// Code without unwind information, another stack, or a signal handler.
    Unknown,
}
