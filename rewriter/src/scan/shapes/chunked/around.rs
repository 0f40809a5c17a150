//! Cycles of chunks in which no chunk has a probe; they are listed. Some are entered in several places: gcc at -O3 takes a test that doesn't
//! change out of a chunk's iterations, and goes on from one form of them to the other. Some are never left: where it knows that chunks
//! are all the same, who comes to a second one stays there. And of a single iteration without sign in chunks of unknown length it compares the
//! end of the next chunk with the end of the first one.

use super::super::reach::reached;
use super::super::{Analysis, Decision, NaturalLoop, is_call, master};
use super::compare::{self, UNCLEAR, leads_into};
use super::{anew, asked, lone};
use crate::scan::value::Value;
use iced_x86::Mnemonic;
use std::collections::BTreeSet;

/// Why chunks have no probe in a cycle that is entered in several places.
pub(super) const ENTERED: &str = "its chunks' cycle is entered in several places";

/// Why they have none in one that is never left.
const NEVER_LEFT: &str = "nothing is compared behind its first chunk";

/// The cycle around a block that is no natural loop; its lowest block stands for the header.
fn around(a: &Analysis<'_, '_>, block: usize) -> Option<NaturalLoop> {
    let natural = a.cycles().iter().filter(|c| c.blocks.contains(&block));
    let within = natural.min_by_key(|c| c.blocks.len());
    // Of a natural loop around it one round.
    let is_inside = |b: usize| within.is_none_or(|c| c.blocks.contains(&b) && b != c.header);
    let behind = reached(block, is_inside, |b| &a.body.blocks[b].succs);
    if !behind.contains(&block) {
        return None;
    }
    let before = reached(block, is_inside, |b| &a.body.blocks[b].preds);
    let blocks: BTreeSet<usize> = &behind & &before;
    let header = *blocks.first()?;
    Some(NaturalLoop { header, blocks })
}

/// A cycle of chunks without probe, by its lowest block, and why it has none.
pub(super) struct Listed {
    pub(super) cycle: NaturalLoop,
    pub(super) why: &'static str,
}

/// The cycle of chunks that a stride's block is in, if it is no natural loop: it is left where what comes from the numbers of the
/// thread or of threads is compared.
pub(super) fn of_stride(a: &Analysis<'_, '_>, block: usize) -> Option<Listed> {
    let cycle = around(a, block)?;
    let is_start = |v: Value| v.is_from_thread() || v.is_from_threads();
    let mut ways_out = cycle.blocks.iter().filter(|&&b| a.leaves(b, &cycle));
    let decides = |b| {
        let decision = a.decisions.get(b);
        decision.is_some_and(|d| asked::compares(d, is_start))
    };
    let found = ways_out.any(decides);
    found.then_some(Listed {
        cycle,
        why: ENTERED,
    })
}

/// Such cycles whose chunks have a single iteration.
pub(super) fn of_single_iterations(a: &Analysis<'_, '_>) -> Vec<Listed> {
    let asking = a.decisions.iter().filter(|(_, d)| lone::asks(d));
    let entered = asking.filter_map(|(&b, _)| {
        let cycle = around(a, b)?;
        let found = a.leaves(b, &cycle) && lone::goes_on(a, &cycle, b);
        found.then_some((cycle, ENTERED))
    });
    let natural = a.cycles().iter().filter_map(|c| {
        let why = match c {
            c if is_endless(a, c) => NEVER_LEFT,
            c if compares_ends(a, c) => UNCLEAR,
            _ => return None,
        };
        let (header, blocks) = (c.header, c.blocks.clone());
        Some((NaturalLoop { header, blocks }, why))
    });
    let all = entered.chain(natural);
    all.map(|(cycle, why)| Listed { cycle, why }).collect()
}

/// Whether a cycle goes on as long as a number computed from that of threads is equal to an unknown one, both of which come from
/// nothing that is read anew in each round, and the question before it is whether a multiple of the thread's number is 0.
fn compares_ends(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let goes_on = |&b: &usize| {
        let is_end = |d: &&Decision| match d.values {
            (x, Value::Unknown) | (Value::Unknown, x) => x.is_from_threads(),
            _ => false,
        };
        let decision = a.decisions.get(&b).filter(is_end);
        let equal =
            decision.filter(|d| matches!(d.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne));
        let again = equal.and_then(|d| master::entered(a, b, d));
        again.is_some_and(|s| cycle.blocks.contains(&s)) && !anew::compares(a, cycle, b)
    };
    let asks = |(&b, d): (&usize, &Decision)| {
        let value = lone::start(d).map(|(value, _)| value);
        let is_multiple = value.is_some_and(|v| v == Value::FromThread || v == Value::FromBoth);
        let Some(entered) = master::entered(a, b, d).filter(|_| is_multiple) else {
            return false;
        };
        let mut others = a.body.blocks[b].succs.iter().filter(|&&s| s != entered);
        a.dom.dominates(b, cycle.header)
            && !cycle.blocks.contains(&b)
            && a.post.dominates(cycle.header, entered)
            && others.all(|&s| !leads_into(a, b, s, cycle))
    };
    let ways_out = compare::ways_out(a, cycle);
    !ways_out.is_empty() && ways_out.iter().all(goes_on) && a.decisions.iter().any(asks)
}

/// Whether a cycle does nothing and is never left, and only who asks whether a multiple of the number of threads is 0 comes to it.
fn is_endless(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let stays = |&b: &usize| {
        let block = &a.body.blocks[b];
        let calls = a.body.block_insns(b).iter().any(is_call);
        !calls && !block.succs.is_empty() && block.succs.iter().all(|s| cycle.blocks.contains(s))
    };
    let header = &a.body.blocks[cycle.header];
    let mut before = header.preds.iter().copied();
    let asks = |b: usize| {
        let decision = a.decisions.get(&b).filter(|d| lone::asks(d));
        let entered = decision.and_then(|d| master::entered(a, b, d));
        entered == Some(cycle.header) && lone::compares_multiple(a, b)
    };
    // Code that nothing leads to is asked for by nobody.
    let is_led_to = before.clone().any(|b| !cycle.blocks.contains(&b));
    is_led_to
        && cycle.blocks.iter().all(stays)
        && before.all(|b| cycle.blocks.contains(&b) || asks(b))
}
