//! Loops with chunks whose cycle is entered on several ways. Each thread takes one of them: optimisers copy the comparison of
//! the first chunk to several places, and to those that have asked whether they are the team's first thread, for a `master` before
//! the loop, they give a way without any, since the first thread's first chunk begins at iteration 0:
//!
//! ```text
//! if (thread == 0) { master; start = 0; goto chunk; }
//! start = thread * size; if (start >= n) goto end;
//! chunk: do { iterations } while ((start += threads * size) < n);
//! ```

use super::super::{Analysis, Decision, NaturalLoop, master};
use super::asked::compares;
use super::compare::{self, bound, bound_operand, comparison_if, start_operand};
use crate::model::ProbeSpec;
use crate::scan::draft::Draft;
use crate::scan::value::Value;
use ompfuse_format::abi::Probe;
use std::collections::{BTreeMap, BTreeSet};

/// The ways into a cycle of chunks.
struct Ways {
    /// The blocks that end in comparisons of a first chunk's start with the bound.
    firsts: BTreeSet<usize>,
    /// The last blocks on ways that only the first thread takes, and what follows.
    own: BTreeMap<usize, usize>,
}

/// The probes of such a loop, by address, if every thread that comes to it passes one of them for its first chunk, and one for each
/// further one; nothing of `taken` is among their places.
pub(super) fn probes(
    a: &Analysis<'_, '_>,
    cycle: &NaturalLoop,
    taken: &BTreeSet<u64>,
    drafts: &[Draft],
) -> Option<BTreeMap<u64, ProbeSpec>> {
    let [way_out] = compare::ways_out(a, cycle)[..] else {
        return None;
    };
    if !is_told(a, way_out) {
        return None;
    }
    let ways = ways(a, cycle, way_out, drafts)?;
    let mut out = BTreeMap::new();
    let places: BTreeSet<usize> = ways.firsts.iter().chain(ways.own.keys()).copied().collect();
    let leads = |side: usize| !places.contains(&side) && a.leads_to(side, cycle.header, &places);
    for &block in &ways.firsts {
        let mut sides = a.body.blocks[block].succs.iter().filter(|&&s| leads(s));
        let (&side, None) = (sides.next()?, sides.next()) else {
            return None;
        };
        if !a.post.dominates(cycle.header, side) {
            return None;
        }
        let at = a.body.insns[a.decisions[&block].compare].ip();
        out.insert(at, comparison_if(a, block, leads).ok()?);
    }
    for (&block, &behind) in &ways.own {
        // The way out sees what the first thread begins with too: somebody who deals by hand may let it begin elsewhere.
        let mut compared = ways.firsts.iter().chain([&way_out]);
        let zero = compared.all(|&block| counts_from_zero(a, block));
        if !zero || !a.post.dominates(cycle.header, behind) {
            return None;
        }
        out.insert(
            behind_calls(a, block)?,
            ProbeSpec::bare(Probe::InlineFirstChunk),
        );
    }
    let stays = |side: usize| cycle.blocks.contains(&side);
    let again = a.body.insns[a.decisions[&way_out].compare].ip();
    out.insert(again, comparison_if(a, way_out, stays).ok()?);
    let apart = out.len() == places.len() + 1 && out.keys().all(|at| !taken.contains(at));
    (apart && is_one_passed(a, &places)).then_some(out)
}

/// Whether a block compares a start that comes from the thread's number with what doesn't.
fn is_told(a: &Analysis<'_, '_>, block: usize) -> bool {
    let from_thread = a.sources.threads_own(a);
    bound_operand(a, block).is_some_and(|op| !from_thread.is_compared(a, block, op))
}

/// The ways into the cycle; `None` if one of them is of another kind.
fn ways(
    a: &Analysis<'_, '_>,
    cycle: &NaturalLoop,
    way_out: usize,
    drafts: &[Draft],
) -> Option<Ways> {
    let mut ways = Ways {
        firsts: BTreeSet::new(),
        own: BTreeMap::new(),
    };
    let first_threads = behind_questions(a, cycle);
    let mut seen = BTreeSet::new();
    let mut work = vec![cycle.header];
    while let Some(block) = work.pop() {
        let preds = &a.body.blocks[block].preds;
        for &before in preds {
            if block == cycle.header && cycle.blocks.contains(&before) {
                continue;
            }
            if is_first(a, before, way_out) {
                ways.firsts.insert(before);
                continue;
            }
            // Who comes back to the cycle has compared nothing, or something between them ends what shares work.
            if cycle.blocks.contains(&before) || a.closing_in(before, drafts).is_some() {
                return None;
            }
            if first_threads(before) {
                if a.body.blocks[before].succs[..] != [block] {
                    return None;
                }
                ways.own.insert(before, block);
            } else if a.body.roots.contains(&before) {
                return None;
            } else if seen.insert(before) {
                work.push(before);
            }
        }
    }
    (!ways.firsts.is_empty()).then_some(ways)
}

/// Whether a block compares the start of a first chunk, which comes from the thread's number alone, with the bound that the block of
/// the way out compares the next one with.
fn is_first(a: &Analysis<'_, '_>, block: usize, way_out: usize) -> bool {
    let begins = |d: &Decision| {
        let start = |v: Value| v.is_from_thread() && !v.is_from_threads();
        start(d.values.0) || start(d.values.1)
    };
    let decision = a.decisions.get(&block);
    decision.is_some_and(|d| compares(d, Value::is_from_thread) && begins(d))
        && bound(a, block) == bound(a, way_out)
        && is_told(a, block)
}

/// Tells of blocks outside the cycle whether only the team's first thread comes to them: behind the question for its number.
fn behind_questions<'x, 'm, 'a>(
    a: &'x Analysis<'m, 'a>,
    cycle: &NaturalLoop,
) -> impl Fn(usize) -> bool + use<'x, 'm, 'a> {
    let entered = |(&block, d): (&usize, &Decision)| {
        let entered = master::filter(d)
            .filter(|&number| number == 0)
            .and_then(|_| master::entered(a, block, d))?;
        let only = a.body.blocks[entered].preds[..] == [block];
        (only && !a.dom.dominates(entered, cycle.header)).then_some(entered)
    };
    let entered: Vec<usize> = a.decisions.iter().filter_map(entered).collect();
    move |block| entered.iter().any(|&e| a.dom.dominates(e, block))
}

/// Whether the start that a block compares is a sum of multiples of the numbers of the thread and of threads, on every way there: then
/// the first chunk of thread 0 begins at 0.
fn counts_from_zero(a: &Analysis<'_, '_>, block: usize) -> bool {
    let start = a.decisions.get(&block).and_then(start_operand);
    start.is_some_and(|op| a.sources.named_multiples(a).is_compared(a, block, op))
}

/// The place behind a block's last call.
fn behind_calls(a: &Analysis<'_, '_>, block: usize) -> Option<u64> {
    let insns = a.body.block_insns(block);
    let last = insns.iter().rposition(super::super::is_call);
    Some(insns.get(last.map_or(0, |n| n + 1))?.ip())
}

/// Whether control passes one of these blocks only before it comes to the block in front of all of them again.
fn is_one_passed(a: &Analysis<'_, '_>, blocks: &BTreeSet<usize>) -> bool {
    let mut front = blocks.first().copied();
    while let Some(block) = front.filter(|&f| !blocks.iter().all(|&b| a.dom.dominates(f, b))) {
        front = a.dom.parent(block);
    }
    let Some(front) = front else {
        return false;
    };
    let fronts = BTreeSet::from([front]);
    let follows = |from: usize, to: usize| {
        let mut sides = a.body.blocks[from].succs.iter();
        sides.any(|&s| s != front && a.leads_to(s, to, &fronts))
    };
    let alone = blocks.len() == 1;
    alone || {
        let mut pairs = blocks
            .iter()
            .flat_map(|x| blocks.iter().map(move |y| (*x, *y)));
        !blocks.contains(&front) && pairs.all(|(x, y)| !follows(x, y))
    }
}
