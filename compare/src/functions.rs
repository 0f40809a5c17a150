//! Samples of a region by function, in a form that adds up.

use ompfuse_fuse::names::is_unnamed;
use ompfuse_fuse::samples::{SampledSum, SampledSums};
use std::collections::BTreeMap;

/// Samples of a region's own work by function, of all runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FunctionSamples {
    pub(super) work: u64,
    pub(super) by_name: BTreeMap<String, u64>,
}

impl FunctionSamples {
    /// Of the regions at some sites. `None`: there are no samples.
    pub(super) fn of(sampled: &SampledSums, is_in: impl Fn(u32) -> bool) -> Option<Self> {
        let meant = |sum: &&SampledSum| sum.site.is_some_and(&is_in);
        let mut found = FunctionSamples::default();
        for sum in sampled.regions.iter().filter(meant) {
            found.work += sum.work;
            for (place, samples) in &sum.functions {
                if let Some(name) = place.function.as_ref().filter(|f| !is_unnamed(f)) {
                    *found.by_name.entry(name.clone()).or_default() += samples;
                }
            }
        }
        (found.work > 0).then_some(found)
    }

    /// The sum, where all parts are known.
    pub(super) fn sum<'f>(all: impl IntoIterator<Item = Option<&'f Self>>) -> Option<Self> {
        let mut sum: Option<FunctionSamples> = None;
        for one in all {
            let FunctionSamples { work, by_name } = one?;
            let sum = sum.get_or_insert_default();
            sum.work += work;
            for (name, samples) in by_name {
                *sum.by_name.entry(name.clone()).or_default() += samples;
            }
        }
        sum
    }

    /// The share of a function, from 0 to 1.
    pub(super) fn share(&self, name: &str) -> f64 {
        self.by_name.get(name).copied().unwrap_or(0) as f64 / self.work as f64
    }
}
