//! What an instruction does to the values of registers and stack slots.

use super::super::Module;
use super::dataflow::{self, number, operand, part, reached, slot};
use super::lift::{self, Effect, How, Part};
use super::slots::Slot;
use super::uses::{self, is_write};
use super::value::{State, Value};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use ompfuse_patterns::Query;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 ... r11.
pub(in crate::scan) const VOLATILE: u16 = 0b1111_1100_0111;

/// Slots whose address is taken, so that others may change them.
pub(crate) type Exposed = Rc<FxHashSet<Slot>>;

/// Names by which a function's places are told apart.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Division -> the one whose address its results are named by: twins, and divisions with the code behind them in common.
    pub divisions: FxHashMap<u64, u64>,
    /// Where the stack pointer is rounded down: each makes a base of its own.
    pub realigned: Vec<u64>,
}

/// Executes instructions on a state.
pub(crate) struct Step<'m, 'a> {
    module: &'m Module<'a>,
    names: &'m Names,
    info: Option<InstructionInfoFactory>,
    /// Grows.
    pub(crate) exposed: Exposed,
    /// Nothing new is to be learnt of slots.
    pub(crate) settled: bool,
    /// Slots that held a value.
    used: FxHashSet<Slot>,
    /// A slot that held a value was exposed afterwards.
    pub(crate) late: bool,
    /// A division by the number of threads was met.
    pub(crate) divides: bool,
    /// Divisions of two bytes by one, by name: the remainder is in ah.
    bytes: Vec<u64>,
}

/// A value of which a part, fewer than four bytes, is taken. What is computed from a query is still that, and loops over variables of
/// one byte divide by one byte of the number of threads, and begin at one of the thread's. Else a part of a value is not the
/// value.
fn narrowed(value: Value) -> Value {
    match value {
        Value::Result(_) => value,
        value if value.is_queried() => value,
        _ => Value::Unknown,
    }
}

/// The address that the memory operand computes, if the registers that it is made of are followed.
fn address(state: &State, insn: &Instruction) -> Option<Value> {
    let register = |r: Register| match r {
        Register::None => Some(Value::Const(0)),
        r => Some(state.reg(number(r)?)),
    };
    let (base, index) = (insn.memory_base(), insn.memory_index());
    let disp = insn.memory_displacement64();
    Some(match (register(base)?, register(index)?) {
        (Value::Const(b), Value::Const(i)) => {
            let scaled = i.wrapping_mul(u64::from(insn.memory_index_scale()));
            Value::Const(b.wrapping_add(scaled).wrapping_add(disp))
        }
        (Value::Stack(at), Value::Const(0)) => {
            let at = at.plus(disp.cast_signed());
            at.map_or(Value::Unknown, Value::Stack)
        }
        (b, Value::Const(0)) if disp == 0 && index == Register::None => b,
        (b, i) => b.combine(i),
    })
}

/// The sum of two values, or their difference.
fn sum(how: How, a: Value, b: Value) -> Value {
    let less = how == How::Subtract;
    match (a, b) {
        (Value::Stack(at), Value::Const(c)) => {
            let by = c.cast_signed();
            let by = if less { by.checked_neg() } else { Some(by) };
            let at = by.and_then(|by| at.plus(by));
            at.map_or(Value::Unknown, Value::Stack)
        }
        (Value::Const(x), Value::Const(y)) if less => Value::Const(x.wrapping_sub(y)),
        (Value::Const(x), Value::Const(y)) => Value::Const(x.wrapping_add(y)),
        _ => a.combine(b),
    }
}

/// The general registers that a call may change, a bit for each.
pub(crate) fn changed(module: &Module<'_>, call: &Instruction) -> u16 {
    let target = call.near_branch_target();
    let is_own = call.op0_kind() == OpKind::NearBranch64;
    match is_own && !module.entries.is_target(target) {
        true => VOLATILE & module.clobbers.of(module, target),
        false => VOLATILE,
    }
}

impl<'m, 'a> Step<'m, 'a> {
    pub(crate) fn new(module: &'m Module<'a>, exposed: Exposed, names: &'m Names) -> Self {
        Step {
            module,
            names,
            info: None,
            exposed,
            settled: false,
            used: FxHashSet::default(),
            late: false,
            divides: false,
            bytes: Vec::new(),
        }
    }

    fn store(&mut self, state: &mut State, at: Slot, size: usize, value: Value) {
        state.slots.forget(at, size as u64);
        let keeps = matches!(size, 1 | 2 | 4 | 8) && value != Value::Unknown;
        if keeps && !self.exposed.contains(&at) {
            if !self.settled {
                self.used.insert(at);
            }
            state.slots.insert(at, value, size as u8);
        }
    }

    fn expose(&mut self, at: Slot) {
        if !self.exposed.contains(&at) {
            Rc::make_mut(&mut self.exposed).insert(at);
            self.late |= self.used.contains(&at);
        }
    }

    fn pop(state: &mut State) -> Value {
        let Some(at) = state.regs.slot(4) else {
            return Value::Unknown;
        };
        let above = at.plus(8).map_or(Value::Unknown, Value::Stack);
        state.regs.set(4, above);
        match state.slots.get(at) {
            Some((value, 8)) => value,
            _ => Value::Unknown,
        }
    }

    /// Executes one instruction.
    pub(super) fn run(&mut self, state: &mut State, insn: &Instruction) {
        // Most instructions of numerical code.
        if uses::is_of_vectors(insn) && !uses::sets_rcx(insn) {
            return;
        }
        if insn.op0_kind() == OpKind::Memory
            && insn.op_count() == 2
            && insn.op1_kind() == OpKind::Register
            && uses::is_vector(insn.op1_register())
        {
            return self.write(state, insn, Part::Operand(0), Value::Unknown);
        }
        match insn.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return self.call(state, insn),
            _ if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() => return,
            _ => return self.forget(state, insn),
        }
        match insn.mnemonic() {
            Mnemonic::Push => self.push(state, insn),
            Mnemonic::Pop if insn.op0_kind() == OpKind::Register => {
                let value = Self::pop(state);
                let is_whole = insn.op0_register().size() >= 4;
                let value = if is_whole { value } else { Value::Unknown };
                self.write(state, insn, Part::Operand(0), value);
            }
            Mnemonic::Leave => {
                state.regs.set(4, state.reg(5));
                let value = Self::pop(state);
                state.regs.set(5, value);
            }
            Mnemonic::Div | Mnemonic::Idiv => self.divide(state, insn),
            Mnemonic::And if insn.op0_register() == Register::RSP => {
                let mut all = self.names.realigned.iter();
                let base = all.position(|&at| at == insn.ip());
                let base = base.and_then(|n| u16::try_from(n + 1).ok());
                let base = base.map_or(Value::Unknown, |n| Value::Stack(Slot::base(n)));
                state.regs.set(4, base);
            }
            _ => match Effect::of(insn) {
                Some(effect) if effect.to == Part::None => {}
                Some(effect) => self.compute(state, insn, effect),
                None => self.forget(state, insn),
            },
        }
    }

    /// An instruction that the table of effects has.
    fn compute(&mut self, state: &mut State, insn: &Instruction, effect: Effect) {
        if effect.a == Part::Address {
            return self.lea(state, insn);
        }
        let (a, b) = (
            || part(state, insn, effect.a),
            || part(state, insn, effect.b),
        );
        let is_whole = is_whole(insn, effect.to);
        let value = match effect.how {
            How::Copy | How::Extend => match lift::size(insn, effect.a) {
                0..4 if lift::register(insn, effect.a) == Some(Register::AH) => {
                    match state.reg(0) {
                        Value::Quotient(id) if is_whole && self.bytes.contains(&id) => {
                            Value::Remainder(id)
                        }
                        _ => Value::Unknown,
                    }
                }
                0..4 => narrowed(a()),
                // Constants, too, are unknown as parts of registers.
                _ if !is_whole => Value::Unknown,
                _ => match (a(), lift::register(insn, effect.a)) {
                    (Value::Unknown, None) => self.loaded(state, insn),
                    (value, _) => value,
                },
            },
            How::Add | How::Subtract if is_whole => sum(effect.how, a(), b()),
            How::Choose(_) if is_whole => match a().meet(b()) {
                // Related to a division or to the thread number if one of both is.
                Value::Unknown => a().combine(b()),
                met => met,
            },
            // What is computed for a part is computed from these, and the rest is nobody's business.
            How::Add | How::Subtract | How::Choose(_) => a().combine(b()),
            How::AddCarry | How::SubtractBorrow | How::Multiply => a().combine(b()),
            How::ShiftLeft | How::ShiftRight | How::ShiftSigned => a().combine(b()),
            How::And | How::Or | How::Xor | How::Not | How::Condition(_) => Value::Unknown,
        };
        self.write(state, insn, effect.to, value);
    }

    fn push(&mut self, state: &mut State, insn: &Instruction) {
        let value = match operand(state, insn, 0) {
            Value::Unknown if insn.is_ip_rel_memory_operand() => {
                let slots = &self.module.entries.slots;
                let pushed = slots.get(&insn.ip_rel_memory_address());
                pushed.map_or(Value::Unknown, |&n| Value::Callee(n))
            }
            value => value,
        };
        if let Some(at) = state.regs.slot(4).and_then(|at| at.plus(-8)) {
            state.regs.set(4, Value::Stack(at));
            self.store(state, at, 8, value);
        }
    }

    /// What memory elsewhere than on the stack holds.
    fn loaded(&self, state: &State, insn: &Instruction) -> Value {
        if insn.memory_size().size() != 8 {
            return Value::Unknown;
        }
        let at = match insn.is_ip_rel_memory_operand() {
            true => Some(insn.ip_rel_memory_address()),
            false => reached(state, insn),
        };
        let callee = at.and_then(|at| self.module.entries.slots.get(&at));
        callee.map_or(Value::Unknown, |&n| Value::Callee(n))
    }

    /// Writes a register or memory: known slots change, and an unknown address is taken not to be one of them.
    fn write(&mut self, state: &mut State, insn: &Instruction, to: Part, value: Value) {
        let Some(register) = lift::register(insn, to) else {
            if let Some(at) = slot(state, insn) {
                self.store(state, at, insn.memory_size().size().max(1), value);
            }
            return;
        };
        let full = register.full_register();
        match (full.is_gpr64(), number(register), value) {
            (false, ..) => {}
            (true, Some(n), Value::Const(c)) if register.size() == 4 => {
                state.regs.set(n, Value::Const(c & 0xffff_ffff));
            }
            (true, Some(n), value) => state.regs.set(n, value),
            (true, None, _) => state.regs.set(full.number(), Value::Unknown),
        }
    }

    fn lea(&mut self, state: &mut State, insn: &Instruction) {
        let own = matches!(insn.op0_register(), Register::RSP | Register::RBP);
        let value = match insn.is_ip_rel_memory_operand() {
            true => Value::Const(insn.ip_rel_memory_address()),
            false => address(state, insn).unwrap_or(Value::Unknown),
        };
        // Whoever has the address may write there, but through these two the function itself does.
        if let (Value::Stack(at), false) = (value, own) {
            self.expose(at);
            state.slots.forget(at, 8);
        }
        let is_whole = is_whole(insn, Part::Operand(0));
        let value = if is_whole { value } else { Value::Unknown };
        self.write(state, insn, Part::Operand(0), value);
    }

    fn divide(&mut self, state: &mut State, insn: &Instruction) {
        let by_threads = matches!(
            operand(state, insn, 0),
            Value::Query(Query::NumThreads | Query::NumTeams)
        );
        let is_of_bytes = lift::size(insn, Part::Operand(0)) <= 1;
        self.divides |= by_threads;
        state.regs.set(0, Value::Unknown);
        if !is_of_bytes {
            state.regs.set(2, Value::Unknown);
        }
        if by_threads {
            let known = self.names.divisions.get(&insn.ip());
            let id = known.copied().unwrap_or(insn.ip());
            state.regs.set(0, Value::Quotient(id));
            match is_of_bytes {
                true => self.bytes.push(id),
                false => state.regs.set(2, Value::Remainder(id)),
            }
        }
    }

    fn call(&mut self, state: &mut State, insn: &Instruction) {
        let callee = dataflow::called(self.module, insn, state);
        // Even the result's register may keep its value: gcc knows functions that have none.
        state.regs.forget_all(changed(self.module, insn));
        if let Some(n) = callee {
            let result = match self.module.entries.callees[n].query() {
                Some(query) => Value::Query(query),
                None => Value::Result(insn.ip()),
            };
            state.regs.set(0, result);
        }
    }

    /// Any other instruction: what it writes is unknown.
    fn forget(&mut self, state: &mut State, insn: &Instruction) {
        let info = self.info.get_or_insert_with(InstructionInfoFactory::new);
        state.regs.forget_all(uses::written(info, insn));
        let mut memory = info.info(insn).used_memory().iter();
        if memory.any(|m| is_write(m.access()))
            && let Some(at) = slot(state, insn)
        {
            self.store(state, at, insn.memory_size().size().max(1), Value::Unknown);
        }
    }
}

/// Whether all of a register is written, or its lower half, which clears the other one; or memory.
fn is_whole(insn: &Instruction, to: Part) -> bool {
    lift::register(insn, to).is_none_or(|register| register.size() >= 4)
}
