//! The same execution unit in two builds: by its label's ranks, and the match of its region.

use super::diff::{Pair, UnitChange};
use super::gather::{UnitSum, units};
use ompfuse_format::Construct;
use ompfuse_fuse::label::Label;
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Components of a label that is shown.
const SHOWN: usize = 256;

/// The units of one side's runs.
#[derive(Debug, Default)]
pub struct SideUnits {
    /// Numbers of regions, by build, address and kind.
    regions: HashMap<(String, u64, Construct), u32>,
    sums: FxHashMap<(u64, u32), UnitSum>,
    runs: u32,
    /// Of the first run.
    table: XuTable,
}

impl SideUnits {
    /// Adds a run's.
    pub fn add(&mut self, summary: &Summary, table: XuTable) {
        let regions = std::cell::RefCell::new(std::mem::take(&mut self.regions));
        let found = units(summary, &table, |build, address, kind| {
            let mut regions = regions.borrow_mut();
            let next = regions.len() as u32;
            let key = (build.to_owned(), address, kind);
            Some(*regions.entry(key).or_insert(next))
        });
        self.regions = regions.into_inner();
        self.runs += 1;
        if self.runs == 1 {
            self.sums = found;
            self.table = table;
            return;
        }
        // A unit that a run doesn't have can't be compared.
        self.sums.retain(|key, sum| {
            let other = found.get(key);
            if let Some(other) = other {
                sum.own_ns += other.own_ns;
                sum.runs += 1;
            }
            other.is_some()
        });
    }

    /// The pair that each region's number belongs to.
    fn pairs(
        &self,
        keys: impl Fn(&Pair) -> &[crate::RegionKey],
        pairs: &[Pair],
    ) -> Vec<Option<u32>> {
        let mut found = vec![None; self.regions.len()];
        for (pair, at) in pairs.iter().zip(0..) {
            if pair.is_group {
                continue;
            }
            for key in keys(pair) {
                for address in &key.addresses {
                    let known = (key.build.clone(), address.0, key.construct);
                    if let Some(&n) = self.regions.get(&known) {
                        found[n as usize] = Some(at);
                    }
                }
            }
        }
        found
    }

    fn seconds(&self, sum: &UnitSum) -> f64 {
        sum.own_ns as f64 * 1e-9 / f64::from(sum.runs)
    }

    fn label(&self, sum: &UnitSum) -> String {
        let label = self.table.label[sum.row as usize];
        let known: Option<Label> = self.table.labels.get(label, SHOWN);
        known.map_or_else(String::new, |l| l.to_string())
    }

    fn what(&self, sum: &UnitSum) -> String {
        let row = sum.row as usize;
        let first = self.table.first[row];
        match self.table.construct[row] {
            Some(Construct::Range) => {
                let end = first.saturating_add_unsigned(self.table.iterations[row]);
                format!("iterations {first}..{end}")
            }
            Some(Construct::Section) => format!("section {first}"),
            _ => format!("task {first}"),
        }
    }
}

/// Names in each pair the unit that got slower most: the mean of its times on B less that on A.
pub fn add_slowest(pairs: &mut [Pair], a: &SideUnits, b: &SideUnits) {
    let of_a = a.pairs(|p| &p.a, pairs);
    let of_b = b.pairs(|p| &p.b, pairs);
    let mut theirs: FxHashMap<(u64, u32), &UnitSum> = FxHashMap::default();
    for ((hash, region), sum) in &a.sums {
        if let Some(pair) = of_a[*region as usize] {
            theirs.insert((*hash, pair), sum);
        }
    }
    let mut slowest: Vec<Option<(f64, &UnitSum, &UnitSum)>> = vec![None; pairs.len()];
    for ((hash, region), sum) in &b.sums {
        let Some(pair) = of_b[*region as usize] else {
            continue;
        };
        let Some(other) = theirs.get(&(*hash, pair)) else {
            continue;
        };
        let more = b.seconds(sum) - a.seconds(other);
        let best = &mut slowest[pair as usize];
        // Equal ones in the order of records, which does not depend on how maps are filled.
        let is_more = best
            .is_none_or(|(known, _, of_b)| more > known || (more == known && sum.row < of_b.row));
        if more > 0.0 && is_more {
            *best = Some((more, other, sum));
        }
    }
    for (pair, found) in pairs.iter_mut().zip(slowest) {
        pair.unit = found.map(|(_, of_a, of_b)| UnitChange {
            labels: [a.label(of_a), b.label(of_b)],
            what: b.what(of_b),
            time_s: [a.seconds(of_a), b.seconds(of_b)],
        });
    }
}
