//! Questions for the thread's number before a cycle. A construct that shares work is met by all threads of a team or none, so
//! what one thread alone comes to is no loop of OpenMP's, whatever it is stepped by.

use super::super::{Analysis, Decision, NaturalLoop, master};
use super::compare::{constant_bound, leads_into};
use crate::scan::value::Value;

/// The last block before the cycle that asks which thread this is, and goes to the cycle on one of its ways only; and that way.
pub(super) fn before(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Option<(usize, usize)> {
    let divides = |block: usize, decision: &Decision| {
        master::filter(decision)?;
        if cycle.blocks.contains(&block) || !a.dom.dominates(block, cycle.header) {
            return None;
        }
        let succs = a.body.blocks[block].succs.iter().copied();
        let mut ways = succs.filter(|&s| leads_into(a, block, s, cycle));
        match (ways.next(), ways.next()) {
            (Some(way), None) => Some((block, way)),
            _ => None,
        }
    };
    let found = a.decisions.iter().filter_map(|(&b, d)| divides(b, d));
    found.reduce(|x, y| if a.dom.dominates(x.0, y.0) { y } else { x })
}

/// Whether the cycle is one of chunks that the first thread (of a `master` before it) comes to on a way of its own, without a
/// comparison: a number of threads is added to what its way out compares, and the other threads compare what comes from their
/// numbers with the same bound before they go to the cycle.
pub(super) fn goes_around(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let mut ways_out = cycle.blocks.iter().filter(|&&b| a.leaves(b, cycle));
    let (Some(way_out), None) = (ways_out.next(), ways_out.next()) else {
        return false;
    };
    let Some(leaves) = a.decisions.get(way_out) else {
        return false;
    };
    if !compares(leaves, Value::is_from_threads) {
        return false;
    }
    let bound = constant_bound(leaves, Value::is_from_threads);
    let others = |block: usize, decision: &Decision| {
        let ways = a.body.blocks[block].succs.iter();
        !cycle.blocks.contains(&block)
            && compares(decision, Value::is_from_thread)
            && constant_bound(decision, Value::is_from_thread) == bound
            && ways.filter(|&&s| leads_into(a, block, s, cycle)).count() == 1
            && !a.dom.dominates(block, cycle.header)
    };
    let divides = |block: usize, decision: &Decision| {
        let ways = a.body.blocks[block].succs.iter();
        master::filter(decision).is_some()
            && !cycle.blocks.contains(&block)
            && a.dom.dominates(block, cycle.header)
            && ways.filter(|&&s| leads_into(a, block, s, cycle)).count() == 2
    };
    let mut questions = a.decisions.iter().filter(|&(&b, d)| divides(b, d));
    questions.any(|(&q, _)| {
        let mut behind = a.decisions.iter().filter(|&(&b, _)| a.dom.dominates(q, b));
        behind.any(|(&b, d)| others(b, d))
    })
}

/// Whether it asks for the order of a value of this kind and a bound.
fn compares(decision: &Decision, is_start: fn(Value) -> bool) -> bool {
    let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
    let (x, y) = decision.values;
    decision.is_ordering() && (is_start(x) && bound(y) || is_start(y) && bound(x))
}
