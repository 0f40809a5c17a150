//! clang's chunked static loops: `__kmpc_for_static_init_*` tells a thread its first chunk and the stride, and the program
//! goes from chunk to chunk itself, in a cycle between that call and `__kmpc_for_static_fini`. Its `sections` are a loop
//! over section numbers, each of which is a chunk where the cycle goes from one to the next (`sections.rs`).

mod sections;

use super::{Analysis, NaturalLoop};
use crate::scan::draft::Draft;
use crate::scan::flow::uses::is_call;
use ompfuse_format::Construct;
use ompfuse_format::abi::Probe;

/// The places where the next chunk begins, with the numbers of the drafts that begin the loops. Where the cycle isn't found, all chunks
/// of a thread are one unit.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &[Draft]) -> Vec<(usize, u64)> {
    let cycle_of = |begin: usize| match is_sections(&drafts[begin]) {
        true => {
            cycle(a, begin, drafts).filter(|c| sections::are_counted(a, drafts[begin].address, c))
        }
        false => chunk_cycle(a, begin, drafts),
    };
    let chunked = (0..drafts.len()).filter(|&d| is_chunked(&drafts[d]) || is_sections(&drafts[d]));
    let next = |begin| Some((begin, a.body.blocks[cycle_of(begin)?.header].start));
    chunked.filter_map(next).collect()
}

/// Whether it begins a static loop with chunks.
pub(super) fn is_chunked(draft: &Draft) -> bool {
    let detail = draft.detail.as_deref().unwrap_or_default();
    draft.probe() == Some(Probe::StaticInit) && detail.starts_with("static, chunk")
}

/// Whether it begins clang's `sections`.
pub(super) fn is_sections(draft: &Draft) -> bool {
    draft.probe() == Some(Probe::StaticInit) && draft.construct == Construct::Sections
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
