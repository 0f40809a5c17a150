//! Matches by what the source says: file, function, construct, and the order of lines.
//!
//! Lines themselves are weak signs: compilers place a construct at its directive or at its statement, and a commit moves all that
//! stands below it. So regions of one function and kind are aligned in their order, by behaviour; lines decide only where the source
//! is unchanged. There, a line of which a compiler made more copies than the other one (inlined, unrolled, cloned) is one region.

use super::align::align;
use super::{SideRegion, Work, agree, moved, places_agree, sums_agree};
use crate::diff::{Basis, Confidence};
use ompfuse_format::Construct;
use std::collections::{BTreeMap, BTreeSet};

/// Lines between what two compilers say of one construct.
const TOLERANCE: u32 = 3;
/// Pairs of a list's regions that are looked at; of longer lists only lines tell.
const LARGEST: usize = 4_000_000;
/// The best alignment must be better than all others by this much.
pub(super) const MARGIN: f64 = 0.45;

/// Regions of one file, kind, and function on each side.
type Lists = BTreeMap<(usize, Construct, Option<String>, Option<String>), [Vec<usize>; 2]>;

pub(super) fn run(work: &mut Work<'_>) {
    let files = Files::of(work);
    copies(work, &files);
    // With the function, where its name is on both sides; then whatever is left, by file and kind.
    for with_function in [true, false] {
        let functions = functions_of_both(work);
        let mut lists: Lists = BTreeMap::new();
        for (side, free) in [
            (0, work.free_a().collect::<Vec<_>>()),
            (1, work.free_b().collect()),
        ] {
            let regions = [&work.a.regions, &work.b.regions][side];
            for at in free {
                let region = &regions[at];
                let (Some(file), Some(_)) = (files.id(side, region), region.key.line) else {
                    continue;
                };
                let function = region.key.function.as_ref().filter(|_| with_function);
                let function = function.filter(|f| functions.contains(*f)).cloned();
                if with_function && function.is_none() {
                    continue;
                }
                let key = (
                    file,
                    region.key.construct,
                    function,
                    region.key.name.clone(),
                );
                lists.entry(key).or_default()[side].push(at);
            }
        }
        for ((file, ..), [a, b]) in lists {
            if !a.is_empty() && !b.is_empty() {
                align_lists(work, files.unchanged.contains(&file), a, b);
            }
        }
    }
    moved::run(work, &files);
}

/// Constructs of one line of an unchanged file, of which one side has more.
fn copies(work: &mut Work<'_>, files: &Files) {
    type Line<'k> = (usize, Option<&'k str>, Construct, Option<&'k str>, u32);
    let mut lines: BTreeMap<Line<'_>, [Vec<usize>; 2]> = BTreeMap::new();
    let free: [Vec<usize>; 2] = [work.free_a().collect(), work.free_b().collect()];
    for (side, free) in free.into_iter().enumerate() {
        for at in free {
            let Some(region) = [&work.a.regions, &work.b.regions][side].get(at) else {
                continue;
            };
            if let (Some(file), Some(line)) = (files.id(side, region), region.key.line)
                && files.unchanged.contains(&file)
            {
                let name = region.key.name.as_deref();
                let key = (file, work.module(region), region.key.construct, name, line);
                lines.entry(key).or_default()[side].push(at);
            }
        }
    }
    for [a, b] in lines.into_values() {
        let is_settled = |x: &usize| {
            let of = |y: &usize| work.is_settled(&work.a.regions[*x], &work.b.regions[*y]);
            b.iter().any(of)
        };
        let is_copied = a.len() != b.len() && !a.is_empty() && !b.is_empty();
        if is_copied && !a.iter().any(is_settled) {
            let confidence = match work.is_same_input && sums_agree(work, &a, &b) {
                true => Confidence::High,
                false => Confidence::Fair,
            };
            work.many(a, b, Basis::Line, confidence, false);
        }
    }
}

/// Functions that both sides name.
fn functions_of_both(work: &Work<'_>) -> BTreeSet<String> {
    let of = |regions: &[SideRegion]| -> BTreeSet<String> {
        regions
            .iter()
            .filter_map(|r| r.key.function.clone())
            .collect()
    };
    let (a, b) = (of(&work.a.regions), of(&work.b.regions));
    a.intersection(&b).cloned().collect()
}

fn align_lists(work: &mut Work<'_>, is_unchanged: bool, mut a: Vec<usize>, mut b: Vec<usize>) {
    let (of_a, of_b) = (&work.a.regions, &work.b.regions);
    let order = |r: &SideRegion| (r.key.line, r.key.addresses.first().copied());
    a.sort_by_key(|&n| order(&of_a[n]));
    b.sort_by_key(|&n| order(&of_b[n]));
    let longest = a.len().max(b.len()) as f64;
    let is_same_input = work.is_same_input;
    let score = |i: usize, j: usize| {
        let (a, b) = (&of_a[a[i]], &of_b[b[j]]);
        if work.is_settled(a, b) || work.module(a) != work.module(b) {
            return -1.0;
        }
        let lines = line_distance(a, b);
        let is_other = is_same_input && agree(a, b) == Some(false);
        // All lines together never outweigh a gap if the source has changed.
        let by_line = match (is_unchanged, lines) {
            (true, 0) => 1.0,
            (true, 1..=TOLERANCE) if !is_other => 0.7,
            (true, _) => return -1.0,
            (false, 0) => 0.4 / longest,
            (false, 1..=TOLERANCE) => 0.2 / longest,
            (false, _) => 0.0,
        };
        // Other input, other counts: then only equal ones tell.
        let against = if is_same_input { 1.0 } else { 0.1 };
        let by_counts = match agree(a, b) {
            Some(true) => 1.0,
            Some(false) => -against,
            None => 0.0,
        };
        // A region more shifts the places of all behind it.
        let by_places = match places_agree(a, b) {
            Some(true) if is_unchanged => 1.0,
            Some(false) if is_unchanged => -against / 2.0,
            _ => 0.0,
        };
        2.0 + by_line + by_counts + by_places
    };
    let mut sure: Vec<(usize, usize)> = if a.len() * b.len() <= LARGEST {
        let pairs = align(a.len(), b.len(), score).into_iter();
        let sure = pairs.filter(|p| p.margin >= MARGIN);
        sure.map(|p| (a[p.a], b[p.b])).collect()
    } else if is_unchanged {
        same_lines(work, &a, &b)
    } else {
        vec![]
    };
    if is_unchanged && is_same_input {
        // Each region has a partner. Where some have none, lines are of other constructs than they seem to be: gcc's calls of the
        // runtime have that of whatever comes before.
        let (more_a, more_b) = (a.len() > sure.len(), b.len() > sure.len());
        sure.retain(|&(at, other)| {
            let (x, y) = (&of_a[at], &of_b[other]);
            let is_near = more_a && more_b && line_distance(x, y) > 0;
            let is_other = (more_a || more_b) && agree(x, y) == Some(false);
            places_agree(x, y) == Some(true) || !(is_near || is_other)
        });
    }
    for (at, other) in sure {
        let (x, y) = (&of_a[at], &of_b[other]);
        let lines = line_distance(x, y);
        let behaves = agree(x, y) != Some(false);
        let basis = match lines {
            0 => Basis::Line,
            1..=TOLERANCE if is_unchanged => Basis::Line,
            _ => Basis::Order,
        };
        let confidence = match (basis, places_agree(x, y)) {
            (_, Some(true)) if behaves && is_unchanged => Confidence::Certain,
            (Basis::Line, _) if behaves => Confidence::High,
            _ => Confidence::Fair,
        };
        work.pair(at, other, basis, confidence);
    }
    if is_unchanged && is_same_input {
        rest(work, &a, &b);
    }
}

/// Regions that are the only ones on their line on both sides.
fn same_lines(work: &Work<'_>, a: &[usize], b: &[usize]) -> Vec<(usize, usize)> {
    let mut lines: BTreeMap<Option<u32>, [Vec<usize>; 2]> = BTreeMap::new();
    let (of_a, of_b) = (&work.a.regions, &work.b.regions);
    for &n in a {
        lines.entry(of_a[n].key.line).or_default()[0].push(n);
    }
    for &n in b {
        lines.entry(of_b[n].key.line).or_default()[1].push(n);
    }
    let alone = lines
        .into_values()
        .filter_map(|[a, b]| match (&a[..], &b[..]) {
            (&[a], &[b]) => Some((a, b)),
            _ => None,
        });
    alone
        .filter(|&(a, b)| {
            let (a, b) = (&of_a[a], &of_b[b]);
            work.module(a) == work.module(b) && !work.is_settled(a, b)
        })
        .collect()
}

/// What lines could not tell apart in one function is compared as a sum, if both sides' together do the same.
fn rest(work: &mut Work<'_>, a: &[usize], b: &[usize]) {
    let free = |list: &[usize], of: &[Option<usize>]| -> Vec<usize> {
        let free = list.iter().filter(|&&n| of[n].is_none());
        free.copied().collect()
    };
    let (a, b) = (free(a, &work.of_a), free(b, &work.of_b));
    let possible = a.iter().all(|&x| {
        let x = &work.a.regions[x];
        let fits = |&y: &usize| {
            let y = &work.b.regions[y];
            work.module(x) == work.module(y) && !work.is_settled(x, y)
        };
        b.iter().all(fits)
    });
    if !a.is_empty() && !b.is_empty() && possible && sums_agree(work, &a, &b) {
        work.many(a, b, Basis::Behaviour, Confidence::Fair, true);
    }
}

fn line_distance(a: &SideRegion, b: &SideRegion) -> u32 {
    match (a.key.line, b.key.line) {
        (Some(a), Some(b)) => a.abs_diff(b),
        _ => u32::MAX,
    }
}

/// The source files of both sides, by number.
pub(super) struct Files {
    /// By side and path.
    known: [BTreeMap<String, usize>; 2],
    /// Those whose lines are the same on both sides.
    unchanged: BTreeSet<usize>,
}

impl Files {
    fn of(work: &Work<'_>) -> Files {
        let paths = |regions: &[SideRegion]| -> Vec<String> {
            let all: BTreeSet<&String> =
                regions.iter().filter_map(|r| r.key.file.as_ref()).collect();
            all.into_iter().cloned().collect()
        };
        let (a, b) = (paths(&work.a.regions), paths(&work.b.regions));
        let mut known = [BTreeMap::new(), BTreeMap::new()];
        // The pairs with the longest common end first; a path that has two equally good partners has none.
        let mut pairs: Vec<(usize, &String, &String)> = (a.iter())
            .flat_map(|x| b.iter().map(move |y| (common_end(x, y), x, y)))
            .filter(|p| p.0 > 0)
            .collect();
        pairs.sort_by(|x, y| y.0.cmp(&x.0).then_with(|| (x.1, x.2).cmp(&(y.1, y.2))));
        for at in 0..pairs.len() {
            let (end, x, y) = pairs[at];
            if known[0].contains_key(x) || known[1].contains_key(y) {
                continue;
            }
            let is_rival = |p: &&(usize, &String, &String)| {
                p.0 == end
                    && ((p.1 == x) != (p.2 == y))
                    && !known[0].contains_key(p.1)
                    && !known[1].contains_key(p.2)
            };
            if !pairs.iter().any(|p| is_rival(&p)) {
                known[0].insert(x.clone(), at);
                known[1].insert(y.clone(), at);
            }
        }
        renamed(work, [&a, &b], pairs.len(), &mut known);
        let mut files = Files {
            known,
            unchanged: BTreeSet::new(),
        };
        files.unchanged = files.unchanged(work);
        files
    }

    pub(super) fn id(&self, side: usize, region: &SideRegion) -> Option<usize> {
        self.known[side].get(region.key.file.as_ref()?).copied()
    }

    /// Calls of the runtime have the directive's line with every compiler: where those of parallel regions are equal, or all lines
    /// are, nothing has moved.
    fn unchanged(&self, work: &Work<'_>) -> BTreeSet<usize> {
        let lines = |side: usize, is_fork: bool| -> BTreeMap<usize, BTreeSet<(Construct, u32)>> {
            let regions = [&work.a.regions, &work.b.regions][side];
            let mut lines: BTreeMap<usize, BTreeSet<(Construct, u32)>> = BTreeMap::new();
            for region in regions {
                let is_wanted = match is_fork {
                    true => region.key.construct == Construct::Parallel,
                    false => !region.is_wait(),
                };
                if let (Some(file), Some(line), true) =
                    (self.id(side, region), region.key.line, is_wanted)
                {
                    lines
                        .entry(file)
                        .or_default()
                        .insert((region.key.construct, line));
                }
            }
            lines
        };
        let mut same = BTreeSet::new();
        for is_fork in [true, false] {
            let (a, b) = (lines(0, is_fork), lines(1, is_fork));
            same.extend(
                a.iter()
                    .filter(|(file, l)| b.get(file) == Some(l))
                    .map(|(file, _)| *file),
            );
        }
        same
    }
}

/// Numbers files that were renamed, from `next` on: those left of which each has most functions of its regions in common with the other.
fn renamed(
    work: &Work<'_>,
    paths: [&Vec<String>; 2],
    next: usize,
    known: &mut [BTreeMap<String, usize>; 2],
) {
    let functions = |side: usize| -> BTreeMap<&String, BTreeSet<&String>> {
        let mut found: BTreeMap<&String, BTreeSet<&String>> = BTreeMap::new();
        for region in [&work.a.regions, &work.b.regions][side] {
            if let (Some(file), Some(function)) = (&region.key.file, &region.key.function)
                && paths[side].contains(file)
                && !known[side].contains_key(file)
            {
                found.entry(file).or_default().insert(function);
            }
        }
        found
    };
    let [a, b] = [functions(0), functions(1)];
    let is_most = |x: &BTreeSet<&String>, y: &BTreeSet<&String>| {
        2 * x.intersection(y).count() > x.len().max(y.len())
    };
    // More than half of both: no other file can have that too.
    let both = a.iter().flat_map(|x| b.iter().map(move |y| (x, y)));
    let same = both.filter(|((_, x), (_, y))| is_most(x, y));
    for (number, ((x, _), (y, _))) in (next..).zip(same) {
        known[0].insert((*x).clone(), number);
        known[1].insert((*y).clone(), number);
    }
}

/// How many parts two paths have in common at their ends.
fn common_end(a: &str, b: &str) -> usize {
    let parts =
        |path: &'_ str| -> Vec<String> { path.split('/').rev().map(str::to_owned).collect() };
    let (a, b) = (parts(a), parts(b));
    a.iter().zip(&b).take_while(|(x, y)| x == y).count()
}
