//! What a branch on equality tells of its ways.
//!
//! Where a thread has a certain number, that of the team's first for instance, gcc puts the constant in place of the number and computes with it. Where that
//! path meets the others' they have registers in common. And behind a cycle that counts up to the number of threads, as those that sum up a `task_reduction`,
//! it takes the counter in place of the number.

use super::super::cfg::Body;
use super::dataflow::operand;
use super::lift::{self, Effect, How, Part, Sets};
use super::uses::is_call;
use super::value::{State, Value, number};
use iced_x86::{Mnemonic, Register};
use ompfuse_patterns::Query;
use std::collections::BTreeSet;

/// Blocks of a cycle that counts up, at most.
const CYCLE: usize = 64;

/// The comparison whose flags the branch at the block's end reads, and what it does.
pub(crate) fn compare_before(body: &Body, block: usize) -> Option<(usize, Effect)> {
    let range = body.blocks[block].insns.clone();
    let last = range.end.checked_sub(1)?;
    let source = (range.start..last)
        .rev()
        .find(|&i| body.insns[i].rflags_modified() != 0 || is_call(&body.insns[i]))?;
    let equality = matches!(body.insns[last].mnemonic(), Mnemonic::Je | Mnemonic::Jne);
    let signed = matches!(
        body.insns[last].mnemonic(),
        Mnemonic::Jg | Mnemonic::Jge | Mnemonic::Jl | Mnemonic::Jle
    );
    let effect = Effect::of(&body.insns[source])?;
    // Compilers also compare with a constant by subtracting it, when the value isn't needed any more.
    let compares = effect.how == How::Subtract && effect.a == Part::Operand(0);
    let fits = match effect.sets {
        Sets::Comparison => effect.to == Part::None || equality,
        Sets::Order => equality || signed,
        _ => false,
    };
    (compares && fits).then_some((source, effect))
}

/// A branch on whether two things are equal, one of them a register.
#[derive(Debug, Clone, Copy)]
pub(super) struct Refinement {
    /// The block that it ends.
    block: usize,
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

impl Refinement {
    /// The branch at a block's end, if it is one.
    pub(super) fn of(body: &Body, block: usize) -> Option<Refinement> {
        let branch = body.last(block)?;
        let (enters, otherwise) = match branch.mnemonic() {
            Mnemonic::Je => (branch.near_branch_target(), branch.next_ip()),
            Mnemonic::Jne => (branch.next_ip(), branch.near_branch_target()),
            _ => return None,
        };
        let (compare, effect) = compare_before(body, block)?;
        let insn = &body.insns[compare];
        if effect.to != Part::None {
            return None;
        }
        let register = |part: Part| lift::register(insn, part).filter(|r| r.size() >= 4);
        let constant = effect
            .constant(insn)
            .and_then(|c| Some((number(register(effect.a)?)?, u32::try_from(c).ok()?)));
        // The register is still the one that was compared.
        let with_other = (register(effect.a).is_some() || register(effect.b).is_some())
            && matches!(effect.b, Part::Operand(_))
            && insn.next_ip() == branch.ip();
        (enters != otherwise && (constant.is_some() || with_other)).then_some(Refinement {
            block,
            compare,
            enters,
            constant,
        })
    }

    /// Whether equality may tell more of a register.
    pub(super) fn may_tell(self, body: &Body, register: usize) -> bool {
        let insn = &body.insns[self.compare];
        let compared = [0, 1].map(|op| lift::register(insn, Part::Operand(op)));
        self.constant.is_none()
            && compared
                .into_iter()
                .any(|r| r.and_then(number) == Some(register))
    }

    /// What equality tells, in the state before the comparison.
    pub(super) fn learns(self, body: &Body, state: &State) -> Option<Learnt> {
        let insn = &body.insns[self.compare];
        if let Some((register, constant)) = self.constant {
            let asks = state.reg(register) == Value::Query(Query::ThreadNum);
            return asks.then_some(Learnt::Thread(constant));
        }
        [(0, 1), (1, 0)].into_iter().find_map(|(this, other)| {
            let (held, value) = (operand(state, insn, this), operand(state, insn, other));
            let threads = matches!(value, Value::Query(Query::NumThreads | Query::NumTeams));
            let register = lift::register(insn, Part::Operand(this));
            let register = register.filter(|_| threads && !held.is_queried())?;
            self.counts(body, register.full_register())
                .then_some(Learnt::Register(number(register)?, value))
        })
    }

    /// Whether the branch leaves a cycle in which a register is counted up. What else is compared with the number of threads stays what it
    /// is: the bound of a loop that only a team of as many threads comes to, for one.
    fn counts(self, body: &Body, register: Register) -> bool {
        let counted = |block: usize| {
            let mut insns = body.block_insns(block).iter();
            insns.any(|insn| lift::added_to(insn, register) == Some(1))
        };
        let others = body.blocks[self.block].succs.iter().copied();
        let others = others.filter(|&s| body.blocks[s].start != self.enters);
        // What is before it without passing it, and what is behind it.
        let mut ahead = BTreeSet::new();
        body.forwards(others, |b| {
            ahead.len() < CYCLE && ahead.insert(b) && b != self.block
        });
        if !ahead.contains(&self.block) {
            return false;
        }
        let around = body.backwards([self.block], |b| ahead.contains(&b));
        around.iter().any(counted)
    }
}
