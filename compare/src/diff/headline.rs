//! The change that stands for a region, or for the program.

use super::{Change, Finding, Interval};
use crate::side::Quantity;

/// The change that stands for all. `by_units`: whether the median unit may.
pub(crate) fn headline(changes: &[Change], by_units: bool) -> Option<&Change> {
    let known = || changes.iter().filter(|c| c.a.is_some() && c.b.is_some());
    let of = |wanted: Quantity| known().find(|c| c.quantity == wanted);
    let time = of(Quantity::Wall).or_else(|| of(Quantity::Time));
    let is_changed = |c: &&Change| c.finding == Finding::Changed;
    let units = of(Quantity::MedianUnit).filter(|c| by_units && is_changed(c));
    let is_vague = |time: &Change| match (time.interval, units.and_then(|u| u.interval)) {
        _ if !is_changed(&time) => true,
        (Some(of_time), Some(of_units)) => of_time.has(of_units),
        _ => false,
    };
    (units.filter(|_| time.is_some_and(is_vague)))
        .or(time)
        .or_else(|| known().find(|c| c.quantity.is_instructions()))
        .or_else(|| of(Quantity::Executions))
}

impl Interval {
    /// Whether another one lies within it.
    fn has(&self, other: Interval) -> bool {
        self.low <= other.low && other.high <= self.high
    }
}
