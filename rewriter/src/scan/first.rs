//! The question whether a thread is the first of its team: where it is, 0 stands for its number. gcc puts the constant in place of the
//! number there, and where that path meets the others' they have one register in common.

use super::cfg::Body;
use super::dataflow::number;
use super::shapes::compare_before;
use super::value::{State, Value};
use iced_x86::{Mnemonic, OpKind};
use ompfuse_patterns::Query;

/// A branch on whether a register is 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct AsksZero {
    /// Number of the comparing instruction.
    pub compare: usize,
    /// The register.
    register: usize,
    /// Where control comes to if it is.
    pub enters: u64,
}

impl AsksZero {
    /// The branch at a block's end, if it is one.
    pub(super) fn of(body: &Body, block: usize) -> Option<AsksZero> {
        let branch = body.last(block)?;
        let (enters, otherwise) = match branch.mnemonic() {
            Mnemonic::Je => (branch.near_branch_target(), branch.next_ip()),
            Mnemonic::Jne => (branch.next_ip(), branch.near_branch_target()),
            _ => return None,
        };
        let compare = compare_before(body, block)?;
        let insn = &body.insns[compare];
        let register = (insn.op0_kind() == OpKind::Register).then(|| insn.op0_register())?;
        let with_zero = match insn.mnemonic() {
            Mnemonic::Test => {
                insn.op1_kind() == OpKind::Register && insn.op1_register() == register
            }
            Mnemonic::Cmp => super::dataflow::immediate(insn, 1) == Some(0),
            _ => false,
        };
        (with_zero && register.size() >= 4 && enters != otherwise).then_some(AsksZero {
            compare,
            register: number(register)?,
            enters,
        })
    }

    /// Whether the register holds the thread's number.
    pub(super) fn asks_thread(self, state: &State) -> bool {
        state.reg(self.register) == Value::Query(Query::ThreadNum)
    }
}
