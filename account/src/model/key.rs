//! The identity of a region that is equal across builds.

use ompfuse_format::Construct;
use ompfuse_format::site::HexAddress;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A call on the way to a region, with the properties that two builds can share.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Caller {
    /// File name of the program or library with the call.
    pub module: String,
    /// Name of the calling function in the source: demangled, without compilers' suffixes. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Return address (link-time); absent if the function's name is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<HexAddress>,
    /// True if several functions call this one on their ways to regions. It then doesn't tell which region this is.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_shared: bool,
}

/// Properties of a region that can be compared across builds. The keys of two builds are seldom equal in all fields; `pairs`
/// says which regions belong together, and why.
#[derive(
    Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct RegionKey {
    /// File name of the module; absent if not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub module: String,
    /// Build id of the module, or its path if it has none; absent if not known. With `addresses` it identifies the region in
    /// one build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
    /// Link-time addresses of the region's places, ascending. There are several if the compiler copied the line.
    pub addresses: Vec<HexAddress>,
    /// The construct. A combined construct is two regions.
    pub construct: Construct,
    /// Name of its function in the source: demangled, without compilers' suffixes. Absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Path of its source file in the debug information; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its source line, from 1; absent if not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its name in the source: of a critical section, or of a region that the program names. Absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its schedule, such as `static` or `dynamic,8`; absent if it has none or it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    /// The calls to it, outermost first, if nothing else tells which region it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub callers: Vec<Caller>,
    /// True if the key stands only for the executions that these callers led to, not for all at its place.
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
