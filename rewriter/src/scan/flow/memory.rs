//! Memory operands, as far as registers and stack slots tell what they mean.

use super::slots::Slot;
use super::value::{State, Value, number};
use iced_x86::{Instruction, Register};
use smallvec::SmallVec;

/// In place of a register's number: there is none.
const NONE: u8 = 16;
/// In place of a register's number: something that isn't followed.
const OTHER: u8 = 17;

/// A memory operand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    displacement: u64,
    base: u8,
    index: u8,
    scale: u8,
    /// Bytes.
    pub(super) size: u16,
}

impl Memory {
    /// Of an instruction that has one.
    pub(crate) fn of(insn: &Instruction) -> Memory {
        match insn.segment_prefix() {
            Register::None => Memory::computed(insn),
            _ => Memory {
                base: OTHER,
                ..Memory::computed(insn)
            },
        }
    }

    /// Whatever segment it is in: `lea` computes the same address.
    pub(super) fn computed(insn: &Instruction) -> Memory {
        let part = |register| match register {
            Register::None => NONE,
            register => number(register).map_or(OTHER, |n| n as u8),
        };
        Memory {
            displacement: insn.memory_displacement64(),
            base: part(insn.memory_base()),
            index: part(insn.memory_index()),
            scale: insn.memory_index_scale() as u8,
            size: insn.memory_size().size() as u16,
        }
    }

    /// Whether it may be a place on the stack.
    pub(super) fn may_be_slot(&self) -> bool {
        self.index == NONE && self.base < NONE
    }

    /// The registers that its address is made of, as far as they are followed.
    pub(super) fn registers(&self) -> SmallVec<[usize; 4]> {
        let followed = [self.base, self.index].into_iter().filter(|&n| n < NONE);
        followed.map(usize::from).collect()
    }

    /// None that is followed.
    pub(super) fn elsewhere() -> Memory {
        Memory {
            displacement: 0,
            base: OTHER,
            index: OTHER,
            scale: 1,
            size: 0,
        }
    }

    fn part(state: &State, register: u8) -> Option<Value> {
        match register {
            NONE => Some(Value::Const(0)),
            OTHER => None,
            n => Some(state.reg(usize::from(n))),
        }
    }

    /// The stack slot that it means.
    pub(crate) fn slot(&self, state: &State) -> Option<Slot> {
        if !self.may_be_slot() {
            return None;
        }
        let base = state.regs.slot(usize::from(self.base))?;
        base.plus(self.displacement.cast_signed())
    }

    /// Its address, where the registers that it is made of are known.
    pub(super) fn reached(&self, state: &State) -> Option<u64> {
        let part = |register| match Memory::part(state, register) {
            Some(Value::Const(n)) => Some(n),
            _ => None,
        };
        let scaled = part(self.index)?.wrapping_mul(u64::from(self.scale));
        let base = part(self.base)?.wrapping_add(scaled);
        Some(base.wrapping_add(self.displacement))
    }

    /// What is known of it.
    pub(super) fn read(&self, state: &State) -> Option<Value> {
        let (value, size) = state.slots.get(self.slot(state)?)?;
        let is_loaded = value.is_loaded(usize::from(self.size), size);
        is_loaded.then_some(value)
    }

    /// The address that it computes, as far as the registers that it is made of are followed.
    pub(super) fn address(&self, state: &State) -> Value {
        let part = |register| Memory::part(state, register);
        let (Some(base), Some(index)) = (part(self.base), part(self.index)) else {
            return Value::Unknown;
        };
        match (base, index) {
            (Value::Const(b), Value::Const(i)) => {
                let scaled = i.wrapping_mul(u64::from(self.scale));
                Value::Const(b.wrapping_add(scaled).wrapping_add(self.displacement))
            }
            (Value::Stack(at), Value::Const(0)) => {
                let at = at.plus(self.displacement.cast_signed());
                at.map_or(Value::Unknown, Value::Stack)
            }
            (b, Value::Const(0)) if self.displacement == 0 && self.index == NONE => b,
            (b, i) => b.combine(i),
        }
    }
}
