//! gcc's `master` and `masked`: a comparison of the thread's number with a constant, or code that looks the same.

use super::{Analysis, Decision};
use crate::model::{ProbeSpec, Target};
use crate::scan::calls;
use crate::scan::draft::Draft;
use crate::scan::flow::dataflow;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::value::Value;
use iced_x86::{Instruction, Mnemonic, OpKind};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// Adds the `master` blocks of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    // Chunks of a single iteration are asked for in the same way.
    let of_chunks = |d: &&Draft| d.detail.as_deref() == Some("static, chunk") && d.record.is_none();
    let chunks: BTreeSet<u64> = drafts.iter().filter(of_chunks).map(|d| d.address).collect();
    for (&block, decision) in &a.decisions {
        if chunks.contains(&a.body.insns[decision.compare].ip()) {
            continue;
        }
        let Some(filter) = filter(decision) else {
            continue;
        };
        let Some(entered) = entered(a, block, decision) else {
            continue;
        };
        if a.post.parent(block) == Some(entered) {
            continue;
        }
        let draft = begin(a, block, decision, filter, entered);
        drafts.push(draft);
        a.add_end(drafts.len() - 1, block, block, drafts);
    }
}

/// The begin: at the call that asks for the thread's number, if that stands right before, else before the comparison.
fn begin(
    a: &Analysis<'_, '_>,
    block: usize,
    decision: &Decision,
    filter: i64,
    entered: usize,
) -> Draft {
    let compare = &a.body.insns[decision.compare];
    let mut spec = ProbeSpec {
        width: 4,
        param: filter,
        ..ProbeSpec::bare(Probe::MasterQuery)
    };
    let mut draft = Draft::new(compare.ip(), Construct::Master, Edge::Begin);
    if let Some((call, target, number)) = query_before(a, block, decision.compare) {
        draft = Draft::new(call.ip(), Construct::Master, Edge::Begin);
        draft.entry = Some(number);
        draft.call(call.len() as u8, false, target, spec);
    } else {
        spec.probe = Probe::InlineMaster;
        let register = (0..2)
            .filter(|&op| compare.op_kind(op) == OpKind::Register)
            .find_map(|op| dataflow::number(compare.op_register(op)));
        if let Some(register) = register {
            spec.args[0] = register as u8;
        }
        if let Some(place) = fallback(a, block, entered, register) {
            draft.rare_mut().fallback = Some(place);
        }
        draft.inline(spec);
    }
    draft.function = a.function();
    draft.detail = Some("or equivalent".into());
    draft
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
        found = match dataflow::callee(a.module, insn, Some(state)) {
            dataflow::Callee::Runtime(n) => Some(&a.module.entries.callees[n])
                .filter(|c| c.query() == Some(Query::ThreadNum))
                .and_then(|_| Some((*insn, calls::target(a.module, insn)?, n as u32))),
            dataflow::Callee::Other => None,
        };
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
