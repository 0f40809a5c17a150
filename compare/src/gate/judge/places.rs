//! What an expression is about.

use super::Judge;
use crate::diff::{Lone, Pair};
use crate::gate::outcome::Problem;
use crate::gate::place::{Place, Values};
use crate::gate::{Gate, Subject, select};
use crate::side::{Each, Quantity, Sample, Side, SideRegion};
use crate::statistics::{both, each_of_both};
use ompfuse_account::model::key::RegionKey;

impl<'d> Judge<'d> {
    /// The program or regions, with their values.
    pub(super) fn places(
        &self,
        gate: &Gate,
        quantity: &Quantity,
    ) -> Result<Vec<Place<'d>>, Problem> {
        let Some(selector) = &gate.selector else {
            if select::is_of_program(quantity) {
                return Ok(vec![Place {
                    region: None,
                    is_needed: true,
                    a: self.a.total.clone(),
                    b: self.b.total.clone(),
                    uncounted: [self.a.uncounted.clone(), self.b.uncounted.clone()],
                    each: [self.a.each.clone(), self.b.each.clone()],
                    is_steady: self.is_steady(),
                }]);
            }
            let place = |pair| self.place(pair, |p| p.is_tested);
            let pairs = self.diff.pairs.iter().map(place);
            return Ok(pairs.chain(self.lone(gate, quantity)).collect());
        };
        let matched = self.diff.pairs.iter().filter(|pair| {
            let mut keys = pair.a.iter().chain(&pair.b);
            keys.any(|key| select::matches(selector, key))
        });
        let matched = matched.map(|pair| self.place(pair, |_| true));
        let matched: Vec<Place<'d>> = matched.chain(self.lone(gate, quantity)).collect();
        if !matched.is_empty() {
            return Ok(matched);
        }
        let lone = |list: &[Lone], side: &Side| {
            let lone = list
                .iter()
                .find(|lone| select::matches(selector, &lone.key))?;
            Some(Problem::NoPartner {
                selector: selector.text().to_owned(),
                side: side.origin.name.clone(),
                region: Box::new(lone.key.clone()),
            })
        };
        let lone = lone(&self.diff.only_b, self.b).or_else(|| lone(&self.diff.only_a, self.a));
        Err(lone.unwrap_or_else(|| Problem::NoRegion {
            selector: selector.text().to_owned(),
        }))
    }

    /// Regions that are certain to be on one side only, which the other side executes never.
    fn lone(&self, gate: &Gate, quantity: &Quantity) -> Vec<Place<'d>> {
        let is_change = gate.subject == Subject::Change(Quantity::Executions);
        let is_meant = |lone: &&'d Lone| {
            let selector = gate.selector.as_ref();
            lone.is_certain() && selector.is_none_or(|s| select::matches(s, &lone.key))
        };
        let values = |lone: &Lone, side: usize| -> Option<[Values; 2]> {
            let executions = *self.regions[side].get(&lone.key)?.values.get(quantity)?;
            let of = |sample| Values::from([(quantity.clone(), sample)]);
            Some([of(executions), of(Sample::Same(executions.runs(), 0.0))])
        };
        let place = |lone: &'d Lone, a, b| Place {
            region: Some(&lone.key),
            is_needed: false,
            a,
            b,
            uncounted: [None, None],
            each: [Each::new(), Each::new()],
            is_steady: self.is_steady(),
        };
        let only_a = self.diff.only_a.iter().filter(is_meant).filter_map(|lone| {
            let [own, none] = values(lone, 0)?;
            Some(place(lone, own, none))
        });
        let only_b = self.diff.only_b.iter().filter(is_meant).filter_map(|lone| {
            let [own, none] = values(lone, 1)?;
            Some(place(lone, none, own))
        });
        match is_change {
            true => only_a.chain(only_b).collect(),
            false => vec![],
        }
    }

    fn is_steady(&self) -> bool {
        self.a.origin.is_steady && self.b.origin.is_steady
    }

    fn place(&self, pair: &'d Pair, is_needed: impl Fn(&Pair) -> bool) -> Place<'d> {
        let of = |keys: &[RegionKey], side: usize| -> Vec<&'d SideRegion> {
            let regions = keys.iter().filter_map(|key| self.regions[side].get(key));
            regions.copied().collect()
        };
        let (of_a, of_b) = (of(&pair.a, 0), of(&pair.b, 1));
        let [a, b] = both(&of_a, &of_b);
        let each = each_of_both(&of_a, &of_b);
        Place {
            region: pair.b.first(),
            is_needed: is_needed(pair),
            a: a.into_owned(),
            b: b.into_owned(),
            uncounted: [self.a.uncounted_of(&of_a), self.b.uncounted_of(&of_b)],
            each: each.map(std::borrow::Cow::into_owned),
            is_steady: self.is_steady(),
        }
    }
}
