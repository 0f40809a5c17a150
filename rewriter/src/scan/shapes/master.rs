//! gcc's `master` and `masked`: a comparison of the thread's number with a constant, or code that looks the same.

use super::ends::Own;
use super::found::{Find, Found, Place};
use super::{Analysis, Basis, Decision, Rule};
use crate::model::{ProbeSpec, Target};
use crate::scan::calls;
use crate::scan::draft::Draft;
use crate::scan::flow::leads::callee;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::value::{self, Value};
use iced_x86::{Instruction, Mnemonic, OpKind};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

pub(super) const RULE: Rule = Rule {
    basis: Basis::Numbers(|decisions, _| decisions.values().any(|d| filter(d).is_some())),
    find,
};

/// The `master` blocks of a function. Chunks of single iterations are asked for in the same way: they were found before.
fn find(a: &mut Analysis<'_, '_>, drafts: &[Draft]) -> Vec<Find> {
    let before = drafts[a.own..].iter().filter(|d| d.edge != Edge::End);
    let known: BTreeSet<u64> = before.map(|d| d.address).collect();
    let all = a.decisions.iter().filter_map(|(&block, decision)| {
        let is_known = known.contains(&a.body.insns[decision.compare].ip());
        let filter = filter(decision).filter(|_| !is_known)?;
        let entered = entered(a, block, decision)?;
        let is_passed = a.post.parent(block) != Some(entered);
        is_passed.then(|| Find::Begin(found(a, block, decision, filter, entered)))
    });
    all.collect()
}

/// It begins at the call that asks for the thread's number, if that stands right before, else before the comparison.
fn found(
    a: &Analysis<'_, '_>,
    block: usize,
    decision: &Decision,
    filter: i64,
    entered: usize,
) -> Found {
    let compare = &a.body.insns[decision.compare];
    let mut spec = ProbeSpec {
        width: 4,
        param: filter,
        ..ProbeSpec::bare(Probe::MasterQuery)
    };
    let (at, place) = match query_before(a, block, decision.compare) {
        Some((call, target, number)) => (
            call.ip(),
            Place::Call(spec, call.len() as u8, target, number),
        ),
        None => {
            spec.probe = Probe::InlineMaster;
            let register = (0..2)
                .filter(|&op| compare.op_kind(op) == OpKind::Register)
                .find_map(|op| value::number(compare.op_register(op)));
            if let Some(register) = register {
                spec.args[0] = register as u8;
            }
            let place = match fallback(a, block, entered, register) {
                Some(other) => Place::InlineOr(spec, other),
                None => Place::Inline(spec),
            };
            (compare.ip(), place)
        }
    };
    let own = Own {
        construct: Construct::Master,
        division: None,
    };
    let mut found = Found::begin(own.construct, "or equivalent", at, Ok(place));
    found.ends(a.end_of(block, block, &own));
    found
}

/// The call of `omp_get_thread_num` before an instruction of the block, no other call being between.
fn query_before(
    a: &Analysis<'_, '_>,
    block: usize,
    compare: usize,
) -> Option<(Instruction, Target, u32)> {
    let mut found = None;
    a.visit(block, |i, insn, state| {
        if i >= compare || !is_call(insn) {
            return;
        }
        let callee = callee(a.module, insn, Some(state));
        let asks = |n: &usize| a.module.entries.callees[*n].query() == Some(Query::ThreadNum);
        found = callee
            .filter(asks)
            .and_then(|n| Some((*insn, calls::target(a.module, insn)?, n as u32)));
    });
    found.filter(|(call, ..)| call.len() >= 5)
}

/// The entered block's beginning, where only the branch leads to it, and the register if it still holds the number.
fn fallback(
    a: &Analysis<'_, '_>,
    block: usize,
    entered: usize,
    register: Option<usize>,
) -> Option<(u64, u8)> {
    if a.body.blocks[entered].preds[..] != [block] {
        return None;
    }
    let start = a.body.blocks[entered].start;
    let mut holds = false;
    a.visit(entered, |_, insn, state| {
        if insn.ip() == start {
            holds = register.is_some_and(|r| state.reg(r) == Value::Query(Query::ThreadNum));
        }
    });
    Some((
        start,
        register.filter(|_| holds).map_or(NO_ARG, |r| r as u8),
    ))
}

/// The thread number that enters, if that is what the branch decides.
pub(super) fn filter(decision: &Decision) -> Option<i64> {
    if !matches!(decision.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne) {
        return None;
    }
    let rank = Value::Query(Query::ThreadNum);
    let constant = match decision.values {
        (v, Value::Const(c)) | (Value::Const(c), v) if v == rank => c,
        _ => return None,
    };
    i32::try_from(constant.cast_signed())
        .ok()
        .filter(|&c| c >= 0)
        .map(i64::from)
}

/// The block that the thread with this number enters.
pub(super) fn entered(a: &Analysis<'_, '_>, block: usize, decision: &Decision) -> Option<usize> {
    let target = decision.branch.near_branch_target();
    let is_target = |&s: &usize| a.body.blocks[s].start == target;
    let succs = &a.body.blocks[block].succs;
    match decision.branch.mnemonic() {
        Mnemonic::Je => succs.iter().copied().find(is_target),
        _ => succs.iter().copied().find(|s| !is_target(s)),
    }
}
