//! What was found out of the addresses of samples when a run ended.

use crate::table::Site;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the file with [`SampledPlaces`] in a run's folder.
pub const PLACES_FILE: &str = "sampled.json";

/// Whose code something is.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The program's, or that of a library that it uses.
    #[default]
    User,
    /// The OpenMP runtime's.
    Runtime,
    /// That of recording: stubs, trampolines, the runtime library of ompfuse.
    Recording,
}

/// A place in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SampledPlace {
    /// Whose code it is.
    pub code: Code,
    /// The function, as debug information has it; else its symbol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Where that is inlined: the symbol of the function that is there in the machine code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined_into: Option<String>,
    /// Source file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The file with the machine code, where that isn't the program's or isn't known to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// Whether its instructions are counted (`--count`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub is_counted: bool,
}

impl SampledPlace {
    /// Whether its function or line is known: of code of a linkage table neither is.
    #[must_use]
    pub fn has_name(&self) -> bool {
        self.function.is_some() || self.line.is_some()
    }

    /// Its function as a whole, as the machine code has it: without line, and without what is inlined.
    #[must_use]
    pub fn of_function(&self) -> SampledPlace {
        SampledPlace {
            code: self.code,
            function: self.function.clone(),
            inlined_into: None,
            file: None,
            line: None,
            object: self.object.clone(),
            is_counted: self.is_counted,
        }
    }
}

/// A file with machine code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledObject {
    /// Its path, as the kernel has it.
    pub path: String,
    /// By offset in the file the position in [`SampledPlaces::places`].
    pub offsets: BTreeMap<u64, u32>,
    /// By offset what a stack with it tells of constructs, where no records do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<u64, Mark>,
}

/// What a place in a stack tells of constructs: positions in [`SampledPlaces::sites`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// It is in the function that a compiler has made of this construct's block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inside: Option<u32>,
    /// It calls the runtime, or another library, for this construct.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
}

/// The places of a run's samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledPlaces {
    /// Places, each once.
    pub places: Vec<SampledPlace>,
    /// Files.
    pub objects: Vec<SampledObject>,
    /// Names of the system calls that threads had stopped in, by number.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<u32, String>,
    /// Constructs that stacks were in, where no records tell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<Site>,
}

impl SampledPlaces {
    /// Adds a file, with a place for each offset.
    pub fn add(
        &mut self,
        path: String,
        places: impl Iterator<Item = (u64, SampledPlace)>,
        marks: BTreeMap<u64, Mark>,
    ) {
        let known = (0..)
            .zip(&self.places)
            .map(|(at, place)| (place.clone(), at));
        let mut known: BTreeMap<SampledPlace, u32> = known.collect();
        let mut offsets = BTreeMap::new();
        for (offset, place) in places {
            let at = *known.entry(place).or_insert_with_key(|place| {
                self.places.push(place.clone());
                self.places.len() as u32 - 1
            });
            offsets.insert(offset, at);
        }
        self.objects.push(SampledObject {
            path,
            offsets,
            marks,
        });
    }
}
