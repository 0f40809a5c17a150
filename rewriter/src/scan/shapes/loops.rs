//! gcc's static loops: the iterations are divided by the number of threads, in line.
//!
//! ```text
//! q = trip / threads; r = trip % threads;      one `div` (two without optimisation)
//! if (thread < r) { r = 0; q += 1; }
//! s0 = q * thread + r; e0 = s0 + q;
//! if (s0 >= e0) goto end;                      the diverging branch
//! ```

use super::division::{
    Division, add_begin, asks_again, asks_for_remainder, displaced, diverging, leaves_cycle, rank,
};
use super::{Analysis, NaturalLoop, Noticed, again, beyond, fused, repeated, shares};
use crate::scan::draft::Draft;
use crate::scan::flow::value::Value;
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Outcome};
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

/// A loop that a division begins.
pub(super) struct Shape {
    /// The name of the division's results.
    pub id: u64,
    /// Number of the draft that computes its bounds: at the division.
    pub share: usize,
    /// Number of the draft that begins it: the same, or at the diverging branch if the division is far away.
    pub begin: usize,
    /// The block whose branch everything of the loop is behind.
    pub origin: usize,
    /// The diverging branch's block.
    pub first: usize,
    /// Further blocks that branch on the division's results.
    pub others: Vec<usize>,
    /// No other division has the code behind it in common.
    pub alone: bool,
    /// The block that all divisions with that code in common are behind.
    pub over: usize,
}

/// Why a division is left alone whose results nothing is multiplied with.
const NOT_OURS: &str = "a loop divided by hand, or in a form that is not gcc's";

/// Why a loop has no probe whose bounds another computes.
const NO_PROBE: &str = "the loop whose bounds it has has no probe";

/// Why a loop has no probe whose test is that of others too.
const UNTESTED: &str = "its diverging branch wasn't found";

/// Whether a division is gcc's, but no branch depends on its results alone: on other paths others were computed. Or the first that
/// does leaves a cycle in which something is waited for: rounds in which a thread has no iterations.
fn is_tested_elsewhere(
    a: &Analysis<'_, '_>,
    division: &Division,
    id: u64,
    block: usize,
    drafts: &[Draft],
) -> bool {
    let rank = rank(division.by);
    let (at, size) = (division.insn.ip(), division.size);
    let waits = |c: &NaturalLoop| {
        let mut blocks = c.blocks.iter();
        blocks.any(|&b| a.closing_in(b, drafts).is_some())
    };
    let is_apart = |first: usize| {
        let mut cycles = a.cycles().iter();
        cycles.any(|c| c.blocks.contains(&first) && a.leaves(first, c) && waits(c))
    };
    asking(a, id, rank).next().is_some()
        && diverging(a, id, block, rank).next().is_none_or(is_apart)
        && shares::origin(a, at, division.block, division.by, size) == shares::Origin::Loop
}

/// Lists further loops with the results of division `id`, computed in `blocks`: where the remainder is asked for, and no branch on
/// these results follows before they are computed again, or what ends a loop (`closing`).
fn list_others(
    a: &Analysis<'_, '_>,
    id: u64,
    blocks: &[usize],
    closing: &BTreeSet<usize>,
    shapes: &[Shape],
    drafts: &mut Vec<Draft>,
) {
    let own = |s: &&Shape| s.id == id;
    let own: Vec<&Shape> = shapes.iter().filter(own).collect();
    let Some(shape) = own.first() else {
        return;
    };
    let (rank, construct) = match drafts[shape.share].construct {
        Construct::Distribute => (Query::TeamNum, Construct::Distribute),
        other => (Query::ThreadNum, other),
    };
    let tests = own.iter().flat_map(|s| s.others.iter().chain([&s.first]));
    let tests: BTreeSet<usize> = tests.copied().collect();
    let ends = |b: &usize| blocks.contains(b) || closing.contains(b);
    let tested = a.leading_to(tests.iter().copied(), ends);
    let leads = |block: usize| {
        let succs = &a.body.blocks[block].succs;
        tests.contains(&block) || succs.iter().any(|s| tested.contains(s))
    };
    let others: Vec<u64> = asking(a, id, rank)
        .filter(|&(b, _)| !leads(b))
        .map(|c| c.1)
        .collect();
    for at in others {
        let mut draft = Draft::new(at, construct, Edge::Begin);
        draft.function = a.function();
        draft.detail = Some("static".into());
        draft.skip(UNTESTED);
        drafts.push(draft);
    }
}

/// The comparisons of the thread's number with the remainder of division `id`: block and address.
fn asking(a: &Analysis<'_, '_>, id: u64, rank: Query) -> impl Iterator<Item = (usize, u64)> {
    let compared = a.noticed.comparisons.iter();
    let asks = compared.filter(move |c| asks_for_remainder(c.2, id, rank));
    asks.map(|c| (c.0, c.1))
}

/// The block at whose branch a loop begins that is far from its division: the diverging one, or the question for the remainder in
/// front of it, whose other way goes around that, if both are as often executed.
fn place_apart(a: &Analysis<'_, '_>, origin: usize, first: usize) -> usize {
    let together = |c: &NaturalLoop| c.blocks.contains(&origin) || !c.blocks.contains(&first);
    match a.decisions.contains_key(&origin) && a.cycles().iter().all(together) {
        true => origin,
        false => first,
    }
}

/// Whether a division may begin a loop, or has to be listed: those of others don't ask for the remainder.
pub(super) fn possible(noticed: &Noticed) -> bool {
    let asks = |pair: (Value, Value)| {
        matches!(
            pair,
            (Value::Query(_), Value::Remainder(_)) | (Value::Remainder(_), Value::Query(_))
        )
    };
    noticed.divisions.iter().any(|d| d.size == 1)
        || !noticed.divisions.is_empty() && noticed.comparisons.iter().any(|c| asks(c.2))
}

/// Adds the static loops of a function to `drafts`.
pub(super) fn find(a: &mut Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    let all = a.noticed.divisions.iter();
    let divisions: BTreeMap<u64, Division> = all.map(|d| (d.insn.ip(), d.clone())).collect();
    let common = Common::of(a, &divisions);
    let mut shapes: Vec<Shape> = Vec::new();
    for division in divisions.values() {
        shapes.extend(add_shape(a, division, &common, drafts));
    }
    // Of two divisions with the code behind them in common the first is the region.
    let mut roots: BTreeMap<u64, usize> = BTreeMap::new();
    for s in &shapes {
        let root = *roots.entry(s.id).or_insert(s.begin);
        drafts[s.begin].region = Some(root).filter(|&r| r != s.begin);
    }
    // A loop's begin ends what is open before it.
    for s in &shapes {
        if drafts[s.begin].action.is_some() {
            a.calls.insert(drafts[s.begin].address, s.begin);
        }
    }
    let sharers = add_others(a, &shapes, &common, drafts);
    add_ends(a, &shapes, &sharers, drafts);
    forget_followers(&shapes, &sharers, drafts);
    for s in shapes.iter().filter(|s| s.alone) {
        if let Some(cycles) = fused::cycles(a, s.id, s.first, drafts) {
            drafts[s.begin].rare_mut().cycles = Some(cycles);
        }
    }
    skip_regions(&shapes, drafts);
}

/// Divisions on different paths that have the code behind them in common, by the name of their results.
#[derive(Default)]
struct Common {
    /// The block that all of them are behind.
    over: BTreeMap<u64, usize>,
    /// Their own blocks.
    with: BTreeMap<u64, Vec<usize>>,
}

impl Common {
    fn of(a: &Analysis<'_, '_>, divisions: &BTreeMap<u64, Division>) -> Common {
        let mut out = Common::default();
        for (&at, division) in divisions {
            let name = a.flow.name(at);
            out.with.entry(name).or_default().push(division.block);
            let block = out.over.entry(name).or_insert(division.block);
            while !a.dom.dominates(*block, division.block) {
                match a.dom.parent(*block) {
                    Some(parent) => *block = parent,
                    None => break,
                }
            }
        }
        out
    }
}

/// Adds the begin of the loop that a division begins, if it begins one that is known.
fn add_shape(
    a: &Analysis<'_, '_>,
    division: &Division,
    common: &Common,
    drafts: &mut Vec<Draft>,
) -> Option<Shape> {
    let at = division.insn.ip();
    let id = a.flow.name(at);
    let (over, with) = (common.over[&id], &common.with[&id]);
    let Some((mut origin, first, others)) = shape(a, id, over, division.by) else {
        // Source code has no divisions of bytes of its own: C's have the width of int.
        if division.size == 1 || is_tested_elsewhere(a, division, id, over, drafts) {
            let begin = add_begin(a, division, drafts);
            drafts[begin].skip(UNTESTED);
        }
        return None;
    };
    let origin_of = shares::origin(a, at, division.block, division.by, division.size);
    if origin_of == shares::Origin::ByHand && !asks_again(a, division, id) {
        return None;
    }
    let alone = with.len() == 1;
    let divides: BTreeSet<usize> = with.iter().copied().collect();
    let mut begin = add_begin(a, division, drafts);
    let share = begin;
    if origin_of == shares::Origin::Unclear {
        drafts[begin].skip(NOT_OURS);
    } else if let Some(why) = again::unswitched(a, id, first, drafts) {
        drafts[begin].skip(why);
    } else if let Some(why) = displaced(a, division, (origin, first), &divides) {
        if again::tests_in_iterations(a, division, first) {
            drafts[begin].skip("its test is in the cycle of its iterations");
        } else if alone {
            origin = place_apart(a, origin, first);
            begin = again::add_apart(a, share, origin, drafts);
        } else {
            drafts[begin].skip(why);
        }
    }
    let apart = [origin];
    let begins = match share == begin {
        true => &with[..],
        false => &apart,
    };
    let mut check = |is_wrong: &dyn Fn(&[Draft]) -> bool, why: &'static str| {
        if drafts[begin].action.is_some() && is_wrong(drafts) {
            drafts[begin].skip(why);
        }
    };
    let repeats = |drafts: &[Draft]| repeated::passes_by_test(a, id, first, begins, drafts);
    check(&repeats, repeated::REPEATED);
    let copied = |drafts: &[Draft]| is_entered_elsewhere(a, (first, &others), &divides, drafts);
    check(&copied, "its diverging branch exists several times");
    Some(Shape {
        id,
        share,
        begin,
        origin,
        first,
        others,
        alone,
        over,
    })
}

/// Adds loops that have others' bounds, and lists those that aren't found. The former.
fn add_others(
    a: &mut Analysis<'_, '_>,
    shapes: &[Shape],
    common: &Common,
    drafts: &mut Vec<Draft>,
) -> Vec<again::Sharer> {
    let mut sharers = Vec::new();
    let mut listed = BTreeSet::new();
    for s in shapes {
        let count = drafts.len();
        sharers.extend(again::add_sharers(a, s, drafts));
        let mut added = drafts[count..].iter();
        if added.any(|d| d.outcome == Outcome::Skipped) {
            listed.insert(s.id);
        }
    }
    let closing = a.closing_blocks(drafts);
    for (&id, blocks) in &common.with {
        list_others(a, id, blocks, &closing, shapes, drafts);
    }
    for sharer in &sharers {
        for &test in &sharer.tests {
            a.calls.insert(drafts[test].address, test);
        }
    }
    beyond::list(a, shapes, (&sharers, &listed), drafts);
    sharers
}

/// Adds the ends of loops.
fn add_ends(
    a: &Analysis<'_, '_>,
    shapes: &[Shape],
    sharers: &[again::Sharer],
    drafts: &mut Vec<Draft>,
) {
    for s in shapes {
        if drafts[s.begin].action.is_some() {
            a.add_end(s.begin, s.origin, s.first, drafts);
        }
        if drafts[s.begin].action.is_none() && s.share != s.begin {
            drafts[s.share].skip(NO_PROBE);
        }
    }
    for sharer in sharers {
        if drafts[sharer.begin].outcome == Outcome::Patchable {
            sharer.add_end(a, drafts);
        }
    }
}

/// Makes loops that begin behind a barrier, of others that have no probe, loops without one.
fn forget_followers(shapes: &[Shape], sharers: &[again::Sharer], drafts: &mut [Draft]) {
    for s in shapes {
        if drafts[s.begin].action.is_some() {
            continue;
        }
        let rare = drafts[s.begin].own_rare();
        let followers = rare.map(|r| std::mem::take(&mut r.follows));
        for follower in followers.unwrap_or_default() {
            again::forget(follower, NO_PROBE, drafts);
        }
    }
    for sharer in sharers.iter().filter(|s| s.tests.is_empty()) {
        if drafts[sharer.begin].outcome == Outcome::Skipped {
            let why = drafts[sharer.begin].reason.clone().unwrap_or_default();
            again::forget(sharer.begin, &why, drafts);
        }
    }
}

/// All begins of one region have probes, or none has.
fn skip_regions(shapes: &[Shape], drafts: &mut [Draft]) {
    for begin in shapes.iter().map(|s| s.begin) {
        let root = drafts[begin].region.unwrap_or(begin);
        let why = drafts[begin].reason.clone();
        let why = why.filter(|_| drafts[begin].action.is_none());
        if root != begin
            && let Some(why) = why.or_else(|| drafts[root].reason.clone())
        {
            for (i, draft) in drafts.iter_mut().enumerate() {
                if (i == root || draft.region == Some(root)) && draft.record.is_none() {
                    draft.skip(why.clone());
                }
            }
        }
    }
}

/// Whether one of the `others`, which control comes to behind the test in block `first` and without a new division, leads into the
/// loop of that test.
fn is_entered_elsewhere(
    a: &Analysis<'_, '_>,
    (first, others): (usize, &[usize]),
    divides: &BTreeSet<usize>,
    drafts: &[Draft],
) -> bool {
    let extent = a.extent(first, drafts);
    let apart = others.iter().filter(|b| !extent.contains(b));
    let mut behind = apart.filter(|&&b| a.leads_to(first, b, divides));
    behind.any(|&b| !a.extent(b, drafts).is_disjoint(&extent))
}

/// What belongs to a division, if it begins a loop: the block whose branch everything is behind, the diverging branch's
/// block, and further branches on its results.
fn shape(
    a: &Analysis<'_, '_>,
    id: u64,
    block: usize,
    by: Query,
) -> Option<(usize, usize, Vec<usize>)> {
    let rank = rank(by);
    let asked: Vec<(usize, u64)> = asking(a, id, rank).collect();
    if asked.is_empty() {
        return None;
    }
    let branches: Vec<usize> = diverging(a, id, block, rank).collect();
    let (&first, others) = branches.split_first()?;
    // Other code that divides work: it asks for the remainder behind its loop, or its first test is that of a cycle.
    let at = a.body.insns[a.decisions[&first].compare].ip();
    let before = |&(b, ip): &(usize, u64)| {
        let succs = &a.body.blocks[b].succs;
        b == first && ip < at || succs.iter().any(|&s| a.side(block, s).contains(&first))
    };
    if !asked.iter().any(before) || leaves_cycle(a, first, block) {
        return None;
    }
    let decides = |&(b, at): &(usize, u64)| {
        let decision = a.decisions.get(&b);
        decision.is_some_and(|d| a.body.insns[d.compare].ip() == at) && a.dom.dominates(block, b)
    };
    let asks: Vec<usize> = asked.iter().filter(|c| decides(c)).map(|c| c.0).collect();
    Some((origin(a, first, &asks), first, others.to_vec()))
}

/// The block whose branch everything of the loop is behind. `first`: the diverging branch; `asks`: comparisons of the
/// thread's number with the remainder.
fn origin(a: &Analysis<'_, '_>, first: usize, asks: &[usize]) -> usize {
    let Some(&ask) = asks.iter().find(|&&b| a.dom.dominates(b, first)) else {
        return first;
    };
    let others = || asks.iter().filter(|&&b| !a.dom.dominates(ask, b));
    if others().next().is_none() {
        // Where a larger share can't be empty, its path goes around the diverging branch.
        return if a.post.dominates(first, ask) {
            first
        } else {
            ask
        };
    }
    // Several versions of the loop, for a condition that doesn't change in it.
    let mut over = ask;
    while let Some(parent) = a.dom.parent(over) {
        if others().all(|&b| a.dom.dominates(over, b)) {
            break;
        }
        over = parent;
    }
    over
}
