//! Functions that moved into another file, or whose namespace was renamed on the way.
//!
//! A function that each side has in one file only is the same wherever that is: its regions are aligned in their order. Behind full names
//! come their last parts, which other functions may have too: these need equal counts. Where counts of the same input differ, or several
//! functions have the name, there is no match.

use super::align::align;
use super::source::{Files, MARGIN};
use super::{SideRegion, Work, agree, places_agree};
use crate::diff::{Basis, Confidence};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

/// Parts of names that are compared, most certain first: all of them, class and function, the function.
const KEPT: [usize; 3] = [usize::MAX, 2, 1];

/// Regions longer lists of which aren't aligned.
const LONGEST: usize = 2_000;

type Key<'a> = (
    &'a str,
    Option<&'a str>,
    Construct,
    Option<&'a str>,
    [usize; 2],
);

pub(super) fn run(work: &mut Work<'_>, files: &Files) {
    for kept in KEPT {
        let homes = [homes(&work.a.regions, kept), homes(&work.b.regions, kept)];
        let mut lists: BTreeMap<Key<'_>, [Vec<usize>; 2]> = BTreeMap::new();
        let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
        for (side, free) in free.into_iter().enumerate() {
            let regions = [&work.a.regions, &work.b.regions][side];
            for at in free {
                let region = &regions[at];
                let Some(name) = name(region, kept) else {
                    continue;
                };
                let homes = [&homes[0], &homes[1]].map(|of| of.get(name));
                let [Some(Some(a)), Some(Some(b))] = homes else {
                    continue;
                };
                // Of one file the lines have told all that they can.
                let ids = [
                    files.id(0, &work.a.regions[*a]),
                    files.id(1, &work.b.regions[*b]),
                ];
                if ids[0].is_none() || ids[0] != ids[1] {
                    let key = &region.key;
                    let kind = (key.construct, key.name.as_deref());
                    let place = (name, work.module(region), kind.0, kind.1, [*a, *b]);
                    lists.entry(place).or_default()[side].push(at);
                }
            }
        }
        let is_full = kept == usize::MAX;
        let found: Vec<_> = (lists.into_values())
            .filter(|[a, b]| a.len().max(b.len()) <= LONGEST)
            .flat_map(|[a, b]| aligned(work, a, b, is_full))
            .collect();
        for (a, b) in found {
            let known = agree(&work.a.regions[a], &work.b.regions[b]) == Some(true);
            let confidence = match is_full && known {
                true => Confidence::High,
                false => Confidence::Fair,
            };
            work.pair(a, b, Basis::Function, confidence);
        }
    }
}

/// The last parts of a region's function, if its place is known.
fn name(region: &SideRegion, kept: usize) -> Option<&str> {
    let (function, _) = (region.key.function.as_deref()?, region.key.line?);
    region.key.file.as_ref().map(|_| last_parts(function, kept))
}

/// For each name one of its regions, if one function of one file has it.
fn homes(regions: &[SideRegion], kept: usize) -> BTreeMap<&str, Option<usize>> {
    let mut homes: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    let place = |at: usize| (&regions[at].key.function, &regions[at].key.file);
    for (at, region) in regions.iter().enumerate() {
        if let Some(name) = name(region, kept) {
            let known = homes.entry(name).or_insert(Some(at));
            *known = known.filter(|&first| place(first) == place(at));
        }
    }
    homes
}

/// `b::c` of `a::b::c` for two parts. What is in brackets belongs to its part; lambdas and operators belong to what is around them, since
/// many a function has one.
fn last_parts(function: &str, kept: usize) -> &str {
    let mut depth = 0u32;
    let mut begins: Vec<usize> = vec![0];
    for (at, character) in function.char_indices() {
        match character {
            '<' | '(' | '{' | '[' => depth += 1,
            '>' | ')' | '}' | ']' => depth = depth.saturating_sub(1),
            ':' if depth == 0 && function[..at].ends_with(':') => {
                let part = &function[at + 1..];
                if !part.starts_with('{') && !part.starts_with("operator") {
                    begins.push(at + 1);
                }
            }
            _ => {}
        }
    }
    function
        .get(begins[begins.len().saturating_sub(kept)]..)
        .unwrap_or(function)
}

/// Regions of a function that belong together, in their order. `is_full`: the name alone tells where counts aren't known.
fn aligned(
    work: &Work<'_>,
    mut a: Vec<usize>,
    mut b: Vec<usize>,
    is_full: bool,
) -> Vec<(usize, usize)> {
    let (of_a, of_b) = (&work.a.regions, &work.b.regions);
    let order = |r: &SideRegion| (r.key.line, r.key.addresses.first().copied());
    a.sort_by_key(|&n| order(&of_a[n]));
    b.sort_by_key(|&n| order(&of_b[n]));
    let score = |i: usize, j: usize| {
        let (x, y) = (&of_a[a[i]], &of_b[b[j]]);
        let counts = agree(x, y);
        let is_possible = match counts {
            Some(true) => work.is_same_input || is_full,
            Some(false) => is_full && !work.is_same_input,
            None => is_full,
        };
        if !is_possible || work.is_settled(x, y) {
            return -1.0;
        }
        let of = |is: bool| f64::from(u8::from(is));
        let schedules = of(x.key.schedule == y.key.schedule);
        2.0 + of(counts == Some(true)) + schedules + of(places_agree(x, y) == Some(true))
    };
    (align(a.len(), b.len(), score).into_iter())
        .filter(|p| p.margin >= MARGIN)
        .map(|p| (a[p.a], b[p.b]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::last_parts;

    #[test]
    fn names_have_parts_outside_of_brackets() {
        for (name, kept, expected) in [
            ("a::b::Mesh::sweep", usize::MAX, "a::b::Mesh::sweep"),
            ("a::b::Mesh::sweep", 2, "Mesh::sweep"),
            (
                "a::grid<std::pair<int, b::c>>",
                1,
                "grid<std::pair<int, b::c>>",
            ),
            (
                "f(a::b)::{lambda(c::d)#1}::operator() const",
                1,
                "f(a::b)::{lambda(c::d)#1}::operator() const",
            ),
            ("solve", 2, "solve"),
            ("a::Mesh::operator+", 1, "Mesh::operator+"),
        ] {
            assert_eq!(last_parts(name, kept), expected, "{name}");
        }
    }
}
