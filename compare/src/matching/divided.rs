//! Functions whose file says little, and functions that were divided or joined.
//!
//! The first have a name that several files have, or hold code of other files that a compiler has put into them. The name and what a region
//! does tell, if no other region of that name does the same.
//!
//! Of the second neither name nor line tells. What tells is that one side's new functions together have what the other side's function lost:
//! as many regions, each with the counts, schedule and surroundings of exactly one of them. All or nothing is matched, and only where
//! the counts tell much, or the units stand where they stood.

use super::{SideRegion, Work, places_agree};
use crate::behaviour::{Counts, TELLING, bits, counts};
use crate::diff::{Basis, Confidence};
use std::collections::{BTreeMap, BTreeSet};

/// What a region does.
type Own<'a> = (Counts, Option<&'a str>, Option<&'a str>);

/// What a region does, what those around it do, from inside outwards, and what those inside do, with how deep they are.
#[derive(Debug, Default, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Sign<'a> {
    around: Vec<Own<'a>>,
    inside: Vec<(usize, Own<'a>)>,
}

/// Regions are not deeper inside each other.
const DEEPEST: usize = 64;

pub(super) fn run(work: &mut Work<'_>) {
    if !work.is_same_input {
        return;
    }
    for with_places in [true, false] {
        for (a, b) in of_one_name(work, with_places) {
            work.pair(a, b, Basis::Function, Confidence::Fair);
        }
    }
    for whole in [0, 1] {
        for (ours, theirs) in divided(work, whole) {
            let (a, b) = if whole == 0 {
                (ours, theirs)
            } else {
                (theirs, ours)
            };
            work.pair(a, b, Basis::Parts, Confidence::Fair);
        }
    }
}

/// Regions that are the only ones of their function's name, on both sides, to do what they do; `with_places`: with units where they are,
/// if the function lost nothing and got nothing, which would move them.
fn of_one_name(work: &Work<'_>, with_places: bool) -> Vec<(usize, usize)> {
    let sides = [&work.a.regions, &work.b.regions];
    let signs = sides.map(|regions| signs(regions));
    let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
    type Places<'k> = Option<&'k str>;
    let mut names: BTreeMap<&str, BTreeMap<&Sign<'_>, [Vec<usize>; 2]>> = BTreeMap::new();
    for (side, free) in free.iter().enumerate() {
        for &at in free {
            if let (Some(name), Some(sign)) = (function(&sides[side][at]), &signs[side][at]) {
                let of_name = names.entry(name).or_default();
                of_name.entry(sign).or_default()[side].push(at);
            }
        }
    }
    if with_places {
        names.retain(|_, alike| alike.values().all(|[a, b]| a.len() == b.len()));
    }
    let mut found = vec![];
    for alike in names.values().flat_map(BTreeMap::values) {
        let mut apart: BTreeMap<Places<'_>, [Vec<usize>; 2]> = BTreeMap::new();
        for (side, list) in alike.iter().enumerate() {
            for &at in list {
                let places = sides[side][at].places.as_deref();
                let places = places.filter(|_| with_places);
                apart.entry(places).or_default()[side].push(at);
            }
        }
        for (places, [a, b]) in apart {
            let ([a], [b]) = (&a[..], &b[..]) else {
                continue;
            };
            let (x, y) = (&sides[0][*a], &sides[1][*b]);
            let is_possible = work.module(x) == work.module(y) && !work.is_settled(x, y);
            if is_possible && with_places == places.is_some() {
                found.push((*a, *b));
            }
        }
    }
    found
}

/// Regions of functions of a side that the other side has in several, with those of the other side.
fn divided(work: &Work<'_>, whole: usize) -> Vec<(usize, usize)> {
    let sides = [&work.a.regions, &work.b.regions];
    let (ours, theirs) = (sides[whole], sides[1 - whole]);
    let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
    let names = |regions: &[SideRegion]| -> BTreeSet<String> {
        let names = regions.iter().filter_map(|r| r.key.function.clone());
        names.collect()
    };
    let (known, kept) = (names(ours), names(theirs));
    let is_new = |region: &SideRegion| function(region).is_some_and(|f| !known.contains(f));
    let of_sides = sides.map(|regions| signs(regions));
    let mut alike: BTreeMap<&Sign<'_>, [Vec<usize>; 2]> = BTreeMap::new();
    for (side, free) in free.iter().enumerate() {
        for &at in free {
            let is_wanted = side == whole || is_new(&sides[side][at]);
            if let Some(sign) = of_sides[side][at].as_ref().filter(|_| is_wanted) {
                alike.entry(sign).or_default()[side].push(at);
            }
        }
    }
    let mut lost: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut added: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for &at in &free[whole] {
        let of = function(&ours[at]).map(|f| lost.entry(f).or_default());
        of.into_iter().for_each(|of| of.push(at));
    }
    for &at in free[1 - whole].iter().filter(|&&at| is_new(&theirs[at])) {
        let of = function(&theirs[at]).map(|f| added.entry(f).or_default());
        of.into_iter().for_each(|of| of.push(at));
    }
    let partner = |at: usize| {
        let found = alike.get(of_sides[whole][at].as_ref()?)?;
        let ([own], [other]) = (&found[whole][..], &found[1 - whole][..]) else {
            return None;
        };
        let both = (&ours[*own], &theirs[*other]);
        let (x, y) = if whole == 0 { both } else { (both.1, both.0) };
        let is_possible = work.module(x) == work.module(y) && !work.is_settled(x, y);
        is_possible.then_some((*own, *other))
    };
    let mut found = vec![];
    for (name, regions) in lost {
        let Some(pairs) = regions
            .iter()
            .map(|&at| partner(at))
            .collect::<Option<Vec<_>>>()
        else {
            continue;
        };
        let parts: BTreeSet<&str> = (pairs.iter())
            .filter_map(|p| function(&theirs[p.1]))
            .collect();
        let of_parts: usize = parts.iter().map(|part| added[part].len()).sum();
        let told: f64 = (pairs.iter())
            .filter_map(|p| counts(&ours[p.0]))
            .map(bits)
            .sum();
        let stand = |p: &(usize, usize)| places_agree(&ours[p.0], &theirs[p.1]) == Some(true);
        let is_divided = parts.len() + usize::from(kept.contains(name)) > 1;
        if is_divided && of_parts == pairs.len() && (told >= TELLING || pairs.iter().all(stand)) {
            found.extend(pairs);
        }
    }
    found
}

/// A region's function, if its place is known.
fn function(region: &SideRegion) -> Option<&str> {
    (region.key.file.as_ref()).and(region.key.line)?;
    region.key.function.as_deref()
}

/// Of each region; `None`: its counts aren't known, or those of what is around it.
fn signs(regions: &[SideRegion]) -> Vec<Option<Sign<'_>>> {
    let own = |at: usize| -> Option<Own<'_>> {
        let key = &regions.get(at)?.key;
        let own = counts(&regions[at])?;
        Some((own, key.schedule.as_deref(), key.name.as_deref()))
    };
    let around = |at: usize| {
        let parent = |at: &usize| Some(regions.get(*at)?.parent? as usize);
        std::iter::successors(Some(at), parent).take(DEEPEST)
    };
    let mut signs: Vec<Option<Sign<'_>>> = (0..regions.len())
        .map(|at| {
            let around: Option<Vec<Own<'_>>> = around(at).map(own).collect();
            around.map(|around| Sign {
                around,
                inside: vec![],
            })
        })
        .collect();
    for at in (0..regions.len()).filter(|&at| !regions[at].is_wait()) {
        let Some(own) = own(at) else { continue };
        for (depth, outer) in around(at).enumerate().skip(1) {
            if let Some(Some(sign)) = signs.get_mut(outer) {
                sign.inside.push((depth, own));
            }
        }
    }
    for sign in signs.iter_mut().flatten() {
        sign.inside.sort_unstable();
    }
    signs
}
