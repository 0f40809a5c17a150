//! Questions for the thread's number before a cycle. A construct that shares work is met by all threads of a team or none, so
//! what one thread alone comes to is no loop of OpenMP's, whatever it is stepped by.

use super::super::{Analysis, Decision, NaturalLoop, master};
use super::compare::{begins_chunks, constant_bound, leads_into};
use super::forms::Question;
use crate::scan::flow::value::Value;
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// The last block before the cycle that asks which thread this is, and goes to the cycle on one of its ways only; and that way.
/// `at`: the comparison of the loop's first chunk, if it has one; `firsts`: the blocks with those of all loops.
pub(super) fn before(
    a: &Analysis<'_, '_>,
    at: Option<u64>,
    cycle: &NaturalLoop,
    firsts: &BTreeSet<usize>,
) -> Option<Question> {
    let own = at.and_then(|at| a.body.block_at(at));
    let own = own.and_then(|b| constant_bound(a.decisions.get(&b)?, Value::is_from_thread));
    let divides = |block: usize, decision: &Decision| {
        // Who has no chunk in one loop may have none in the next one, and go past both.
        let ordered = !firsts.contains(&block)
            && rank_bound(decision).is_some_and(|b| Some(b) != own && is_no_bound(a, b, cycle));
        if master::filter(decision).is_none() && !ordered {
            return None;
        }
        if cycle.blocks.contains(&block) {
            return None;
        }
        let succs = a.body.blocks[block].succs.iter().copied();
        let mut ways = succs.filter(|&s| leads_into(a, block, s, cycle));
        match (ways.next(), ways.next()) {
            (Some(way), None) => Some((block, way)),
            _ => None,
        }
    };
    // All of them are among what dominates the cycle; the last is the nearest.
    let mut over = a.dom.parent(cycle.header);
    while let Some(block) = over {
        let decision = a.decisions.get(&block);
        if let Some(found) = decision.and_then(|d| divides(block, d)) {
            return Some(found);
        }
        over = a.dom.parent(block);
    }
    None
}

/// Whether the comparison in a block before the cycle is another question than that for the cycle's first chunk. It puts the threads'
/// numbers in order. The cycle is left at another bound, by what isn't computed from them, or before its first chunk too.
pub(super) fn is_another(a: &Analysis<'_, '_>, block: usize, cycle: &NaturalLoop) -> bool {
    let Some(asked) = a.decisions.get(&block).and_then(rank_bound) else {
        return false;
    };
    let mut starts = cycle.blocks.iter().copied().filter(|&b| {
        let decision = a.decisions.get(&b).filter(|_| a.leaves(b, cycle));
        decision.is_some_and(|d| d.values.0.is_from_thread() || d.values.1.is_from_thread())
    });
    is_no_bound(a, asked, cycle) && starts.all(|b| begins_chunks(a, b, cycle))
}

/// The first thread's number that is on the other side, where a question puts the threads' numbers in order.
fn rank_bound(decision: &Decision) -> Option<u64> {
    let is_rank = |v: Value| v == Value::Query(Query::ThreadNum);
    decision
        .is_ordering()
        .then(|| constant_bound(decision, is_rank))?
}

/// Whether no way out of the cycle compares with this bound.
fn is_no_bound(a: &Analysis<'_, '_>, bound: u64, cycle: &NaturalLoop) -> bool {
    let mut ways_out = cycle.blocks.iter().filter(|&&b| a.leaves(b, cycle));
    !ways_out.any(|b| {
        let decision = a.decisions.get(b);
        decision.and_then(|d| constant_bound(d, |v| !matches!(v, Value::Const(_)))) == Some(bound)
    })
}

/// Whether it asks for the order of a value of this kind and a bound.
pub(super) fn compares(decision: &Decision, is_start: fn(Value) -> bool) -> bool {
    let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
    let (x, y) = decision.values;
    decision.is_ordering() && (is_start(x) && bound(y) || is_start(y) && bound(x))
}
