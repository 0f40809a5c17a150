//! clang's chunked static loops: `__kmpc_for_static_init_*` tells a thread its first chunk and the stride, and the program
//! goes from chunk to chunk itself, in a cycle between that call and `__kmpc_for_static_fini`. Its `sections` are a loop
//! over section numbers, each of which is a chunk where the cycle goes from one to the next (`sections.rs`).

pub(super) mod sections;

use super::found::Find;
use super::{Analysis, Basis, NaturalLoop, Rule};
use crate::scan::draft::Draft;
use crate::scan::flow::uses::is_call;
use ompfuse_format::abi::Probe;

pub(super) const RULE: Rule = Rule {
    basis: Basis::Call(is_chunked),
    find: |a, drafts| next(a, drafts, is_chunked, chunk_cycle),
};

/// The cycle of the chunks, or sections, that a draft begins.
type CycleOf = for<'x> fn(&'x Analysis<'_, '_>, usize, &[Draft]) -> Option<&'x NaturalLoop>;

/// The places where the next chunk begins, of the calls that this is true of. Where the cycle isn't found, all chunks of a thread are one unit.
fn next(
    a: &Analysis<'_, '_>,
    drafts: &[Draft],
    is: fn(&Draft) -> bool,
    cycle_of: CycleOf,
) -> Vec<Find> {
    let begins = (0..drafts.len()).filter(|&d| is(&drafts[d]));
    let next = |d| {
        let cycle = cycle_of(a, d, drafts)?;
        Some(Find::Next(d, a.body.blocks[cycle.header].start))
    };
    begins.filter_map(next).collect()
}

/// Whether it begins a static loop with chunks.
fn is_chunked(draft: &Draft) -> bool {
    let detail = draft.detail.as_deref().unwrap_or_default();
    draft.probe() == Some(Probe::StaticInit) && detail.starts_with("static, chunk")
}

/// The cycle of a loop's chunks. Every chunk must pass its header once:
/// a chunk that was peeled off would have a cycle of its own before it (the length of a chunk is unknown to the
/// compiler, so its iterations are always one), or a call that took that cycle's place; and a cycle without a
/// cycle in it may have been unrolled.
fn chunk_cycle<'x>(
    a: &'x Analysis<'_, '_>,
    begin: usize,
    drafts: &[Draft],
) -> Option<&'x NaturalLoop> {
    let cycle = cycle(a, begin, drafts)?;
    let init = a.body.block_at(drafts[begin].address)?;
    let nested = a.cycles().iter().any(|l| l.is_inside(cycle));
    let ends_once = ends(a, begin, drafts).len() == 1;
    (ends_once && nested && !calls_before(a, drafts[begin].address, init, cycle)).then_some(cycle)
}

/// The outermost cycle between a loop's begin and its ends, if there is one only.
fn cycle<'x>(a: &'x Analysis<'_, '_>, begin: usize, drafts: &[Draft]) -> Option<&'x NaturalLoop> {
    let block_of = |d: usize| a.body.block_at(drafts[d].address);
    let init = block_of(begin)?;
    let ends = ends(a, begin, drafts);
    if ends.is_empty() {
        return None;
    }
    let between = |l: &&NaturalLoop| {
        a.dom.dominates(init, l.header)
            && !l.blocks.contains(&init)
            && !ends
                .iter()
                .any(|&e| l.blocks.contains(&e) || a.dom.dominates(e, l.header))
    };
    let all: Vec<&NaturalLoop> = a.cycles().iter().filter(between).collect();
    match NaturalLoop::outermost(&all)[..] {
        [cycle] => Some(cycle),
        _ => None,
    }
}

/// The blocks with a loop's ends: more than one where it may be cancelled.
fn ends(a: &Analysis<'_, '_>, begin: usize, drafts: &[Draft]) -> Vec<usize> {
    let ends = drafts
        .iter()
        .filter(|d| d.region == Some(begin) && d.probe() == Some(Probe::StaticFini));
    ends.filter_map(|d| a.body.block_at(d.address)).collect()
}

/// Whether anything is called between the loop's begin and its cycle.
fn calls_before(a: &Analysis<'_, '_>, begin: u64, init: usize, cycle: &NaturalLoop) -> bool {
    let preds = a.body.blocks[cycle.header].preds.iter().copied();
    let before = preds.filter(|b| !cycle.blocks.contains(b));
    let mut calls = false;
    a.body.backwards(before, |block| {
        if block == cycle.header {
            return false;
        }
        let mut insns = a.body.block_insns(block).iter();
        calls |= insns.any(|i| is_call(i) && (block != init || i.ip() > begin));
        !calls && block != init
    });
    calls
}
