//! What straight code adds to registers, and the induction variables of loops: registers to which every turn adds the same.
//!
//! Whole registers only: what is added to half of one may begin again at 0, and then no difference of two values tells how often something
//! was added.

use crate::scan::cfg::Body;
use crate::scan::flow::changes::Step;
use crate::scan::flow::lazy::{Code, Lazy};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::uses::{self, Place, is_call};
use crate::scan::flow::value::State;
use iced_x86::{InstructionInfoFactory, Register};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;

/// A function whose stack isn't followed.
impl Code for Body {
    fn following(&self, block: usize) -> Vec<usize> {
        Body::following(self, block).collect()
    }

    fn steps(&self, block: usize) -> Vec<Step> {
        let mut info = InstructionInfoFactory::new();
        let unknown = State::unknown();
        let insns = self.block_insns(block).iter();
        let step = |insn| match is_call(insn) {
            true => Step::of_call(!0, None),
            false => Step::of(&mut info, insn, &unknown),
        };
        insns.map(step).collect()
    }

    fn is_exposed(&self, _: Slot) -> bool {
        true
    }
}

/// The values of a function's registers, block by block.
pub(super) struct Registers<'x> {
    body: &'x Body,
    values: RefCell<Lazy<'x>>,
}

/// A loop's induction variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Recurrence {
    pub register: Register,
    /// What a turn adds.
    pub step: i64,
}

impl<'x> Registers<'x> {
    pub(super) fn of(body: &'x Body) -> Registers<'x> {
        let values = RefCell::new(Lazy::of_each(body, body.blocks.len()));
        Registers { body, values }
    }

    /// What instructions of a block add to a register, if that is always the same; 0 if they leave it alone.
    pub(super) fn growth(&self, block: usize, insns: Range<usize>, of: Register) -> Option<i64> {
        let first = self.body.blocks[block].insns.start;
        let steps = insns.start - first..insns.end - first;
        let mut values = self.values.borrow_mut();
        values.growth(block, steps, Place::Register(of))
    }

    /// What a register is before an instruction of a block, if the block makes it a constant.
    pub(super) fn constant(&self, block: usize, insn: usize, of: Register) -> Option<i64> {
        let step = insn - self.body.blocks[block].insns.start;
        let mut values = self.values.borrow_mut();
        values.constant(block, step, Place::Register(of))
    }

    /// The induction variables of a loop: what a turn through `turn`, some of its `blocks`, adds to registers to which each of the blocks
    /// adds something, or nothing.
    pub(super) fn recurrences(&self, blocks: &BTreeSet<usize>, turn: &[usize]) -> Vec<Recurrence> {
        let mut info = InstructionInfoFactory::new();
        let insns = blocks
            .iter()
            .flat_map(|&block| self.body.block_insns(block));
        let written = insns.fold(0, |set, insn| set | uses::written(&mut info, insn));
        let of = |register: Register| {
            let growth = |&block: &usize| {
                let insns = self.body.blocks[block].insns.clone();
                self.growth(block, insns, register)
            };
            blocks
                .iter()
                .try_for_each(|block| growth(block).map(drop))?;
            let steps = turn.iter().filter_map(growth);
            let step = steps.fold(0i64, i64::wrapping_add);
            (step != 0).then_some(Recurrence { register, step })
        };
        let is_one = |n: &u32| written >> n & 1 != 0 && Register::RAX + *n != Register::RSP;
        let registers = (0..16).filter(is_one);
        registers.filter_map(|n| of(Register::RAX + n)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::live::one_block;
    use Register as R;

    fn growth(code: &[u8], register: Register) -> Option<i64> {
        let body = one_block(code);
        Registers::of(&body).growth(0, 0..body.insns.len(), register)
    }

    #[test]
    fn constants_are_added_to_whole_registers_only() {
        // add rax, 8; add rax, -1; inc rax; lea rax, [rax + 16]; sub rax, 4
        assert_eq!(growth(&[0x48, 0x83, 0xc0, 8], R::RAX), Some(8));
        let code = [0x48, 0x83, 0xc0, 0xff, 0x48, 0xff, 0xc0];
        assert_eq!(growth(&code, R::RAX), Some(0));
        assert_eq!(growth(&[0x48, 0x8d, 0x40, 16], R::RAX), Some(16));
        assert_eq!(growth(&[0x48, 0x83, 0xe8, 4], R::RAX), Some(-4));
        // By way of another one: lea rbx, [rax + 8]; mov rax, rbx
        let code = [0x48, 0x8d, 0x58, 8, 0x48, 0x89, 0xd8];
        assert_eq!(growth(&code, R::RAX), Some(8));
        // lea ebx, [rax + 8]; mov rax, rbx
        assert_eq!(growth(&[0x8d, 0x58, 8, 0x48, 0x89, 0xd8], R::RAX), None);
        // add eax, 8 makes the upper half 0; add ax, 8; add al, 8; lea eax, [rax + 16]; movsxd rax, eax
        assert_eq!(growth(&[0x83, 0xc0, 8], R::RAX), None);
        assert_eq!(growth(&[0x66, 0x83, 0xc0, 8], R::RAX), None);
        assert_eq!(growth(&[0x04, 8], R::RAX), None);
        assert_eq!(growth(&[0x8d, 0x40, 16], R::RAX), None);
        assert_eq!(growth(&[0x48, 0x63, 0xc0], R::RAX), None);
        // lea rax, [eax + 16] computes with half of it; mov eax, eax
        assert_eq!(growth(&[0x67, 0x48, 0x8d, 0x40, 16], R::RAX), None);
        assert_eq!(growth(&[0x89, 0xc0], R::RAX), None);
        // add rax, rbx; lea rax, [rax + rbx]; lea rax, [rbx + 8]; imul rax, rax, 2
        assert_eq!(growth(&[0x48, 0x01, 0xd8], R::RAX), None);
        assert_eq!(growth(&[0x48, 0x8d, 0x04, 0x18], R::RAX), None);
        assert_eq!(growth(&[0x48, 0x8d, 0x43, 8], R::RAX), None);
        assert_eq!(growth(&[0x48, 0x6b, 0xc0, 2], R::RAX), None);
        // lea rbx, [rax + 8] leaves rax alone; xadd rbx, rax doesn't; nor does mul rbx, cpuid, pop rax, a call.
        assert_eq!(growth(&[0x48, 0x8d, 0x58, 8], R::RAX), Some(0));
        assert_eq!(growth(&[0x48, 0x0f, 0xc1, 0xc3], R::RAX), None);
        assert_eq!(growth(&[0x48, 0xf7, 0xe3], R::RDX), None);
        assert_eq!(growth(&[0x0f, 0xa2], R::RBX), None);
        assert_eq!(growth(&[0x58], R::RAX), None);
        assert_eq!(growth(&[0xe8, 0, 0, 0, 0], R::RBX), None);
        // mov rax, [rbx]: memory is no constant. push rax; pop rax: nor is the stack followed.
        assert_eq!(growth(&[0x48, 0x8b, 0x03], R::RAX), None);
        assert_eq!(growth(&[0x50, 0x58], R::RAX), None);
        // rep movsq changes rsi, rdi and rcx.
        for register in [R::RSI, R::RDI, R::RCX] {
            assert_eq!(growth(&[0xf3, 0x48, 0xa5], register), None);
        }
    }

    #[test]
    fn growth_between_two_instructions_needs_no_known_value() {
        // mov rax, [rbx]; add rax, 8; inc rax
        let code = [0x48, 0x8b, 0x03, 0x48, 0x83, 0xc0, 8, 0x48, 0xff, 0xc0];
        let body = one_block(&code);
        let registers = Registers::of(&body);
        let growth = |insns| registers.growth(0, insns, R::RAX);
        assert_eq!([growth(1..3), growth(2..3)], [Some(9), Some(1)]);
        assert_eq!([growth(3..3), growth(0..3)], [Some(0), None]);
    }

    #[test]
    fn what_is_set_is_known_whatever_was_before() {
        let constant = |code: &[u8]| {
            let body = one_block(code);
            Registers::of(&body).constant(0, body.insns.len(), R::RAX)
        };
        // xor eax, eax; add rax, 8
        assert_eq!(constant(&[0x31, 0xc0, 0x48, 0x83, 0xc0, 8]), Some(8));
        // pop rax; mov eax, -1: zero-extended; mov rax, -1: sign-extended
        let code = [0x58, 0xb8, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(constant(&code), Some(0xffff_ffff));
        let code = [0x48, 0xc7, 0xc0, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(constant(&code), Some(-1));
        // mov eax, -1; add eax, 1: half of it begins again at 0.
        let code = [0xb8, 0xff, 0xff, 0xff, 0xff, 0x83, 0xc0, 1];
        assert_eq!(constant(&code), None);
        // mov eax, 1; mov al, 2: no whole register.
        assert_eq!(constant(&[0xb8, 1, 0, 0, 0, 0xb0, 2]), None);
        assert_eq!(constant(&[0x48, 0x83, 0xc0, 8]), None);
    }
}
