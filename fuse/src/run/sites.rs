//! Modules and sites as records refer to them, to the places of a run.

use super::files::ProcessFiles;
use super::health::{Health, Problem};
use super::nodes::NONE;
use crate::table::Site;
use ompfuse_format::run::RunModule;
use std::collections::BTreeMap;

/// The places of all modules, entered as they are met.
pub(super) struct SiteBook<'a> {
    modules: &'a [RunModule],
    /// Per module what labels add to its addresses: nothing if there is one module, else its position by build id.
    tag: Vec<u64>,
    /// Per module and site the position in `sites`.
    known: Vec<Vec<u32>>,
    pub(super) sites: Vec<Site>,
}

impl<'a> SiteBook<'a> {
    pub(super) fn new(modules: &'a [RunModule]) -> SiteBook<'a> {
        let mut order: Vec<usize> = (0..modules.len()).collect();
        order.sort_by_key(|&m| (module_name(&modules[m]), &modules[m].binary.path));
        let mut tag = vec![0; modules.len()];
        for (ordinal, &m) in order.iter().enumerate() {
            tag[m] = (ordinal as u64) << 56;
        }
        let known = modules.iter().map(|m| vec![NONE; m.sites.len()]).collect();
        SiteBook {
            modules,
            tag,
            known,
            sites: Vec::new(),
        }
    }

    /// Position of the region that the site belongs to, and its component in labels.
    pub(super) fn place(&mut self, module: usize, site: usize) -> Option<(u32, u64)> {
        let sites = &self.modules[module].sites;
        let region = sites.get(site)?.region as usize;
        let site = if region < sites.len() { region } else { site };
        let info = &sites[site];
        let position = &mut self.known[module][site];
        if *position == NONE {
            *position = self.sites.len() as u32;
            self.sites.push(Site {
                name: info.address.to_string(),
                module: module_name(&self.modules[module]).to_owned(),
                id: Some(info.id),
                address: Some(info.address),
                construct: Some(info.construct),
                function: info.function.clone(),
                source: info.source.clone(),
                detail: info.detail.clone(),
            });
        }
        Some((*position, self.tag[module] | info.address.0))
    }
}

/// Build id of a module, or its path where it has none.
fn module_name(module: &RunModule) -> &str {
    module
        .binary
        .build_id
        .as_deref()
        .unwrap_or(&module.binary.path)
}

/// The process's module numbers to positions in the run's modules.
pub(super) fn module_map(
    process: &ProcessFiles<'_>,
    modules: &[RunModule],
    health: &mut Health,
) -> BTreeMap<u32, usize> {
    let mut map = BTreeMap::new();
    for status in &process.header.modules {
        match modules.iter().position(|m| m.patched == status.path) {
            Some(position) => drop(map.insert(status.module, position)),
            None => health.problems.push(Problem::UnknownModule {
                pid: process.header.pid,
                path: status.path.clone(),
            }),
        }
    }
    map
}
