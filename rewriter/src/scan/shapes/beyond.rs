//! Elements that a thread's share leads to outside of every loop that is known to have its bounds: of a loop that isn't known, where a
//! cycle is entered in several places, say. They are listed.

use super::loops::Shape;
use super::{Analysis, again, uses};
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
    let begins = shapes.iter().flat_map(|s| [s.share, s.begin]);
    let begins = begins.chain(sharers.iter().flat_map(|s| s.tests.iter().copied()));
    let places = begins.map(|d| drafts[d].address);
    let places = places.chain(sharers.iter().flat_map(|s| s.places().iter().copied()));
    let mut known: BTreeSet<u64> = BTreeSet::new();
    for place in places {
        known.extend(a.reach(&[place], drafts).insns);
        // Who is known to have iterations may load the first one's elements in front of the test.
        let block = a.body.block_at(place).into_iter();
        known.extend(block.flat_map(|b| a.body.block_insns(b)).map(|i| i.ip()));
    }
    let mut shares: BTreeMap<u64, &Shape> = BTreeMap::new();
    for shape in shapes.iter().filter(|s| is_followed(&drafts[s.begin])) {
        let id = a.flow.name(drafts[shape.share].address);
        if !listed.contains(&id) {
            shares.entry(id).or_insert(shape);
        }
    }
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    for block in (0..a.body.blocks.len()).filter(|&b| a.flow.is_queried(b)) {
        a.visit(block, |_, insn, state| {
            let memory = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory);
            if !memory || insn.mnemonic() == Mnemonic::Lea || known.contains(&insn.ip()) {
                return;
            }
            for register in [insn.memory_base(), insn.memory_index()] {
                if let Some(id) = uses::division(register, state).filter(|d| shares.contains_key(d))
                {
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
            "bounds of the loop at {id:#x}: its test wasn't found"
        ));
        drafts.push(draft);
    }
}
