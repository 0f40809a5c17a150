//! What a run's samples tell, as small as a summary needs it: values only.

use super::asleep::Asleep;
use super::ending::Ending;
use super::uneven::Uneven;
use crate::run::places::SampledPlace;
use serde::{Deserialize, Serialize};

/// The samples of the run that times are from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledSums {
    /// Samples a second of processor time that were wanted.
    pub rate: u32,
    /// How many there are, whether or not they were looked at.
    pub samples: u64,
    /// Whether it is known which code counts its instructions (`--count`).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub tells_counted: bool,
    /// Work by region, the most first. Empty where reading the records once more takes too long.
    pub regions: Vec<SampledSum>,
    /// Work while a thread was in a construct that admits one at a time, by that construct. It is in `regions`, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<SampledSum>,
    /// What its process did last, if that didn't come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// The interpreter's function that imports a module of Python.
pub const IMPORT: &str = "PyImport_ImportModuleLevelObject";

/// The samples of a region's own work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SampledSum {
    /// Position in the summary's sites; `None`: the code outside of constructs.
    pub site: Option<u32>,
    /// In the program's code and that of its libraries.
    pub work: u64,
    /// Of these in code that doesn't count its instructions; 0 where that is not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub uncounted: u64,
    /// The hottest lines.
    pub lines: Vec<(SampledPlace, u64)>,
    /// The hottest functions: places without line.
    pub functions: Vec<(SampledPlace, u64)>,
    /// Of the work what Python did to import modules, by stacks: those that aren't whole may hide some.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub importing: u64,
    /// Its slow units against fast ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uneven: Option<Uneven>,
    /// Time without processor in its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asleep: Option<Asleep>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}
