//! Barriers and `taskwait`, when all else is matched.
//!
//! They have no units and often the same counts, so their lines tell, relative to the matched regions before and behind them. What
//! lines don't tell is compared as a sum in each parallel region: added or removed ones change how often its threads wait.

use super::tree::inside;
use super::{SideRegion, Work, agree, sums_agree};
use crate::diff::{Basis, Confidence};
use crate::side::{Interface, Side};
use ompfuse_format::Construct;
use std::collections::BTreeMap;

pub(super) fn run(work: &mut Work<'_>) {
    by_line(work);
    by_sum(work, Basis::Tree, inside, |_, _, _| true);
    by_sum(work, Basis::Behaviour, |_, _, _| Some(0), sums_agree);
}

/// Waits of each side without a match, if the other side would tell them. gcc's programs have calls at the ends of constructs that can't
/// be told from barriers of the source, and others don't: with another interface on the other side nothing is known.
///
/// Nor is anything known where two builds for gcc's runtime wait as often in a parallel region: then the barrier is the end of a loop that
/// was found in one of them.
pub(super) fn free(work: &Work<'_>) -> [Vec<usize>; 2] {
    [(work.a, work.b, &work.of_a), (work.b, work.a, &work.of_b)].map(|(side, other, of)| {
        let is_free = |&n: &usize| {
            let region = &side.regions[n];
            of[n].is_none()
                && region.is_wait()
                && has_same_interface(&region.key.module, side, other)
                && !is_told_as_end(work, side, of, region)
        };
        (0..side.regions.len()).filter(is_free).collect()
    })
}

fn is_told_as_end(work: &Work<'_>, side: &Side, of: &[Option<usize>], region: &SideRegion) -> bool {
    let is_gomp = side.interfaces.get(&region.key.module) == Some(&Interface::Gomp);
    let parent = region.parent.and_then(|p| of.get(p as usize).copied()?);
    let Some(found) = parent.filter(|_| is_gomp && region.key.construct == Construct::Barrier)
    else {
        return false;
    };
    let found = &work.found[found];
    let sum = |side: &Side, list: &[usize]| -> Option<u64> {
        list.iter().map(|&n| side.regions[n].barriers).sum()
    };
    let (a, b) = (sum(work.a, &found.a), sum(work.b, &found.b));
    a.is_some() && a == b
}

/// Whether a module of a side uses the interface of its counterpart: of the module with its name, else of all those that the side lacks.
fn has_same_interface(module: &str, side: &Side, other: &Side) -> bool {
    let Some(own) = side.interfaces.get(module) else {
        return false;
    };
    if let Some(interface) = other.interfaces.get(module) {
        return interface == own;
    }
    let mut others = (other.interfaces.iter())
        .filter(|(name, _)| !side.interfaces.contains_key(*name))
        .map(|(_, interface)| interface)
        .peekable();
    others.peek().is_some() && others.all(|interface| interface == own)
}

/// Lines of a file of A, and which they are in which file of B, of matched regions.
type Anchors<'a> = BTreeMap<&'a str, BTreeMap<u32, (&'a str, u32)>>;

fn anchors<'a>(work: &Work<'a>) -> Anchors<'a> {
    let place = |region: &'a SideRegion| Some((region.key.file.as_deref()?, region.key.line?));
    let mut anchors = Anchors::new();
    for found in &work.found {
        if let (&[x], &[y]) = (&found.a[..], &found.b[..])
            && let Some((file, line)) = place(&work.a.regions[x])
            && let Some(other) = place(&work.b.regions[y])
        {
            anchors.entry(file).or_default().insert(line, other);
        }
    }
    anchors
}

/// Pairs those whose lines are as far from the next matched region before or behind them on both sides, if no other one may be meant.
fn by_line(work: &mut Work<'_>) {
    let [free_a, free_b] = free(work);
    let anchors = anchors(work);
    type Place<'k> = (Construct, Option<&'k str>, &'k str, u32);
    let place = |region, file, line| -> Place<'_> {
        let region: &SideRegion = region;
        (region.key.construct, work.module(region), file, line)
    };
    let mut of_b: BTreeMap<Place<'_>, Vec<usize>> = BTreeMap::new();
    for y in free_b {
        let region = &work.b.regions[y];
        if let (Some(file), Some(line)) = (&region.key.file, region.key.line) {
            of_b.entry(place(region, file, line)).or_default().push(y);
        }
    }
    let mut meant: Vec<(usize, usize)> = vec![];
    for x in free_a {
        let region = &work.a.regions[x];
        let (Some(file), Some(line)) = (&region.key.file, region.key.line) else {
            continue;
        };
        let Some(lines) = anchors.get(file.as_str()) else {
            continue;
        };
        let near = [lines.range(..=line).next_back(), lines.range(line..).next()];
        let mut found: Vec<usize> = vec![];
        for (&from, &(file, to)) in near.into_iter().flatten() {
            let Some(line) = (line + to).checked_sub(from) else {
                continue;
            };
            let there = of_b.get(&place(region, file, line)).into_iter().flatten();
            // gcc's calls have the line of whatever comes before: those that are executed otherwise may be others.
            let fits = |&&y: &&usize| {
                let other = &work.b.regions[y];
                let is_other = work.is_same_input && agree(region, other) == Some(false);
                !is_other && !work.is_settled(region, other)
            };
            found.extend(there.filter(fits));
        }
        found.sort_unstable();
        found.dedup();
        meant.extend(found.into_iter().map(|y| (x, y)));
    }
    let mut times: [BTreeMap<usize, u32>; 2] = Default::default();
    for &(x, y) in &meant {
        *times[0].entry(x).or_default() += 1;
        *times[1].entry(y).or_default() += 1;
    }
    for (x, y) in meant {
        if times[0][&x] == 1 && times[1][&y] == 1 {
            work.pair(x, y, Basis::Line, Confidence::High);
        }
    }
}

/// Waits of both sides by place, kind, and module.
type Lists<'k> = BTreeMap<(usize, Construct, Option<&'k str>), [Vec<usize>; 2]>;

/// Compares what is left as a sum: of one kind and module, in one place.
fn by_sum(
    work: &mut Work<'_>,
    basis: Basis,
    place: impl Fn(&Work<'_>, usize, usize) -> Option<usize>,
    may: impl Fn(&Work<'_>, &[usize], &[usize]) -> bool,
) {
    let mut lists = Lists::new();
    for (side, free) in free(work).into_iter().enumerate() {
        let regions = [&work.a.regions, &work.b.regions][side];
        for at in free {
            if let Some(place) = place(work, side, at) {
                let key = (place, regions[at].key.construct, work.module(&regions[at]));
                lists.entry(key).or_default()[side].push(at);
            }
        }
    }
    for [a, b] in lists.into_values() {
        let of = |x: usize, y: usize| work.is_settled(&work.a.regions[x], &work.b.regions[y]);
        let is_settled = a.iter().any(|&x| b.iter().any(|&y| of(x, y)));
        if !a.is_empty() && !b.is_empty() && !is_settled && may(work, &a, &b) {
            let is_group = a.len() > 1 || b.len() > 1;
            work.many(a, b, basis, Confidence::Fair, is_group);
        }
    }
}
