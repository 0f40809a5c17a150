//! The forms that gcc makes of one loop with chunks, behind one comparison of the first chunk.

use super::super::why::Why;
use super::super::{Analysis, NaturalLoop};
use super::compare::{comparisons, leads_into};
use crate::model::ProbeSpec;
use crate::scan::cfg::Exit;
use std::collections::{BTreeMap, BTreeSet};

/// The cycles of a loop's chunks, one for each of its forms, and its probes by address; or why there are none.
pub(super) type Dealt<'x> = Result<(Vec<&'x NaturalLoop>, BTreeMap<u64, ProbeSpec>), Why>;

/// The loop whose first comparison with the bound is at `at`. Behind that gcc may ask for something that is the same in all iterations
/// (the distance of an array's elements, often), and have a form of the loop for each answer.
pub(super) fn dealt<'x>(a: &Analysis<'_, '_>, at: u64, forms: &[Form<'x>]) -> Dealt<'x> {
    if forms.iter().any(|(_, _, asked)| asked.is_some()) {
        return Err(Why::Forms);
    }
    let mut cycles = Vec::new();
    let mut probes = BTreeMap::new();
    for (candidates, minimum, _) in forms {
        let (cycle, own) = form(a, at, candidates, *minimum, forms.len() == 1)?;
        if probes.get(&at).is_some_and(|p| own.get(&at) != Some(p)) {
            return Err(Why::Unclear);
        }
        cycles.push(cycle);
        probes.extend(own);
    }
    match forms.len() == 1 || is_one_entered(a, at, &cycles) {
        true => Ok((cycles, probes)),
        false => Err(Why::Forms),
    }
}

/// A form of that loop, or its only one; one of the cycles is that of its chunks.
fn form<'x>(
    a: &Analysis<'_, '_>,
    at: u64,
    cycles: &[&'x NaturalLoop],
    minimum: bool,
    is_only: bool,
) -> Result<(&'x NaturalLoop, BTreeMap<u64, ProbeSpec>), Why> {
    let mut why = Why::Unclear;
    for cycle in cycles {
        match comparisons(a, at, cycle, (minimum, is_only)) {
            Ok(probes) => return Ok((cycle, probes)),
            Err(reason) if why != Why::Uncompared => why = reason,
            Err(_) => {}
        }
    }
    Err(why)
}

/// The cycles of a loop, whether a minimum is chosen, and the question that only some threads come to it behind, with the way they take.
pub(super) type Form<'x> = (Vec<&'x NaturalLoop>, bool, Option<Question>);

/// A block that asks which thread this is, and the way on which it goes to a cycle.
pub(super) type Question = (usize, usize);

/// Whether who comes from the first comparison, at `at`, to one of these cycles comes to one of them on all ways, and from there to
/// another one or back to the same by that comparison only.
fn is_one_entered(a: &Analysis<'_, '_>, at: u64, cycles: &[&NaturalLoop]) -> bool {
    let Some(first) = a.body.block_at(at) else {
        return false;
    };
    let compared = BTreeSet::from([first]);
    let is_header = |b: usize| cycles.iter().any(|c| c.header == b);
    let stays_apart = |c: &&NaturalLoop| {
        let mut others = cycles.iter().filter(|o| o.header != c.header);
        others
            .all(|o| c.blocks.is_disjoint(&o.blocks) && !a.leads_to(c.header, o.header, &compared))
    };
    let succs = a.body.blocks[first].succs.iter().copied();
    let enters = |s: &usize| cycles.iter().any(|c| leads_into(a, first, *s, c));
    let mut others = false;
    a.body.forwards(succs.filter(enters), |block| {
        let blocks = &a.body.blocks[block];
        let is_inside = !is_header(block);
        let leaves = block == first || !matches!(blocks.exit, Exit::None | Exit::Dead);
        others |= is_inside && leaves;
        is_inside && !others
    });
    if others {
        return false;
    }
    cycles.iter().all(stays_apart)
}
