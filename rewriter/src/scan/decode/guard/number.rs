//! Numbers that an index may be made of, and memory that holds them.

use iced_x86::{Instruction, Register};

/// A number: bits of something unknown, zero-extended and shifted to the right, then multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value {
    /// What it is made of.
    pub id: u32,
    /// So many low bits of it.
    pub bits: u8,
    /// Shifted by so much.
    pub shift: u8,
    pub scale: u8,
    /// It was sign-extended, or shifted with its sign: only what is small is what it was.
    pub signed: bool,
}

/// A memory operand: its registers and displacement, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub segment: Register,
    pub base: Register,
    pub index: Register,
    pub scale: u32,
    pub disp: u64,
    pub size: usize,
}

impl Value {
    /// The lower bits of a number.
    pub(super) fn low(self, bits: u8) -> Option<Value> {
        if bits == 64 || (self.bits <= bits && !self.signed && self.scale == 1) {
            return Some(self);
        }
        (self.shift == 0 && self.scale == 1).then_some(Value {
            bits: self.bits.min(bits),
            ..self
        })
    }

    pub(super) fn scaled(self, by: u32) -> Option<Value> {
        let scale = u32::from(self.scale).checked_mul(by)?;
        (scale <= 8).then_some(Value {
            scale: scale as u8,
            ..self
        })
    }

    pub(super) fn shifted(self, by: u8, signed: bool) -> Option<Value> {
        let shift = self.shift.checked_add(by).filter(|&s| s < 64)?;
        (self.scale == 1).then_some(Value {
            shift,
            signed: self.signed || signed,
            ..self
        })
    }
}

impl Place {
    pub(super) fn of(insn: &Instruction) -> Place {
        Place {
            segment: insn.memory_segment(),
            base: insn.memory_base(),
            index: insn.memory_index(),
            scale: insn.memory_index_scale(),
            disp: insn.memory_displacement64(),
            size: insn.memory_size().size(),
        }
    }
}

/// A register's number, if it is a general one.
pub(super) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    full.is_gpr64().then(|| full.number())
}

/// Bits of a register that is the lower part of a general one.
pub(super) fn bits(register: Register) -> Option<u8> {
    let high = matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    );
    (number(register).is_some() && !high).then(|| register.size() as u8 * 8)
}
