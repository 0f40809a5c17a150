//! Functions that were to count their instructions and can't.

use crate::model::{Region, UncountedCode};
use ompfuse_format::site::{Uncounted, without_addresses};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::summary::{ModuleSummary, Summary};
use std::collections::BTreeMap;

/// All of them, those with the most time first. `ids`: the regions' numbers by site.
pub(super) fn functions(summary: &Summary, regions: &[Region], ids: &[u32]) -> Vec<UncountedCode> {
    let work: BTreeMap<u32, f64> = regions.iter().map(|r| (r.id, r.work_s)).collect();
    let all_s: f64 = work.values().sum();
    let told = |module: &ModuleSummary, function: &Uncounted| {
        let name = module.build_id.as_deref().unwrap_or(&module.path);
        let is_in = |id: u32| function.sites.binary_search(&id).is_ok();
        let sites = summary.sites.iter().zip(ids);
        let inside = sites.filter(|(site, _)| site.module == name && site.id.is_some_and(is_in));
        let regions = inside.map(|(_, id)| *id).filter(|id| work.contains_key(id));
        let regions: Vec<u32> = regions.collect();
        let own_s: f64 = regions.iter().map(|id| work[id]).sum();
        UncountedCode {
            function: readable(&function.name).into_owned(),
            file: module.path.clone(),
            reason: without_addresses(&function.reason),
            instructions: function.instructions,
            share: (!regions.is_empty() && all_s > 0.0).then(|| own_s / all_s),
            regions,
        }
    };
    let all = summary.modules.iter();
    let all = all.flat_map(|m| m.uncounted.iter().map(move |f| told(m, f)));
    let mut all: Vec<UncountedCode> = all.collect();
    let share = |f: &UncountedCode| f.share.unwrap_or(-1.0);
    all.sort_by(|a, b| share(b).total_cmp(&share(a)));
    all
}
