//! What an expression is about: the program, or matched regions.

use super::outcome::Hit;
use crate::side::{Each, Quantity, Sample};
use crate::statistics::{Compared, Noisy, compared};
use ompfuse_account::model::UncountedWork;
use ompfuse_account::model::key::RegionKey;
use std::collections::BTreeMap;

pub(super) type Values = BTreeMap<Quantity, Sample>;

/// Something that an expression is about.
pub(super) struct Place<'d> {
    pub(super) region: Option<&'d RegionKey>,
    /// Whether a missing value is an error.
    pub(super) is_needed: bool,
    /// Whether both sides are ([`Origin::is_steady`](crate::side::Origin)).
    pub(super) is_steady: bool,
    pub(super) a: Values,
    pub(super) b: Values,
    /// What of the work is in no count of its functions, as far as it is known.
    pub(super) uncounted: [Option<UncountedWork>; 2],
    /// Run by run.
    pub(super) each: [Each; 2],
}

impl Place<'_> {
    /// How a quantity compares.
    pub(super) fn compared(&self, quantity: &Quantity, a: &Sample, b: &Sample) -> Compared {
        let [each_a, each_b] = &self.each;
        compared(quantity, [a, b], self.is_steady).by_pairs(quantity, [each_a, each_b])
    }

    /// Whether its time is its wall time: of the program, and of parallel regions, as everywhere else.
    pub(super) fn is_whole(&self) -> bool {
        let has_wall = |values: &Values| values.contains_key(&Quantity::Wall);
        self.region.is_none() || (has_wall(&self.a) && has_wall(&self.b))
    }

    /// How the medians of its units differ, if there are as many units on both sides, all of one kind: that may tell what its time is
    /// too noisy to tell.
    pub(super) fn by_units(&self) -> Option<(Hit, Noisy)> {
        let of = |quantity: &Quantity| self.a.get(quantity).zip(self.b.get(quantity));
        let is_same = |quantity: &Quantity| {
            let (a, b) = of(quantity)?;
            Some(self.compared(quantity, a, b) == Compared::Equal)
        };
        if self.is_whole() || is_same(&Quantity::Units) != Some(true) {
            return None;
        }
        let quantity = Quantity::MedianUnit;
        let (a, b) = of(&quantity)?;
        let Compared::Noisy(noisy) = self.compared(&quantity, a, b) else {
            return None;
        };
        let hit = Hit {
            region: self.region.cloned(),
            quantity: Some(quantity),
            a: Some(noisy.value(0)),
            b: Some(noisy.value(1)),
            change: noisy.change(),
            p: Some(noisy.p()),
        };
        Some((hit, noisy))
    }
}
