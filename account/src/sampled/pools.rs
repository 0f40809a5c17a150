//! Libraries with threads of their own, in samples.

use super::LEAST;
use crate::model::sampled::base;
use ompfuse_fuse::samples::{RegionLines, SampledPlaces};
use ompfuse_patterns::{Threaded, threaded};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A library with threads of its own, which aren't recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SampledPool {
    /// Its name.
    pub name: String,
    /// Names of its files.
    pub files: Vec<String>,
    /// The variable of the environment that says how many threads it has.
    pub variable: String,
    /// Samples in its code, without those of threads that wait for work.
    pub samples: u64,
    /// Samples of its threads that wait for work, where its functions for that are known.
    pub waits: u64,
    /// Its functions that give work to its threads and wait for them.
    pub functions: Vec<String>,
}

/// Of all regions.
pub(super) fn of(regions: &[RegionLines], places: &SampledPlaces) -> Vec<SampledPool> {
    let files = places.objects.iter().map(|o| base(&o.path));
    let pool = |library: &Threaded| {
        let objects = || places.objects.iter().filter(|o| library.has(base(&o.path)));
        let own: BTreeSet<u32> = objects()
            .flat_map(|o| o.offsets.values().copied())
            .collect();
        let (mut samples, mut waits) = (0, 0);
        for function in regions.iter().flat_map(|r| &r.functions) {
            if !own.contains(&function.place) {
                continue;
            }
            let place = places.places.get(function.place as usize);
            let name = place.and_then(|p| match function.is_outer {
                true => p.inlined_into.as_ref(),
                false => p.function.as_ref(),
            });
            match name.is_some_and(|name| library.waits.contains(name)) {
                true => waits += function.own,
                false => samples += function.own,
            }
        }
        SampledPool {
            name: library.name.clone(),
            files: objects().map(|o| base(&o.path).to_owned()).collect(),
            variable: library.variable.clone(),
            samples,
            waits,
            functions: library.regions.clone(),
        }
    };
    let pools = threaded(files).map(pool);
    pools.filter(|p| p.samples + p.waits >= LEAST).collect()
}
