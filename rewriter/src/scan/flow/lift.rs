//! The table of x86 effects: what an instruction computes, from what, where to, and what its flags tell afterwards.
//!
//! An instruction of the table changes one register or place in memory, and flags. All others have no [`Effect`]; who follows
//! values takes what they write ([`super::uses`]) to be unknown.

use super::flags::{Flags, mask};
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Something that an instruction computes with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    None,
    /// The operand with this number: a register, memory, or a constant.
    Operand(u32),
    /// A register that isn't among the operands.
    Register(Register),
    /// A constant that isn't among the operands.
    Constant(u64),
    /// The address of the memory operand.
    Address,
}

/// How the result is computed from the two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// It is the first part, zero-extended.
    Copy,
    /// It is the first part, sign-extended.
    Extend,
    Add,
    /// With the carry flag.
    AddCarry,
    Subtract,
    /// With the carry flag.
    SubtractBorrow,
    Multiply,
    And,
    Or,
    Xor,
    Not,
    ShiftLeft,
    ShiftRight,
    /// With copies of the sign.
    ShiftSigned,
    /// It is the second part if the condition holds, else the first.
    Choose(ConditionCode),
    /// It is 1 if the condition holds, else 0.
    Condition(ConditionCode),
}

/// What the flags tell behind the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sets {
    /// What they told before.
    Nothing,
    /// How the two parts compare.
    Comparison,
    /// The same, but for the carry flag, which stays.
    Order,
    /// Whether the result is 0 or negative.
    Result,
    Unknown,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    pub how: How,
    pub a: Part,
    pub b: Part,
    /// What the result is written to; none for comparisons.
    pub to: Part,
    pub sets: Sets,
}

impl Effect {
    /// That of an instruction of the table.
    pub(crate) fn of(insn: &Instruction) -> Option<Effect> {
        use {How as H, Mnemonic as M, Sets as S};
        let [first, second] = [Part::Operand(0), Part::Operand(1)];
        let on_two = |how, sets| effect(how, [first, second], first, sets);
        let on_one = |how, b, sets| effect(how, [first, Part::Constant(b)], first, sets);
        let alone = |how, a, to| effect(how, [a, Part::None], to, S::Nothing);
        Some(match insn.mnemonic() {
            M::Mov | M::Movzx => alone(H::Copy, second, first),
            M::Movsx | M::Movsxd => alone(H::Extend, second, first),
            M::Cdqe => alone(
                H::Extend,
                Part::Register(Register::EAX),
                Part::Register(Register::RAX),
            ),
            M::Lea => alone(H::Copy, Part::Address, first),
            // Whatever the register holds, it is 0 then.
            M::Xor | M::Sub if is_twice_one(insn) => {
                effect(H::Copy, [Part::Constant(0), Part::None], first, S::Result)
            }
            M::Sbb if is_twice_one(insn) => {
                let zeros = [Part::Constant(0); 2];
                effect(H::SubtractBorrow, zeros, first, S::Comparison)
            }
            M::Test if is_twice_one(insn) => {
                let with_zero = [first, Part::Constant(0)];
                effect(H::Subtract, with_zero, Part::None, S::Comparison)
            }
            M::Cmp => effect(H::Subtract, [first, second], Part::None, S::Comparison),
            M::Test => effect(H::And, [first, second], Part::None, S::Result),
            M::Add => on_two(H::Add, S::Unknown),
            M::Adc => on_two(H::AddCarry, S::Unknown),
            M::Sub => on_two(H::Subtract, S::Comparison),
            M::Sbb => on_two(H::SubtractBorrow, S::Comparison),
            M::And => on_two(H::And, S::Result),
            M::Or => on_two(H::Or, S::Result),
            M::Xor => on_two(H::Xor, S::Result),
            M::Inc => on_one(H::Add, 1, S::Unknown),
            M::Dec => on_one(H::Subtract, 1, S::Order),
            M::Neg => effect(
                H::Subtract,
                [Part::Constant(0), first],
                first,
                S::Comparison,
            ),
            M::Not => alone(H::Not, first, first),
            M::Shl => on_two(H::ShiftLeft, S::Unknown),
            M::Shr => on_two(H::ShiftRight, S::Unknown),
            M::Sar => on_two(H::ShiftSigned, S::Unknown),
            M::Imul if insn.op_count() == 3 => {
                effect(H::Multiply, [second, Part::Operand(2)], first, S::Unknown)
            }
            M::Imul if insn.op_count() == 2 => on_two(H::Multiply, S::Unknown),
            // Of bytes; of more bytes the product takes two registers.
            M::Imul | M::Mul if size(insn, first) == 1 => {
                let al = Part::Register(Register::AL);
                let ax = Part::Register(Register::AX);
                effect(H::Multiply, [first, al], ax, S::Unknown)
            }
            _ if insn.flow_control() != FlowControl::Next => return None,
            _ => match (insn.condition_code(), insn.op_count()) {
                (ConditionCode::None, _) => return None,
                (condition, 2) => on_two(H::Choose(condition), S::Nothing),
                (condition, 1) => alone(H::Condition(condition), Part::None, first),
                _ => return None,
            },
        })
    }

    /// Whether the second part is a constant, and which.
    pub(crate) fn constant(&self, insn: &Instruction) -> Option<u64> {
        constant_part(insn, self.b)
    }

    /// The part that the result is a constant more than, and that constant.
    pub(crate) fn sum(&self, insn: &Instruction) -> Option<(Part, i64)> {
        let (from, more) = match self.how {
            How::Copy if self.a == Part::Address => {
                let alone = insn.memory_index() == Register::None;
                let base = Part::Register(insn.memory_base());
                (alone.then_some(base)?, insn.memory_displacement64())
            }
            How::Copy | How::Extend => (self.a, 0),
            How::Add => (self.a, self.constant(insn)?),
            How::Subtract => (self.a, self.constant(insn)?.wrapping_neg()),
            _ => return None,
        };
        Some((from, extended(more, size(insn, self.to)).cast_signed()))
    }

    /// The result of two numbers, and the flags then, as far as they are known. `flags`: those before.
    pub(crate) fn run(
        &self,
        insn: &Instruction,
        parts: [Option<u64>; 2],
        flags: Option<Flags>,
    ) -> (Option<u64>, Option<Flags>) {
        let [x, y] = parts;
        let both = x.zip(y);
        let carry = flags.and_then(|f| f.carry).map(u64::from);
        let width = match self.to {
            Part::None => size(insn, self.a),
            to => size(insn, to),
        };
        // What is subtracted, with the borrow.
        let less = match self.how {
            How::SubtractBorrow => both.zip(carry).map(|((x, y), c)| (x, y.wrapping_add(c))),
            _ => both,
        };
        let value = match self.how {
            How::Copy => x,
            How::Extend => x.map(|x| extended(x, size(insn, self.a))),
            How::Add => both.map(|(x, y)| x.wrapping_add(y)),
            How::AddCarry => {
                let all = both.zip(carry);
                all.map(|((x, y), c)| x.wrapping_add(y).wrapping_add(c))
            }
            How::Subtract | How::SubtractBorrow => less.map(|(x, y)| x.wrapping_sub(y)),
            How::Multiply => both.map(|(x, y)| x.wrapping_mul(y)),
            How::And if x == Some(0) || y == Some(0) => Some(0),
            How::And => both.map(|(x, y)| x & y),
            How::Or => both.map(|(x, y)| x | y),
            How::Xor => both.map(|(x, y)| x ^ y),
            How::Not => x.map(|x| !x),
            How::ShiftLeft => both.map(|(x, y)| x << shift(y, width)),
            How::ShiftRight => both.map(|(x, y)| (x & mask(width)) >> shift(y, width)),
            How::ShiftSigned => both.map(|(x, y)| {
                let signed = extended(x, width).cast_signed() >> shift(y, width);
                signed.cast_unsigned()
            }),
            How::Choose(condition) => match flags.and_then(|f| f.holds(condition)) {
                Some(true) => y,
                Some(false) => x,
                None => None,
            },
            How::Condition(condition) => flags.and_then(|f| f.holds(condition)).map(u64::from),
        };
        let compared = || less.map(|(x, y)| Flags::of_difference(x, y, width));
        let flags = match self.sets {
            Sets::Nothing => flags,
            Sets::Comparison => compared(),
            Sets::Order => compared().map(|mut new| {
                new.carry = flags.and_then(|f| f.carry);
                new
            }),
            Sets::Result => value.map(|v| Flags::of(v, width)),
            Sets::Unknown => None,
        };
        (value, flags)
    }
}

fn effect(how: How, [a, b]: [Part; 2], to: Part, sets: Sets) -> Effect {
    Effect {
        how,
        a,
        b,
        to,
        sets,
    }
}

/// Whether the only two operands are the same register.
fn is_twice_one(insn: &Instruction) -> bool {
    insn.op_count() == 2
        && insn.op0_kind() == OpKind::Register
        && insn.op1_kind() == OpKind::Register
        && insn.op0_register() == insn.op1_register()
}

/// The bytes of a part; 8 of what has no width of its own.
pub(crate) fn size(insn: &Instruction, part: Part) -> usize {
    match part {
        Part::Operand(op) => match insn.try_op_kind(op) {
            Ok(OpKind::Register) => insn.op_register(op).size(),
            Ok(OpKind::Memory) => insn.memory_size().size(),
            _ => 8,
        },
        Part::Register(register) => register.size(),
        Part::None | Part::Constant(_) | Part::Address => 8,
    }
}

/// The register that a part is.
pub(crate) fn register(insn: &Instruction, part: Part) -> Option<Register> {
    match part {
        Part::Operand(op) => {
            let is_one = matches!(insn.try_op_kind(op), Ok(OpKind::Register));
            is_one.then(|| insn.op_register(op))
        }
        Part::Register(register) => Some(register),
        _ => None,
    }
}

/// The constant that an operand is, other than a branch's target.
pub(crate) fn immediate(insn: &Instruction, op: u32) -> Option<u64> {
    matches!(
        insn.op_kind(op),
        OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64
    )
    .then(|| insn.immediate(op))
}

/// The constant that a part is.
pub(crate) fn constant_part(insn: &Instruction, part: Part) -> Option<u64> {
    match part {
        Part::Constant(value) => Some(value),
        Part::Operand(op) => immediate(insn, op),
        _ => None,
    }
}

/// The constant that an instruction adds to this register, of whatever width.
pub(crate) fn added_to(insn: &Instruction, register: Register) -> Option<i64> {
    let effect = Effect::of(insn)?;
    let (from, more) = effect.sum(insn)?;
    let is_it = |part| self::register(insn, part).map(Register::full_register) == Some(register);
    (is_it(effect.to) && is_it(from)).then_some(more)
}

/// A number of so many bytes with its sign.
fn extended(value: u64, size: usize) -> u64 {
    let shift = 64 - size.clamp(1, 8) * 8;
    ((value << shift).cast_signed() >> shift).cast_unsigned()
}

/// By how many bits numbers of so many bytes are shifted.
fn shift(by: u64, size: usize) -> u64 {
    by & if size == 8 { 63 } else { 31 }
}

#[cfg(test)]
mod tests;
