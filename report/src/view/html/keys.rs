//! What a region is called in a page's address.

use crate::view::lines;
use crate::words::kind;
use ompfuse_account::model::{Region, Report};
use std::collections::{BTreeMap, HashMap};

/// The names of regions in links (`#region=KEY`): equal in pages of all runs, unless several regions look alike.
#[derive(Debug, Clone)]
pub struct Keys {
    of_row: BTreeMap<u32, String>,
    row: BTreeMap<u32, u32>,
    sites: HashMap<(String, String), u32>,
}

impl Keys {
    /// Of a report of sites. Those of one source line have the same key.
    pub fn new(report: &Report) -> Keys {
        let merged = lines::merged(report);
        let mut known: HashMap<String, u32> = HashMap::new();
        let mut of_row = BTreeMap::new();
        let mut rows: Vec<&Region> = merged.report.regions.iter().collect();
        rows.sort_by_key(|r| r.id);
        for region in rows {
            let plain = of_region(region);
            let times = known.entry(plain.clone()).or_default();
            *times += 1;
            let key = match times {
                1 => plain,
                n => format!("{plain}~{n}"),
            };
            of_row.insert(region.id, key);
        }
        let site = |r: &Region| {
            let module = r.module.clone().unwrap_or_default();
            ((module, r.name.clone()), r.id)
        };
        Keys {
            of_row,
            row: merged.number,
            sites: report.regions.iter().map(site).collect(),
        }
    }

    /// Of the region with this `id` in the report.
    pub fn of(&self, id: u32) -> Option<&str> {
        let row = self.row.get(&id).copied().unwrap_or(id);
        self.of_row.get(&row).map(String::as_str)
    }

    /// Of a site as `ompfuse_fuse` has it: module and name ([`ompfuse_fuse::table::Site::key`]).
    pub fn of_site(&self, module: &str, name: &str) -> Option<&str> {
        let site = (module.to_owned(), name.to_owned());
        self.of(*self.sites.get(&site)?)
    }
}

/// Construct and place of a region.
fn of_region(region: &Region) -> String {
    let place = match &region.source {
        Some(source) => {
            let file = source.file.rsplit('/').next().unwrap_or_default();
            format!("{file}:{}", source.line)
        }
        None => region.name.clone(),
    };
    plain(&kind(region), &place)
}

/// Construct and place, of characters that need no escape in an address.
pub(super) fn plain(kind: &str, place: &str) -> String {
    let text = format!("{kind}@{place}");
    let kept = |c: char| match c {
        c if c.is_ascii_alphanumeric() || "@:._-".contains(c) => c,
        _ => '-',
    };
    text.chars().map(kept).collect()
}
