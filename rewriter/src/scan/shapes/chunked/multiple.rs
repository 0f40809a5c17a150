//! What is a multiple of the numbers of the thread and of threads, or a sum of such. Where chunks of a single iteration begin is, as
//! iterations are counted from 0; what somebody computes from something else besides (`sum = n + threads`) is not.

use super::super::uses::{changed, is_write, slot};
use super::super::{Analysis, is_call};
use crate::scan::dataflow;
use crate::scan::slots::Slot;
use crate::scan::value::{State, Value};
use iced_x86::{
    ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register, UsedMemory,
};
use std::collections::{BTreeMap, BTreeSet};

/// The places that hold multiples in every block's beginning; nothing of blocks that nothing leads to.
pub(in super::super) struct Multiples {
    starts: BTreeMap<usize, Places>,
}

/// Places that hold multiples with a constant added, on whatever way control came; and that constant: optimisers add what they
/// subtract elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Places {
    registers: BTreeMap<Register, u64>,
    slots: BTreeMap<Slot, u64>,
    /// What the function is given has values too, each one of its own: products of them, as those of a chunk's unknown length, are
    /// subtracted elsewhere as constants are.
    named: bool,
}

/// A value of its own for what a function finds at a distance from something.
fn name(of: u64, distance: u64) -> u64 {
    let mixed = (of ^ distance.rotate_left(32)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Multiples {
    /// Follows them through a function.
    pub(super) fn of(a: &Analysis<'_, '_>) -> Multiples {
        Multiples::follow(a, &Places::default())
    }

    /// The same, where what the function is given has a value of its own.
    pub(super) fn of_named(a: &Analysis<'_, '_>) -> Multiples {
        let general = (0..16).map(|n| Register::RAX + n);
        Multiples::follow(
            a,
            &Places {
                registers: general.map(|r| (r, name(r as u64, 0))).collect(),
                slots: BTreeMap::new(),
                named: true,
            },
        )
    }

    /// `entry`: what is known where the function begins.
    fn follow(a: &Analysis<'_, '_>, entry: &Places) -> Multiples {
        let mut info = InstructionInfoFactory::new();
        let roots = a.body.roots.iter().copied();
        let pads = a.body.blocks.iter().flat_map(|b| b.pads.iter().copied());
        let elsewhere = || Places {
            named: entry.named,
            ..Places::default()
        };
        let mut starts: BTreeMap<usize, Places> =
            roots.chain(pads).map(|b| (b, elsewhere())).collect();
        starts.extend(a.body.roots.first().map(|&b| (b, entry.clone())));
        let mut work: BTreeSet<usize> = starts.keys().copied().collect();
        while let Some(at) = work.pop_first() {
            let mut places = starts[&at].clone();
            a.visit(at, |_, insn, state| {
                places.step(a, insn, state, &mut info);
            });
            for &to in &a.body.blocks[at].succs {
                let known = starts.get(&to);
                let met = known.map_or_else(|| places.clone(), |known| known.met(&places));
                if known != Some(&met) {
                    starts.insert(to, met);
                    work.insert(to);
                }
            }
        }
        Multiples { starts }
    }

    /// Whether the comparing instruction of a block asks whether a multiple is 0; `operand`: which of its operands it asks for, where it
    /// doesn't compute it.
    pub(super) fn is_compared(&self, a: &Analysis<'_, '_>, block: usize, operand: u32) -> bool {
        let (Some(decision), Some(places)) = (a.decisions.get(&block), self.starts.get(&block))
        else {
            return false;
        };
        let mut places = places.clone();
        let mut info = InstructionInfoFactory::new();
        let mut found = false;
        a.visit(block, |i, insn, state| {
            if i == decision.compare {
                let constant = match insn.mnemonic() {
                    Mnemonic::Cmp | Mnemonic::Test => places.operand(insn, operand, state),
                    _ => places.computes(insn, state),
                };
                let unused = 64 - 8 * size(insn, operand).clamp(1, 8) as u32;
                found = constant.is_some_and(|c| c << unused == 0);
            }
            places.step(a, insn, state, &mut info);
        });
        found
    }
}

impl Places {
    /// What both of two ways bring.
    fn met(&self, other: &Places) -> Places {
        Places {
            registers: both(&self.registers, &other.registers),
            slots: both(&self.slots, &other.slots),
            named: self.named,
        }
    }

    fn register(&self, register: Register, state: &State) -> Option<u64> {
        match dataflow::number(register).map(|r| state.reg(r)) {
            Some(Value::Const(c)) => return Some(c),
            Some(Value::Query(_)) => return Some(0),
            _ => {}
        }
        self.registers.get(&register.full_register()).copied()
    }

    /// The constant of an operand, if it is a multiple with one.
    fn operand(&self, insn: &Instruction, operand: u32, state: &State) -> Option<u64> {
        if operand >= insn.op_count() {
            return None;
        }
        match insn.op_kind(operand) {
            OpKind::Register => self.register(insn.op_register(operand), state),
            OpKind::Memory => match dataflow::slot(state, insn) {
                Some(at) => self.slots.get(&at).copied(),
                None if self.named => self.given(insn, state),
                None => None,
            },
            _ => dataflow::immediate(insn, operand),
        }
    }

    /// The name of what an instruction reads at a constant distance from something that has a value.
    fn given(&self, insn: &Instruction, state: &State) -> Option<u64> {
        let base = match insn.memory_base() {
            _ if insn.memory_index() != Register::None => return None,
            Register::RIP | Register::None => 0,
            register => self.register(register, state)?,
        };
        Some(name(base, insn.memory_displacement64()))
    }

    /// The same of an instruction's result, in its first operand.
    fn computes(&self, insn: &Instruction, state: &State) -> Option<u64> {
        use Mnemonic as M;
        let of = |operand: u32| self.operand(insn, operand, state);
        let is_register = |n: u32| insn.op_kind(n) == OpKind::Register;
        let same =
            || is_register(0) && is_register(1) && insn.op_register(0) == insn.op_register(1);
        let immediate = |n: u32| dataflow::immediate(insn, n);
        Some(match insn.mnemonic() {
            M::Mov | M::Movsx | M::Movsxd | M::Movzx | M::Movd | M::Movq => of(1)?,
            M::Cdqe | M::Cwde => self.register(Register::RAX, state)?,
            M::Xor | M::Sub if same() => 0,
            M::Sub => of(0)?.wrapping_sub(of(1)?),
            M::Add => of(0)?.wrapping_add(of(1)?),
            M::Inc => of(0)?.wrapping_add(1),
            M::Dec => of(0)?.wrapping_sub(1),
            M::Neg => of(0)?.wrapping_neg(),
            M::Not => !of(0)?,
            M::Shl => of(0)?.checked_shl(u32::try_from(immediate(1)?).ok()?)?,
            M::Imul if insn.op_count() == 3 => of(1)?.wrapping_mul(immediate(2)?),
            // A multiple of one is one.
            M::Imul if insn.op_count() == 2 => match (of(0), of(1)) {
                (Some(0), _) | (_, Some(0)) => 0,
                (Some(x), Some(y)) if self.named => x.wrapping_mul(y),
                _ => return None,
            },
            M::Lea if !insn.is_ip_rel_memory_operand() => {
                let part = |r: Register| match r {
                    Register::None => Some(0),
                    r => self.register(r, state),
                };
                let index = part(insn.memory_index())?;
                part(insn.memory_base())?
                    .wrapping_add(index.wrapping_mul(u64::from(insn.memory_index_scale())))
                    .wrapping_add(insn.memory_displacement64())
            }
            _ if insn.condition_code() != ConditionCode::None && insn.op_count() == 2 => {
                of(0).filter(|c| Some(*c) == of(1))?
            }
            _ => return None,
        })
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
        let result = self.computes(insn, state);
        let info = info.info(insn);
        for memory in info.used_memory().iter().filter(|m| is_write(m.access())) {
            let to_memory = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory;
            self.store(a, memory, result.filter(|_| to_memory), state);
        }
        let first = match insn.mnemonic() {
            Mnemonic::Cdqe | Mnemonic::Cwde => Register::RAX,
            _ if insn.op_count() > 0 && insn.op0_kind() == OpKind::Register => insn.op0_register(),
            _ => Register::None,
        };
        let written = info.used_registers().iter();
        for used in written.filter(|r| is_write(r.access())) {
            let full = used.register().full_register();
            // What is left of a longer one doesn't matter to who writes a part of it.
            match result.filter(|_| full == first.full_register()) {
                Some(constant) => _ = self.registers.insert(full, constant),
                None => _ = self.registers.remove(&full),
            }
        }
    }

    fn store(
        &mut self,
        a: &Analysis<'_, '_>,
        memory: &UsedMemory,
        constant: Option<u64>,
        state: &State,
    ) {
        let Some(at) = slot(memory, state) else {
            self.slots.retain(|&s, _| !a.flow.is_exposed(s));
            return;
        };
        let size = memory.memory_size().size().max(1) as i64;
        for part in (0..size).filter_map(|n| at.plus(n)) {
            self.slots.remove(&part);
        }
        if let Some(constant) = constant {
            self.slots.insert(at, constant);
        }
    }

    /// What a call returns is one if it is such a number.
    fn call(&mut self, a: &Analysis<'_, '_>, insn: &Instruction, state: &State) {
        let changed = changed(a.module, insn);
        let general = (0..16).filter(|n| changed & 1 << n != 0);
        for register in general.map(|n| Register::RAX + n) {
            self.registers.remove(&register);
        }
        self.registers.retain(|r, _| r.is_gpr());
        self.slots.retain(|&s, _| !a.flow.is_exposed(s));
        if let dataflow::Callee::Runtime(n) = dataflow::callee(a.module, insn, Some(state))
            && a.module.entries.callees[n].query().is_some()
        {
            self.registers.insert(Register::RAX, 0);
        }
    }
}

/// What is the same in both.
fn both<K: Ord + Copy>(x: &BTreeMap<K, u64>, y: &BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let same = x.iter().filter(|(k, c)| y.get(*k) == Some(*c));
    same.map(|(&k, &c)| (k, c)).collect()
}

/// Bytes of an operand.
fn size(insn: &Instruction, operand: u32) -> usize {
    match insn.op_kind(operand) {
        OpKind::Memory => insn.memory_size().size(),
        _ => insn.op_register(operand).size(),
    }
}
