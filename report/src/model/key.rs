//! The identity of a region that is equal across builds.

use ompfuse_format::Construct;
use ompfuse_format::site::HexAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call on the way to a region, as far as two builds can have it in common.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Caller {
    /// File name of the program or library that the call is in.
    pub module: String,
    /// The calling function of the source: demangled, without compilers' suffixes. `None` if no name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where the call returns to (link-time address), if no name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<HexAddress>,
    /// Several functions call this one on their ways to regions, so it doesn't tell which region this is.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_shared: bool,
}

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
    /// The calls to it from outside inwards, where no surer sign tells which region it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// It is only a part of what is executed at its place: what these callers led to.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_part: bool,
}

impl RegionKey {
    /// The key of the whole region, whoever calls it.
    #[must_use]
    pub fn whole(&self) -> RegionKey {
        RegionKey {
            callers: vec![],
            is_part: false,
            ..self.clone()
        }
    }

    /// `file:line`, with the last part of the path, where the line is known.
    pub fn place(&self) -> Option<String> {
        let file = self.file.as_deref()?;
        let name = file.rsplit('/').next().unwrap_or(file);
        Some(format!("{name}:{}", self.line?))
    }
}
