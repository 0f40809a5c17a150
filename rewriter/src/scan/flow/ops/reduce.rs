//! From an instruction to what it does.

use super::*;
use crate::scan::Module;
use crate::scan::flow::dataflow::{self, number};
use crate::scan::flow::lift::{self, Effect, How, Part};
use crate::scan::flow::uses::{self, is_write};
use crate::thunk::through;
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpKind, Register,
};

/// Reduces instructions.
pub(in crate::scan) struct Reducer<'m, 'a> {
    module: &'m Module<'a>,
    info: Option<InstructionInfoFactory>,
    /// Realignments of the stack pointer so far.
    bases: u16,
}

/// A register that is written.
enum Written {
    /// All of it, or its lower half, which clears the other one.
    Whole(u8),
    /// A part of it.
    Part(u8),
    /// None that is followed.
    Other,
}

fn written(register: Register) -> Written {
    let full = register.full_register();
    match (full.is_gpr64(), number(register)) {
        (false, _) => Written::Other,
        (true, Some(n)) if register.size() >= 4 => Written::Whole(n as u8),
        _ => Written::Part(full.number() as u8),
    }
}

impl<'m, 'a> Reducer<'m, 'a> {
    pub(in crate::scan) fn new(module: &'m Module<'a>) -> Self {
        Reducer {
            module,
            info: None,
            bases: 0,
        }
    }

    /// What an instruction does; `None`: nothing that is followed.
    pub(in crate::scan) fn reduce(&mut self, insn: &Instruction, number: u32) -> Option<Op> {
        let (first, second) = (insn.op0_kind(), insn.op1_kind());
        // Most instructions of numerical code.
        if uses::is_of_vectors(insn) && !uses::sets_rcx(insn) {
            return None;
        }
        if first == OpKind::Memory
            && second == OpKind::Register
            && uses::is_vector(insn.op1_register())
            && insn.op_count() == 2
        {
            return forget_memory(insn, number);
        }
        match insn.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return Some(self.call(insn, number)),
            _ if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() => return None,
            _ => return self.other(insn, number),
        }
        let op = |kind| Op {
            kind,
            ..blank(insn, number)
        };
        match insn.mnemonic() {
            Mnemonic::Push => {
                let mut op = op(Kind::Push);
                op.a = operand(insn, 0, &mut op.value);
                if insn.is_ip_rel_memory_operand()
                    && let slots = &self.module.entries.slots
                    && let Some(&n) = slots.get(&insn.ip_rel_memory_address())
                {
                    (op.a, op.value) = (CALLEE, n as u64);
                }
                Some(op)
            }
            Mnemonic::Pop if first == OpKind::Register => {
                let mut op = op(Kind::Pop);
                match written(insn.op0_register()) {
                    Written::Whole(n) => op.to = n,
                    Written::Part(n) => op.mask = 1 << n,
                    Written::Other => {}
                }
                Some(op)
            }
            Mnemonic::Leave => Some(op(Kind::Leave)),
            Mnemonic::Cdq | Mnemonic::Cqo => Some(Op {
                mask: 1 << 2,
                ..op(Kind::Forget)
            }),
            Mnemonic::Div | Mnemonic::Idiv => {
                let mut op = op(match lift::size(insn, Part::Operand(0)) {
                    0 | 1 => Kind::DivideByte,
                    _ => Kind::Divide,
                });
                op.a = operand(insn, 0, &mut op.value);
                op.value = insn.ip();
                Some(op)
            }
            Mnemonic::Nop | Mnemonic::Endbr64 => None,
            Mnemonic::And if insn.op0_register() == Register::RSP => {
                // Stacks that are realigned more often don't exist: the rest counts as unknown.
                self.bases = self.bases.saturating_add(1);
                Some(match self.bases {
                    u16::MAX => Op {
                        mask: 1 << 4,
                        ..op(Kind::Forget)
                    },
                    base => Op {
                        value: u64::from(base),
                        ..op(Kind::Realign)
                    },
                })
            }
            _ => match Effect::of(insn) {
                Some(effect) => self.computed(insn, number, effect),
                None => self.other(insn, number),
            },
        }
    }

    /// An instruction that the table of effects has.
    fn computed(&self, insn: &Instruction, number: u32, effect: Effect) -> Option<Op> {
        let kind = match effect.how {
            _ if effect.to == Part::None => return None,
            _ if effect.a == Part::Address => return self.lea(insn, number),
            How::Copy | How::Extend => return self.mov(insn, number, effect),
            How::Add => Kind::Add,
            How::Subtract => Kind::Sub,
            How::AddCarry | How::SubtractBorrow | How::Multiply => Kind::Combine,
            How::ShiftLeft | How::ShiftRight | How::ShiftSigned => Kind::Combine,
            How::Choose(_) => Kind::Choose,
            How::And | How::Or | How::Xor | How::Not | How::Condition(_) => Kind::Forget,
        };
        let mut op = blank(insn, number);
        op.kind = kind;
        op.a = part(insn, effect.a, &mut op.value);
        op.b = part(insn, effect.b, &mut op.value);
        into(op, insn, effect.to)
    }

    fn call(&self, insn: &Instruction, at: u32) -> Op {
        let mut op = Op {
            kind: Kind::Call,
            ..blank(insn, at)
        };
        let entries = &self.module.entries;
        let known = match insn.op0_kind() {
            OpKind::NearBranch64 => entries.targets.get(&insn.near_branch_target()),
            OpKind::Memory if insn.is_ip_rel_memory_operand() => {
                entries.slots.get(&insn.ip_rel_memory_address())
            }
            OpKind::Memory | OpKind::Register => {
                op.a = operand(insn, 0, &mut op.value);
                indexed(&mut op, insn);
                None
            }
            _ => None,
        };
        op.value = insn.ip();
        op.mask = VOLATILE;
        match known {
            Some(&callee) => (op.a, op.disp) = (CALLEE, callee as i64),
            None if insn.op0_kind() == OpKind::NearBranch64 => {
                if let Some((register, _)) = through(&self.module.image, insn) {
                    op.a = number(register).map_or(NONE, |n| n as u8);
                }
                let clobbers = &self.module.clobbers;
                op.mask &= clobbers.of(self.module, insn.near_branch_target());
            }
            None => {}
        }
        op
    }

    fn mov(&self, insn: &Instruction, number: u32, effect: Effect) -> Option<Op> {
        let mut op = Op {
            kind: Kind::Move,
            ..blank(insn, number)
        };
        op.a = part(insn, effect.a, &mut op.value);
        if op.a == MEMORY {
            indexed(&mut op, insn);
        }
        if op.a == MEMORY && insn.is_ip_rel_memory_operand() {
            let slots = &self.module.entries.slots;
            op.a = match slots.get(&insn.ip_rel_memory_address()) {
                Some(&n) if insn.memory_size() == MemorySize::UInt64 => {
                    op.value = n as u64;
                    CALLEE
                }
                _ => NONE,
            };
        }
        let size = lift::size(insn, effect.a);
        if size < 4 {
            let register = lift::register(insn, effect.a);
            if register.is_some() {
                op.size = size as u16;
            }
            op.kind = match register {
                Some(Register::AH) => Kind::MoveHigh,
                _ => Kind::MoveNarrow,
            };
        }
        into(op, insn, effect.to)
    }

    fn lea(&self, insn: &Instruction, number: u32) -> Option<Op> {
        let mut op = Op {
            kind: Kind::Lea,
            ..blank(insn, number)
        };
        op.half = insn.op0_register().size() == 4;
        match written(insn.op0_register()) {
            Written::Whole(n) => op.to = n,
            Written::Part(n) => op.mask = 1 << n,
            Written::Other => return None,
        }
        if insn.is_ip_rel_memory_operand() {
            let value = insn.ip_rel_memory_address();
            return Some(match op.to {
                NONE => Op {
                    kind: Kind::Forget,
                    ..op
                },
                _ => Op {
                    kind: Kind::Move,
                    a: CONST,
                    value,
                    ..op
                },
            });
        }
        let part = |r: Register| match r {
            Register::None => Some(NONE),
            r => dataflow::number(r).map(|n| n as u8),
        };
        let parts = (part(insn.memory_base()), part(insn.memory_index()));
        let (Some(base), Some(index)) = parts else {
            // Of a register that isn't followed.
            op.kind = Kind::Forget;
            if op.to != NONE {
                op.mask = 1 << op.to;
            }
            return Some(op);
        };
        (op.base, op.index) = (base, index);
        op.scale = insn.memory_index_scale() as u8;
        // Whoever has the address may write there, but through these two the function itself does.
        let own = matches!(insn.op0_register(), Register::RSP | Register::RBP);
        op.b = if own { NONE } else { MEMORY };
        Some(op)
    }

    /// Any other instruction: what it writes is unknown.
    fn other(&mut self, insn: &Instruction, number: u32) -> Option<Op> {
        let factory = self.info.get_or_insert_with(InstructionInfoFactory::new);
        let mut op = blank(insn, number);
        op.mask = uses::written(factory, insn);
        let info = factory.info(insn);
        if info.used_memory().iter().any(|m| is_write(m.access())) {
            op.to = MEMORY;
        }
        let useless = op.mask == 0 && (op.to != MEMORY || op.base == NONE);
        (!useless).then_some(op)
    }
}

/// An op that does nothing, with the instruction's memory operand: a stack slot if that is one at all.
fn blank(insn: &Instruction, number: u32) -> Op {
    let is_slot = insn.memory_index() == Register::None && insn.segment_prefix() == Register::None;
    let base = dataflow::number(insn.memory_base()).filter(|_| is_slot);
    Op {
        insn: number,
        kind: Kind::Forget,
        to: NONE,
        half: false,
        a: NONE,
        b: NONE,
        base: base.map_or(NONE, |n| n as u8),
        index: NONE,
        scale: 1,
        size: insn.memory_size().size().min(usize::from(u16::MAX)) as u16,
        mask: 0,
        disp: insn.memory_displacement64().cast_signed(),
        value: 0,
    }
}

/// Makes a load from what an index register leads to one that is no stack slot, but may be a slot of the linker's: code of the
/// large model adds distances so.
fn indexed(op: &mut Op, insn: &Instruction) {
    let number = |register: Register| dataflow::number(register).map(|n| n as u8);
    if insn.memory_index() == Register::None || insn.segment_prefix() != Register::None {
        return;
    }
    let base = match insn.memory_base() {
        Register::None => Some(NONE),
        base => number(base),
    };
    if let (Some(base), Some(index)) = (base, number(insn.memory_index())) {
        (op.base, op.index) = (base, index);
        op.scale = insn.memory_index_scale() as u8;
    }
}

/// The op, if it isn't a store to what is no stack slot.
fn stores(op: Op) -> Option<Op> {
    (op.to != MEMORY || op.base != NONE).then_some(op)
}

fn forget_memory(insn: &Instruction, number: u32) -> Option<Op> {
    stores(Op {
        to: MEMORY,
        ..blank(insn, number)
    })
}

/// An operand; `value` is that of a constant.
fn operand(insn: &Instruction, n: u32, value: &mut u64) -> u8 {
    if n >= insn.op_count() {
        return NONE;
    }
    match insn.op_kind(n) {
        OpKind::Register => number(insn.op_register(n)).map_or(NONE, |n| n as u8),
        OpKind::Memory => MEMORY,
        _ => lift::immediate(insn, n).map_or(NONE, |constant| {
            *value = constant;
            CONST
        }),
    }
}

/// A part of an instruction; `value` is that of a constant.
fn part(insn: &Instruction, part: Part, value: &mut u64) -> u8 {
    match part {
        Part::None | Part::Address => NONE,
        Part::Operand(op) => operand(insn, op, value),
        Part::Register(register) => number(register).map_or(NONE, |n| n as u8),
        Part::Constant(constant) => {
            *value = constant;
            CONST
        }
    }
}

/// Whether the result is computed from the two operands alone.
fn computes(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Move | Kind::MoveNarrow | Kind::Add | Kind::Sub | Kind::Combine | Kind::Choose
    )
}

/// The operation with its result in a part of the instruction.
fn into(mut op: Op, insn: &Instruction, to: Part) -> Option<Op> {
    match lift::register(insn, to) {
        Some(register) => match written(register) {
            Written::Whole(n) if op.kind == Kind::Forget => op.mask = 1 << n,
            Written::Whole(n) => {
                op.to = n;
                op.half = register.size() == 4;
            }
            // What a part of a query's result is moved to, is looked at in that part only.
            Written::Part(n) if op.kind == Kind::MoveNarrow => op.to = n,
            // The part is computed from these, and the rest is nobody's business.
            Written::Part(n) if computes(op.kind) && number(register).is_some() => {
                op.kind = Kind::Combine;
                op.to = n;
            }
            Written::Part(n) => {
                op.kind = Kind::Forget;
                op.mask = 1 << n;
            }
            Written::Other => return None,
        },
        None => op.to = MEMORY,
    }
    stores(op)
}
