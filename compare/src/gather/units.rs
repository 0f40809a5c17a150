//! Execution units: how long they take, and which is which in another build.

use super::NS;
use super::kinds::kind;
use super::places::{Addresses, step};
use super::rows::Rows;
use crate::side::Quantity;
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use rustc_hash::FxHashMap;

/// Quantiles of a region's units, beside the shortest and the longest.
const STEPS: usize = 16;

/// If more of a region's units than this share were disturbed, the others are not typical: short ones are disturbed less often.
const MOST_DISTURBED: f64 = 0.25;

/// Adds how long units take that nothing disturbed, and how many something did.
pub(super) fn add_times(rows: &mut Rows, summary: &Summary, table: &XuTable) {
    let sites = sites_in(summary, table);
    let mut times: Vec<Vec<u64>> = vec![vec![]; rows.rows.len()];
    let mut disturbed: Vec<Vec<u64>> = vec![vec![]; rows.rows.len()];
    let mut is_known = vec![true; rows.rows.len()];
    for row in 0..table.len() {
        let Some(construct) = table.construct[row] else {
            continue;
        };
        let Some(site) = sites.get(table.site[row] as usize).copied().flatten() else {
            continue;
        };
        let at = summary.sites[site as usize].construct;
        if let Some(row_at) = kind(construct, at).and_then(|k| rows.at(site, k)) {
            let list = match table.disturbed[row] {
                Some(true) => &mut disturbed,
                _ => &mut times,
            };
            list[row_at].push(table.own_ns[row]);
            is_known[row_at] &= table.disturbed[row].is_some();
        }
    }
    let lists = times.into_iter().zip(disturbed).zip(is_known);
    for (row, ((mut times, disturbed), is_known)) in rows.rows.iter_mut().zip(lists) {
        let all = times.len() + disturbed.len();
        if all == 0 {
            continue;
        }
        if is_known {
            let count = disturbed.len() as f64;
            row.of_units.insert(Quantity::DisturbedUnits, count);
        }
        if disturbed.len() as f64 > MOST_DISTURBED * all as f64 {
            times.extend(disturbed);
        } else {
            times.sort_unstable();
            let median = median(&times) * NS;
            row.of_units.insert(Quantity::MedianUnit, median);
        }
        times.sort_unstable();
        let last = times.len() - 1;
        let at = |step: usize| (times[step * last / STEPS] as f64 * NS) as f32;
        row.quantiles = (0..=STEPS).map(at).collect();
    }
}

/// Of sorted values, at least one.
pub(crate) fn median(sorted: &[u64]) -> f64 {
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        0 => (sorted[middle - 1] as f64 + sorted[middle] as f64) / 2.0,
        _ => sorted[middle] as f64,
    }
}

/// For each site of a table its position in the summary.
fn sites_in(summary: &Summary, table: &XuTable) -> Vec<Option<u32>> {
    let known: FxHashMap<(&str, &str), u32> = (summary.sites.iter().zip(0..))
        .map(|(site, at)| (site.key(), at))
        .collect();
    let at = |site: &ompfuse_fuse::table::Site| known.get(&site.key()).copied();
    table.sites.iter().map(at).collect()
}

/// A unit of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Own time in nanoseconds.
    pub own_ns: u64,
    /// See `XuTable::disturbed`; false if it is not known.
    pub is_disturbed: bool,
    /// Row in the table.
    pub row: u32,
}

/// Labels with more components are left out.
const LONGEST: usize = 512;

/// A run's units by region and by the ranks on their paths, which are the same in every build. `region`: number of the region that
/// the caller gives a place (build and address) and kind. Units that share a place are left out.
pub fn units(
    summary: &Summary,
    table: &XuTable,
    region: impl Fn(&str, u64, ompfuse_format::Construct) -> Option<u32>,
) -> FxHashMap<(u64, u32), Unit> {
    let sites = sites_in(summary, table);
    let at = Addresses::of(summary);
    let mut found: FxHashMap<(u64, u32), Unit> = FxHashMap::default();
    let mut twice = vec![];
    let (mut before, mut hashes, mut components) = (vec![], Vec::<u64>::new(), vec![]);
    for row in 0..table.len() {
        let (label, construct) = (table.label[row], table.construct[row]);
        let site = sites.get(table.site[row] as usize).copied().flatten();
        let (Some(site), Some(construct), true) = (site, construct, label.is_some()) else {
            continue;
        };
        let place = &summary.sites[site as usize];
        let kind = kind(construct, place.construct);
        let Some(region) = kind
            .zip(place.address)
            .and_then(|(kind, address)| region(&place.module, address.0, kind))
        else {
            continue;
        };
        if !table.labels.read(label, LONGEST, &mut components) {
            continue;
        }
        let alike = |(a, b): &(&u64, &u64)| a == b;
        let same = before.iter().zip(&components).take_while(alike).count();
        hashes.truncate(same);
        for &component in &components[same..] {
            let rank = at.get(component).is_none().then_some(component);
            hashes.push(step(hashes.last().copied().unwrap_or(0), rank));
        }
        std::mem::swap(&mut before, &mut components);
        let key = (hashes.last().copied().unwrap_or(0), region);
        let unit = Unit {
            own_ns: table.own_ns[row],
            is_disturbed: table.disturbed[row] == Some(true),
            row: row as u32,
        };
        if found.insert(key, unit).is_some() {
            twice.push(key);
        }
    }
    for key in twice {
        found.remove(&key);
    }
    found
}
