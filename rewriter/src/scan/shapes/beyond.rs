//! Elements that a thread's share leads to outside of every loop that is known to have its bounds: of a loop that isn't known, where a
//! cycle is entered in several places, say. They are listed.

use super::loops::Shape;
use super::{Analysis, again, def_use};
use crate::scan::draft::Draft;
use iced_x86::{Mnemonic, OpKind};
use ompfuse_format::site::{Edge, Outcome};
use std::collections::{BTreeMap, BTreeSet};

/// Lists, for each division whose loops are in `shapes` and `sharers`, the first such place, but for divisions of which a loop is
/// `listed` already.
pub(super) fn list(
    a: &Analysis<'_, '_>,
    shapes: &[Shape],
    (sharers, listed): (&[again::Sharer], &BTreeSet<u64>),
    drafts: &mut Vec<Draft>,
) {
    let is_followed = |d: &Draft| d.outcome == Outcome::Patchable;
    let id = |s: &Shape| a.flow.name(drafts[s.share].address);
    let mut places: Vec<(u64, u64)> = Vec::new();
    for s in shapes {
        places.extend([s.share, s.begin].map(|d| (id(s), drafts[d].address)));
    }
    for s in sharers {
        places.extend(s.tests.iter().map(|&t| (s.share, drafts[t].address)));
        places.extend(s.places().iter().map(|&at| (s.share, at)));
    }
    places.sort_unstable();
    places.dedup();
    // Each division's own: what another loop's begin leads to may be a loop of this one's.
    let mut known: BTreeSet<(u64, u64)> = BTreeSet::new();
    for (id, place) in places {
        let reached = a.reach(&[place], drafts).insns;
        known.extend(reached.into_iter().map(|ip| (id, ip)));
        // Who is known to have iterations may load the first one's elements in front of the test.
        let block = a.body.block_at(place).into_iter();
        let insns = block.flat_map(|b| a.body.block_insns(b));
        known.extend(insns.map(|i| (id, i.ip())));
    }
    let mut shares: BTreeMap<u64, &Shape> = BTreeMap::new();
    for shape in shapes.iter().filter(|s| is_followed(&drafts[s.begin])) {
        let id = id(shape);
        if !listed.contains(&id) {
            shares.entry(id).or_insert(shape);
        }
    }
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    // Copies of a loop's test that nothing follows which is seen to iterate: of one that is repeated, and whose cycle is unrolled.
    for (&id, shape) in &shares {
        let test = |b: &usize| a.body.insns[a.decisions[b].compare].ip();
        let mut others = shape.others.iter().map(test);
        let unknown = others.find(|&at| !known.contains(&(id, at)));
        found.extend(unknown.map(|at| (id, at)));
    }
    for block in (0..a.body.blocks.len()).filter(|&b| a.flow.is_queried(b)) {
        a.visit(block, |_, insn, state| {
            let memory = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
            if !memory || insn.mnemonic() == Mnemonic::Lea {
                return;
            }
            for register in [insn.memory_base(), insn.memory_index()] {
                let unknown =
                    |id: &u64| shares.contains_key(id) && !known.contains(&(*id, insn.ip()));
                if let Some(id) = def_use::division(register, state).filter(unknown) {
                    found.entry(id).or_insert(insn.ip());
                }
            }
        });
    }
    for (id, at) in found {
        let mut draft = Draft::new(at, drafts[shares[&id].begin].construct, Edge::Begin);
        draft.function = a.function();
        draft.detail = Some("static".into());
        draft.skip(format!(
            "it shares bounds with a loop at {id:#x}: its test wasn't found"
        ));
        drafts.push(draft);
    }
}
