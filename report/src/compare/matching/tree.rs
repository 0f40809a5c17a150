//! Matches without names: by the units' places in the tree of regions, by the parent, by behaviour.

use super::{Quantity, SideRegion, Work, agree, constant, places_agree, sums_agree};
use crate::compare::diff::{Basis, Confidence};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

pub(super) fn run(work: &mut Work<'_>) {
    // Each match tells something of what is inside or around it.
    loop {
        let before = work.found.len();
        by_places(work);
        by_parent(work);
        if work.found.len() == before {
            break;
        }
    }
    groups(work);
}

/// What a region is in: the match of the parallel region around it. `None`: that has none.
fn inside(work: &Work<'_>, side: usize, at: usize) -> Option<usize> {
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
    for ((parent, _), [a, b]) in siblings(work) {
        let is_root = parent == usize::MAX;
        // Parents of the same kind that nobody has matched could have it too: then outer regions aren't told by their number.
        let alone = a.len() == 1 && b.len() == 1 && all_of_kind(work, parent, a[0], b[0]);
        for &x in &a {
            let of_a = &work.a.regions[x];
            let mut fits = b.iter().filter(|&&y| {
                let of_b = &work.b.regions[y];
                work.of_b[y].is_none() && is_possible(work, of_a, of_b) && behaves(work, x, y)
            });
            let (Some(&y), None) = (fits.next(), fits.next()) else {
                continue;
            };
            let rivals = a.iter().filter(|&&other| {
                let other_a = &work.a.regions[other];
                is_possible(work, other_a, &work.b.regions[y]) && behaves(work, other, y)
            });
            if rivals.count() != 1 {
                continue;
            }
            let known = agree(of_a, &work.b.regions[y]) == Some(true);
            match (alone, known, is_root) {
                (true, true, _) => work.pair(x, y, Basis::Tree, Confidence::High),
                (true, false, false) => work.pair(x, y, Basis::Tree, Confidence::Fair),
                (false, true, _) => work.pair(x, y, Basis::Behaviour, Confidence::Fair),
                _ => {}
            }
        }
    }
}

/// Whether two regions are the only ones of their kind in their parents, those that are matched included.
fn all_of_kind(work: &Work<'_>, parent: usize, a: usize, b: usize) -> bool {
    let construct = work.a.regions[a].key.construct;
    let count = |side: usize, regions: &[SideRegion]| {
        let of_kind = |n: &usize| regions[*n].key.construct == construct;
        (0..regions.len())
            .filter(of_kind)
            .filter(|&n| inside(work, side, n) == Some(parent))
            .count()
    };
    let _ = b;
    count(0, &work.a.regions) == 1 && count(1, &work.b.regions) == 1
}

/// Whether counts and what is inside speak for two regions.
fn behaves(work: &Work<'_>, a: usize, b: usize) -> bool {
    let (x, y) = (&work.a.regions[a], &work.b.regions[b]);
    if !work.is_same_input {
        return true;
    }
    agree(x, y) != Some(false)
        && places_agree(x, y) != Some(false)
        && children(&work.a.regions, a) == children(&work.b.regions, b)
}

/// What is inside a region that every compiler keeps apart: kinds that call the runtime, and how often.
fn children(regions: &[SideRegion], parent: usize) -> BTreeMap<(Construct, u64), u32> {
    let mut found = BTreeMap::new();
    for region in regions.iter().filter(|r| r.parent == Some(parent as u32)) {
        let is_kept = matches!(
            region.key.construct,
            Construct::Parallel | Construct::Task | Construct::Taskloop | Construct::Sections
        );
        if let (Some(n), true) = (constant(region, &Quantity::Executions), is_kept) {
            *found.entry((region.key.construct, n as u64)).or_default() += 1;
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
                .map(|q| constant(region, q).map(|n| n as u64))
                .collect()
        };
        for &n in &a {
            alike.entry(behaviour(&work.a.regions[n])).or_default()[0].push(n);
        }
        for &n in &b {
            alike.entry(behaviour(&work.b.regions[n])).or_default()[1].push(n);
        }
        for (known, [a, b]) in alike {
            let possible = a.iter().all(|&x| {
                b.iter()
                    .all(|&y| is_possible(work, &work.a.regions[x], &work.b.regions[y]))
            });
            let is_known = known.iter().any(Option::is_some);
            if possible && is_known && work.is_same_input && !a.is_empty() && a.len() == b.len() {
                work.many(a, b, Basis::Behaviour, Confidence::Fair, true);
            }
        }
        copies(work, &a, &b);
    }
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
    let possible = a.iter().all(|&x| {
        b.iter()
            .all(|&y| is_possible(work, &work.a.regions[x], &work.b.regions[y]))
    });
    if possible && sums_agree(work, &a, &b) {
        work.many(a, b, Basis::Behaviour, Confidence::Fair, false);
    }
}
