//! gcc's `master` and `masked`: a comparison of the thread's number with a constant, or code that looks the same.

use super::{Analysis, Decision};
use crate::model::ProbeSpec;
use crate::scan::dataflow;
use crate::scan::draft::Draft;
use crate::scan::value::Value;
use iced_x86::{Mnemonic, OpKind};
use ompfuse_format::Construct;
use ompfuse_format::abi::{NO_ARG, Probe};
use ompfuse_format::site::Edge;
use ompfuse_patterns::Query;

/// Adds the `master` blocks of a function to `drafts`.
pub(super) fn find(a: &Analysis<'_, '_>, drafts: &mut Vec<Draft>) {
    for (&block, decision) in &a.decisions {
        let Some(filter) = filter(decision) else { continue };
        let Some(entered) = entered(a, block, decision) else { continue };
        if a.post.parent(block) == Some(entered) {
            continue;
        }
        let compare = &a.body.insns[decision.compare];
        let mut draft = Draft::new(compare.ip(), Construct::Master, Edge::Begin);
        draft.function = a.function();
        draft.detail = Some("or equivalent".to_owned());
        let mut args = [NO_ARG; 8];
        let in_register = (0..2).find(|&op| {
            compare.op_kind(op) == OpKind::Register
                && dataflow::number(compare.op_register(op)).is_some()
        });
        if let Some(register) = in_register.and_then(|op| dataflow::number(compare.op_register(op)))
        {
            args[0] = register as u8;
        }
        draft.inline(ProbeSpec {
            probe: Probe::InlineMaster,
            args,
            nargs: 0,
            width: 4,
            unsigned: false,
            param: filter,
        });
        drafts.push(draft);
        a.add_end(drafts.len() - 1, block, block, drafts);
    }
}

/// The thread number that enters, if that is what the branch decides.
fn filter(decision: &Decision) -> Option<i64> {
    if !matches!(decision.branch.mnemonic(), Mnemonic::Je | Mnemonic::Jne) {
        return None;
    }
    let rank = Value::Query(Query::ThreadNum);
    let constant = match decision.values {
        (v, Value::Const(c)) | (Value::Const(c), v) if v == rank => c,
        _ => return None,
    };
    i32::try_from(constant.cast_signed()).ok().filter(|&c| c >= 0).map(i64::from)
}

/// The block that the thread with this number enters.
fn entered(a: &Analysis<'_, '_>, block: usize, decision: &Decision) -> Option<usize> {
    let target = decision.branch.near_branch_target();
    let is_target = |&s: &usize| a.body.blocks[s].start == target;
    let succs = &a.body.blocks[block].succs;
    match decision.branch.mnemonic() {
        Mnemonic::Je => succs.iter().copied().find(is_target),
        _ => succs.iter().copied().find(|s| !is_target(s)),
    }
}
