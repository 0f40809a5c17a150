//! What a cycle's rounds read anew. Where a loop's next chunk begins is computed from the numbers that threads asked for before
//! the cycle, and from what doesn't change in it; what waits for something asks memory or a function again in every round.

use super::super::uses::{changed, is_read, is_write, slot};
use super::super::{Analysis, NaturalLoop, is_call};
use crate::scan::slots::Slot;
use crate::scan::value::State;
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};
use std::collections::{BTreeMap, BTreeSet};

/// The places that hold something computed from what is followed: here from what was read in the cycle.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Anew {
    pub(super) registers: BTreeSet<Register>,
    pub(super) slots: BTreeSet<Slot>,
    pub(super) flags: bool,
}

/// Whether the comparing instruction of a block in the cycle compares what is computed from something that was read in the same cycle:
/// from other memory than the function's own stack, or by a call.
pub(super) fn compares(a: &Analysis<'_, '_>, cycle: &NaturalLoop, block: usize) -> bool {
    let Some(decision) = a.decisions.get(&block) else {
        return false;
    };
    let calls = |&b: &usize| a.body.block_insns(b).iter().any(is_call);
    let mut reader = Reader {
        a,
        calls: cycle.blocks.iter().any(calls),
        info: InstructionInfoFactory::new(),
    };
    // Only what the cycle itself has read counts: at its beginning nothing, and then what its ways back bring.
    let mut starts = BTreeMap::from([(cycle.header, Anew::default())]);
    let mut work = BTreeSet::from([cycle.header]);
    let mut found = false;
    while let Some(at) = work.pop_first() {
        let mut anew = starts[&at].clone();
        a.visit(at, |i, insn, state| {
            let reads = reader.step(&mut anew, insn, state);
            found |= reads && at == block && i == decision.compare;
        });
        let blocks = &a.body.blocks[at];
        let to = blocks.succs.iter().chain(&blocks.pads);
        for &to in to.filter(|s| cycle.blocks.contains(s)) {
            let known = starts.get(&to);
            let joined = known.map_or_else(|| anew.clone(), |known| known.joined(&anew));
            if known != Some(&joined) {
                starts.insert(to, joined);
                work.insert(to);
            }
        }
    }
    found
}

impl Anew {
    /// What one of two ways brings.
    pub(super) fn joined(&self, other: &Anew) -> Anew {
        Anew {
            registers: &self.registers | &other.registers,
            slots: &self.slots | &other.slots,
            flags: self.flags || other.flags,
        }
    }

    pub(super) fn set_register(&mut self, register: Register, anew: bool) {
        let full = register.full_register();
        if anew {
            self.registers.insert(full);
        } else if register == full || register.is_gpr32() {
            // The rest of a longer one stays.
            self.registers.remove(&full);
        }
    }
}

/// Goes through a cycle's instructions.
struct Reader<'x, 'm, 'a> {
    a: &'x Analysis<'m, 'a>,
    /// Something is called in the cycle.
    calls: bool,
    info: InstructionInfoFactory,
}

impl Reader<'_, '_, '_> {
    /// Executes an instruction; tells whether it reads something of the kind.
    fn step(&mut self, anew: &mut Anew, insn: &Instruction, state: &State) -> bool {
        let info = self.info.info(insn);
        let mut reads = anew.flags && insn.rflags_read() != 0;
        for used in info.used_registers().iter().filter(|r| is_read(r.access())) {
            reads |= anew.registers.contains(&used.register().full_register());
        }
        let places: Vec<(OpAccess, Option<Slot>)> = info
            .used_memory()
            .iter()
            .map(|m| (m.access(), slot(m, state)))
            .collect();
        for (_, place) in places.iter().filter(|(access, _)| is_read(*access)) {
            reads |= match place {
                Some(at) => anew.slots.contains(at) || self.calls && self.a.flow.is_exposed(*at),
                None => true,
            };
        }
        for (access, place) in places.iter().filter(|(access, _)| is_write(*access)) {
            match place {
                Some(at) if reads => _ = anew.slots.insert(*at),
                Some(at) if *access == OpAccess::Write => _ = anew.slots.remove(at),
                _ => {}
            }
        }
        if is_call(insn) {
            self.call(anew, insn);
            return reads;
        }
        for used in info
            .used_registers()
            .iter()
            .filter(|r| is_write(r.access()))
        {
            let stack = used.register().full_register() == Register::RSP;
            let always = used.access() != OpAccess::CondWrite || reads;
            if always && !stack {
                anew.set_register(used.register(), reads);
            }
        }
        if insn.rflags_modified() != 0 {
            anew.flags = reads;
        }
        reads
    }

    /// What a call may change comes from it.
    fn call(&self, anew: &mut Anew, insn: &Instruction) {
        let changed = changed(self.a.module, insn);
        for n in (0..16).filter(|n| changed & 1 << n != 0) {
            anew.registers.insert(Register::RAX + n);
        }
        for n in 0..16 {
            anew.registers.insert(Register::XMM0 + n);
        }
    }
}
