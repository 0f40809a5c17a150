//! Matches without names: by the units' places in the tree of regions, by the parent, by behaviour.

use super::{Quantity, SideRegion, Work, agree, callers, places_agree, sums_agree};
use crate::LEAST_MATCHED;
use crate::behaviour::{Counts, TELLING, bits, counts};
use crate::diff::{Basis, Confidence};
use ompfuse_format::Construct;
use std::collections::{BTreeMap, HashSet};

pub(super) fn run(work: &mut Work<'_>) {
    told(work);
    if callers::groups(work) {
        told(work);
    }
    groups(work);
    // Where nothing else tells much, counts that no other region has do.
    if work.is_same_input && work.share() < LEAST_MATCHED {
        by_counts(work);
        told(work);
        groups(work);
    }
}

/// Regions whose counts nothing else of that kind has on either side, whatever is around them.
fn by_counts(work: &mut Work<'_>) {
    let mut at: BTreeMap<Counts, [Vec<usize>; 2]> = BTreeMap::new();
    for (side, regions) in [&work.a.regions, &work.b.regions].into_iter().enumerate() {
        for (n, region) in regions.iter().enumerate() {
            if let Some(counts) = counts(region).filter(|&c| bits(c) >= TELLING) {
                at.entry(counts).or_default()[side].push(n);
            }
        }
    }
    for [a, b] in at.into_values() {
        if let (&[a], &[b]) = (&a[..], &b[..]) {
            let (x, y) = (&work.a.regions[a], &work.b.regions[b]);
            let is_free = work.of_a[a].is_none() && work.of_b[b].is_none() && !x.is_wait();
            if is_free && x.key.name == y.key.name && !work.is_settled(x, y) {
                work.pair(a, b, Basis::Behaviour, Confidence::Fair);
            }
        }
    }
}

/// What a region's units, parent or behaviour tell apart.
fn told(work: &mut Work<'_>) {
    // Each match tells something of what is inside or around it.
    loop {
        let before = work.found.len();
        by_children(work);
        by_places(work);
        by_parent(work);
        if work.found.len() == before {
            break;
        }
    }
}

/// What a region is in: the match of the parallel region around it. `None`: that has none.
pub(super) fn inside(work: &Work<'_>, side: usize, at: usize) -> Option<usize> {
    let (regions, of) = match side {
        0 => (&work.a.regions, &work.of_a),
        _ => (&work.b.regions, &work.of_b),
    };
    match regions[at].parent {
        // Beyond all others: outside of everything.
        None => Some(usize::MAX),
        Some(parent) => of.get(parent as usize).copied().flatten(),
    }
}

/// Whether two regions may be one by all signs but lines, which the source's part has used up.
fn is_possible(work: &Work<'_>, a: &SideRegion, b: &SideRegion) -> bool {
    let has_lines = a.key.line.is_some() && b.key.line.is_some();
    !has_lines && work.may_match(a, b) && !work.is_settled(a, b)
}

/// Regions around matched ones: around nothing else on either side.
fn by_children(work: &mut Work<'_>) {
    // For each region the one that its children's matches are in; `None`: they are in several.
    let mut around: [BTreeMap<u32, Option<u32>>; 2] = Default::default();
    for found in work.found.iter().filter(|f| !f.is_group) {
        let (&[x], &[y]) = (&found.a[..], &found.b[..]) else {
            continue;
        };
        let both = (work.a.regions[x].parent, work.b.regions[y].parent);
        if let (Some(p), Some(q)) = both {
            for (side, from, to) in [(0, p, q), (1, q, p)] {
                let known = around[side].entry(from).or_insert(Some(to));
                *known = known.filter(|k| *k == to);
            }
        }
    }
    let [of_a, of_b] = around;
    for (p, q) in of_a {
        let Some(q) = q.filter(|q| of_b.get(q) == Some(&Some(p))) else {
            continue;
        };
        let (p, q) = (p as usize, q as usize);
        let (Some(x), Some(y)) = (work.a.regions.get(p), work.b.regions.get(q)) else {
            continue;
        };
        let is_free = work.of_a[p].is_none() && work.of_b[q].is_none();
        if is_free && work.may_match(x, y) && !work.is_settled(x, y) && agree(x, y) != Some(false) {
            work.pair(p, q, Basis::Tree, Confidence::High);
        }
    }
}

/// Regions whose units are at the same places, and that are the only ones so.
fn by_places(work: &mut Work<'_>) {
    let mut at: BTreeMap<(Construct, String), [Vec<usize>; 2]> = BTreeMap::new();
    for n in work.free_a() {
        let region = &work.a.regions[n];
        if let Some(places) = &region.places {
            at.entry((region.key.construct, places.clone()))
                .or_default()[0]
                .push(n);
        }
    }
    for n in work.free_b() {
        let region = &work.b.regions[n];
        if let Some(places) = &region.places {
            at.entry((region.key.construct, places.clone()))
                .or_default()[1]
                .push(n);
        }
    }
    for [a, b] in at.into_values() {
        if let ([a], [b]) = (&a[..], &b[..]) {
            let (x, y) = (&work.a.regions[*a], &work.b.regions[*b]);
            if is_possible(work, x, y) && agree(x, y) != Some(false) {
                work.pair(*a, *b, Basis::Units, Confidence::High);
            }
        }
    }
}

/// Those of one kind in one parent on both sides.
type Siblings = BTreeMap<(usize, Construct), [Vec<usize>; 2]>;

fn siblings(work: &Work<'_>) -> Siblings {
    let mut found: Siblings = BTreeMap::new();
    let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
    for (side, free) in free.into_iter().enumerate() {
        for at in free {
            let region = [&work.a.regions, &work.b.regions][side].get(at);
            if let (Some(parent), Some(region)) = (inside(work, side, at), region) {
                found.entry((parent, region.key.construct)).or_default()[side].push(at);
            }
        }
    }
    found
}

/// The only one of its kind in a matched parent; or the only one that behaves so.
fn by_parent(work: &mut Work<'_>) {
    let kinds = [of_kinds(work, 0), of_kinds(work, 1)];
    let inside = [children(&work.a.regions), children(&work.b.regions)];
    for ((parent, kind), [a, b]) in siblings(work) {
        let is_root = parent == usize::MAX;
        // Parents of the same kind that nobody has matched could have it too: then outer regions aren't told by their number.
        let alone = kinds.iter().all(|k| k.get(&(parent, kind)) == Some(&1));
        let alone = alone && a.len() == 1 && b.len() == 1;
        let (of_a, of_b) = (by_count(&work.a.regions, &a), by_count(&work.b.regions, &b));
        for &x in &a {
            let region = &work.a.regions[x];
            let fits = |work: &Work<'_>, x: usize, y: usize| {
                is_possible(work, &work.a.regions[x], &work.b.regions[y])
                    && behaves(work, x, y, &inside)
            };
            let mut partners = candidates(work.is_same_input, &of_b, region)
                .filter(|&y| work.of_b[y].is_none() && fits(work, x, y));
            let (Some(y), None) = (partners.next(), partners.next()) else {
                continue;
            };
            drop(partners);
            let other = &work.b.regions[y];
            let rivals = candidates(work.is_same_input, &of_a, other).filter(|&r| fits(work, r, y));
            if rivals.take(2).count() != 1 {
                continue;
            }
            let known = agree(region, other) == Some(true);
            match (alone, known, is_root) {
                (true, true, _) => work.pair(x, y, Basis::Tree, Confidence::High),
                (true, false, false) => work.pair(x, y, Basis::Tree, Confidence::Fair),
                (false, true, _) => work.pair(x, y, Basis::Behaviour, Confidence::Fair),
                _ => {}
            }
        }
    }
}

/// Regions by executions; those of which these aren't known or vary under `None`.
type ByCount = BTreeMap<Option<u64>, Vec<usize>>;

fn by_count(regions: &[SideRegion], list: &[usize]) -> ByCount {
    let mut found = ByCount::new();
    for &n in list {
        let count = regions[n].constant(&Quantity::Executions);
        found.entry(count.map(|c| c as u64)).or_default().push(n);
    }
    found
}

/// Those whose executions don't speak against a region.
fn candidates<'c>(
    is_same_input: bool,
    of: &'c ByCount,
    region: &SideRegion,
) -> Box<dyn Iterator<Item = usize> + 'c> {
    match region.constant(&Quantity::Executions) {
        Some(count) if is_same_input => {
            let lists = [Some(count as u64), None].map(|k| of.get(&k));
            Box::new(lists.into_iter().flatten().flatten().copied())
        }
        _ => Box::new(of.values().flatten().copied()),
    }
}

/// How many regions of each kind are in each match, those that are matched included.
fn of_kinds(work: &Work<'_>, side: usize) -> BTreeMap<(usize, Construct), u32> {
    let regions = [&work.a.regions, &work.b.regions][side];
    let mut found = BTreeMap::new();
    for (at, region) in regions.iter().enumerate() {
        if let Some(parent) = inside(work, side, at) {
            *found.entry((parent, region.key.construct)).or_default() += 1;
        }
    }
    found
}

/// Whether counts and what is inside speak for two regions.
fn behaves(work: &Work<'_>, a: usize, b: usize, inside: &[Vec<Children>; 2]) -> bool {
    let (x, y) = (&work.a.regions[a], &work.b.regions[b]);
    if !work.is_same_input {
        return true;
    }
    agree(x, y) != Some(false) && places_agree(x, y) != Some(false) && inside[0][a] == inside[1][b]
}

/// What is inside a region that every compiler keeps apart: kinds that call the runtime, and how often.
type Children = BTreeMap<(Construct, u64), u32>;

fn children(regions: &[SideRegion]) -> Vec<Children> {
    let mut found = vec![Children::new(); regions.len()];
    for region in regions {
        let is_kept = matches!(
            region.key.construct,
            Construct::Parallel | Construct::Task | Construct::Taskloop | Construct::Sections
        );
        let parent = region.parent.and_then(|p| found.get_mut(p as usize));
        let count = region.constant(&Quantity::Executions).filter(|_| is_kept);
        if let (Some(n), Some(parent)) = (count, parent) {
            *parent.entry((region.key.construct, n as u64)).or_default() += 1;
        }
    }
    found
}

/// What can't be told apart is compared as a sum: as many on both sides that behave alike, or one whose copies are several.
fn groups(work: &mut Work<'_>) {
    for (_, [a, b]) in siblings(work) {
        let mut alike: BTreeMap<Vec<Option<u64>>, [Vec<usize>; 2]> = BTreeMap::new();
        let behaviour = |region: &SideRegion| -> Vec<Option<u64>> {
            [Quantity::Executions, Quantity::Iterations]
                .iter()
                .map(|q| region.constant(q).map(|n| n as u64))
                .collect()
        };
        for &n in &a {
            alike.entry(behaviour(&work.a.regions[n])).or_default()[0].push(n);
        }
        for &n in &b {
            alike.entry(behaviour(&work.b.regions[n])).or_default()[1].push(n);
        }
        for (known, [a, b]) in alike {
            let possible = all_possible(work, &a, &b);
            let is_known = known.iter().any(Option::is_some);
            if possible && is_known && work.is_same_input && !a.is_empty() && a.len() == b.len() {
                work.many(a, b, Basis::Behaviour, Confidence::Fair, true);
            }
        }
        copies(work, &a, &b);
    }
}

/// Whether any region of one list may be any of the other: of each list those that differ in nothing that tells stand for all.
fn all_possible(work: &Work<'_>, a: &[usize], b: &[usize]) -> bool {
    let distinct = |regions: &[SideRegion], list: &[usize]| -> Vec<usize> {
        let mut seen = HashSet::new();
        let is_new = |n: &usize| {
            let key = &regions[*n].key;
            let has_line = key.line.is_some();
            let place = (&key.build, &key.module, &key.function, &key.name);
            let told = (place, key.construct, has_line, &key.callers);
            seen.insert(told)
        };
        list.iter().copied().filter(is_new).collect()
    };
    let (a, b) = (distinct(&work.a.regions, a), distinct(&work.b.regions, b));
    let may = |x: usize, y: usize| is_possible(work, &work.a.regions[x], &work.b.regions[y]);
    a.iter().all(|&x| b.iter().all(|&y| may(x, y)))
}

/// One region on a side, whose copies on the other one together do what it does.
fn copies(work: &mut Work<'_>, a: &[usize], b: &[usize]) {
    let a: Vec<usize> = a
        .iter()
        .copied()
        .filter(|&n| work.of_a[n].is_none())
        .collect();
    let b: Vec<usize> = b
        .iter()
        .copied()
        .filter(|&n| work.of_b[n].is_none())
        .collect();
    if a.is_empty() || b.is_empty() || (a.len() > 1) == (b.len() > 1) || !work.is_same_input {
        return;
    }
    let possible = all_possible(work, &a, &b);
    if possible && sums_agree(work, &a, &b) {
        work.many(a, b, Basis::Behaviour, Confidence::Fair, false);
    }
}
