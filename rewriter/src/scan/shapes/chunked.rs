//! gcc's chunked static loops: no division, but a start computed from the thread's number, a minimum with the bound,
//! and a stride computed from the number of threads. They have no probe yet, and are listed.

use super::{Analysis, NaturalLoop};
use crate::scan::dataflow;
use crate::scan::draft::Draft;
use crate::scan::value::{State, Value};
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use ompfuse_format::Construct;
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;

/// Adds the chunked static loops of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, loops: &[NaturalLoop], drafts: &mut Vec<Draft>) {
    let mut found = Vec::new();
    for block in 0..a.body.blocks.len() {
        let mut stride = false;
        a.visit(block, |_, insn, state| stride |= adds_stride(insn, state));
        // The innermost cycle that it is in.
        let cycle = loops.iter().filter(|l| l.blocks.contains(&block)).min_by_key(|l| l.blocks.len());
        if let Some(cycle) = cycle
            && stride
            && let Some((at, unscaled)) = bound_check(a, cycle)
            && (unscaled || has_minimum(a, cycle))
        {
            found.push(at);
        }
    }
    found.sort_unstable();
    found.dedup();
    for at in found {
        let mut draft = Draft::new(at, Construct::Loop, Edge::Begin);
        draft.function = a.function();
        draft.detail = Some("static, chunk".to_owned());
        draft.skip("no probe for inlined chunked static loops yet");
        drafts.push(draft);
    }
}

/// Whether a multiple of the number of threads is added to something that changes.
fn adds_stride(insn: &Instruction, state: &State) -> bool {
    match insn.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::Imul => (0..insn.op_count().min(2))
            .any(|op| dataflow::operand(state, insn, op).is_from_threads()),
        Mnemonic::Lea => [insn.memory_base(), insn.memory_index()]
            .iter()
            .filter_map(|&r| dataflow::number(r))
            .any(|r| state.regs[r].is_from_threads()),
        _ => false,
    }
}

/// Whether a smaller of two values is chosen, one of them computed from the thread's number: in or before the cycle.
fn has_minimum(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> bool {
    let near = |b: usize| cycle.blocks.contains(&b) || a.dom.dominates(b, cycle.header);
    let mut found = false;
    for block in (0..a.body.blocks.len()).filter(|&b| near(b)) {
        a.visit(block, |_, insn, state| {
            let chooses = matches!(
                insn.condition_code(),
                ConditionCode::g
                    | ConditionCode::ge
                    | ConditionCode::l
                    | ConditionCode::le
                    | ConditionCode::a
                    | ConditionCode::ae
                    | ConditionCode::b
                    | ConditionCode::be
            ) && !insn.is_jcc_short_or_near()
                && insn.op_count() == 2;
            found |= chooses
                && (0..2).any(|op| dataflow::operand(state, insn, op).is_from_thread());
        });
    }
    found
}

/// The comparison of the start with the bound, before the cycle, else in it; and whether the start is the thread's
/// number itself: then chunks have one iteration, and need no minimum.
fn bound_check(a: &Analysis<'_, '_>, cycle: &NaturalLoop) -> Option<(u64, bool)> {
    let checks = || {
        a.decisions.iter().filter(|(_, d)| {
            let (x, y) = d.values;
            let bound = |v: Value| matches!(v, Value::Unknown | Value::Const(_));
            d.is_ordering() && (x.is_from_thread() && bound(y) || y.is_from_thread() && bound(x))
        })
    };
    let rank = Value::Query(Query::ThreadNum);
    let address = |(_, d): (&usize, &super::Decision)| {
        (a.body.insns[d.compare].ip(), d.values.0 == rank || d.values.1 == rank)
    };
    checks()
        .filter(|(b, _)| !cycle.blocks.contains(b) && a.dom.dominates(**b, cycle.header))
        .last()
        .map(address)
        .or_else(|| checks().find(|(b, _)| cycle.blocks.contains(b)).map(address))
}
