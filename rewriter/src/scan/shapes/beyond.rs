//! Loops with a share of a division that are not known by their test, and elements that a share leads to outside of every loop that is known
//! to have its bounds: of a loop that isn't known, where a cycle is entered in several places, say. They are listed.

use super::found::Found;
use super::loops::{Shape, asking};
use super::why::{Lost, Why};
use super::{Analysis, again, def_use};
use iced_x86::{Mnemonic, OpKind};
use ompfuse_format::Construct;
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

/// Lists, for each division whose loops are in `shapes` and `sharers`, the first such place, but for divisions of which a loop is
/// `listed` already.
pub(super) fn list(
    a: &Analysis<'_, '_>,
    shapes: &[Shape],
    (sharers, listed): (&[again::Sharer], &BTreeSet<u64>),
    all: &mut Vec<Found>,
) {
    let mut places: Vec<(u64, u64)> = Vec::new();
    for s in shapes {
        places.extend([s.share, s.begin].map(|n| (s.id, all[n].at)));
    }
    for s in sharers {
        places.extend(s.tests.iter().map(|&t| (s.share, all[t].at)));
        places.extend(s.places().iter().map(|&at| (s.share, at)));
    }
    places.sort_unstable();
    places.dedup();
    // Each division's own: what another loop's begin leads to may be a loop of this one's.
    let mut known: BTreeSet<(u64, u64)> = BTreeSet::new();
    for (id, place) in places {
        let reached = a.reach(&[place]).insns;
        known.extend(reached.into_iter().map(|ip| (id, ip)));
        // Who is known to have iterations may load the first one's elements in front of the test.
        let block = a.body.block_at(place).into_iter();
        let insns = block.flat_map(|b| a.body.block_insns(b));
        known.extend(insns.map(|i| (id, i.ip())));
    }
    let mut shares: BTreeMap<u64, &Shape> = BTreeMap::new();
    for shape in shapes.iter().filter(|s| all[s.begin].why().is_none()) {
        if !listed.contains(&shape.id) {
            shares.entry(shape.id).or_insert(shape);
        }
    }
    let mut found: BTreeMap<u64, u64> = BTreeMap::new();
    // Copies of a loop's test that nothing follows which is seen to iterate: of one that is repeated, and whose cycle is unrolled.
    for (&id, shape) in &shares {
        let mut others = shape.others.iter().filter_map(|&b| a.test_at(b));
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
        let why = Err(Why::Shares(id, Lost::Untested));
        let construct = all[shares[&id].begin].construct;
        all.push(Found::begin(construct, "static", at, why));
    }
}

/// Lists further loops with the results of division `id`, computed in `blocks`: where the remainder is asked for, and no branch on
/// these results follows before they are computed again, or what ends a loop (`closing`).
pub(super) fn list_others(
    a: &Analysis<'_, '_>,
    id: u64,
    blocks: &[usize],
    closing: &BTreeSet<usize>,
    shapes: &[Shape],
    all: &mut Vec<Found>,
) {
    let own = |s: &&Shape| s.id == id;
    let own: Vec<&Shape> = shapes.iter().filter(own).collect();
    let Some(shape) = own.first() else {
        return;
    };
    let (rank, construct) = match all[shape.share].construct {
        Construct::Distribute => (Query::TeamNum, Construct::Distribute),
        other => (Query::ThreadNum, other),
    };
    let tests = own.iter().flat_map(|s| s.others.iter().chain([&s.first]));
    let tests: BTreeSet<usize> = tests.copied().collect();
    let ends = |b: &usize| blocks.contains(b) || closing.contains(b);
    let tested = a.leading_to(tests.iter().copied(), ends);
    let leads = |block: usize| {
        let succs = &a.body.blocks[block].succs;
        tests.contains(&block) || succs.iter().any(|s| tested.contains(s))
    };
    let others = asking(a, id, rank).filter(|&(b, _)| !leads(b));
    all.extend(others.map(|(_, at)| Found::begin(construct, "static", at, Err(Why::Untested))));
}
