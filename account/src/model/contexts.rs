//! Where parallel regions were called from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call on the way to a parallel region. A calling context is the chain from its innermost call outwards. Frames of the
/// OpenMP runtime are left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextCall {
    /// Number of the call. `context` of a call path is the number of its innermost call.
    pub id: u32,
    /// `id` of the call around this one; null for the outermost known call.
    pub caller: Option<u32>,
    /// Path of the program or library with the calling code; null if the code is in no file, such as code that was made at
    /// run time. Of a Python function: of its source.
    pub file: Option<String>,
    /// Build id of that file; null if there is none.
    pub build_id: Option<String>,
    /// Return address in hexadecimal: the link-time address, or the address in the process if the code is in no file.
    /// Of a Python function: the line.
    pub address: String,
    /// Symbol of the calling function; null if the file has none there.
    pub function: Option<String>,
    /// Name of that function in the source: C++ and Fortran names demangled, without parameters. Null if `function` is null.
    pub function_demangled: Option<String>,
    /// Bytes from the function's begin to `address`; null if it isn't known where that is.
    pub offset: Option<u64>,
    /// Source file of the call; null without debug information.
    pub source: Option<String>,
    /// Source line of the call, from 1; null without debug information.
    pub line: Option<u32>,
    /// Language of an interpreted function, whose `source` and `line` are known without debug information; absent for compiled ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// Why the chain ends here although there are more callers: the depth was limited (`depth`), or the stack can't be read
    /// (`unknown`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<ContextCut>,
}

/// What interprets a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Language {
    /// CPython.
    Python,
}

/// Why a chain of calls ends too early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContextCut {
    /// The depth was limited (`record --context-depth`).
    Depth,
    /// There is code without unwind information, another stack, or a signal handler.
    Unknown,
}
