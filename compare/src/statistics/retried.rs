//! Instructions that threads execute again because others were in their way.
//!
//! An atomic update of a floating-point number is a loop around `cmpxchg`: where two threads meet it is executed once more, so equal runs
//! of one build can differ by a few instructions, under the simulator too.

use super::Draft;
use crate::diff::Finding;
use crate::side::{Quantity, Sample};
use std::collections::BTreeMap;

/// Differences of an event below this share of the program's count on A are no change, in whatever region.
const RETRIED: f64 = 1e-5;

/// Whether two counts of an event differ by so little. `total`: the program's values on A. Never of counts that no event made.
pub(crate) fn is_retried(
    quantity: &Quantity,
    values: [f64; 2],
    total: &BTreeMap<Quantity, Sample>,
) -> bool {
    matches!(quantity, Quantity::Event(_))
        && total
            .get(quantity)
            .is_some_and(|all| (values[1] - values[0]).abs() < RETRIED * all.typical())
}

/// Takes such differences for none, and those of the same counts per unit.
pub(super) fn forgive(list: &mut [Draft], total: &BTreeMap<Quantity, Sample>) {
    let mut forgiven: Vec<Quantity> = vec![];
    for (change, _) in list.iter_mut() {
        let (Some(a), Some(b), Finding::Changed) = (change.a, change.b, &change.finding) else {
            continue;
        };
        if is_retried(&change.quantity, [a, b], total) {
            let all = total[&change.quantity].typical();
            change.finding = Finding::NotSeen {
                could_see: (a > 0.0).then(|| RETRIED * all / a),
            };
            if let Quantity::Event(name) = &change.quantity {
                forgiven.push(Quantity::EventPerUnit(name.clone()));
            }
        }
    }
    let units = |(change, _): &Draft| {
        change.quantity == Quantity::Units && change.finding != Finding::Equal
    };
    if list.iter().any(units) {
        return;
    }
    for (change, _) in list.iter_mut() {
        if change.finding == Finding::Changed && forgiven.contains(&change.quantity) {
            change.finding = Finding::NotSeen { could_see: None };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_instructions_are_no_change() {
        let event = Quantity::Event("sim-instructions".to_owned());
        let total = BTreeMap::from([(event.clone(), Sample::Same(1, 11_310_835.0))]);
        assert!(is_retried(&event, [48.0, 56.0], &total));
        assert!(!is_retried(&event, [48.0, 200.0], &total));
        assert!(!is_retried(&Quantity::Units, [48.0, 56.0], &total));
    }
}
