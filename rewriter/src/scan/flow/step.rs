//! What an instruction does to the values of registers and stack slots.

use super::super::Module;
use super::memory::Memory;
use super::op::{Op, Rule, Source, To};
use super::slots::Slot;
use super::value::{State, Value};
use ompfuse_patterns::Query;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;
use std::rc::Rc;

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 ... r11.
pub(in crate::scan) const VOLATILE: u16 = 0b1111_1100_0111;

/// Slots whose address is taken, so that others may change them.
pub(crate) type Exposed = Rc<FxHashSet<Slot>>;

/// By which names divisions' results are told apart: of twins, and divisions with the code behind them in common, another one's address.
pub(crate) type Names = FxHashMap<u64, u64>;

/// Executes instructions on a state.
pub(crate) struct Step<'m, 'a> {
    module: &'m Module<'a>,
    divisions: &'m Names,
    /// Grows.
    pub(crate) exposed: Exposed,
    /// Nothing new is to be learnt of slots.
    pub(crate) settled: bool,
    /// The block that is executed.
    pub(super) block: usize,
    /// Slots that held a value, and the blocks that put it there.
    used: FxHashMap<Slot, SmallVec<[u32; 2]>>,
    /// Slots that held a value and were exposed afterwards.
    pub(super) late: Vec<Slot>,
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

/// The sum of two values, or their difference.
fn sum(less: bool, a: Value, b: Value) -> Value {
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

impl<'m, 'a> Step<'m, 'a> {
    pub(crate) fn new(module: &'m Module<'a>, exposed: Exposed, divisions: &'m Names) -> Self {
        Step {
            module,
            divisions,
            exposed,
            settled: false,
            block: 0,
            used: FxHashMap::default(),
            late: Vec::new(),
            divides: false,
            bytes: Vec::new(),
        }
    }

    fn store(&mut self, state: &mut State, at: Slot, size: usize, value: Value) {
        state.slots.forget(at, size as u64);
        let keeps = matches!(size, 1 | 2 | 4 | 8) && value != Value::Unknown;
        if keeps && !self.exposed.contains(&at) {
            if !self.settled {
                let (used, block) = (self.used.entry(at).or_default(), self.block as u32);
                if used.last() != Some(&block) {
                    used.push(block);
                }
            }
            state.slots.insert(at, value, size as u8);
        }
    }

    fn expose(&mut self, at: Slot) {
        if !self.exposed.contains(&at) {
            Rc::make_mut(&mut self.exposed).insert(at);
            if self.used.contains_key(&at) {
                self.late.push(at);
            }
        }
    }

    /// The blocks that have put a value into a slot.
    pub(super) fn users(&self, at: Slot) -> impl Iterator<Item = usize> {
        let all = self.used.get(&at).into_iter().flatten();
        all.map(|&block| block as usize)
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
    pub(super) fn run(&mut self, state: &mut State, op: &Op) {
        match op {
            Op::Compute {
                rule,
                parts: [a, b],
                to,
                memory,
            } => {
                let value = self.compute(*rule, [*a, *b], state, memory);
                self.write(state, *to, memory, value);
            }
            Op::Address { to, own, memory } => {
                let value = memory.address(state);
                // Whoever has the address may write there, but through the stack's own registers the function itself does.
                if let (Value::Stack(at), false) = (value, *own) {
                    self.expose(at);
                    state.slots.forget(at, 8);
                }
                self.write(state, *to, memory, value);
            }
            Op::Forget { registers, memory } => {
                state.regs.forget_all(*registers);
                self.write(state, To::Memory, memory, Value::Unknown);
            }
            Op::Push { value, memory } => {
                let value = value.value(state, memory);
                if let Some(at) = state.regs.slot(4).and_then(|at| at.plus(-8)) {
                    state.regs.set(4, Value::Stack(at));
                    self.store(state, at, 8, value);
                }
            }
            Op::Pop(to) => {
                let value = Self::pop(state);
                self.write(state, *to, &Memory::elsewhere(), value);
            }
            Op::Leave => {
                state.regs.set(4, state.reg(5));
                let value = Self::pop(state);
                state.regs.set(5, value);
            }
            Op::Divide {
                by,
                of_bytes,
                memory,
                at,
            } => {
                let by = by.value(state, memory);
                self.divide(state, by, *of_bytes, *at);
            }
            Op::Realign(value) => state.regs.set(4, *value),
            Op::Call { leads, changes, at } => {
                let callee = leads.callee(self.module, Some(state));
                // Even the result's register may keep its value: gcc knows functions that have none.
                state.regs.forget_all(*changes);
                if let Some(n) = callee {
                    let query = self.module.entries.callees[n].query();
                    state
                        .regs
                        .set(0, query.map_or(Value::Result(*at), Value::Query));
                }
            }
        }
    }

    fn compute(&self, rule: Rule, [a, b]: [Source; 2], state: &State, memory: &Memory) -> Value {
        let a = a.value(state, memory);
        let b = || b.value(state, memory);
        match rule {
            Rule::Copy => a,
            Rule::Load if a == Value::Unknown => {
                let slots = &self.module.entries.slots;
                let callee = memory.reached(state).and_then(|at| slots.get(&at));
                callee.map_or(Value::Unknown, |&n| Value::Callee(n))
            }
            Rule::Load => a,
            Rule::Narrow => narrowed(a),
            Rule::HighByte => match state.reg(0) {
                Value::Quotient(id) if self.bytes.contains(&id) => Value::Remainder(id),
                _ => Value::Unknown,
            },
            Rule::Add => sum(false, a, b()),
            Rule::Subtract => sum(true, a, b()),
            Rule::Choose => match a.meet(b()) {
                Value::Unknown => a.combine(b()),
                met => met,
            },
            Rule::Combine => a.combine(b()),
        }
    }

    /// Writes a register or memory: known slots change, and an unknown address is taken not to be one of them.
    #[inline]
    fn write(&mut self, state: &mut State, to: To, memory: &Memory, value: Value) {
        let (register, value) = match (to, value) {
            (To::Nowhere, _) => return,
            (To::Memory, value) => {
                if let Some(at) = memory.slot(state) {
                    self.store(state, at, usize::from(memory.size).max(1), value);
                }
                return;
            }
            (To::Half(n), Value::Const(c)) => (n, Value::Const(c & 0xffff_ffff)),
            (To::Part(n), _) => (n, Value::Unknown),
            (To::Register(n) | To::Half(n), value) => (n, value),
        };
        state.regs.set(usize::from(register), value);
    }

    fn divide(&mut self, state: &mut State, by: Value, of_bytes: bool, at: u64) {
        let by_threads = matches!(by, Value::Query(Query::NumThreads | Query::NumTeams));
        self.divides |= by_threads;
        state.regs.set(0, Value::Unknown);
        if !of_bytes {
            state.regs.set(2, Value::Unknown);
        }
        if by_threads {
            let id = self.divisions.get(&at).copied().unwrap_or(at);
            state.regs.set(0, Value::Quotient(id));
            match of_bytes {
                true => self.bytes.push(id),
                false => state.regs.set(2, Value::Remainder(id)),
            }
        }
    }
}
