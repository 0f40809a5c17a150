//! Questions for the thread's number before a cycle. A construct that shares work is met by all threads of a team or none, so
//! what one thread alone comes to is no loop of OpenMP's, whatever it is stepped by.

use super::super::{Analysis, Decision, NaturalLoop, is_call, master};
use super::compare::{begins_chunks, constant_bound, leads_into};
use crate::scan::dataflow;
use crate::scan::value::Value;
use iced_x86::Instruction;
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// The last block before the cycle that asks which thread this is, and goes to the cycle on one of its ways only; and that way.
/// `at`: the comparison of the loop's first chunk, if it has one; `firsts`: the blocks with those of all loops.
pub(super) fn before(
    a: &Analysis<'_, '_>,
    at: u64,
    cycle: &NaturalLoop,
    firsts: &BTreeSet<usize>,
) -> Option<(usize, usize)> {
    let own = a.body.block_at(at);
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

/// Whether the comparison in a block before the cycle is another question than that for the cycle's first chunk: it puts the threads'
/// numbers in order, whereas the cycle is left at another bound, by what isn't computed from them, or before its first chunk too.
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

/// Whether the cycle is one of chunks that the first thread (of a `master` before it) comes to on a way of its own, without a
/// comparison: a number of threads is added to what its way out compares, and the other threads compare what comes from their
/// numbers with the same bound before they go to the cycle.
pub(super) fn goes_around(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let Some(bounds) = bounds(a, cycle, Value::is_from_threads) else {
        return false;
    };
    let (Some(&bound), 1) = (bounds.first(), bounds.len()) else {
        return false;
    };
    let others = |block: usize, decision: &Decision| {
        let ways = a.body.blocks[block].succs.iter();
        !cycle.blocks.contains(&block)
            && compares(decision, Value::is_from_thread)
            && constant_bound(decision, Value::is_from_thread) == bound
            && ways.filter(|&&s| comes_to(a, s, cycle)).count() == 1
            && !a.dom.dominates(block, cycle.header)
    };
    let divides = |block: usize, decision: &Decision| {
        let ways = a.body.blocks[block].succs.iter();
        master::filter(decision).is_some()
            && !cycle.blocks.contains(&block)
            && ways.filter(|&&s| leads_into(a, block, s, cycle)).count() == 2
    };
    let mut questions = a.decisions.iter().filter(|&(&b, d)| divides(b, d));
    questions.any(|(&q, _)| {
        // Where it is asked several times, none of the questions is in front of everything.
        let none = BTreeSet::new();
        let mut others = a.decisions.iter().filter(|&(&b, d)| others(b, d));
        others.any(|(&b, _)| a.leads_to(q, b, &none))
    })
}

/// Whether control comes from a block to the cycle before it calls the runtime for more than a number: where all this is repeated, every
/// way leads there in the end.
fn comes_to(a: &Analysis<'_, '_>, from: usize, cycle: &NaturalLoop) -> bool {
    let calls = |insn: &Instruction| match dataflow::callee(a.module, insn, None) {
        dataflow::Callee::Runtime(n) => a.module.entries.callees[n].query().is_none(),
        dataflow::Callee::Other => false,
    };
    let mut seen = BTreeSet::new();
    let mut work = vec![from];
    while let Some(block) = work.pop() {
        if block == cycle.header {
            return true;
        }
        let insns = a.body.block_insns(block);
        if seen.insert(block) && !insns.iter().any(|i| is_call(i) && calls(i)) {
            work.extend_from_slice(&a.body.blocks[block].succs);
        }
    }
    false
}

/// What every way out of the cycle compares a value of this kind with, as a first number that is no start; `None` if one of them compares
/// something else.
fn bounds(
    a: &Analysis<'_, '_>,
    cycle: &NaturalLoop,
    is_start: fn(Value) -> bool,
) -> Option<BTreeSet<Option<u64>>> {
    let ways_out = cycle.blocks.iter().filter(|&&b| a.leaves(b, cycle));
    let bounds = ways_out.map(|b| {
        let decision = a.decisions.get(b).filter(|d| compares(d, is_start))?;
        Some(constant_bound(decision, is_start))
    });
    bounds.collect()
}

/// Whether it asks for the order of a value of this kind and a bound.
pub(super) fn compares(decision: &Decision, is_start: fn(Value) -> bool) -> bool {
    let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
    let (x, y) = decision.values;
    decision.is_ordering() && (is_start(x) && bound(y) || is_start(y) && bound(x))
}
