//! What an [`Op`] does to the values of registers and stack slots.

use super::super::Module;
use super::ops::{CALLEE, CONST, Kind, MEMORY, NONE, Op};
use super::slots::Slot;
use super::value::{State, Value};
use ompfuse_patterns::Query;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Slots whose address is taken, so that others may change them.
pub(crate) type Exposed = Rc<FxHashSet<Slot>>;

/// Executes ops on a state.
pub(crate) struct Step<'m, 'a> {
    module: &'m Module<'a>,
    /// Grows.
    pub(crate) exposed: Exposed,
    /// Slots that were taken to be exposed beforehand, as long as nothing has exposed them.
    pub(crate) guessed: FxHashSet<Slot>,
    /// Those of them that weren't given a value.
    blocked: FxHashSet<Slot>,
    /// Nothing new is to be learnt of slots.
    pub(crate) settled: bool,
    /// Slots that held a value.
    used: FxHashSet<Slot>,
    /// A slot that held a value was exposed afterwards.
    pub(crate) late: bool,
    /// A division by the number of threads was met.
    pub(crate) divides: bool,
    names: &'m FxHashMap<u64, u64>,
    /// Divisions of two bytes by one, by name: the remainder is in ah.
    bytes: Vec<u64>,
}

/// The place that the op's memory operand means.
fn slot(state: &State, op: &Op) -> Option<Slot> {
    match op.base {
        NONE => None,
        _ if op.index != NONE => None,
        base => state.regs.slot(usize::from(base))?.plus(op.disp),
    }
}

/// An operand's value.
fn operand(state: &State, op: &Op, which: u8) -> Value {
    match which {
        NONE => Value::Unknown,
        MEMORY => slot(state, op)
            .and_then(|at| state.slots.get(at))
            .filter(|&(value, size)| value.is_loaded(usize::from(op.size), size))
            .map_or(Value::Unknown, |(value, _)| value),
        CONST => Value::Const(op.value),
        CALLEE => Value::Callee(op.value as usize),
        register => state.reg(usize::from(register)),
    }
}

/// Whether a load through this register may give something known; without one it is what the displacement leads to.
fn is_followed(state: &State, base: u8) -> bool {
    base >= NONE || state.regs.is_address(usize::from(base))
}

/// Whether arithmetic on the two operands can't give a known value, as the operands' kinds tell at once.
fn tells_nothing(state: &State, op: &Op) -> bool {
    let unknown = |which: u8| match which {
        NONE => true,
        MEMORY => op.base == NONE || !state.regs.is_address(usize::from(op.base)),
        CONST | CALLEE => false,
        register => state.regs.is_unknown(usize::from(register)),
    };
    let plain = |which: u8| which == CONST || unknown(which);
    unknown(op.a) && plain(op.b) || unknown(op.b) && plain(op.a)
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

/// The address that the op's memory operand computes.
fn address(state: &State, op: &Op) -> Value {
    let part = |r: u8| match r {
        NONE => Value::Const(0),
        r => state.reg(usize::from(r)),
    };
    match (part(op.base), part(op.index)) {
        (Value::Const(b), Value::Const(i)) => {
            let scaled = i.wrapping_mul(u64::from(op.scale));
            Value::Const(b.wrapping_add(scaled).wrapping_add_signed(op.disp))
        }
        (Value::Stack(at), Value::Const(0)) => {
            at.plus(op.disp).map_or(Value::Unknown, Value::Stack)
        }
        (b, Value::Const(0)) if op.disp == 0 && op.index == NONE => b,
        (b, i) => b.combine(i),
    }
}

/// The sum, or difference, of two operands.
fn sum(state: &State, op: &Op) -> Value {
    let (a, b) = (operand(state, op, op.a), operand(state, op, op.b));
    let offset = |c: u64| match op.kind {
        Kind::Sub => c.cast_signed().checked_neg(),
        _ => Some(c.cast_signed()),
    };
    match (a, b) {
        (Value::Stack(at), Value::Const(c)) => offset(c)
            .and_then(|c| at.plus(c))
            .map_or(Value::Unknown, Value::Stack),
        (Value::Const(x), Value::Const(y)) => Value::Const(op.total(x, y)),
        _ => a.combine(b),
    }
}

impl<'m, 'a> Step<'m, 'a> {
    pub(crate) fn new(
        module: &'m Module<'a>,
        exposed: Exposed,
        names: &'m FxHashMap<u64, u64>,
    ) -> Self {
        Step {
            module,
            exposed,
            guessed: FxHashSet::default(),
            blocked: FxHashSet::default(),
            settled: false,
            used: FxHashSet::default(),
            late: false,
            divides: false,
            names,
            bytes: Vec::new(),
        }
    }

    fn store(&mut self, state: &mut State, at: Slot, size: u16, value: Value) {
        state.slots.forget(at, u64::from(size));
        let keeps = matches!(size, 1 | 2 | 4 | 8) && value != Value::Unknown;
        if keeps && !self.exposed.contains(&at) {
            if !self.settled {
                self.used.insert(at);
            }
            state.slots.insert(at, value, size as u8);
        } else if keeps && self.guessed.contains(&at) {
            self.blocked.insert(at);
        }
    }

    /// What is exposed, without the guesses that nothing confirmed; `None` if one of these made a difference.
    pub(crate) fn confirmed(&self) -> Option<Exposed> {
        if !self.guessed.is_disjoint(&self.blocked) {
            return None;
        }
        let mut exposed = self.exposed.clone();
        if !self.guessed.is_empty() {
            Rc::make_mut(&mut exposed).retain(|at| !self.guessed.contains(at));
        }
        Some(exposed)
    }

    fn expose(&mut self, at: Slot) {
        self.guessed.remove(&at);
        if !self.exposed.contains(&at) {
            Rc::make_mut(&mut self.exposed).insert(at);
            self.late |= self.used.contains(&at);
        }
    }

    fn push(&mut self, state: &mut State, value: Value) {
        let top = state.regs.slot(4).and_then(|at| at.plus(-8));
        if let Some(at) = top {
            state.regs.set(4, Value::Stack(at));
            self.store(state, at, 8, value);
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

    /// Executes one op.
    #[inline]
    pub(super) fn run(&mut self, state: &mut State, op: &Op) {
        match op.kind {
            Kind::Move if op.to < NONE && op.a < NONE && !op.half => {
                state.regs.copy(usize::from(op.to), usize::from(op.a));
            }
            // Loads from elsewhere than the stack: most.
            Kind::Move if op.a == MEMORY && op.to < NONE && !is_followed(state, op.base) => {
                state.regs.forget(usize::from(op.to));
            }
            Kind::Move => {
                let value = match operand(state, op, op.a) {
                    Value::Unknown if op.a == MEMORY => self.loaded(state, op),
                    value => value,
                };
                self.write(state, op, value);
            }
            Kind::MoveNarrow => {
                let value = narrowed(operand(state, op, op.a));
                self.write(state, op, value);
            }
            Kind::MoveHigh => {
                let value = match state.reg(0) {
                    Value::Quotient(id) if self.bytes.contains(&id) => Value::Remainder(id),
                    _ => Value::Unknown,
                };
                self.write(state, op, value);
            }
            Kind::Lea => self.lea(state, op),
            Kind::Push => {
                let value = operand(state, op, op.a);
                self.push(state, value);
            }
            Kind::Pop => {
                let value = Self::pop(state);
                if op.to != NONE {
                    state.regs.set(usize::from(op.to), value);
                }
                state.regs.forget_all(op.mask);
            }
            Kind::Leave => {
                state.regs.copy(4, 5);
                let value = Self::pop(state);
                state.regs.set(5, value);
            }
            Kind::Realign => state.regs.set(4, Value::Stack(Slot::base(op.value as u16))),
            Kind::Divide | Kind::DivideByte => self.divide(state, op),
            Kind::Add | Kind::Sub | Kind::Combine | Kind::Choose
                if op.to < NONE && tells_nothing(state, op) =>
            {
                state.regs.forget(usize::from(op.to));
            }
            Kind::Add | Kind::Sub => {
                let value = sum(state, op);
                self.write(state, op, value);
            }
            Kind::Combine => {
                let value = operand(state, op, op.a).combine(operand(state, op, op.b));
                self.write(state, op, value);
            }
            Kind::Choose => {
                let (a, b) = (operand(state, op, op.a), operand(state, op, op.b));
                let value = match a.meet(b) {
                    // Related to a division or to the thread number if one of both is.
                    Value::Unknown => a.combine(b),
                    met => met,
                };
                self.write(state, op, value);
            }
            Kind::Call => self.call(state, op),
            Kind::Forget => {
                state.regs.forget_all(op.mask);
                if op.to == MEMORY {
                    self.write(state, op, Value::Unknown);
                }
            }
        }
    }

    /// What a slot holds whose address is computed.
    fn loaded(&self, state: &State, op: &Op) -> Value {
        match address(state, op) {
            Value::Const(at) if op.size == 8 => {
                let slots = &self.module.entries.slots;
                slots.get(&at).map_or(Value::Unknown, |&n| Value::Callee(n))
            }
            _ => Value::Unknown,
        }
    }

    /// A store: known slots change, and an unknown address is taken not to be one of them.
    fn write(&mut self, state: &mut State, op: &Op, value: Value) {
        match (op.to, value) {
            (MEMORY, value) => {
                if let Some(at) = slot(state, op) {
                    self.store(state, at, op.size.max(1), value);
                }
            }
            (to, Value::Const(c)) if op.half => {
                let low = Value::Const(c & 0xffff_ffff);
                state.regs.set(usize::from(to), low);
            }
            (to, value) => state.regs.set(usize::from(to), value),
        }
    }

    fn lea(&mut self, state: &mut State, op: &Op) {
        let value = address(state, op);
        if let (Value::Stack(at), MEMORY) = (value, op.b) {
            self.expose(at);
            state.slots.forget(at, 8);
        }
        if op.to != NONE {
            self.write(state, op, value);
        }
        state.regs.forget_all(op.mask);
    }

    fn divide(&mut self, state: &mut State, op: &Op) {
        let by_threads = matches!(
            operand(state, op, op.a),
            Value::Query(Query::NumThreads | Query::NumTeams)
        );
        self.divides |= by_threads;
        state.regs.forget(0);
        if op.kind == Kind::Divide {
            state.regs.forget(2);
        }
        if by_threads {
            let id = self.names.get(&op.value).copied().unwrap_or(op.value);
            state.regs.set(0, Value::Quotient(id));
            match op.kind {
                Kind::Divide => state.regs.set(2, Value::Remainder(id)),
                _ => self.bytes.push(id),
            }
        }
    }

    fn call(&mut self, state: &mut State, op: &Op) {
        let entries = &self.module.entries;
        let callee = match op.a {
            CALLEE => Some(op.disp as usize),
            a => match operand(state, op, a) {
                Value::Unknown if a == MEMORY => match self.loaded(state, op) {
                    Value::Callee(n) => Some(n),
                    _ => None,
                },
                Value::Callee(n) => Some(n),
                Value::Const(va) if a != MEMORY => entries.targets.get(&va).copied(),
                _ => None,
            },
        };
        // Even the result's register may keep its value: gcc knows functions that have none.
        state.regs.forget_all(op.mask);
        if let Some(n) = callee {
            let result = match entries.callees[n].query() {
                Some(query) => Value::Query(query),
                None => Value::Result(op.value),
            };
            state.regs.set(0, result);
        }
    }
}
