//! Executing instructions with numbers.

use super::Run;
use crate::scan::flow::dataflow;
use crate::scan::flow::leads::query;
use crate::scan::flow::lift::{self, Effect, How, Part};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::step::VOLATILE;
use crate::scan::flow::uses::{is_call, written};
use crate::scan::flow::value::{self, State, Value};
use crate::scan::flow::{Flags, mask};
use iced_x86::{Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Numbers in registers and stack slots, and the flags; what isn't here is asked of the data flow.
#[derive(Debug, Clone, Default)]
pub(super) struct Machine {
    /// With how many bytes are known.
    pub regs: [Option<(u64, usize)>; 16],
    pub slots: Rc<BTreeMap<Slot, Option<u64>>>,
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
        if value::number(register).is_none() {
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
            Some(v) if value::number(to).is_some() => match self.read(m, state, full) {
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

    fn set(
        &mut self,
        m: &mut Machine,
        state: &State,
        insn: &Instruction,
        to: Part,
        value: Option<u64>,
    ) {
        self.note_start(value);
        match lift::register(insn, to) {
            Some(register) => self.set_register(m, state, register, value),
            None => {
                if let Some(at) = dataflow::slot(state, insn) {
                    Rc::make_mut(&mut m.slots).insert(at, value);
                }
            }
        }
    }

    /// The number that a part of an instruction is.
    fn part(&self, m: &Machine, state: &State, insn: &Instruction, part: Part) -> Option<u64> {
        match part {
            Part::None => None,
            Part::Operand(op) => self.operand(m, state, insn, op),
            Part::Register(register) => self.read(m, state, register),
            Part::Constant(value) => Some(value),
            Part::Address => self.address(m, state, insn),
        }
    }

    pub(super) fn execute(&mut self, m: &mut Machine, insn: &Instruction, state: &State) {
        match insn.mnemonic() {
            Mnemonic::Div | Mnemonic::Idiv => return self.divide(m, insn, state),
            Mnemonic::Nop | Mnemonic::Push | Mnemonic::Endbr64 => return,
            _ if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() => return,
            _ if is_call(insn) => return self.call(m, insn, state),
            _ => {}
        }
        let Some(effect) = Effect::of(insn) else {
            if insn.rflags_modified() != 0 {
                m.flags = None;
            }
            if insn.op_count() > 0 {
                self.set(m, state, insn, Part::Operand(0), None);
            }
            // Some write registers that they don't name: `mul`, `cdq`.
            let written = written(&mut InstructionInfoFactory::new(), insn);
            for n in (0..16).filter(|n| written >> n & 1 == 1) {
                m.regs[n] = None;
            }
            return;
        };
        let parts = [effect.a, effect.b].map(|part| self.part(m, state, insn, part));
        if effect.how == How::Multiply
            && effect.constant(insn).is_none()
            && let [Some(x), Some(y)] = parts
        {
            self.note(x, y);
        }
        let (value, flags) = effect.run(insn, parts, m.flags);
        m.flags = flags;
        if effect.to != Part::None {
            self.set(m, state, insn, effect.to, value);
        }
    }

    fn call(&self, m: &mut Machine, insn: &Instruction, state: &State) {
        let query = query(self.a.module, insn, Some(state));
        // The data flow tells which registers keep their values.
        for n in (0..16).filter(|n| VOLATILE >> n & 1 == 1) {
            m.regs[n] = None;
        }
        let number = query.and_then(|q| self.number(Value::Query(q)));
        m.regs[0] = number.map(|v| (v, 8));
        m.flags = None;
    }

    fn divide(&mut self, m: &mut Machine, insn: &Instruction, state: &State) {
        let size = lift::size(insn, Part::Operand(0));
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
