//! The comparisons of chunks' starts with the bound, and the probes before them.

use super::super::why::Why;
use super::super::{Analysis, Decision, NaturalLoop, operands};
use super::invariant;
use crate::model::ProbeSpec;
use crate::scan::flow::lazy::Lazy;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::value::{self, Value};
use iced_x86::{ConditionCode, Mnemonic, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// Every chunk passes one comparison: the first one, or one that leaves the cycle. Their probes, by address; `minimum`: chunks may
/// have more than one iteration; `is_only`: the loop has no other form.
pub(super) fn comparisons(
    a: &Analysis<'_, '_>,
    at: u64,
    cycle: &NaturalLoop,
    (minimum, is_only): (bool, bool),
) -> Result<BTreeMap<u64, ProbeSpec>, Why> {
    let ways_out = ways_out(a, cycle);
    if ways_out.len() != 1 && (minimum || !are_alike(a, &ways_out, cycle)) {
        return Err(Why::SeveralEnds);
    }
    let first = a
        .decisions
        .keys()
        .copied()
        .find(|&b| a.test_at(b) == Some(at))
        .ok_or(Why::Unclear)?;
    if !begins_chunks(a, first, cycle) || ways_out.len() != 1 && cycle.blocks.contains(&first) {
        return Err(Why::Uncompared);
    }
    // gcc may have another form of the loop for a single thread, say, in which nothing is compared.
    let succs = &a.body.blocks[first].succs;
    let mut entered = succs.iter().filter(|&&s| leads_into(a, first, s, cycle));
    let enters = |&s: &usize| a.post.dominates(cycle.header, s);
    match cycle.blocks.contains(&first) {
        false if is_only && !entered.all(enters) => return Err(Why::Forms),
        true if !is_only => return Err(Why::Forms),
        _ => {}
    }
    let bounds: BTreeSet<_> = ways_out.iter().map(|&b| bound(a, b)).collect();
    if bounds != BTreeSet::from([bound(a, first)]) {
        return Err(Why::Unclear);
    }
    // Iterations are compared with what is a chunk's own.
    let mut values = Lazy::of_all(a, a.body.blocks.len(), &a.body.roots);
    let mut all = std::iter::once(first).chain(ways_out.iter().copied());
    let mut is_own = |block, op| invariant::is_of_thread(a, &mut values, block, op);
    if all.any(|b| bound_operand(a, b).is_none_or(|op| is_own(b, op))) {
        return Err(Why::Unclear);
    }
    let mut out = BTreeMap::new();
    for block in std::iter::once(first).chain(ways_out) {
        out.insert(
            a.test_at(block).ok_or(Why::Unclear)?,
            comparison(a, block, cycle)?,
        );
    }
    Ok(out)
}

/// The blocks of a cycle whose branches leave it.
pub(super) fn ways_out(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Vec<usize> {
    let leaves = |b: &usize| a.leaves(*b, cycle);
    cycle.blocks.iter().copied().filter(leaves).collect()
}

/// Whether all ways out stand at the end of a round: who doesn't leave comes to the cycle's beginning next. Then a round passes one of
/// them; compilers copy what stands behind a body's branches to each.
pub(super) fn are_alike(a: &Analysis<'_, '_>, ways_out: &[usize], cycle: &NaturalLoop) -> bool {
    let mut next = ways_out.iter().flat_map(|&b| &a.body.blocks[b].succs);
    next.all(|&s| {
        let begins = s == cycle.header || a.body.blocks[s].succs[..] == [cycle.header];
        begins || !cycle.blocks.contains(&s)
    })
}

/// Whether a comparison comes before every chunk that the cycle begins with: one before the cycle does; one in it if it
/// also comes before the iterations.
pub(super) fn begins_chunks(a: &Analysis<'_, '_>, first: usize, cycle: &NaturalLoop) -> bool {
    if !cycle.blocks.contains(&first) {
        return a.dom.dominates(first, cycle.header) && is_met_again(a, first, cycle);
    }
    let mut inner = a.cycles().iter().filter(|l| l.is_inside(cycle));
    let back = a.body.blocks[first].succs.contains(&cycle.header);
    !back && inner.all(|l| a.dom.dominates(first, l.header)) && !works_before(a, first, cycle)
}

/// Whether control passes a block before the cycle again whenever it comes back to the cycle: where a loop of OpenMP's is in a cycle itself,
/// compilers know in later rounds what was compared in the first one.
pub(super) fn is_met_again(a: &Analysis<'_, '_>, first: usize, cycle: &NaturalLoop) -> bool {
    let preds = a.body.blocks[cycle.header].preds.iter().copied();
    let before = preds.filter(|p| !cycle.blocks.contains(p));
    let mut comes_back = false;
    a.body.backwards(before, |block| {
        comes_back |= block != first && cycle.blocks.contains(&block);
        !comes_back && block != first
    });
    !comes_back
}

/// Whether something is done from the cycle's beginning to a comparison in it that may be a chunk's iterations: a call, something in
/// memory other than the stack, arithmetic in vector registers.
fn works_before(a: &Analysis<'_, '_>, first: usize, cycle: &NaturalLoop) -> bool {
    let compare = a.decisions.get(&first).map_or(usize::MAX, |d| d.compare);
    let mut found = false;
    a.body.backwards([first], |block| {
        if found || !cycle.blocks.contains(&block) {
            return false;
        }
        a.visit(block, |i, insn, state| {
            let vector = (0..insn.op_count()).any(|n| {
                insn.op_kind(n) == OpKind::Register && insn.op_register(n).is_vector_register()
            });
            let memory = (0..insn.op_count()).any(|n| insn.op_kind(n) == OpKind::Memory);
            // Bounds may be read again.
            let loads = insn.mnemonic() == Mnemonic::Mov && insn.op0_kind() == OpKind::Register;
            let computes = loads || matches!(insn.mnemonic(), Mnemonic::Lea | Mnemonic::Nop);
            let base = value::number(insn.memory_base());
            let own = base.is_some_and(|r| matches!(state.reg(r), Value::Stack(_)));
            let works = is_call(insn) || vector || memory && !computes && !own;
            found |= works && (block != first || i < compare);
        });
        block != cycle.header
    });
    found
}

/// The constant that a chunk's start is compared with, as a first number that is no start; `None` if it is none.
pub(super) fn bound(a: &Analysis<'_, '_>, block: usize) -> Option<u64> {
    let decision = a.decisions.get(&block)?;
    constant_bound(decision, Value::is_from_thread)
}

/// The same, where the start is of this kind.
pub(super) fn constant_bound(decision: &Decision, is_start: fn(Value) -> bool) -> Option<u64> {
    use ConditionCode as C;
    let (bound, start_first) = match decision.values {
        (x, Value::Const(c)) if is_start(x) => (c, true),
        (Value::Const(c), y) if is_start(y) => (c, false),
        _ => return None,
    };
    // `start <= c` and `start > c` split behind c, as do `c >= start` and `c < start`.
    let behind = match decision.branch.condition_code() {
        C::le | C::g | C::be | C::a => start_first,
        C::l | C::ge | C::b | C::ae => !start_first,
        _ => return None,
    };
    Some(bound.wrapping_add(u64::from(behind)) & 0xffff_ffff)
}

/// Which operand of a block's comparison is the bound.
pub(super) fn bound_operand(a: &Analysis<'_, '_>, block: usize) -> Option<u32> {
    start_operand(a.decisions.get(&block)?).map(|start| 1 - start)
}

/// Which operand of a comparison is a chunk's start.
pub(super) fn start_operand(decision: &Decision) -> Option<u32> {
    match decision.values {
        (x, y) if x.is_from_thread() && !y.is_from_thread() => Some(0),
        (x, y) if y.is_from_thread() && !x.is_from_thread() => Some(1),
        _ => None,
    }
}

/// The probe before a comparison of a chunk's start with the bound, which decides whether the cycle is entered or left.
fn comparison(a: &Analysis<'_, '_>, block: usize, cycle: &NaturalLoop) -> Result<ProbeSpec, Why> {
    comparison_if(a, block, |side| leads_into(a, block, side, cycle))
}

/// The same, where a chunk follows on the sides of the branch that this is true of.
pub(super) fn comparison_if(
    a: &Analysis<'_, '_>,
    block: usize,
    enters: impl Fn(usize) -> bool,
) -> Result<ProbeSpec, Why> {
    let decision = a.decisions.get(&block).ok_or(Why::Unclear)?;
    let start_at = start_operand(decision).ok_or(Why::Unclear)?;
    // Is another chunk executed where the branch is taken, or where it is not?
    let target = decision.branch.near_branch_target();
    let enters = |start: u64| {
        let to = a.body.blocks.iter().position(|b| b.start == start);
        to.is_some_and(&enters)
    };
    let taken = match (enters(target), enters(decision.branch.next_ip())) {
        (true, false) => true,
        (false, true) => false,
        _ => return Err(Why::Unclear),
    };
    // The order `first operand ? second operand` under which it is.
    let condition = match taken {
        true => decision.branch.condition_code(),
        false => {
            let mut other = decision.branch;
            other.negate_condition_code();
            other.condition_code()
        }
    };
    use ConditionCode as C;
    let order = match condition {
        C::l => (true, true, false),
        C::le => (false, true, false),
        C::g => (true, false, false),
        C::ge => (false, false, false),
        C::b => (true, true, true),
        C::be => (false, true, true),
        C::a => (true, false, true),
        C::ae => (false, false, true),
        _ => return Err(Why::Unclear),
    };
    operands::probe(&a.body.insns[decision.compare], start_at, order)
}

/// Whether a block of the cycle follows on this side of a branch without leaving it for good: the side is in the cycle, or
/// leads to its header.
pub(super) fn leads_into(
    a: &Analysis<'_, '_>,
    branch: usize,
    side: usize,
    cycle: &NaturalLoop,
) -> bool {
    if cycle.blocks.contains(&branch) {
        return cycle.blocks.contains(&side);
    }
    a.leads_past(branch, side, cycle.header)
}
