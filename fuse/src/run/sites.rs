//! Modules and sites as records refer to them, to the places of a run.

use super::files::ProcessFiles;
use super::health::{Health, Problem};
use super::nodes::NONE;
use crate::table::Site;
use ompfuse_format::Construct;
use ompfuse_format::run::RunModule;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// The places of all modules, entered as they are met.
pub(super) struct SiteBook<'a> {
    modules: &'a [RunModule],
    /// Per module what labels add to its addresses. It doesn't depend on what else a run has loaded.
    tag: Vec<u64>,
    /// Per module and site the position in `sites`.
    known: Vec<Vec<u32>>,
    /// Per name of a region of the program's own the position in `sites`.
    user: HashMap<String, u32>,
    pub(super) sites: Vec<Site>,
}

impl<'a> SiteBook<'a> {
    pub(super) fn new(modules: &'a [RunModule]) -> SiteBook<'a> {
        let tag = tags(modules);
        let known = modules.iter().map(|m| vec![NONE; m.sites.len()]).collect();
        SiteBook {
            modules,
            tag,
            known,
            user: HashMap::new(),
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
            let module = module_name(&self.modules[module]).to_owned();
            self.sites.push(Site::of(module, info));
        }
        Some((*position, self.tag[module] | info.address.0))
    }
}

impl SiteBook<'_> {
    /// As [`SiteBook::place`], of a region that the program calls so. Its component in labels is made of the name.
    pub(super) fn user_place(&mut self, name: &str) -> (u32, u64) {
        let position = match self.user.get(name) {
            Some(&known) => known,
            None => {
                let position = self.sites.len() as u32;
                self.sites.push(Site {
                    construct: Some(Construct::UserRegion),
                    ..Site::named(name)
                });
                self.user.insert(name.to_owned(), position);
                position
            }
        };
        let hash = xxh3_64(name.as_bytes()) & ((1 << TAG_SHIFT) - 1);
        (position, USER_TAG | hash)
    }
}

/// In place of a module's tag, for regions that the program names itself.
const USER_TAG: u64 = 0xffff << TAG_SHIFT;

/// Bits of a label's component that tell modules apart: no address reaches them.
const TAG_SHIFT: u32 = 48;

/// Nothing for the program; a hash of its build id for a library, and for each of several programs.
fn tags(modules: &[RunModule]) -> Vec<u64> {
    let is_library = |m: usize| modules[m].binary.kind == "library";
    let programs = (0..modules.len()).filter(|&m| !is_library(m)).count();
    let mut order: Vec<usize> = (0..modules.len()).collect();
    order.sort_by_key(|&m| (module_name(&modules[m]), &modules[m].binary.path));
    let mut tags = vec![0; modules.len()];
    let mut taken = BTreeSet::from([0, USER_TAG >> TAG_SHIFT]);
    for m in order {
        if programs == 1 && !is_library(m) {
            continue;
        }
        let mut tag = xxh3_64(module_name(&modules[m]).as_bytes()) >> TAG_SHIFT;
        while !taken.insert(tag) {
            tag = (tag + 1) & 0xffff;
        }
        tags[m] = tag << TAG_SHIFT;
    }
    tags
}

/// Build id of a module, or its path where it has none.
pub(super) fn module_name(module: &RunModule) -> &str {
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
