//! Functions that were to count their instructions and can't.

use crate::model::{Region, UncountedCode};
use ompfuse_format::site::{Uncounted, without_addresses};
use ompfuse_fuse::names::readable;
use ompfuse_fuse::summary::{ModuleSummary, Summary};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// All of them, those with the most time first. `ids`: the regions' numbers by site.
pub(super) fn functions(summary: &Summary, regions: &[Region], ids: &[u32]) -> Vec<UncountedCode> {
    let known: BTreeSet<u32> = regions.iter().map(|r| r.id).collect();
    let told = |module: &ModuleSummary, function: &Uncounted| {
        let name = module.key();
        let is_in = |id: u32| function.sites.binary_search(&id).is_ok();
        let sites = summary.sites.iter().zip(ids);
        let inside = sites.filter(|(site, _)| site.module == name && site.id.is_some_and(is_in));
        let own = inside.map(|(_, id)| *id).filter(|id| known.contains(id));
        let own: Vec<u32> = own.collect();
        UncountedCode {
            function: readable(&function.name).into_owned(),
            file: module.path.clone(),
            reason: without_addresses(&function.reason),
            instructions: function.instructions,
            share: share(&own, regions),
            regions: own,
        }
    };
    let all = summary.modules.iter();
    let all = all.flat_map(|m| m.uncounted.iter().map(move |f| told(m, f)));
    let mut all: Vec<UncountedCode> = all.collect();
    all.sort_by(by_share);
    all
}

/// What some regions have of the work of all. `None`: there are none, or nobody works.
pub(crate) fn share(some: &[u32], regions: &[Region]) -> Option<f64> {
    let all_s: f64 = regions.iter().map(|r| r.work_s).sum();
    let own = regions.iter().filter(|r| some.contains(&r.id));
    let own_s: f64 = own.map(|r| r.work_s).sum();
    (!some.is_empty() && all_s > 0.0).then(|| own_s / all_s)
}

/// Those with the most work first.
pub(crate) fn by_share(a: &UncountedCode, b: &UncountedCode) -> Ordering {
    let share = |f: &UncountedCode| f.share.unwrap_or(-1.0);
    share(b).total_cmp(&share(a))
}
