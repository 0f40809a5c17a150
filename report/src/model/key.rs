//! The identity of a region that is equal across builds.

use ompfuse_format::Construct;
use ompfuse_format::site::HexAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is told of a region in whatever build it is. Two builds' keys are seldom equal in all fields: `compare::matching` says which
/// of them belong together, and why.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct RegionKey {
    /// File name of the module; empty if not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Build id of the module, or its path where it has none; empty if not known. With `addresses` it identifies the region in one build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// Link-time addresses of the places that the region stands for, ascending: several where the compiler made copies of one line.
    pub addresses: Vec<HexAddress>,
    /// What it is, without what a compiler adds: a combined construct is two regions.
    pub construct: Construct,
    /// The function of the source that it is in: demangled, without compilers' suffixes. `None` if no name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Path of its source file as the debug information has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line there, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// A name that the source gives: of a critical section, of a region of the user's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its schedule, as `static` or `dynamic,8`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
}

impl RegionKey {
    /// `file:line`, with the last part of the path, where the line is known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        let name = file.rsplit('/').next().unwrap_or(file);
        Some(format!("{name}:{}", self.line?))
    }
}
