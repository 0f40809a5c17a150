//! Counts that some code has no part in: where that code does much of the work, they tell nothing.

use super::Judge;
use crate::gate::outcome::{Doubt, NotCounted};
use crate::gate::place::{Place, Values};
use crate::gate::{Gate, Subject, select};
use crate::side::{Quantity, Sample};
use crate::statistics::difference;
use ompfuse_account::model::UncountedWork;

impl<'d> Judge<'d> {
    /// Takes the places out whose work is in code that isn't counted to a large part, and says so instead.
    pub(super) fn hidden(
        &self,
        gate: &Gate,
        wanted: &Quantity,
        places: Vec<Place<'d>>,
    ) -> (Vec<Place<'d>>, Vec<Doubt>) {
        let doubts: Vec<Option<Doubt>> = places
            .iter()
            .map(|place| self.hides(gate, wanted, place))
            .collect();
        if doubts.iter().all(Option::is_none) {
            return (places, vec![]);
        }
        // Small regions don't decide, unless there is nothing else.
        let is_any_needed = places.iter().any(|p| p.is_needed);
        let (mut known, mut hidden) = (vec![], vec![]);
        for (place, doubt) in places.into_iter().zip(doubts) {
            let is_told = place.is_needed || !is_any_needed;
            let is_measured = has(gate, wanted, &place);
            match doubt {
                Some(doubt) => hidden.extend(is_told.then_some(doubt)),
                None => known.extend(is_measured.then_some(place)),
            }
        }
        (known, hidden)
    }

    fn hides(&self, gate: &Gate, wanted: &Quantity, place: &Place<'d>) -> Option<Doubt> {
        let quantity = meant(gate, wanted, place);
        if !quantity.is_by_functions() || !has(gate, wanted, place) {
            return None;
        }
        let sides = [&self.a.origin.name, &self.b.origin.name].into_iter();
        let all = sides.zip(&place.uncounted);
        let all = all.skip(usize::from(is_of_b(gate)));
        let much = all.filter_map(|(name, work)| Some((name, work.as_ref()?)));
        let much = much.filter(|(_, work)| work.is_much());
        let share = |work: &UncountedWork| work.uncounted as f64 / work.work as f64;
        let (side, work) = much.max_by(|a, b| share(a.1).total_cmp(&share(b.1)))?;
        let typical = |values: &Values| values.get(&quantity).map(Sample::typical);
        let [a, b] = [&place.a, &place.b].map(typical);
        Some(Doubt {
            region: place.region.cloned(),
            change: difference(&quantity, a, b).filter(|_| !is_of_b(gate)),
            quantity,
            could_see: None,
            runs_needed: None,
            uncounted: Some(NotCounted {
                side: side.clone(),
                work: work.clone(),
            }),
        })
    }
}

/// Whether the expression is about a value of B.
fn is_of_b(gate: &Gate) -> bool {
    matches!(gate.subject, Subject::Value(_))
}

fn meant(gate: &Gate, wanted: &Quantity, place: &Place<'_>) -> Quantity {
    let a = if is_of_b(gate) { &place.b } else { &place.a };
    select::meant(wanted, place.is_whole(), [a, &place.b])
}

/// Whether a place has the quantity.
fn has(gate: &Gate, wanted: &Quantity, place: &Place<'_>) -> bool {
    let quantity = meant(gate, wanted, place);
    place.b.contains_key(&quantity) && (is_of_b(gate) || place.a.contains_key(&quantity))
}
