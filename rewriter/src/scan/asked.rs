//! What a branch on equality tells of its ways.
//!
//! Where a thread has a certain number, that of the team's first for instance, gcc puts the constant in place of the number and
//! computes with it, and where that path meets the others' they have registers in common. And behind a cycle that counts up to the number of threads, as those
//! that sum up a `task_reduction`, it takes the counter in place of the number.

use super::cfg::Body;
use super::dataflow::{immediate, number, operand};
use super::shapes::compare_before;
use super::value::{State, Value};
use iced_x86::{Instruction, Mnemonic, OpKind};
use ompfuse_patterns::Query;

/// A branch on whether two things are equal, one of them a register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    /// Number of the comparing instruction.
    pub compare: usize,
    /// Where control comes to if they are.
    pub enters: u64,
    /// The register that is compared with a constant, and that; none where something else is compared.
    constant: Option<(usize, u32)>,
}

/// What is known where both are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Learnt {
    /// The thread has this number.
    Thread(u32),
    /// A register has this value.
    Register(usize, Value),
}

impl Asked {
    /// The branch at a block's end, if it is one.
    pub(super) fn of(body: &Body, block: usize) -> Option<Asked> {
        let branch = body.last(block)?;
        let (enters, otherwise) = match branch.mnemonic() {
            Mnemonic::Je => (branch.near_branch_target(), branch.next_ip()),
            Mnemonic::Jne => (branch.next_ip(), branch.near_branch_target()),
            _ => return None,
        };
        let compare = compare_before(body, block)?;
        let insn = &body.insns[compare];
        let is_register = |op: u32| {
            op < insn.op_count()
                && insn.op_kind(op) == OpKind::Register
                && insn.op_register(op).size() >= 4
        };
        let same = || is_register(1) && insn.op0_register() == insn.op1_register();
        let constant = match insn.mnemonic() {
            Mnemonic::Test => same().then_some(0),
            Mnemonic::Cmp => immediate(insn, 1).and_then(|c| u32::try_from(c).ok()),
            _ => None,
        };
        let constant = constant.filter(|_| is_register(0)).and_then(|c| {
            let register = number(insn.op0_register())?;
            Some((register, c))
        });
        // The register is still the one that was compared.
        let with_other = insn.mnemonic() == Mnemonic::Cmp
            && (is_register(0) || is_register(1))
            && body.insns[compare].next_ip() == branch.ip();
        (enters != otherwise && (constant.is_some() || with_other)).then_some(Asked {
            compare,
            enters,
            constant,
        })
    }

    /// What equality tells, in the state before the comparison.
    pub(super) fn learns(self, insn: &Instruction, state: &State) -> Option<Learnt> {
        if let Some((register, constant)) = self.constant {
            let asks = state.reg(register) == Value::Query(Query::ThreadNum);
            return asks.then_some(Learnt::Thread(constant));
        }
        [(0, 1), (1, 0)].into_iter().find_map(|(this, other)| {
            let (held, value) = (operand(state, insn, this), operand(state, insn, other));
            let threads = matches!(value, Value::Query(Query::NumThreads | Query::NumTeams));
            let register = (insn.op_kind(this) == OpKind::Register)
                .then(|| number(insn.op_register(this)))
                .flatten();
            (threads && !held.is_queried())
                .then(|| register.map(|r| Learnt::Register(r, value)))
                .flatten()
        })
    }
}
