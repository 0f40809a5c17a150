//! Loops whose first chunk isn't compared where it is looked for first: each of their cycles is asked for ways of its own to come to
//! a comparison.

use super::super::{Analysis, NaturalLoop};
use super::check_inside;
use super::compare::{self, UNCOMPARED};
use super::entered;
use super::forms::{Dealt, Found};
use crate::model::ProbeSpec;
use crate::scan::draft::Draft;
use std::collections::{BTreeMap, BTreeSet};

/// Cycles without a comparison, by the address of their beginning, and the question that chooses them.
type Apart = BTreeMap<u64, Option<(usize, usize)>>;

/// Gives those that have such ways their probes. `found`: all forms of loops, by the comparison that was taken for the first one's.
pub(super) fn resolve<'x>(
    a: &'x Analysis<'_, '_>,
    (loops, apart): (&mut Vec<(u64, Dealt<'x>)>, &mut Apart),
    found: &BTreeMap<u64, Vec<Found<'x>>>,
    drafts: &[Draft],
) {
    let mut open: Vec<(u64, Vec<Vec<&NaturalLoop>>)> = Vec::new();
    for &at in apart.keys() {
        let begins = |c: &&NaturalLoop| a.body.blocks[c.header].start == at;
        let cycle = a.cycles().iter().find(begins);
        open.extend(cycle.map(|c| (at, vec![vec![c]])));
    }
    for (at, _) in loops.iter().filter(|(_, l)| matches!(l, Err(UNCOMPARED))) {
        let forms = found.get(at).map(|forms| forms.iter().map(|f| f.0.clone()));
        open.extend(forms.map(|forms| (*at, forms.collect())));
    }
    for (at, mut forms) in open {
        let dealt = || loops.iter().filter_map(|(_, l)| l.as_ref().ok());
        let mut taken: BTreeSet<u64> = dealt().flat_map(|(_, p)| p.keys().copied()).collect();
        let cycles = dealt().flat_map(|(cycles, _)| cycles);
        let done: BTreeSet<usize> = cycles.map(|c| c.header).collect();
        forms.retain(|cycles| !cycles.iter().any(|c| done.contains(&c.header)));
        let mut new = Vec::new();
        for cycles in &forms {
            let probes = |c| entered::probes(a, c, &taken, drafts).or_else(|| inside(a, c, &taken));
            let Some((cycle, probes)) = cycles.iter().find_map(|&c| Some((c, probes(c)?))) else {
                continue;
            };
            taken.extend(probes.keys().copied());
            new.push((vec![cycle], probes));
        }
        // Of what nothing is known is listed where it was seen.
        if new.len() == forms.len() {
            loops.retain(|(other, l)| *other != at || l.is_ok());
            apart.remove(&at);
        } else {
            new.retain(|(_, probes)| !probes.contains_key(&at));
        }
        for dealt in new {
            let first = dealt.1.keys().next().copied();
            loops.extend(first.map(|first| (first, Ok(dealt))));
        }
    }
}

/// The probes of a loop whose first chunk is compared in the cycle itself, as unoptimised code does, whatever is compared in front of
/// it; nothing of `taken` is among their places.
fn inside(
    a: &Analysis<'_, '_>,
    cycle: &NaturalLoop,
    taken: &BTreeSet<u64>,
) -> Option<BTreeMap<u64, ProbeSpec>> {
    let (at, _) = check_inside(a, cycle).filter(|(_, both)| *both)?;
    let probes = compare::comparisons(a, at, cycle, (true, true)).ok()?;
    probes
        .keys()
        .all(|at| !taken.contains(at))
        .then_some(probes)
}
