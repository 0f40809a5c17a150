//! Instructions reduced to what they do to general registers and stack slots: values are propagated several times over
//! every function, and most instructions of numerical code do nothing to these.

mod reduce;

pub(super) use reduce::Reducer;

use super::super::Module;
use super::super::cfg::Body;
use super::slots::Slot;
use rustc_hash::FxHashSet;
use std::ops::Range;

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 ... r11.
pub(in crate::scan) const VOLATILE: u16 = 0b1111_1100_0111;

/// In place of a register: nothing, or nothing known.
pub(super) const NONE: u8 = 16;
/// In place of a register: the memory operand.
pub(super) const MEMORY: u8 = 17;
/// In place of a register: [`Op::value`].
pub(super) const CONST: u8 = 18;
/// In place of a register: the address of the runtime function numbered [`Op::value`].
pub(super) const CALLEE: u8 = 19;

/// What an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `to` gets `a`.
    Move,
    /// As `Move`, of a part of `a`: only the result of a call stays one.
    MoveNarrow,
    /// As `MoveNarrow`, from `ah`.
    MoveHigh,
    /// `to` gets the address of the memory operand.
    Lea,
    Push,
    Pop,
    Leave,
    /// The stack pointer is rounded down; `value` is the number of its new base.
    Realign,
    /// A division by `a` at address `value`.
    Divide,
    /// A division by one byte, `a`.
    DivideByte,
    Add,
    Sub,
    /// `to` gets something computed from `a` and `b`.
    Combine,
    /// `to` gets `a` or `b`.
    Choose,
    /// A call from address `value`, to `a`; the function numbered `disp` if that is [`CALLEE`]. It changes `mask`.
    Call,
    /// Nothing is known any more of the registers in `mask`, and of `to` where that is memory.
    Forget,
}

/// What an instruction does to registers and stack slots.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    /// The instruction's number.
    pub insn: u32,
    pub kind: Kind,
    /// What is written: a register, [`MEMORY`] or [`NONE`].
    pub to: u8,
    /// `to` is the lower half of a register (4 bytes).
    pub half: bool,
    pub a: u8,
    pub b: u8,
    /// The memory operand; registers or [`NONE`].
    pub base: u8,
    pub index: u8,
    pub scale: u8,
    /// Bytes of the memory operand.
    pub size: u16,
    /// A set of registers.
    pub mask: u16,
    pub disp: i64,
    pub value: u64,
}

impl Op {
    /// Whether it is a call that may ask for a number.
    pub(super) fn may_query(&self) -> bool {
        self.kind == Kind::Call && self.a != NONE
    }

    /// The sum, or difference, that it computes of two constants.
    pub(super) fn total(&self, a: u64, b: u64) -> u64 {
        match self.kind {
            Kind::Lea => {
                let scaled = b.wrapping_mul(u64::from(self.scale));
                a.wrapping_add(scaled).wrapping_add_signed(self.disp)
            }
            Kind::Sub => a.wrapping_sub(b),
            _ => a.wrapping_add(b),
        }
    }

    /// Whether it hands out the address of a place relative to this register.
    fn exposes(&self, base: u8) -> bool {
        self.kind == Kind::Lea && self.b == MEMORY && (self.base, self.index) == (base, NONE)
    }
}

/// The ops of a function.
#[derive(Debug, Default)]
pub(super) struct Ops {
    pub list: Vec<Op>,
    /// Of each block, the number of its first op; and how many there are.
    first: Vec<u32>,
    /// There is a division.
    pub divides: bool,
}

impl Ops {
    /// Reduces a function's instructions.
    pub(super) fn of(module: &Module<'_>, body: &Body) -> Ops {
        let mut out = Ops {
            list: Vec::with_capacity(body.insns.len() / 2),
            first: Vec::with_capacity(body.blocks.len() + 1),
            divides: false,
        };
        let mut reducer = Reducer::new(module);
        for block in &body.blocks {
            out.first.push(out.list.len() as u32);
            for i in block.insns.clone() {
                let Some(op) = reducer.reduce(&body.insns[i], i as u32) else {
                    continue;
                };
                out.divides |= matches!(op.kind, Kind::Divide | Kind::DivideByte);
                out.list.push(op);
            }
        }
        out.first.push(out.list.len() as u32);
        out
    }

    /// Slots whose addresses are taken in ways that are seen without following values: most of them. Stack and frame
    /// pointer are followed along the first way to each block only.
    pub(super) fn exposed(&self, body: &Body) -> FxHashSet<Slot> {
        let mut out = FxHashSet::default();
        let mut starts: Vec<Option<[Option<Slot>; 2]>> = vec![None; body.blocks.len()];
        if let Some(&root) = body.roots.first() {
            starts[root] = Some([Some(Slot::base(0)), None]);
        }
        for (block, insns) in body.blocks.iter().enumerate() {
            let Some([mut top, mut frame]) = starts[block] else {
                continue;
            };
            for op in self.of_block(block) {
                for (register, at) in [(4, top), (5, frame)] {
                    if op.exposes(register) {
                        out.extend(at.and_then(|at| at.plus(op.disp)));
                    }
                }
                let constant = match (op.kind, op.b) {
                    (Kind::Add, CONST) => Some(op.value.cast_signed()),
                    (Kind::Sub, CONST) => op.value.cast_signed().checked_neg(),
                    (Kind::Lea, _) => Some(op.disp),
                    _ => None,
                };
                let moved = |from: Option<Slot>| from?.plus(constant?);
                match op.kind {
                    Kind::Push => top = top.and_then(|at| at.plus(-8)),
                    Kind::Pop => {
                        top = top.and_then(|at| at.plus(8));
                        frame = frame.filter(|_| op.to != 5);
                    }
                    Kind::Leave => {
                        top = frame.and_then(|at| at.plus(8));
                        frame = None;
                    }
                    Kind::Realign => top = Some(Slot::base(op.value as u16)),
                    Kind::Move if op.to == 5 && op.a == 4 && !op.half => frame = top,
                    Kind::Move if op.to == 4 && op.a == 5 && !op.half => top = frame,
                    Kind::Add | Kind::Sub if op.to == 4 => top = moved(top),
                    Kind::Add | Kind::Sub if op.to == 5 => frame = moved(frame),
                    Kind::Lea if matches!(op.to, 4 | 5) => {
                        let from = match (op.base, op.index) {
                            (4, NONE) => moved(top),
                            (5, NONE) => moved(frame),
                            _ => None,
                        };
                        match op.to {
                            4 => top = from,
                            _ => frame = from,
                        }
                    }
                    _ => {
                        top = top.filter(|_| op.to != 4 && op.mask >> 4 & 1 == 0);
                        frame = frame.filter(|_| op.to != 5 && op.mask >> 5 & 1 == 0);
                    }
                }
            }
            for &to in insns.succs.iter().chain(&insns.pads) {
                starts[to].get_or_insert([top, frame]);
            }
        }
        out
    }

    /// Those of a block.
    pub(super) fn of_block(&self, block: usize) -> &[Op] {
        let range = self.range(block);
        self.list.get(range).unwrap_or(&[])
    }

    fn range(&self, block: usize) -> Range<usize> {
        self.first[block] as usize..self.first[block + 1] as usize
    }
}
