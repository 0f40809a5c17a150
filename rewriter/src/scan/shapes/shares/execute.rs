//! Executing instructions with numbers.

use super::Run;
use super::flags::{Flags, mask};
use crate::scan::dataflow::{self, Callee};
use crate::scan::shapes::is_call;
use crate::scan::slots::Slot;
use crate::scan::value::{State, Value};
use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;

/// Numbers in registers and stack slots, and the flags; what isn't here is asked of the data flow.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// With how many bytes are known.
    pub regs: [Option<(u64, usize)>; 16],
    pub slots: BTreeMap<Slot, Option<u64>>,
    pub flags: Option<Flags>,
}

impl Run<'_, '_, '_> {
    /// The number for what the data flow knows.
    pub(super) fn number(&self, value: Value) -> Option<u64> {
        match value {
            Value::Const(c) => Some(c),
            Value::Query(q) if q == self.rank => Some(self.numbers.thread),
            Value::Query(q) if q == self.by => Some(self.numbers.threads),
            Value::Quotient(id) if id == self.id => Some(self.numbers.quotient),
            Value::Remainder(id) if id == self.id => Some(self.remainder),
            _ => None,
        }
    }

    /// A register's number.
    fn read(&self, m: &Machine, state: &State, register: Register) -> Option<u64> {
        let size = register.size();
        let full = register.full_register();
        if !full.is_gpr64() {
            return None;
        }
        let n = full.number();
        let flow = || Some((self.number(state.reg(n))?, 8));
        let (value, known) = m.regs[n].filter(|r| r.1 >= size).or_else(flow)?;
        if dataflow::number(register).is_none() {
            return (known >= 2).then_some(value >> 8 & 0xff); // ah, bh, ch, dh
        }
        Some(value & mask(size))
    }

    /// The number of an operand, of the size of the first one at most.
    fn operand(&self, m: &Machine, state: &State, insn: &Instruction, op: u32) -> Option<u64> {
        match insn.try_op_kind(op).ok()? {
            OpKind::Register => self.read(m, state, insn.op_register(op)),
            OpKind::Memory => {
                let known = dataflow::slot(state, insn).and_then(|s| m.slots.get(&s).copied());
                let value = match known {
                    Some(value) => value,
                    None => self.number(dataflow::operand(state, insn, op)),
                };
                value.map(|v| v & mask(insn.memory_size().size()))
            }
            _ => self.number(dataflow::operand(state, insn, op)),
        }
    }

    fn set_register(&mut self, m: &mut Machine, state: &State, to: Register, value: Option<u64>) {
        let full = to.full_register();
        if !full.is_gpr64() {
            return;
        }
        let size = to.size();
        let n = full.number();
        let known = value.map(|v| v & mask(size));
        m.regs[n] = match known {
            Some(v) if size >= 4 => Some((v, 8)),
            Some(v) if dataflow::number(to).is_some() => match self.read(m, state, full) {
                Some(old) => Some((old & !mask(size) | v, 8)),
                None => Some((v, size)),
            },
            _ => None,
        };
    }

    /// Remembers that a start was computed, if this is one.
    fn note_start(&mut self, value: Option<u64>) {
        let n = self.numbers;
        let start = n.quotient * n.thread + self.remainder;
        self.starts |= value.is_some_and(|v| v & mask(self.size) == start);
    }

    fn set(&mut self, m: &mut Machine, state: &State, insn: &Instruction, value: Option<u64>) {
        self.note_start(value);
        match insn.op0_kind() {
            OpKind::Register => self.set_register(m, state, insn.op0_register(), value),
            OpKind::Memory => {
                if let Some(at) = dataflow::slot(state, insn) {
                    m.slots.insert(at, value);
                }
            }
            _ => {}
        }
    }

    pub(super) fn execute(&mut self, m: &mut Machine, insn: &Instruction, state: &State) {
        let size = match insn.op0_kind() {
            OpKind::Register => insn.op0_register().size(),
            OpKind::Memory => insn.memory_size().size(),
            _ => 8,
        };
        let get = |op: u32| self.operand(m, state, insn, op);
        let (x, y) = (get(0), get(1));
        let both = x.zip(y);
        let carry = m.flags.map(|f| u64::from(f.carry));
        let condition = insn.condition_code();
        let holds = m.flags.and_then(|f| f.holds(condition));
        match insn.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movzx => self.set(m, state, insn, y),
            Mnemonic::Movsx | Mnemonic::Movsxd => {
                let from = match insn.op1_kind() {
                    OpKind::Register => insn.op1_register().size(),
                    _ => insn.memory_size().size(),
                };
                let shift = 64 - from.clamp(1, 8) * 8;
                let value = y.map(|v| ((v << shift).cast_signed() >> shift).cast_unsigned());
                self.set(m, state, insn, value);
            }
            Mnemonic::Cmp => m.flags = both.map(|(x, y)| Flags::less(x, y, size)),
            Mnemonic::Test => m.flags = both.map(|(x, y)| Flags::of(x & y, size)),
            Mnemonic::Lea => {
                let value = self.address(m, state, insn);
                self.set(m, state, insn, value);
            }
            Mnemonic::Sub | Mnemonic::Sbb => {
                let same = insn.op1_kind() == OpKind::Register
                    && insn.op0_kind() == OpKind::Register
                    && insn.op0_register() == insn.op1_register();
                let both = if same { Some((0, 0)) } else { both };
                let borrow = match insn.mnemonic() {
                    Mnemonic::Sub => Some(0),
                    _ => carry,
                };
                let values = both.zip(borrow).map(|((x, y), c)| (x, y.wrapping_add(c)));
                m.flags = values.map(|(x, y)| Flags::less(x, y, size));
                let value = values.map(|(x, y)| x.wrapping_sub(y));
                self.set(m, state, insn, value);
            }
            Mnemonic::Add | Mnemonic::Adc => {
                let plus = match insn.mnemonic() {
                    Mnemonic::Add => Some(0),
                    _ => carry,
                };
                let value = both
                    .zip(plus)
                    .map(|((x, y), c)| x.wrapping_add(y).wrapping_add(c));
                m.flags = None;
                self.set(m, state, insn, value);
            }
            Mnemonic::Inc | Mnemonic::Dec | Mnemonic::Neg | Mnemonic::Not => {
                let value = x.map(|x| match insn.mnemonic() {
                    Mnemonic::Inc => x.wrapping_add(1),
                    Mnemonic::Dec => x.wrapping_sub(1),
                    Mnemonic::Neg => x.wrapping_neg(),
                    _ => !x,
                });
                match insn.mnemonic() {
                    Mnemonic::Not => {}
                    Mnemonic::Neg => m.flags = x.map(|x| Flags::less(0, x, size)),
                    _ => m.flags = None,
                }
                self.set(m, state, insn, value);
            }
            Mnemonic::And | Mnemonic::Or | Mnemonic::Xor => {
                let value = match insn.mnemonic() {
                    Mnemonic::And if x == Some(0) || y == Some(0) => Some(0),
                    Mnemonic::And => both.map(|(x, y)| x & y),
                    Mnemonic::Or => both.map(|(x, y)| x | y),
                    _ if insn.op0_kind() == OpKind::Register
                        && insn.op1_kind() == OpKind::Register
                        && insn.op0_register() == insn.op1_register() =>
                    {
                        Some(0)
                    }
                    _ => both.map(|(x, y)| x ^ y),
                };
                m.flags = value.map(|v| Flags::of(v, size));
                self.set(m, state, insn, value);
            }
            Mnemonic::Imul if insn.op_count() >= 2 => {
                let factors = match insn.op_count() {
                    3 => get(1).zip(get(2)),
                    _ => both,
                };
                if insn.op_count() == 2
                    && let Some((x, y)) = both
                {
                    self.note(x, y);
                }
                let value = factors.map(|(x, y)| x.wrapping_mul(y));
                m.flags = None;
                self.set(m, state, insn, value);
            }
            Mnemonic::Imul | Mnemonic::Mul if size == 1 => {
                let factors = x.zip(self.read(m, state, Register::AL));
                if let Some((x, y)) = factors {
                    self.note(x, y);
                }
                m.flags = None;
                let value = factors.map(|(x, y)| x.wrapping_mul(y));
                self.set_register(m, state, Register::AX, value);
            }
            Mnemonic::Cdqe => {
                let value = self.read(m, state, Register::EAX);
                self.set_register(m, state, Register::RAX, value);
            }
            Mnemonic::Div | Mnemonic::Idiv => self.divide(m, insn, state, size),
            _ if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() => {}
            _ if is_call(insn) => {
                let query = match dataflow::callee(self.a.module, insn, Some(state)) {
                    Callee::Runtime(n) => self.a.module.entries.callees[n].query(),
                    Callee::Other => None,
                };
                // The data flow tells which registers keep their values.
                for n in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
                    m.regs[n] = None;
                }
                m.regs[0] = query
                    .and_then(|q| self.number(Value::Query(q)))
                    .map(|v| (v, 8));
                m.flags = None;
            }
            Mnemonic::Nop | Mnemonic::Push | Mnemonic::Endbr64 => {}
            _ if condition != ConditionCode::None && insn.op_count() == 2 => {
                let value = match holds {
                    Some(true) => y,
                    Some(false) => x,
                    None => None,
                };
                self.set(m, state, insn, value);
            }
            _ if condition != ConditionCode::None && insn.op_count() == 1 => {
                self.set(m, state, insn, holds.map(u64::from));
            }
            _ => {
                if insn.rflags_modified() != 0 {
                    m.flags = None;
                }
                if insn.op_count() > 0 {
                    self.set(m, state, insn, None);
                }
            }
        }
    }

    fn divide(&mut self, m: &mut Machine, insn: &Instruction, state: &State, size: usize) {
        let own = self.a.flow.name(insn.ip()) == self.id
            && dataflow::operand(state, insn, 0) == Value::Query(self.by);
        let n = self.numbers;
        m.flags = None;
        let dividend = self.read(m, state, Register::EAX);
        self.single |= own && dividend.is_some_and(|d| d & mask(size) == 1);
        (m.regs[0], m.regs[2]) = match (own, size) {
            (true, 1) => (Some((self.remainder << 8 | n.quotient, 8)), m.regs[2]),
            (true, _) => (Some((n.quotient, 8)), Some((self.remainder, 8))),
            _ => (None, None),
        };
    }

    fn address(&self, m: &Machine, state: &State, insn: &Instruction) -> Option<u64> {
        let part = |r: Register| match r {
            Register::None => Some(0),
            r if r.is_gpr() => self.read(m, state, r),
            _ => None,
        };
        let index = part(insn.memory_index())?.wrapping_mul(u64::from(insn.memory_index_scale()));
        let base = part(insn.memory_base())?;
        Some(
            base.wrapping_add(index)
                .wrapping_add(insn.memory_displacement64()),
        )
    }
}
