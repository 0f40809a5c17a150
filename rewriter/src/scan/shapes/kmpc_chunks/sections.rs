//! Sections one by one: clang's `sections` are a loop over their numbers, from the first one that the runtime gives a thread to the
//! last. What the optimiser leaves of it is one section per round of a cycle if something in it begins with that first number, and
//! grows by one in each round. Rounds that were peeled off or unrolled would leave another number, or grow it by more.

use super::super::{Analysis, Basis, NaturalLoop, Rule};
use super::{cycle, next};
use crate::scan::draft::Draft;
use crate::scan::flow::lazy::{Edge, Lazy, Width};
use crate::scan::flow::uses::Place;
use crate::scan::flow::value::Value;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;
use std::collections::BTreeSet;

pub(in super::super) const RULE: Rule = Rule {
    basis: Basis::Call(is_sections),
    find: |a, drafts| next(a, drafts, is_sections, counted),
};

/// The cycle each of whose rounds is one section.
fn counted<'x>(a: &'x Analysis<'_, '_>, begin: usize, drafts: &[Draft]) -> Option<&'x NaturalLoop> {
    cycle(a, begin, drafts).filter(|c| are_counted(a, drafts[begin].address, c))
}

/// Whether it begins clang's `sections`.
fn is_sections(draft: &Draft) -> bool {
    draft.probe() == Some(Probe::StaticInit) && draft.construct == Construct::Sections
}

/// The register with the fifth argument: where the first number's variable is.
const LOWER: usize = 8;

/// Whether every round of the cycle is one section; `begin`: the call that gives the thread its sections.
fn are_counted(a: &Analysis<'_, '_>, begin: u64, cycle: &NaturalLoop) -> bool {
    counters(a, begin, cycle).is_some_and(|counters| !counters.is_empty())
}

/// What begins with the first number, and grows by one in each round; `None`: that isn't known.
fn counters(a: &Analysis<'_, '_>, begin: u64, cycle: &NaturalLoop) -> Option<BTreeSet<Place>> {
    let init = a.body.block_at(begin)?;
    let (mut lower, mut before) = (None, 0);
    a.visit(init, |_, insn, state| {
        before += usize::from(insn.ip() <= begin);
        if let (true, Value::Stack(at)) = (insn.ip() == begin, state.reg(LOWER)) {
            lower = Some(Place::Stack(at));
        }
    });
    let lower = lower?;
    let to = |to: usize, inside: bool| match to == cycle.header {
        true => Edge::End,
        false if inside => Edge::Inside,
        false => Edge::Outside,
    };
    let is_before = |block: usize| block != init && !cycle.blocks.contains(&block);
    let mut way = Lazy::within(a, (init, before), |_, next| to(next, is_before(next)));
    let is_in = |block: usize| cycle.blocks.contains(&block);
    let mut round = Lazy::within(a, (cycle.header, 0), |_, next| to(next, is_in(next)));
    let mut counters = BTreeSet::new();
    for place in round.written() {
        if way.recurrence(place, Width::Half)? == Some((lower, 0)) {
            counters.insert(place);
        }
    }
    // A copy of the number that stays what it is proves nothing: what grows must do so by itself.
    loop {
        let mut left = BTreeSet::new();
        for &place in &counters {
            let grown = round.recurrence(place, Width::Half)?;
            if grown.is_some_and(|(from, step)| step == 1 && counters.contains(&from)) {
                left.insert(place);
            }
        }
        if left == counters {
            return Some(counters);
        }
        counters = left;
    }
}
