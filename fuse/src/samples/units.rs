//! Execution units with their samples: what is needed to compare slow units with fast ones.

use super::asleep::StopKey;
use super::region::Work;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Most units of a run that are compared: memory is some 100 bytes for each.
const MOST: usize = 1_000_000;

/// An execution unit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnitSum {
    /// Its own time, without what is nested in it, in nanoseconds.
    pub own_ns: u64,
    /// Iterations of a range; 1 of other units.
    pub iterations: u64,
    /// Samples in it, whatever code it was.
    pub seen: u64,
    /// Instructions that its code has counted.
    pub instructions: u64,
    /// They are not known of a part of it.
    pub has_no_count: bool,
    /// Of its own time the thread had no processor, because it wanted none.
    pub asleep_ns: u64,
    /// Of its own time the thread had no processor, and would have gone on.
    pub interrupted_ns: u64,
}

/// A sample in an execution unit, in the program's code or that of its libraries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitSample {
    /// Position in [`SiteUnits::units`].
    pub unit: u32,
    /// As [`LineSum::place`](super::LineSum::place), and [`callee`](super::LineSum::callee).
    pub line: (Option<u32>, Option<u32>),
    /// The functions that it is in, by number ([`Lines::functions`](super::Lines::functions)), each once.
    pub functions: Box<[u32]>,
    /// Its code counts its instructions.
    pub is_counted: bool,
}

/// Where a unit's thread had stopped that had given its processor away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnitStop {
    /// Position in [`SiteUnits::units`].
    pub unit: u32,
    /// The place, and the number of the system call.
    pub at: StopKey,
    /// How long.
    pub ns: u64,
}

/// The units of a site.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteUnits {
    /// In no order.
    pub units: Vec<UnitSum>,
    /// Their samples, without those that may be another unit's.
    pub samples: Vec<UnitSample>,
    /// Where they had stopped, as far as that was seen.
    pub stops: Vec<UnitStop>,
}

/// A unit: its site, process and node.
pub(super) type UnitKey = (u32, u16, u64);

/// Units under construction.
#[derive(Debug, Default)]
pub(super) struct Units {
    known: FxHashMap<UnitKey, u32>,
    sites: BTreeMap<u32, SiteUnits>,
}

impl Units {
    fn number(&mut self, key: UnitKey) -> Option<u32> {
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if self.known.len() == MOST {
            return None;
        }
        let units = &mut self.sites.entry(key.0).or_default().units;
        let number = units.len() as u32;
        units.push(UnitSum::default());
        self.known.insert(key, number);
        Some(number)
    }

    /// Adds to a unit.
    pub(super) fn add(&mut self, key: UnitKey, add: impl FnOnce(&mut UnitSum)) {
        if let Some(number) = self.number(key) {
            let site = self.sites.get_mut(&key.0);
            site.and_then(|s| s.units.get_mut(number as usize)).map(add);
        }
    }

    pub(super) fn sample(&mut self, key: UnitKey, work: &Work) {
        let Some(unit) = self.number(key) else {
            return;
        };
        if let Some(site) = self.sites.get_mut(&key.0) {
            site.samples.push(UnitSample {
                unit,
                line: work.line,
                functions: work.functions.as_slice().into(),
                is_counted: work.is_counted,
            });
        }
    }

    pub(super) fn stop(&mut self, key: UnitKey, at: StopKey, ns: u64) {
        let Some(unit) = self.number(key) else {
            return;
        };
        if let Some(site) = self.sites.get_mut(&key.0) {
            site.stops.push(UnitStop { unit, at, ns });
        }
    }

    /// By site. With too many units to compare there are none: some would be missing.
    pub(super) fn finish(self) -> BTreeMap<u32, SiteUnits> {
        match self.known.len() {
            MOST => BTreeMap::new(),
            _ => self.sites,
        }
    }
}
