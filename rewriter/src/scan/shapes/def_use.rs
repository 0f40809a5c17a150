//! What instructions use, for those who ask for values, and which code uses a thread's share.

use super::{Analysis, NaturalLoop};
use crate::scan::flow::changes::Step;
use crate::scan::flow::lazy::Code;
use crate::scan::flow::leads::{changed, query};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::uses::is_call;
use crate::scan::flow::value::{self, State};
use iced_x86::{InstructionInfoFactory, Mnemonic, OpKind, Register};

impl Code for Analysis<'_, '_> {
    fn following(&self, block: usize) -> Vec<usize> {
        self.body.following(block).collect()
    }

    fn steps(&self, block: usize) -> Vec<Step> {
        let mut info = InstructionInfoFactory::new();
        let mut steps = Vec::new();
        self.visit(block, |_, insn, state| {
            steps.push(match is_call(insn) {
                true => {
                    let query = query(self.module, insn, Some(state));
                    Step::of_call(changed(self.module, insn), query)
                }
                false => Step::of(&mut info, insn, state),
            });
        });
        steps
    }

    fn is_exposed(&self, at: Slot) -> bool {
        self.flow.is_exposed(at)
    }
}

/// Whether what follows this place is the loop: its cycles, or a copy for few iterations that computes with its bounds.
pub(super) fn is_loop(a: &Analysis<'_, '_>, place: u64, id: u64, headers: &[usize]) -> bool {
    let reach = a.reach(&[place]);
    if headers.iter().any(|h| reach.blocks.contains(h)) {
        return true;
    }
    let related = |r, state: &State| is_related(id, r, state);
    let mut found = false;
    for &block in &reach.blocks {
        a.visit(block, |_, insn, state| {
            let operand = (0..insn.op_count()).any(|op| {
                insn.op_kind(op) == OpKind::Register && related(insn.op_register(op), state)
            });
            let memory = related(insn.memory_base(), state) || related(insn.memory_index(), state);
            found |= (operand || memory) && reach.insns.contains(&insn.ip());
        });
    }
    found
}

/// The division that what a register holds was computed from.
pub(super) fn division(register: Register, state: &State) -> Option<u64> {
    state.reg(value::number(register)?).division()
}

/// Whether a register holds what was computed from division `id`.
fn is_related(id: u64, register: Register, state: &State) -> bool {
    division(register, state) == Some(id)
}

/// Whether where the branch of a block passes cycles by, elements are used all the same: it stands among a loop's iterations, and
/// chooses between those of vectors and single ones.
pub(super) fn iterates_beside(
    a: &Analysis<'_, '_>,
    id: u64,
    branch: usize,
    cycles: &[&NaturalLoop],
) -> bool {
    a.body.blocks[branch].succs.iter().any(|&side| {
        let place = a.body.blocks[side].start;
        let reach = a.reach(&[place]);
        let mut found = false;
        a.visit(side, |_, insn, state| {
            let element = (0..insn.op_count()).any(|op| insn.op_kind(op) == OpKind::Memory)
                && insn.mnemonic() != Mnemonic::Lea;
            let of_share = is_related(id, insn.memory_base(), state)
                || is_related(id, insn.memory_index(), state);
            found |= element && of_share && reach.insns.contains(&insn.ip());
        });
        found && cycles.iter().all(|c| !reach.blocks.contains(&c.header))
    })
}
