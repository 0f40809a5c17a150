//! Which regions of two builds are the same construct of the source.
//!
//! From the most to the least certain sign: the address in the same build; file, line, construct and the order in the function
//! (`source`); the function in another file (`moved`), or its parts (`divided`); the callers (`callers`); the units' places in the tree of regions, the parent,
//! and behaviour (`tree`). What no sign tells apart is a group. Waits tell nothing of other regions and come last (`waits`).
//! Rather unmatched than wrong: where two answers are about as good there is none.

mod align;
mod callers;
mod divided;
mod moved;
mod source;
#[cfg(test)]
mod tests;
mod tree;
mod waits;

use super::diff::{Basis, Confidence, Matched};
use super::side::{Quantity, Side, SideRegion};
use ompfuse_format::Construct;
use ompfuse_format::detail::{Detail, Kind};
use std::collections::BTreeSet;

/// What belongs together, and what doesn't.
#[derive(Debug, Clone, PartialEq)]
pub struct Matching<'a> {
    /// Regions that belong together.
    pub pairs: Vec<Matched<'a>>,
    /// Regions of A without a partner.
    pub only_a: Vec<&'a SideRegion>,
    /// Regions of B without one.
    pub only_b: Vec<&'a SideRegion>,
}

impl Matching<'_> {
    /// Share of each side's time in regions that is matched; 1 where there is none.
    pub fn share(&self) -> [f64; 2] {
        let lost = |lone: &[&SideRegion]| lone.iter().map(|r| r.share).sum::<f64>();
        [&self.only_a, &self.only_b].map(|lone| (1.0 - lost(lone)).clamp(0.0, 1.0))
    }
}

/// Matches the regions of two sides.
pub fn matched<'a>(a: &'a Side, b: &'a Side) -> Matching<'a> {
    let mut work = Work::new(a, b);
    work.same_build();
    source::run(&mut work);
    divided::run(&mut work);
    callers::run(&mut work);
    tree::run(&mut work);
    waits::run(&mut work);
    work.finish()
}

/// For each side which of its regions an address or a source line tells.
pub(super) fn sure(a: &Side, b: &Side) -> [Vec<bool>; 2] {
    let mut work = Work::new(a, b);
    work.same_build();
    source::run(&mut work);
    [work.of_a, work.of_b].map(|of| of.iter().map(Option::is_some).collect())
}

/// Positions of regions that belong together.
#[derive(Debug)]
struct Found {
    a: Vec<usize>,
    b: Vec<usize>,
    basis: Basis,
    confidence: Confidence,
    is_group: bool,
}

/// What is known so far.
struct Work<'a> {
    a: &'a Side,
    b: &'a Side,
    /// Position in `found` of each region's match.
    of_a: Vec<Option<usize>>,
    of_b: Vec<Option<usize>>,
    found: Vec<Found>,
    /// Whether both executed the same: then counts that differ tell regions apart.
    is_same_input: bool,
    /// File names of modules that both have.
    shared_modules: BTreeSet<&'a str>,
}

impl<'a> Work<'a> {
    fn new(a: &'a Side, b: &'a Side) -> Work<'a> {
        let modules = |side: &'a Side| -> BTreeSet<&'a str> {
            side.regions.iter().map(|r| r.key.module.as_str()).collect()
        };
        Work {
            of_a: vec![None; a.regions.len()],
            of_b: vec![None; b.regions.len()],
            found: vec![],
            is_same_input: a.origin.args_hash == b.origin.args_hash
                && a.origin.team == b.origin.team,
            shared_modules: modules(a).intersection(&modules(b)).copied().collect(),
            a,
            b,
        }
    }

    /// The share of the regions' time that is matched so far, of the side with less.
    fn share(&self) -> f64 {
        let of = |side: &Side, of: &[Option<usize>]| -> f64 {
            let lone = side.regions.iter().zip(of).filter(|(_, of)| of.is_none());
            1.0 - lone.map(|(region, _)| region.share).sum::<f64>()
        };
        of(self.a, &self.of_a).min(of(self.b, &self.of_b))
    }

    fn pair(&mut self, a: usize, b: usize, basis: Basis, confidence: Confidence) {
        self.many(vec![a], vec![b], basis, confidence, false);
    }

    fn many(
        &mut self,
        a: Vec<usize>,
        b: Vec<usize>,
        basis: Basis,
        confidence: Confidence,
        is_group: bool,
    ) {
        let at = Some(self.found.len());
        a.iter().for_each(|&n| self.of_a[n] = at);
        b.iter().for_each(|&n| self.of_b[n] = at);
        self.found.push(Found {
            a,
            b,
            basis,
            confidence,
            is_group,
        });
    }

    /// Regions of A without a match, waits left out.
    fn free_a(&self) -> impl Iterator<Item = usize> {
        let is_free = |&n: &usize| self.of_a[n].is_none() && !self.a.regions[n].is_wait();
        (0..self.of_a.len()).filter(is_free)
    }

    /// Likewise of B.
    fn free_b(&self) -> impl Iterator<Item = usize> {
        let is_free = |&n: &usize| self.of_b[n].is_none() && !self.b.regions[n].is_wait();
        (0..self.of_b.len()).filter(is_free)
    }

    /// The module where both sides have one of that name; builds of one program may be called differently.
    fn module(&self, region: &'a SideRegion) -> Option<&'a str> {
        let name = region.key.module.as_str();
        self.shared_modules.contains(name).then_some(name)
    }

    /// Whether nothing that both regions' sources and behaviours tell speaks against them.
    fn may_match(&self, a: &'a SideRegion, b: &'a SideRegion) -> bool {
        a.key.construct == b.key.construct
            && a.key.name == b.key.name
            && self.module(a) == self.module(b)
            && match (&a.key.function, &b.key.function) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
            && !callers::differ(a, b)
    }

    /// The same build has its regions where they were. What is not there on one side was not executed.
    fn same_build(&mut self) {
        let builds = |side: &'a Side| -> BTreeSet<&'a str> {
            side.regions.iter().map(|r| r.key.build.as_str()).collect()
        };
        let shared: BTreeSet<&str> = builds(self.a)
            .intersection(&builds(self.b))
            .copied()
            .collect();
        let key =
            |r: &'a SideRegion| (r.key.build.as_str(), r.key.construct, r.key.name.as_deref());
        let mut known = std::collections::HashMap::new();
        for (at, region) in self.b.regions.iter().enumerate() {
            for address in &region.key.addresses {
                known.insert((key(region), *address), at);
            }
            if region.key.addresses.is_empty() {
                known.insert((key(region), ompfuse_format::site::HexAddress(0)), at);
            }
        }
        for (at, region) in self.a.regions.iter().enumerate() {
            let build = region.key.build.as_str();
            // Regions that the user names have no build, and are known by that name.
            let is_named = build.is_empty() && region.key.name.is_some();
            if !shared.contains(build) || (build.is_empty() && !is_named) {
                continue;
            }
            let none = [ompfuse_format::site::HexAddress(0)];
            let addresses = match region.key.addresses.is_empty() {
                true => &none[..],
                false => &region.key.addresses,
            };
            let same = addresses.iter().find_map(|a| known.get(&(key(region), *a)));
            if let Some(&other) = same.filter(|&&n| self.of_b[n].is_none()) {
                self.pair(at, other, Basis::Address, Confidence::Certain);
            }
        }
    }

    /// Whether a region's build is on the other side too: then its address would have told.
    fn is_settled(&self, a: &SideRegion, b: &SideRegion) -> bool {
        let has =
            |side: &Side, build: &str| !build.is_empty() && side.origin.modules.contains_key(build);
        has(self.b, &a.key.build) || has(self.a, &b.key.build)
    }

    fn finish(self) -> Matching<'a> {
        let (a, b) = (self.a, self.b);
        let of = |side: &'a Side, list: &[usize]| -> Vec<&'a SideRegion> {
            list.iter().map(|&n| &side.regions[n]).collect()
        };
        let pairs = self.found.iter().map(|found| Matched {
            a: of(a, &found.a),
            b: of(b, &found.b),
            basis: found.basis,
            confidence: found.confidence,
            is_group: found.is_group,
        });
        let [waits_a, waits_b] = waits::free(&self);
        let free_a: Vec<usize> = self.free_a().chain(waits_a).collect();
        let free_b: Vec<usize> = self.free_b().chain(waits_b).collect();
        Matching {
            pairs: pairs.collect(),
            only_a: of(a, &free_a),
            only_b: of(b, &free_b),
        }
    }
}

/// Whether two loops' executions can't be compared: gcc enters a loop without iterations where it asks the runtime for its ranges, and
/// clang tests first. Their iterations agree then.
pub(super) fn may_be_empty(a: &SideRegion, b: &SideRegion) -> bool {
    let asks = |r: &SideRegion| {
        let schedule = r.key.schedule.as_deref();
        let kind = schedule.and_then(|s| Detail(s).kind());
        r.key.construct == Construct::Loop && kind != Some(Kind::Static)
    };
    let both = |quantity: &Quantity| a.constant(quantity).zip(b.constant(quantity));
    let differ = both(&Quantity::Executions).is_some_and(|(x, y)| x != y);
    let same = both(&Quantity::Iterations).is_some_and(|(x, y)| x == y);
    a.key.build != b.key.build && asks(a) && asks(b) && differ && same
}

/// How two regions' counts agree: `Some(true)` if they do, `None` if nothing is known.
fn agree(a: &SideRegion, b: &SideRegion) -> Option<bool> {
    if may_be_empty(a, b) {
        return None;
    }
    let mut known = None;
    for quantity in [Quantity::Executions, Quantity::Iterations] {
        if let (Some(x), Some(y)) = (a.constant(&quantity), b.constant(&quantity)) {
            if x != y {
                return Some(false);
            }
            known = Some(true);
        }
    }
    known
}

/// Whether regions of both sides together do the same: executions, which must be known, and iterations.
fn sums_agree(work: &Work<'_>, a: &[usize], b: &[usize]) -> bool {
    let sum = |regions: &[SideRegion], list: &[usize], quantity: &Quantity| -> Option<f64> {
        list.iter().map(|&n| regions[n].constant(quantity)).sum()
    };
    let both = |quantity: &Quantity| {
        let of_a = sum(&work.a.regions, a, quantity);
        (of_a, sum(&work.b.regions, b, quantity))
    };
    let (x, y) = both(&Quantity::Executions);
    let (p, q) = both(&Quantity::Iterations);
    x.is_some() && x == y && p == q
}

/// Whether the places of the units agree; `None` if they aren't known.
fn places_agree(a: &SideRegion, b: &SideRegion) -> Option<bool> {
    Some(a.places.as_ref()? == b.places.as_ref()?)
}
