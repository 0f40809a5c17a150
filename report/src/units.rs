//! What is shown of single execution units where there may be millions: histograms, a sample, the longest ones.

mod histogram;
mod lanes;

pub use histogram::Histogram;
pub use lanes::Gather;

use ompfuse_format::Construct;
use ompfuse_fuse::XuTable;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use xxhash_rust::xxh3::xxh3_64;

/// Units that are kept of a region as a sample, at most.
pub const SAMPLE: usize = 1500;
/// The longest units of a region that are kept.
pub const LONGEST: usize = 10;
/// Components of a label that is shown.
const SHOWN: usize = 64;

/// A unit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unit {
    /// Own time in nanoseconds.
    pub own_ns: u64,
    /// MPI rank of its process, if it has one.
    pub rank: Option<u32>,
    /// Number of its thread in its process.
    pub thread: u32,
    /// Kind: range, section or task; `None` in foreign tables.
    pub kind: Option<Construct>,
    /// A range's first iteration, a section's number, a task's rank.
    pub first: i64,
    /// Iterations; 0 if there are none.
    pub iterations: u64,
    /// Begin in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// Counts, in the order of [`Units::events`].
    pub counts: Vec<Option<u64>>,
    /// Its label, of the longest ones.
    pub label: Option<String>,
}

/// The units of a site.
#[derive(Debug, Clone, Default)]
pub struct SiteUnits {
    /// Own times of all of them.
    pub histogram: Histogram,
    /// Those whose numbers have the smallest hashes: as good as random, and equal each time.
    sample: BinaryHeap<(u64, Unit)>,
    longest: BinaryHeap<Reverse<Unit>>,
}

/// The units of a run or profile, by site.
#[derive(Debug, Clone, Default)]
pub struct Units {
    /// The events that they have counts of.
    pub events: Vec<String>,
    sites: HashMap<(String, String), SiteUnits>,
    seen: u64,
}

impl Units {
    /// Adds units, a piece of a run's or profile's.
    pub fn add(&mut self, table: &XuTable) {
        if self.seen == 0 {
            self.events = table.events.iter().map(|e| e.name.clone()).collect();
        }
        let mut by_site: Vec<SiteUnits> = Vec::with_capacity(table.sites.len());
        for site in table.sites.iter() {
            let key = (site.module.clone(), site.name.clone());
            by_site.push(self.sites.remove(&key).unwrap_or_default());
        }
        for row in 0..table.len() {
            self.seen += 1;
            let Some(site) = by_site.get_mut(table.site[row] as usize) else {
                continue;
            };
            site.add(xxh3_64(&self.seen.to_le_bytes()), table, row);
        }
        for (site, units) in table.sites.iter().zip(by_site) {
            let key = (site.module.clone(), site.name.clone());
            if units.histogram.count() > 0 {
                self.sites.insert(key, units);
            }
        }
    }

    /// The same with modules of other names, as those of a redacted report.
    #[must_use]
    pub fn renamed(self, name: impl Fn(&str) -> String) -> Units {
        let sites = self.sites.into_iter();
        Units {
            sites: sites.map(|((m, site), u)| ((name(&m), site), u)).collect(),
            ..self
        }
    }

    /// All units that were added.
    pub fn count(&self) -> u64 {
        self.seen
    }

    /// The units of some sites, each a module and a name, together; `None`: they have none.
    pub(crate) fn of<'s>(
        &self,
        sites: impl IntoIterator<Item = (&'s str, &'s str)>,
    ) -> Option<SiteUnits> {
        let mut found: Option<SiteUnits> = None;
        for (module, name) in sites {
            let Some(units) = self.sites.get(&(module.to_owned(), name.to_owned())) else {
                continue;
            };
            match &mut found {
                Some(known) => known.merge(units),
                None => found = Some(units.clone()),
            }
        }
        found
    }
}

impl SiteUnits {
    fn add(&mut self, hash: u64, table: &XuTable, row: usize) {
        let process = table.processes.get(table.process[row] as usize);
        let unit = || Unit {
            own_ns: table.own_ns[row],
            rank: process.and_then(|p| p.mpi_rank),
            thread: table.thread[row],
            kind: table.construct[row],
            first: table.first[row],
            iterations: table.iterations[row],
            begin_ns: table.t0_ns[row],
            counts: table.events.iter().map(|e| e.get(row)).collect(),
            label: None,
        };
        let label = || table.label_text(row, SHOWN);
        self.take(hash, table.own_ns[row], unit, label);
    }

    /// Adds a unit, of which more than its time is asked for only if it is in the sample or one of the longest.
    fn take(
        &mut self,
        hash: u64,
        own_ns: u64,
        unit: impl FnOnce() -> Unit,
        label: impl FnOnce() -> Option<String>,
    ) {
        self.histogram.add(own_ns);
        let is_sampled =
            self.sample.len() < SAMPLE || self.sample.peek().is_some_and(|(most, _)| hash < *most);
        let is_long = self.longest.len() < LONGEST
            || self.longest.peek().is_some_and(|u| own_ns > u.0.own_ns);
        if !is_sampled && !is_long {
            return;
        }
        let mut unit = unit();
        if is_sampled {
            self.sample.push((hash, unit.clone()));
            if self.sample.len() > SAMPLE {
                self.sample.pop();
            }
        }
        if is_long {
            unit.label = label();
            self.longest.push(Reverse(unit));
            if self.longest.len() > LONGEST {
                self.longest.pop();
            }
        }
    }

    fn merge(&mut self, other: &SiteUnits) {
        let SiteUnits {
            histogram,
            sample,
            longest,
        } = other;
        self.histogram.merge(histogram);
        self.sample.extend(sample.iter().cloned());
        while self.sample.len() > SAMPLE {
            self.sample.pop();
        }
        self.longest.extend(longest.iter().cloned());
        while self.longest.len() > LONGEST {
            self.longest.pop();
        }
    }

    /// At most so many of the sample, in an order that does not depend on what they are.
    pub(crate) fn sample(&self, most: usize) -> impl Iterator<Item = &Unit> {
        let mut all: Vec<&(u64, Unit)> = self.sample.iter().collect();
        all.sort();
        all.into_iter().take(most).map(|(_, unit)| unit)
    }

    /// The longest, first the longest.
    pub(crate) fn longest(&self) -> Vec<&Unit> {
        let mut all: Vec<&Unit> = self.longest.iter().map(|r| &r.0).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}
