//! clang's chunked static loops: `__kmpc_for_static_init_*` tells a thread its first chunk and the stride, and the program
//! goes from chunk to chunk itself, in a cycle between that call and `__kmpc_for_static_fini`. (Its `sections` are a loop
//! over section numbers of the same form, but what the optimiser makes of a switch in a loop has no such place.)

use super::{Analysis, NaturalLoop};
use crate::model::{Action, ProbeSpec};
use crate::scan::draft::Draft;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use std::collections::BTreeSet;

/// Adds the places where the next chunk begins. Where the cycle isn't found, all chunks of a thread are one unit.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    let chunked: Vec<usize> = a
        .calls
        .values()
        .copied()
        .filter(|&d| is_chunked(&drafts[d]))
        .collect();
    for begin in chunked {
        let Some(cycle) = chunk_cycle(a, begin, drafts) else {
            continue;
        };
        let at = a.body.blocks[cycle.header].start;
        let mut draft = Draft::new(at, drafts[begin].construct, Edge::Next);
        draft.function = a.function();
        draft.detail = drafts[begin].detail.clone();
        draft.region = Some(begin);
        draft.inline(ProbeSpec {
            probe: Probe::InlineNextChunk,
            args: [NO_ARG; 8],
            nargs: 0,
            width: 0,
            unsigned: false,
            param: 0,
            second: 0,
            chunks: false,
        });
        drafts.push(draft);
        tell(&mut drafts[begin], true);
    }
}

/// Whether it begins a static loop with chunks.
pub(super) fn is_chunked(draft: &Draft) -> bool {
    let detail = draft.detail.as_deref().unwrap_or_default();
    draft.probe() == Some(Probe::StaticInit) && detail.starts_with("static, chunk")
}

/// Says whether the loop's chunks have probes.
pub(crate) fn tell(begin: &mut Draft, chunks: bool) {
    if let Some(Action::Call { probe, .. }) = &mut begin.action {
        probe.chunks = chunks;
    }
}

/// The outermost cycle between the loop's begin and its end, if there is one only. Every chunk must pass its header once:
/// a chunk that was peeled off would have a cycle of its own before it (the length of a chunk is unknown to the
/// compiler, so its iterations are always one), or a call that took that cycle's place; and a cycle without a
/// cycle in it may have been unrolled.
fn chunk_cycle<'x>(
    a: &'x Analysis<'_, '_>,
    begin: usize,
    drafts: &[Draft],
) -> Option<&'x NaturalLoop> {
    let block_of = |d: usize| a.body.block_at(drafts[d].address);
    let init = block_of(begin)?;
    let mut ends = a
        .calls
        .values()
        .copied()
        .filter(|&d| {
            drafts[d].region == Some(begin) && drafts[d].probe() == Some(Probe::StaticFini)
        })
        .filter_map(block_of);
    let (Some(fini), None) = (ends.next(), ends.next()) else {
        return None;
    };
    let between = |l: &&NaturalLoop| {
        a.dom.dominates(init, l.header)
            && !l.blocks.contains(&init)
            && !l.blocks.contains(&fini)
            && !a.dom.dominates(fini, l.header)
    };
    let inside = |inner: &NaturalLoop, outer: &NaturalLoop| {
        inner.header != outer.header && outer.blocks.contains(&inner.header)
    };
    let all: Vec<&NaturalLoop> = a.cycles().iter().filter(between).collect();
    let mut outermost = all.iter().filter(|l| !all.iter().any(|o| inside(l, o)));
    match (outermost.next(), outermost.next()) {
        (Some(cycle), None) => {
            let nested = all.iter().any(|l| inside(l, cycle));
            (nested && !calls_before(a, drafts[begin].address, init, cycle)).then_some(*cycle)
        }
        _ => None,
    }
}

/// Whether anything is called between the loop's begin and its cycle.
fn calls_before(a: &Analysis<'_, '_>, begin: u64, init: usize, cycle: &NaturalLoop) -> bool {
    let mut seen = BTreeSet::from([cycle.header]);
    let mut work: Vec<usize> = a.body.blocks[cycle.header]
        .preds
        .iter()
        .copied()
        .filter(|b| !cycle.blocks.contains(b))
        .collect();
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        let mut insns = a.body.block_insns(block).iter();
        if insns.any(|i| super::is_call(i) && (block != init || i.ip() > begin)) {
            return true;
        }
        if block != init {
            work.extend_from_slice(&a.body.blocks[block].preds);
        }
    }
    false
}
