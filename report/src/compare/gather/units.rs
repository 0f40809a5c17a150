//! Execution units: how long they take, and which is which in another build.

use super::NS;
use super::places::{Addresses, step};
use super::rows::{Rows, kind};
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use rustc_hash::FxHashMap;

/// Quantiles of a region's units, beside the shortest and the longest.
const STEPS: usize = 16;

/// Adds how long units take.
pub(super) fn add_quantiles(rows: &mut Rows, summary: &Summary, table: &XuTable) {
    let sites = sites_in(summary, table);
    let mut times: Vec<Vec<u64>> = vec![vec![]; rows.rows.len()];
    for row in 0..table.len() {
        let Some(construct) = table.construct[row] else {
            continue;
        };
        let Some(site) = sites.get(table.site[row] as usize).copied().flatten() else {
            continue;
        };
        let at = summary.sites[site as usize].construct;
        if let Some(row_at) = kind(construct, at).and_then(|k| rows.at(site, k)) {
            times[row_at].push(table.own_ns[row]);
        }
    }
    for (row, mut times) in rows.rows.iter_mut().zip(times) {
        if times.is_empty() {
            continue;
        }
        times.sort_unstable();
        let last = times.len() - 1;
        let at = |step: usize| (times[step * last / STEPS] as f64 * NS) as f32;
        row.quantiles = (0..=STEPS).map(at).collect();
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

/// A unit's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitSum {
    /// Own time in nanoseconds, of all runs.
    pub own_ns: u64,
    /// The shortest that it took in a run, in nanoseconds.
    pub least_ns: u64,
    /// The longest.
    pub most_ns: u64,
    /// Runs that have it.
    pub runs: u32,
    /// Row in the first run's table.
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
) -> FxHashMap<(u64, u32), UnitSum> {
    let sites = sites_in(summary, table);
    let at = Addresses::of(summary);
    let mut found: FxHashMap<(u64, u32), UnitSum> = FxHashMap::default();
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
        let unit = UnitSum {
            own_ns: table.own_ns[row],
            least_ns: table.own_ns[row],
            most_ns: table.own_ns[row],
            runs: 1,
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
