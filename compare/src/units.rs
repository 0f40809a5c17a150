//! The same execution unit in two builds: by its label's ranks, and the match of its region.

use super::diff::{Pair, UnitChange};
use super::gather::{median, units};
use super::side::Quantity;
use ompfuse_format::Construct;
use ompfuse_fuse::label::Label;
use ompfuse_fuse::summary::Summary;
use ompfuse_fuse::table::XuTable;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

const NS: f64 = 1e-9;

/// Components of a label that is shown.
const SHOWN: usize = 256;

/// A unit's time in a run that doesn't have it.
const MISSING: u64 = u64::MAX;
/// Beside a unit's time in nanoseconds: something disturbed it.
const DISTURBED: u64 = 1 << 63;

/// The units of one side's runs.
#[derive(Debug, Default)]
pub struct SideUnits {
    /// Numbers of regions, by build, address and kind.
    regions: HashMap<(String, u64, Construct), u32>,
    /// The first run's units: positions in `rows` and in each of `runs`.
    at: FxHashMap<(u64, u32), u32>,
    /// Rows in the first run's table.
    rows: Vec<u32>,
    /// By run the units' times.
    runs: Vec<Vec<u64>>,
    /// Of the first run.
    table: XuTable,
}

/// A unit over a side's runs. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct OverRuns {
    /// Median of the times that nothing disturbed.
    median_ns: f64,
    least_ns: u64,
    most_ns: u64,
    /// Runs in which nothing disturbed it, and in which something did.
    runs: u32,
    disturbed: u32,
    /// Row in the first run's table.
    row: u32,
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
        if self.runs.is_empty() {
            for (key, unit) in &found {
                self.at.insert(*key, self.rows.len() as u32);
                self.rows.push(unit.row);
            }
            self.table = table;
        }
        let mut times = vec![MISSING; self.rows.len()];
        for (key, unit) in &found {
            if let Some(&at) = self.at.get(key) {
                let mark = if unit.is_disturbed { DISTURBED } else { 0 };
                times[at as usize] = unit.own_ns.min(DISTURBED - 1) | mark;
            }
        }
        self.runs.push(times);
    }

    /// A unit that all runs have, and that nothing disturbed in one of them at least. `spare`: memory to be used again.
    fn over_runs(&self, at: u32, spare: &mut Vec<u64>) -> Option<OverRuns> {
        let times = || self.runs.iter().map(|run| run[at as usize]);
        if times().any(|t| t == MISSING) {
            return None; // it can't be compared
        }
        spare.clear();
        spare.extend(times().filter(|t| t & DISTURBED == 0));
        spare.sort_unstable();
        let (&least_ns, &most_ns) = (spare.first()?, spare.last()?);
        Some(OverRuns {
            median_ns: median(spare),
            least_ns,
            most_ns,
            runs: spare.len() as u32,
            disturbed: (self.runs.len() - spare.len()) as u32,
            row: self.rows[at as usize],
        })
    }

    /// The pair that each region's number belongs to.
    fn pairs(
        &self,
        keys: impl Fn(&Pair) -> &[ompfuse_account::RegionKey],
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

    fn label(&self, unit: &OverRuns) -> String {
        let label = self.table.label[unit.row as usize];
        let known: Option<Label> = self.table.labels.get(label, SHOWN);
        known.map_or_else(String::new, |l| l.to_string())
    }

    fn what(&self, unit: &OverRuns) -> String {
        let row = unit.row as usize;
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
struct Both {
    a: OverRuns,
    b: OverRuns,
    is_certain: bool,
}

impl Both {
    /// By how many nanoseconds its median is more on B.
    fn more_ns(&self) -> f64 {
        self.b.median_ns - self.a.median_ns
    }
}

/// Names in each pair the unit that got slower most: the median of its undisturbed times on B less that on A. One that is certain to
/// have got slower goes before all others.
///
/// The test is exact, whatever noise is like: if A and B were the same, all runs of B would be above all of A in one of
/// `(a + b)! / (a! b!)` orders. That times the number of units is the probability that any unit shows it by chance (Bonferroni). Runs in
/// which something disturbed the unit take no part.
pub fn add_slowest(pairs: &mut [Pair], a: &SideUnits, b: &SideUnits) {
    let of_a = a.pairs(|p| &p.a, pairs);
    let of_b = b.pairs(|p| &p.b, pairs);
    let mut spare = vec![];
    let mut theirs: FxHashMap<(u64, u32), OverRuns> = FxHashMap::default();
    for ((hash, region), &at) in &a.at {
        if let Some(pair) = of_a[*region as usize]
            && let Some(unit) = a.over_runs(at, &mut spare)
        {
            theirs.insert((*hash, pair), unit);
        }
    }
    // Where a simulator ran the program nothing has a time.
    let region_s: Vec<Option<f64>> = (pairs.iter())
        .map(|p| p.get(&Quantity::Time).and_then(|c| c.a))
        .collect();
    let mut slowest: Vec<Option<Both>> = vec![None; pairs.len()];
    for ((hash, region), &at) in &b.at {
        let Some(pair) = of_b[*region as usize] else {
            continue;
        };
        let (Some(&before), Some(region_s)) = (theirs.get(&(*hash, pair)), region_s[pair as usize])
        else {
            continue;
        };
        let Some(after) = b.over_runs(at, &mut spare) else {
            continue;
        };
        let mut found = Both {
            a: before,
            b: after,
            is_certain: false,
        };
        let more_ns = found.more_ns();
        if more_ns <= 0.0 {
            continue;
        }
        let p = theirs.len() as f64 / orders(before.runs, after.runs);
        found.is_certain = p <= LEVEL
            && after.least_ns > before.most_ns
            && more_ns >= LEAST_OF_UNIT * before.median_ns
            && more_ns * NS >= LEAST_OF_REGION * region_s;
        let best = &mut slowest[pair as usize];
        // Equal ones in the order of records, which does not depend on how maps are filled.
        let order = |u: &Both| (u.is_certain, u.more_ns());
        let is_more = best.as_ref().is_none_or(|known| {
            order(&found) > order(known)
                || (order(&found) == order(known) && after.row < known.b.row)
        });
        if is_more {
            *best = Some(found);
        }
    }
    for (pair, found) in pairs.iter_mut().zip(slowest) {
        pair.unit = found.map(|found| UnitChange {
            labels: [a.label(&found.a), b.label(&found.b)],
            what: b.what(&found.b),
            time_s: [found.a.median_ns * NS, found.b.median_ns * NS],
            disturbed: [found.a.disturbed, found.b.disturbed],
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
