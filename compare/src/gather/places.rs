//! Where regions are in the tree of everything that was executed, whatever their addresses.
//!
//! A label is the path of ranks and addresses from the root ([XU] section 4). The ranks are the program's, the addresses the
//! compiler's. Every path that ends at an address is an execution of a region; its ranks alone are the same in each build.

use super::rows::Rows;
use ompfuse_format::Construct;
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use std::collections::{HashMap, HashSet};
use xxhash_rust::xxh3::xxh3_64;

/// Labels with more components are left out, and the regions on their way with them.
const LONGEST: usize = 512;

/// The bits of a component that are an address; those above tell modules apart.
pub(super) const ADDRESS: u64 = (1 << 48) - 1;

/// Gives each row the sum of the hashes of its executions' places, as far as labels tell them: those with execution units in them.
pub(super) fn add(rows: &mut Rows, summary: &Summary, table: &XuTable) {
    let at = Addresses::of(summary);
    let mut walk = Walk {
        at: &at,
        components: vec![],
        steps: vec![],
        seen: HashSet::new(),
        sums: HashMap::new(),
    };
    let mut components = vec![];
    for row in 0..table.len() {
        let label = table.label[row];
        if !label.is_some() || !table.labels.read(label, LONGEST, &mut components) {
            continue;
        }
        let is_range = table.construct[row].is_some_and(Construct::is_share);
        walk.enter(&components, is_range);
    }
    for ((site, is_shared), sum) in walk.sums {
        let construct = summary.sites[site as usize].construct;
        let kinds: &[Construct] = match (is_shared, construct) {
            (true, Some(Construct::Taskloop)) => &[Construct::Taskloop],
            (true, Some(Construct::Distribute)) => &[Construct::Distribute],
            (true, _) => &[Construct::Loop, Construct::Sections],
            (false, Some(kind)) => &[kind],
            (false, None) => &[],
        };
        for &kind in kinds {
            if let Some(row) = rows.at(site, kind) {
                let places = rows.rows[row].places.get_or_insert(0);
                *places = places.wrapping_add(sum);
            }
        }
    }
}

/// The addresses in labels.
pub(super) struct Addresses(HashMap<u64, u32>);

impl Addresses {
    /// Those of a summary's sites; an address that two modules have is nobody's.
    pub(super) fn of(summary: &Summary) -> Addresses {
        let mut known: HashMap<u64, Option<u32>> = HashMap::new();
        for (site, at) in summary.sites.iter().zip(0..).map(|(s, n)| (n, s)) {
            let Some(address) = at.address else {
                continue;
            };
            let entry = known.entry(address.0).or_insert(Some(site));
            if *entry != Some(site) {
                *entry = None;
            }
        }
        let told = known.into_iter().filter_map(|(a, s)| Some((a, s?)));
        Addresses(told.collect())
    }

    /// The site that a component is the address of.
    pub(super) fn get(&self, component: u64) -> Option<u32> {
        self.0.get(&(component & ADDRESS)).copied()
    }
}

/// The hash of a path's ranks with one component more; addresses count as equal.
pub(super) fn step(hash: u64, component: Option<u64>) -> u64 {
    let mut bytes = [0; 17];
    bytes[..8].copy_from_slice(&hash.to_le_bytes());
    if let Some(component) = component {
        bytes[8..16].copy_from_slice(&component.to_le_bytes());
        bytes[16] = 1;
    }
    xxh3_64(&bytes)
}

/// Goes along labels, one after the other: neighbours begin alike.
struct Walk<'a> {
    at: &'a Addresses,
    /// Of the label before.
    components: Vec<u64>,
    /// For each of them the hash of the ranks up to it, and of everything.
    steps: Vec<(u64, u64)>,
    seen: HashSet<(u64, bool)>,
    /// By site, and whether it is the loop (or `sections`) of ranges.
    sums: HashMap<(u32, bool), u64>,
}

impl Walk<'_> {
    fn enter(&mut self, components: &[u64], is_range: bool) {
        let mut same = (self.components.iter().zip(components))
            .take_while(|(a, b)| a == b)
            .count();
        // The address before a range's iteration is a loop's, even if the label before had gone on from there.
        same = same.min(components.len().saturating_sub(2));
        self.components.truncate(same);
        self.steps.truncate(same);
        for (at, &component) in components.iter().enumerate().skip(same) {
            let (ranks, all) = self.steps.last().copied().unwrap_or((0, 0));
            let site = self.at.get(component).filter(|_| at > 0);
            let rank = site.is_none().then_some(component);
            let (ranks, all) = (step(ranks, rank), step(all, Some(component)));
            self.components.push(component);
            self.steps.push((ranks, all));
            let is_loop = is_range && at + 2 == components.len();
            if let Some(site) = site
                && self.seen.insert((all, is_loop))
            {
                let sum = self.sums.entry((site, is_loop)).or_default();
                *sum = sum.wrapping_add(ranks);
            }
        }
    }
}
