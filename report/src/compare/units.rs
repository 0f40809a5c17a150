//! The same execution unit in two builds: by its label's ranks, and the match of its region.

use super::diff::{Pair, UnitChange};
use super::gather::{UnitSum, units};
use super::side::Quantity;
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
                sum.least_ns = sum.least_ns.min(other.own_ns);
                sum.most_ns = sum.most_ns.max(other.own_ns);
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
            // Units aren't told apart by callers.
            for key in keys(pair).iter().filter(|key| !key.is_part) {
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

/// Level of the test of single units, beside that of regions.
const LEVEL: f64 = 0.01;

/// A single unit is told of where it takes half as long again at least, ...
const LEAST_OF_UNIT: f64 = 0.5;
/// ... and where that is this share of its region's time.
const LEAST_OF_REGION: f64 = 1e-3;

/// A unit on both sides.
#[derive(Clone, Copy)]
struct Both<'u> {
    a: &'u UnitSum,
    b: &'u UnitSum,
    /// By how many seconds its mean is more on B.
    more_s: f64,
    is_certain: bool,
}

/// Names in each pair the unit that got slower most: the mean of its times on B less that on A. One that is certain to have got
/// slower goes before all others.
///
/// The test is exact, whatever noise is like: if A and B were the same, all runs of B would be above all of A in one of
/// `(a + b)! / (a! b!)` orders. That times the number of units is the probability that any unit shows it by chance (Bonferroni).
pub fn add_slowest(pairs: &mut [Pair], a: &SideUnits, b: &SideUnits) {
    let of_a = a.pairs(|p| &p.a, pairs);
    let of_b = b.pairs(|p| &p.b, pairs);
    let mut theirs: FxHashMap<(u64, u32), &UnitSum> = FxHashMap::default();
    for ((hash, region), sum) in &a.sums {
        if let Some(pair) = of_a[*region as usize] {
            theirs.insert((*hash, pair), sum);
        }
    }
    let p = theirs.len() as f64 / orders(a.runs, b.runs);
    let region_s: Vec<f64> = (pairs.iter())
        .map(|p| p.get(&Quantity::Time).and_then(|c| c.a).unwrap_or(0.0))
        .collect();
    let mut slowest: Vec<Option<Both<'_>>> = vec![None; pairs.len()];
    for ((hash, region), sum) in &b.sums {
        let Some(pair) = of_b[*region as usize] else {
            continue;
        };
        let Some(other) = theirs.get(&(*hash, pair)) else {
            continue;
        };
        let before = a.seconds(other);
        let more_s = b.seconds(sum) - before;
        let found = Both {
            a: other,
            b: sum,
            more_s,
            is_certain: p <= LEVEL
                && sum.least_ns > other.most_ns
                && more_s >= LEAST_OF_UNIT * before
                && more_s >= LEAST_OF_REGION * region_s[pair as usize],
        };
        let best = &mut slowest[pair as usize];
        // Equal ones in the order of records, which does not depend on how maps are filled.
        let order = |u: &Both<'_>| (u.is_certain, u.more_s);
        let is_more = best.as_ref().is_none_or(|known| {
            order(&found) > order(known) || (order(&found) == order(known) && sum.row < known.b.row)
        });
        if more_s > 0.0 && is_more {
            *best = Some(found);
        }
    }
    for (pair, found) in pairs.iter_mut().zip(slowest) {
        pair.unit = found.map(|found| UnitChange {
            labels: [a.label(found.a), b.label(found.b)],
            what: b.what(found.b),
            time_s: [a.seconds(found.a), b.seconds(found.b)],
            is_certain: found.is_certain,
        });
    }
}

/// In how many ways so many runs of two kinds can be ordered.
fn orders(a: u32, b: u32) -> f64 {
    (1..=a).map(|n| f64::from(b + n) / f64::from(n)).product()
}

#[cfg(test)]
mod tests {
    use super::orders;

    #[test]
    fn orders_are_binomial_coefficients() {
        for (a, b, n) in [(1, 1, 2.0), (5, 5, 252.0), (10, 10, 184_756.0), (0, 3, 1.0)] {
            assert!((orders(a, b) - n).abs() < 1e-6 * n, "{a} {b}");
            assert!((orders(b, a) - n).abs() < 1e-6 * n, "{a} {b}");
        }
    }
}
