//! Registers that every turn of a loop changes by the same constant: its induction variables.
//!
//! Only whole registers of 64 bits: what is added to half of one may begin again at 0, and then no difference of two values tells how
//! often something was added.

use super::lift::{self, Effect, How};
use super::uses;
use crate::scan::cfg::Body;
use iced_x86::{Instruction, InstructionInfoFactory, Register};
use std::collections::BTreeSet;

/// What an instruction does to a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It adds a constant; 0 if it leaves it alone.
    Adds(i64),
    Sets(u64),
    Unknown,
}

/// A loop's induction variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recurrence {
    pub register: Register,
    /// What a turn adds.
    pub step: i64,
}

/// What instructions do to a register, one after the other.
pub(crate) fn change(insns: &[Instruction], register: Register) -> Change {
    let mut info = InstructionInfoFactory::new();
    insns.iter().fold(Change::Adds(0), |before, insn| {
        match (before, of_one(insn, register, &mut info)) {
            (before, Change::Adds(0)) => before,
            (Change::Adds(a), Change::Adds(b)) => Change::Adds(a.wrapping_add(b)),
            (Change::Sets(a), Change::Adds(b)) => Change::Sets(a.wrapping_add_signed(b)),
            (Change::Unknown, Change::Adds(_)) => Change::Unknown,
            (_, last) => last,
        }
    })
}

fn of_one(insn: &Instruction, register: Register, info: &mut InstructionInfoFactory) -> Change {
    if uses::written(info, insn) >> register.number() & 1 == 0 {
        return Change::Adds(0);
    }
    let Some(effect) = Effect::of(insn) else {
        return Change::Unknown;
    };
    let to = lift::register(insn, effect.to);
    // A write of the lower half makes the upper one 0.
    let is_whole = to == Some(register);
    let is_half = to.is_some_and(|to| to.size() == 4 && to.full_register() == register);
    match (effect.how, lift::constant_part(insn, effect.a)) {
        (How::Copy, Some(value)) if is_whole => return Change::Sets(value),
        (How::Copy, Some(value)) if is_half => return Change::Sets(value & u64::from(u32::MAX)),
        _ => {}
    }
    match effect.sum(insn) {
        Some((from, more)) if is_whole && lift::register(insn, from) == Some(register) => {
            Change::Adds(more)
        }
        _ => Change::Unknown,
    }
}

/// The induction variables of a loop: what a turn through `turn`, some of its `blocks`, adds to registers that nothing in it changes
/// otherwise.
pub(crate) fn recurrences(
    body: &Body,
    blocks: &BTreeSet<usize>,
    turn: &[usize],
) -> Vec<Recurrence> {
    let mut info = InstructionInfoFactory::new();
    let mut written = 0;
    for insn in blocks.iter().flat_map(|&block| body.block_insns(block)) {
        written |= uses::written(&mut info, insn);
    }
    let registers = Register::RAX as u32..=Register::R15 as u32;
    let registers = registers.filter_map(|n| Register::try_from(n as usize).ok());
    let of = |register: Register| {
        let step = |block: usize| match change(body.block_insns(block), register) {
            Change::Adds(step) => Some(step),
            Change::Sets(_) | Change::Unknown => None,
        };
        blocks
            .iter()
            .try_for_each(|&block| step(block).map(|_| ()))?;
        let steps = turn.iter().filter_map(|&block| step(block));
        let step = steps.fold(0i64, i64::wrapping_add);
        (step != 0).then_some(Recurrence { register, step })
    };
    registers
        .filter(|r| *r != Register::RSP && written >> r.number() & 1 != 0)
        .filter_map(of)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    fn of(code: &[u8], register: Register) -> Change {
        let insns: Vec<_> = Decoder::with_ip(64, code, 0x1000, DecoderOptions::NONE)
            .iter()
            .collect();
        change(&insns, register)
    }

    #[test]
    fn constants_are_added_to_whole_registers_only() {
        use Register as R;
        let unknown = Change::Unknown;
        // add rax, 8; add rax, -1; inc; lea rax, [rax + 16]; sub rax, 4
        assert_eq!(of(&[0x48, 0x83, 0xc0, 8], R::RAX), Change::Adds(8));
        let code = [0x48, 0x83, 0xc0, 0xff, 0x48, 0xff, 0xc0];
        assert_eq!(of(&code, R::RAX), Change::Adds(0));
        assert_eq!(of(&[0x48, 0x8d, 0x40, 16], R::RAX), Change::Adds(16));
        assert_eq!(of(&[0x48, 0x83, 0xe8, 4], R::RAX), Change::Adds(-4));
        // add eax, 8 makes the upper half 0; add ax, 8; add al, 8; lea eax, [rax + 16]; movsxd rax, eax
        assert_eq!(of(&[0x83, 0xc0, 8], R::RAX), unknown);
        assert_eq!(of(&[0x66, 0x83, 0xc0, 8], R::RAX), unknown);
        assert_eq!(of(&[0x04, 8], R::RAX), unknown);
        assert_eq!(of(&[0x8d, 0x40, 16], R::RAX), unknown);
        assert_eq!(of(&[0x48, 0x63, 0xc0], R::RAX), unknown);
        // add rax, rbx; lea rax, [rax + rbx]; lea rax, [rbx + 8]; imul rax, rax, 2
        assert_eq!(of(&[0x48, 0x01, 0xd8], R::RAX), unknown);
        assert_eq!(of(&[0x48, 0x8d, 0x04, 0x18], R::RAX), unknown);
        assert_eq!(of(&[0x48, 0x8d, 0x43, 8], R::RAX), unknown);
        assert_eq!(of(&[0x48, 0x6b, 0xc0, 2], R::RAX), unknown);
        // lea rbx, [rax + 8] leaves rax alone; xadd rbx, rax doesn't; nor does mul rbx, cpuid, pop rax.
        assert_eq!(of(&[0x48, 0x8d, 0x58, 8], R::RAX), Change::Adds(0));
        assert_eq!(of(&[0x48, 0x0f, 0xc1, 0xc3], R::RAX), unknown);
        assert_eq!(of(&[0x48, 0xf7, 0xe3], R::RDX), unknown);
        assert_eq!(of(&[0x0f, 0xa2], R::RBX), unknown);
        assert_eq!(of(&[0x58], R::RAX), unknown);
        // mov rbx, [rax + 8]; mov rax, [rbx]: memory is no constant.
        assert_eq!(of(&[0x48, 0x8b, 0x03], R::RAX), unknown);
        // rep movsq changes rsi, rdi and rcx.
        for register in [R::RSI, R::RDI, R::RCX] {
            assert_eq!(of(&[0xf3, 0x48, 0xa5], register), unknown);
        }
    }

    #[test]
    fn what_is_set_is_known_whatever_was_before() {
        use Register as R;
        // xor eax, eax; add rax, 8
        let code = [0x31, 0xc0, 0x48, 0x83, 0xc0, 8];
        assert_eq!(of(&code, R::RAX), Change::Sets(8));
        // pop rax; mov eax, -1: zero-extended; mov rax, -1: sign-extended
        assert_eq!(
            of(&[0x58, 0xb8, 0xff, 0xff, 0xff, 0xff], R::RAX),
            Change::Sets(0xffff_ffff)
        );
        let code = [0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(of(&code, R::RAX), Change::Sets(u64::MAX));
        // mov eax, 1; mov al, 2: no whole register.
        let code = [0xb8, 1, 0, 0, 0, 0xb0, 2];
        assert_eq!(of(&code, R::RAX), Change::Unknown);
    }
}
