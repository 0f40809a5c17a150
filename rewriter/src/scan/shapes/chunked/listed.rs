//! Cycles of chunks of which no loop was made; they are listed.
//!
//! Some are entered in several places: gcc at -O3 takes a test that doesn't change out of a chunk's iterations, and goes on from one form
//! of them to the other. To others the first thread of a `master` before them comes on a way of its own, without a comparison.

use super::super::why::Why;
use super::super::{Analysis, NaturalLoop};
use super::rank_tests;
use crate::scan::flow::value::Value;

/// The cycle that a stride's block is in, and why its chunks have no probes: it is left where what comes from the numbers of the thread or
/// of threads is compared. Its lowest block stands for the header of one that is no natural loop.
pub(super) fn of_stride(a: &Analysis<'_, '_>, stride: usize) -> Option<(NaturalLoop, Why)> {
    let natural = a.cycles().iter().filter(|c| c.blocks.contains(&stride));
    let within = natural.min_by_key(|c| c.blocks.len());
    // Of a natural loop around it one round.
    let is_inside = |b: usize| within.is_none_or(|c| c.blocks.contains(&b) && b != c.header);
    let blocks = a.body.around(stride, is_inside);
    let (blocks, header, why) = match (within, blocks.first().copied()) {
        (_, Some(lowest)) => (blocks, lowest, Why::Irreducible),
        (Some(c), None) => (c.blocks.clone(), c.header, Why::Uncompared),
        (None, None) => return None,
    };
    let is_start = |v: Value| v.is_from_thread() || v.is_from_threads();
    let cycle = NaturalLoop { header, blocks };
    let mut ways_out = cycle.blocks.iter().filter(|&&b| a.leaves(b, &cycle));
    let decides = |b| {
        let decision = a.decisions.get(b);
        decision.is_some_and(|d| rank_tests::compares(d, is_start))
    };
    let found = ways_out.any(decides);
    found.then_some((cycle, why))
}
