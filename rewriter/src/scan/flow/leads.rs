//! Where calls and jumps lead, and what calls change.

use super::super::Module;
use super::memory::Memory;
use super::step::VOLATILE;
use super::value::{State, Value, number};
use crate::thunk::{returns, through};
use iced_x86::{Instruction, OpKind};
use ompfuse_patterns::Query;

/// Where a call or jump leads, as far as it says so itself.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Leads {
    /// To the runtime's function with this number.
    Runtime(usize),
    /// Somewhere else, or nobody knows where.
    Elsewhere,
    /// To what a general register holds.
    Register(u8),
    /// To what lies at the end of the stack.
    Pushed,
    /// To what a place in memory holds.
    Memory(Memory),
}

impl Leads {
    pub(crate) fn of(module: &Module<'_>, insn: &Instruction) -> Leads {
        let known = |n: Option<&usize>| n.map_or(Leads::Elsewhere, |&n| Leads::Runtime(n));
        let held =
            |register| number(register).map_or(Leads::Elsewhere, |n| Leads::Register(n as u8));
        match insn.op0_kind() {
            OpKind::NearBranch64 => match module.entries.targets.get(&insn.near_branch_target()) {
                Some(&n) => Leads::Runtime(n),
                None => match through(&module.image, insn) {
                    Some((register, _)) => held(register),
                    None if returns(&module.image, insn) => Leads::Pushed,
                    None => Leads::Elsewhere,
                },
            },
            OpKind::Memory if insn.is_ip_rel_memory_operand() => {
                known(module.entries.slots.get(&insn.ip_rel_memory_address()))
            }
            OpKind::Memory => Leads::Memory(Memory::of(insn)),
            OpKind::Register => held(insn.op0_register()),
            _ => Leads::Elsewhere,
        }
    }

    /// The number of the runtime's function that it leads to, with what is known of registers and stack.
    pub(super) fn callee(&self, module: &Module<'_>, state: Option<&State>) -> Option<usize> {
        match *self {
            Leads::Runtime(n) => Some(n),
            Leads::Elsewhere => None,
            Leads::Register(n) => match state?.reg(usize::from(n)) {
                Value::Callee(n) => Some(n),
                Value::Const(va) => module.entries.targets.get(&va).copied(),
                _ => None,
            },
            Leads::Pushed => {
                let state = state?;
                match state.slots.get(state.regs.slot(4)?)? {
                    (Value::Callee(n), _) => Some(n),
                    _ => None,
                }
            }
            Leads::Memory(memory) => match memory.read(state?) {
                Some(Value::Callee(n)) => Some(n),
                Some(_) => None,
                None => module.entries.slots.get(&memory.reached(state?)?).copied(),
            },
        }
    }
}

/// The number of the runtime's function that a call or jump leads to, as far as that is known.
pub(crate) fn callee(
    module: &Module<'_>,
    insn: &Instruction,
    state: Option<&State>,
) -> Option<usize> {
    Leads::of(module, insn).callee(module, state)
}

/// The number that a call asks the runtime for.
pub(crate) fn query(
    module: &Module<'_>,
    insn: &Instruction,
    state: Option<&State>,
) -> Option<Query> {
    module.entries.callees[callee(module, insn, state)?].query()
}

/// The general registers that a call may change, a bit for each.
pub(crate) fn changed(module: &Module<'_>, call: &Instruction) -> u16 {
    let target = call.near_branch_target();
    let is_own = call.op0_kind() == OpKind::NearBranch64;
    match is_own && !module.entries.is_target(target) {
        true => VOLATILE & module.clobbers.of(module, target),
        false => VOLATILE,
    }
}
