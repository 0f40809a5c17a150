//! What chunks' starts are compared with comes from no thread's number. What a chunk's iterations are compared with, its end, does,
//! even where compilers compute it in a way that values don't tell: as the smaller of two, say.

use super::super::def_use::{changed, slot};
use super::super::{Analysis, is_call};
use crate::scan::dataflow;
use crate::scan::flow::uses::{is_read, is_write};
use crate::scan::graph::settle;
use crate::scan::slots::Slot;
use crate::scan::value::State;
use iced_x86::{
    Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register, UsedMemory,
};
use ompfuse_patterns::Query;
use std::collections::{BTreeMap, BTreeSet};

/// What may come from a thread's number, in every block's beginning.
pub(in super::super) struct FromThread {
    starts: BTreeMap<usize, Places>,
}

/// Where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Places {
    registers: BTreeSet<Register>,
    slots: BTreeSet<Slot>,
    flags: bool,
    /// Somewhere on the stack too.
    elsewhere: bool,
}

impl FromThread {
    /// Follows it through a function.
    pub(super) fn of(a: &Analysis<'_, '_>) -> FromThread {
        let all = 0..a.body.blocks.len();
        let mut info = InstructionInfoFactory::new();
        let starts = settle(
            all.map(|block| (block, Places::default())).collect(),
            |block, places| {
                a.visit(block, |_, insn, state| {
                    places.step(a, insn, state, &mut info);
                });
                a.body.following(block)
            },
            Places::joined,
        );
        FromThread { starts }
    }

    /// Whether an operand of the comparing instruction of a block may come from a thread's number.
    pub(super) fn is_compared(&self, a: &Analysis<'_, '_>, block: usize, operand: u32) -> bool {
        let Some(decision) = a.decisions.get(&block) else {
            return true;
        };
        let mut places = self.starts[&block].clone();
        let mut info = InstructionInfoFactory::new();
        let mut found = false;
        a.visit(block, |i, insn, state| {
            // Others compare with a constant that no operand is.
            let has_both = matches!(insn.mnemonic(), Mnemonic::Cmp | Mnemonic::Sub);
            if i == decision.compare && has_both {
                found = match insn.op_kind(operand) {
                    OpKind::Register => places.holds(insn.op_register(operand)),
                    OpKind::Memory => {
                        let used = info.info(insn).used_memory();
                        used.iter().any(|m| places.is_in(m, state))
                    }
                    _ => false,
                };
            }
            places.step(a, insn, state, &mut info);
        });
        found
    }
}

impl Places {
    /// What one of two ways brings.
    fn joined(&self, other: &Places) -> Places {
        Places {
            registers: &self.registers | &other.registers,
            slots: &self.slots | &other.slots,
            flags: self.flags || other.flags,
            elsewhere: self.elsewhere || other.elsewhere,
        }
    }

    fn holds(&self, register: Register) -> bool {
        self.registers.contains(&register.full_register())
    }

    /// Whether memory that is read may hold it.
    fn is_in(&self, memory: &UsedMemory, state: &State) -> bool {
        match slot(memory, state) {
            Some(at) => self.slots.contains(&at),
            None => self.elsewhere && is_frame(memory),
        }
    }

    /// Executes an instruction.
    fn step(
        &mut self,
        a: &Analysis<'_, '_>,
        insn: &Instruction,
        state: &State,
        info: &mut InstructionInfoFactory,
    ) {
        if is_call(insn) {
            return self.call(a, insn, state);
        }
        let info = info.info(insn);
        let mut reads = self.flags && insn.rflags_read() != 0;
        for used in info.used_registers().iter().filter(|r| is_read(r.access())) {
            reads |= self.holds(used.register());
        }
        let memory = info.used_memory();
        let mut read = memory.iter().filter(|m| is_read(m.access()));
        reads |= read.any(|m| self.is_in(m, state));
        for place in memory.iter().filter(|m| is_write(m.access())) {
            match slot(place, state) {
                Some(at) if reads => _ = self.slots.insert(at),
                Some(at) if place.access() == OpAccess::Write => _ = self.slots.remove(&at),
                Some(_) => {}
                None => self.elsewhere |= reads && is_frame(place),
            }
        }
        let written = info.used_registers().iter();
        for used in written.filter(|r| is_write(r.access())) {
            let stack = used.register().full_register() == Register::RSP;
            let always = used.access() != OpAccess::CondWrite || reads;
            if always && !stack {
                // What is left of a longer one doesn't matter to who writes a part of it.
                let register = used.register().full_register();
                match reads {
                    true => _ = self.registers.insert(register),
                    false => _ = self.registers.remove(&register),
                }
            }
        }
        if insn.rflags_modified() != 0 {
            self.flags = reads;
        }
    }

    /// What a call returns comes from it if it is that number.
    fn call(&mut self, a: &Analysis<'_, '_>, insn: &Instruction, state: &State) {
        let changed = changed(a.module, insn);
        for n in (0..16).filter(|n| changed & 1 << n != 0) {
            self.registers.remove(&(Register::RAX + n));
        }
        if let dataflow::Callee::Runtime(n) = dataflow::callee(a.module, insn, Some(state)) {
            let query = a.module.entries.callees[n].query();
            if matches!(query, Some(Query::ThreadNum | Query::TeamNum)) {
                self.registers.insert(Register::RAX);
            }
        }
    }
}

/// Whether memory is of the function's stack, by the register that leads to it.
fn is_frame(memory: &UsedMemory) -> bool {
    matches!(memory.base(), Register::RSP | Register::RBP)
}
