//! gcc's static loops: the iterations are divided by the number of threads, in line.
//!
//! ```text
//! q = trip / threads; r = trip % threads;      one `div` (two without optimisation)
//! if (thread < r) { r = 0; q += 1; }
//! s0 = q * thread + r; e0 = s0 + q;
//! if (s0 >= e0) goto end;                      the diverging branch
//! ```

use super::division::{
    self, Division, asks_again, asks_for_remainder, displaced, diverging, leaves_cycle, rank,
};
use super::ends::Own;
use super::found::{Find, Found, Place};
use super::why::Why;
use super::{
    Analysis, Basis, Decisions, NaturalLoop, Noticed, Rule, again, beyond, fused, repeated, shares,
};
use crate::scan::flow::value::Value;
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

pub(super) const RULE: Rule = Rule {
    basis: Basis::Numbers(possible),
    find: |a, _| find(a).into_iter().map(Find::Begin).collect(),
};

/// A loop that a division begins.
pub(super) struct Shape {
    /// The name of the division's results.
    pub id: u64,
    /// Number of what computes its bounds: at the division.
    pub share: usize,
    /// Number of what begins it: the same, or at the diverging branch if the division is far away.
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

/// Whether a division is gcc's, but no branch depends on its results alone: on other paths others were computed. Or the first that
/// does leaves a cycle in which something is waited for: rounds in which a thread has no iterations.
fn is_tested_elsewhere(a: &Analysis<'_, '_>, division: &Division, id: u64, block: usize) -> bool {
    let rank = rank(division.by);
    let (at, size) = (division.insn.ip(), division.size);
    let waits = |c: &NaturalLoop| {
        let mut blocks = c.blocks.iter();
        blocks.any(|&b| a.closing_in(b).is_some())
    };
    let is_apart = |first: usize| {
        let mut cycles = a.cycles().iter();
        cycles.any(|c| c.blocks.contains(&first) && a.leaves(first, c) && waits(c))
    };
    asking(a, id, rank).next().is_some()
        && diverging(a, id, block, rank).next().is_none_or(is_apart)
        && shares::origin(a, at, division.block, division.by, size) == shares::Origin::Loop
}

/// The comparisons of the thread's number with the remainder of division `id`: block and address.
pub(super) fn asking(
    a: &Analysis<'_, '_>,
    id: u64,
    rank: Query,
) -> impl Iterator<Item = (usize, u64)> {
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
fn possible(_: &Decisions, noticed: &Noticed) -> bool {
    let asks = |pair: (Value, Value)| {
        matches!(
            pair,
            (Value::Query(_), Value::Remainder(_)) | (Value::Remainder(_), Value::Query(_))
        )
    };
    noticed.divisions.iter().any(|d| d.size == 1)
        || !noticed.divisions.is_empty() && noticed.comparisons.iter().any(|c| asks(c.2))
}

/// The static loops of a function.
fn find(a: &mut Analysis<'_, '_>) -> Vec<Found> {
    let divisions = a.noticed.divisions.iter();
    let divisions: BTreeMap<u64, Division> = divisions.map(|d| (d.insn.ip(), d.clone())).collect();
    let common = Common::of(a, &divisions);
    let mut all: Vec<Found> = Vec::new();
    let mut shapes: Vec<Shape> = Vec::new();
    for division in divisions.values() {
        shapes.extend(add_shape(a, division, &common, &mut all));
    }
    // Of two divisions with the code behind them in common the first is the region.
    let mut roots: BTreeMap<u64, usize> = BTreeMap::new();
    for s in &shapes {
        let root = *roots.entry(s.id).or_insert(s.begin);
        all[s.begin].of = Some(root).filter(|&r| r != s.begin);
    }
    // A loop's begin ends what is open before it.
    for s in &shapes {
        if all[s.begin].why().is_none() {
            a.mark(s.begin, &all[s.begin]);
        }
    }
    let sharers = add_others(a, &shapes, &common, &mut all);
    add_ends(a, &shapes, &sharers, &mut all);
    forget_followers(a, &mut all);
    for s in shapes.iter().filter(|s| s.alone) {
        all[s.begin].cycles = fused::cycles(a, s.id, s.first);
    }
    skip_regions(a, &shapes, &mut all);
    all
}

/// Lists a loop without probe.
pub(super) fn lose(a: &Analysis<'_, '_>, n: usize, why: Why, all: &mut [Found]) {
    all[n].lost = Some(why);
    a.unmark(all[n].at, a.own + n);
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
    all: &mut Vec<Found>,
) -> Option<Shape> {
    let at = division.insn.ip();
    let id = a.flow.name(at);
    let (over, with) = (common.over[&id], &common.with[&id]);
    let Some((mut origin, first, others)) = shape(a, id, over, division.by) else {
        // Source code has no divisions of bytes of its own: C's have the width of int.
        if division.size == 1 || is_tested_elsewhere(a, division, id, over) {
            let mut found = division::begin(a, division);
            found.lost = Some(Why::Untested);
            all.push(found);
        }
        return None;
    };
    let origin_of = shares::origin(a, at, division.block, division.by, division.size);
    if origin_of == shares::Origin::ByHand && !asks_again(a, division, id) {
        return None;
    }
    let alone = with.len() == 1;
    let divides: BTreeSet<usize> = with.iter().copied().collect();
    let share = all.len();
    let mut begin = share;
    all.push(division::begin(a, division));
    all[share].lost = if origin_of == shares::Origin::Unclear {
        Some(Why::NotOurs)
    } else if let Some(why) = again::unswitched(a, id, first) {
        Some(why)
    } else {
        match displaced(a, division, (origin, first), &divides) {
            Some(_) if again::tests_in_iterations(a, division, first) => {
                Some(Why::TestInIterations)
            }
            Some(_) if alone => {
                origin = place_apart(a, origin, first);
                begin = again::add_apart(a, share, origin, all);
                None
            }
            why => why,
        }
    };
    let apart = [origin];
    let begins = match share == begin {
        true => &with[..],
        false => &apart,
    };
    if all[begin].why().is_none() {
        let again = repeated::passes_by_test(a, id, first, begins).map(Why::Again);
        all[begin].lost = again.or_else(|| {
            let copied = is_entered_elsewhere(a, (first, &others), &divides);
            copied.then_some(Why::SeveralTests)
        });
    }
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
    all: &mut Vec<Found>,
) -> Vec<again::Sharer> {
    let mut sharers = Vec::new();
    let mut listed = BTreeSet::new();
    for s in shapes {
        let count = all.len();
        sharers.extend(again::add_sharers(a, s, all));
        if all[count..].iter().any(|found| found.why().is_some()) {
            listed.insert(s.id);
        }
    }
    let closing = a.closing_blocks();
    for (&id, blocks) in &common.with {
        beyond::list_others(a, id, blocks, &closing, shapes, all);
    }
    for &test in sharers.iter().flat_map(|s| &s.tests) {
        a.mark(test, &all[test]);
    }
    beyond::list(a, shapes, (&sharers, &listed), all);
    sharers
}

/// Gives loops their ends.
fn add_ends(a: &Analysis<'_, '_>, shapes: &[Shape], sharers: &[again::Sharer], all: &mut [Found]) {
    let own = |n: usize, id: u64, all: &[Found]| Own {
        construct: all[n].construct,
        division: Some(id),
    };
    for s in shapes {
        if all[s.begin].why().is_none() {
            let end = a.end_of(s.origin, s.first, &own(s.begin, s.id, all));
            all[s.begin].ends(end);
        }
        if let Some(why) = all[s.begin].why() {
            lose(a, s.begin, why, all);
            if s.share != s.begin {
                lose(a, s.share, Why::NoShare, all);
            }
        }
    }
    for s in sharers {
        if all[s.begin].why().is_some() {
            continue;
        }
        let end = s.end(a, &own(s.begin, s.share, all));
        all[s.begin].ends(end);
        if let Some(why) = all[s.begin].why() {
            for &test in &s.tests {
                lose(a, test, why, all);
            }
        }
    }
}

/// Makes loops that begin behind a barrier, of others that have no probe, loops without one.
fn forget_followers(a: &Analysis<'_, '_>, all: &mut [Found]) {
    for n in 0..all.len() {
        let leader = match &all[n].place {
            Ok(Place::Behind(behind)) => behind.leader,
            _ => continue,
        };
        if all[leader].why().is_some() {
            lose(a, n, Why::NoShare, all);
        }
    }
}

/// All begins of one region have probes, or none has.
fn skip_regions(a: &Analysis<'_, '_>, shapes: &[Shape], all: &mut [Found]) {
    for begin in shapes.iter().map(|s| s.begin) {
        let Some(root) = all[begin].of else {
            continue;
        };
        if let Some(why) = all[begin].why().or_else(|| all[root].why()) {
            for n in 0..all.len() {
                if n == root || all[n].of == Some(root) {
                    lose(a, n, why, all);
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
) -> bool {
    let extent = a.extent(first);
    let apart = others.iter().filter(|b| !extent.contains(b));
    let mut behind = apart.filter(|&&b| a.leads_to(first, b, divides));
    behind.any(|&b| !a.extent(b).is_disjoint(&extent))
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
    let at = a.test_at(first)?;
    let before = |&(b, ip): &(usize, u64)| {
        let succs = &a.body.blocks[b].succs;
        b == first && ip < at || succs.iter().any(|&s| a.side(block, s).contains(&first))
    };
    if !asked.iter().any(before) || leaves_cycle(a, first, block) {
        return None;
    }
    let decides = |&(b, at): &(usize, u64)| a.test_at(b) == Some(at) && a.dom.dominates(block, b);
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
