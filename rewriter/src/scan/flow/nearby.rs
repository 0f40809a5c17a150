//! Arguments of a call as the instructions shortly before it tell: enough for most calls, and much quicker than following
//! values through the whole function. What isn't told there is unclear, never guessed.

use super::super::Module;
use super::super::cfg::Body;
use super::super::graph::Dominators;
use super::ops::{CALLEE, CONST, Kind, MEMORY, NONE, Op, Reducer};
use super::value::Value;
use std::cell::{Cell, OnceCell, RefCell};

/// How many blocks before the call's own are looked at, as long as there is one way only.
const MAX_BLOCKS: usize = 8;

/// How many sums, and places where paths meet, are looked into one behind the other.
const MAX_DEPTH: usize = 4;
/// How many paths that meet are looked at.
const MAX_PATHS: usize = 4;

/// Registers that a callee saves: rbx, rbp, r12 ... r15.
const SAVED: u16 = 0b1111_0000_0010_1000;

/// Looks for arguments of calls in one function.
pub(crate) struct Nearby<'x, 'm, 'a> {
    body: &'x Body,
    reducer: RefCell<Reducer<'m, 'a>>,
    /// Found when they are first asked for.
    changes: OnceCell<[Change; 16]>,
    dominators: OnceCell<Dominators>,
    /// Something was asked that the instructions nearby don't tell.
    unclear: Cell<bool>,
}

/// Where a register's value comes from.
enum Source {
    /// The instruction leaves the register alone.
    Elsewhere,
    /// From this register; of its lower half only, if the flag is set.
    Register(u8, bool),
    Value(Value),
    /// The sum of others.
    Sum,
    Unclear,
}

impl<'x, 'm, 'a> Nearby<'x, 'm, 'a> {
    pub(crate) fn new(module: &'m Module<'a>, body: &'x Body) -> Self {
        Nearby {
            body,
            reducer: RefCell::new(Reducer::new(module)),
            changes: OnceCell::new(),
            dominators: OnceCell::new(),
            unclear: Cell::new(false),
        }
    }

    /// Whether an answer was wrong, as what it depends on isn't told nearby.
    pub(crate) fn is_unclear(&self) -> bool {
        self.unclear.get()
    }

    /// A register's value before an instruction, if that is a constant or the result of a call of the runtime.
    pub(crate) fn register(&self, insn: usize, block: usize, register: usize) -> Value {
        let mut reducer = self.reducer.borrow_mut();
        let found = self.look(&mut reducer, insn, block, register as u8, MAX_DEPTH);
        self.unclear.set(self.unclear.get() || found.is_none());
        found.unwrap_or(Value::Unknown)
    }

    /// A register's value before the instruction numbered `end` in a block. `depth`: how many sums, and places where paths
    /// meet, may be looked into one behind the other.
    fn look(
        &self,
        reducer: &mut Reducer<'m, 'a>,
        mut end: usize,
        mut block: usize,
        mut register: u8,
        depth: usize,
    ) -> Option<Value> {
        let mut half = false;
        for _ in 0..MAX_BLOCKS {
            for i in (self.body.blocks[block].insns.start..end).rev() {
                let Some(op) = reducer.reduce(&self.body.insns[i], i as u32) else {
                    continue;
                };
                match source(&op, register) {
                    Source::Elsewhere => {}
                    Source::Register(from, lower) => {
                        register = from;
                        half |= lower;
                    }
                    Source::Value(value) => return Some(narrowed(value, half)),
                    Source::Sum if depth > 0 => {
                        let mut part = |r| self.look(reducer, i, block, r, depth - 1);
                        let sum = sum(&op, &mut part)?;
                        return Some(narrowed(sum, half || op.half));
                    }
                    Source::Sum | Source::Unclear => return None,
                }
            }
            if self.body.roots.contains(&block) {
                // Somebody else has set it.
                return (register != 4).then_some(Value::Unknown);
            }
            match self.body.blocks[block].preds[..] {
                [before] => block = before,
                _ => return self.met(reducer, block, register, depth, half),
            }
            end = self.body.blocks[block].insns.end;
        }
        None
    }

    /// A register's value where several paths meet: at the beginning of a block.
    fn met(
        &self,
        reducer: &mut Reducer<'m, 'a>,
        block: usize,
        register: u8,
        depth: usize,
        half: bool,
    ) -> Option<Value> {
        let depth = depth.checked_sub(1)?;
        let found = match self.settled(reducer, block, register, depth) {
            Some(settled) => settled,
            None => {
                let paths = &self.body.blocks[block].preds;
                if paths.len() > MAX_PATHS || paths.contains(&block) {
                    return None;
                }
                let mut met = None;
                for &before in paths {
                    let end = self.body.blocks[before].insns.end;
                    let value = self.look(reducer, end, before, register, depth)?;
                    match *met.get_or_insert(value) == value {
                        true if value != Value::Unknown => {}
                        _ => return Some(Value::Unknown),
                    }
                }
                met?
            }
        };
        Some(narrowed(found, half))
    }

    /// The value that a register has at the beginning of a block because a single instruction sets it, which is always
    /// executed before: others only restore the caller's before the function is left.
    fn settled(
        &self,
        reducer: &mut Reducer<'m, 'a>,
        block: usize,
        register: u8,
        depth: usize,
    ) -> Option<Value> {
        let &[root] = &self.body.roots[..] else {
            return None;
        };
        if SAVED >> register & 1 == 0 {
            return None;
        }
        let changes = self.changes.get_or_init(|| self.changes(reducer));
        let Change::Once(at, by) = changes[usize::from(register)] else {
            return None;
        };
        let dominators = self.dominators.get_or_init(|| self.body.dominators());
        if by == block || by != root && !dominators.dominates(by, block) {
            return None;
        }
        self.look(reducer, at + 1, by, register, depth)
    }

    /// Where each of the registers that a callee saves changes, but for blocks that the function is left from.
    fn changes(&self, reducer: &mut Reducer<'m, 'a>) -> [Change; 16] {
        let mut changes = [Change::Never; 16];
        for (number, block) in self.body.blocks.iter().enumerate() {
            if block.succs.is_empty() && block.pads.is_empty() {
                continue;
            }
            for i in block.insns.clone() {
                let Some(op) = reducer.reduce(&self.body.insns[i], i as u32) else {
                    continue;
                };
                for register in (0..16u8).filter(|r| SAVED >> r & 1 == 1) {
                    if !matches!(source(&op, register), Source::Elsewhere) {
                        let change = &mut changes[usize::from(register)];
                        *change = match change {
                            Change::Never => Change::Once(i, number),
                            _ => Change::Often,
                        };
                    }
                }
            }
        }
        changes
    }
}

/// How often a register changes.
#[derive(Debug, Clone, Copy)]
enum Change {
    Never,
    /// By this instruction, in this block.
    Once(usize, usize),
    Often,
}

/// Of a constant the lower half, if only that is used.
fn narrowed(value: Value, half: bool) -> Value {
    match value {
        Value::Const(c) if half => Value::Const(c & 0xffff_ffff),
        value => value,
    }
}

/// The sum that an op computes, if both parts are constants; `None` where one of them isn't clear.
fn sum(op: &Op, part: &mut dyn FnMut(u8) -> Option<Value>) -> Option<Value> {
    let mut operand = |which: u8| match which {
        NONE => Some(Value::Unknown),
        CONST => Some(Value::Const(op.value)),
        register if register < NONE => part(register),
        _ => None,
    };
    let (a, b) = match op.kind {
        Kind::Lea if op.index == NONE => (operand(op.base)?, Value::Const(0)),
        Kind::Lea => (operand(op.base)?, operand(op.index)?),
        _ => (operand(op.a)?, operand(op.b)?),
    };
    Some(match (a, b) {
        (Value::Const(a), Value::Const(b)) => Value::Const(op.total(a, b)),
        _ => Value::Unknown,
    })
}

/// What an op does to a register.
fn source(op: &Op, register: u8) -> Source {
    let other = match op.mask >> register & 1 {
        0 => Source::Elsewhere,
        _ => Source::Value(Value::Unknown),
    };
    let written = op.to == register;
    match op.kind {
        Kind::Move if written => match op.a {
            NONE => Source::Value(Value::Unknown),
            CONST if op.half => Source::Value(Value::Const(op.value & 0xffff_ffff)),
            CONST => Source::Value(Value::Const(op.value)),
            CALLEE => Source::Value(Value::Callee(op.value as usize)),
            // Elsewhere than on the stack nothing is known.
            MEMORY if op.base == NONE || op.index != NONE => Source::Value(Value::Unknown),
            MEMORY => Source::Unclear,
            from => Source::Register(from, op.half),
        },
        Kind::Move | Kind::MoveNarrow | Kind::MoveHigh | Kind::Add | Kind::Sub | Kind::Choose
            if !written =>
        {
            Source::Elsewhere
        }
        // A part of the stack pointer's frame: no constant.
        Kind::Lea if written && (op.base, op.index) == (4, NONE) => Source::Value(Value::Unknown),
        Kind::Lea if !written => other,
        Kind::Lea if op.base != 4 && op.base < NONE && op.disp != 0 => Source::Sum,
        Kind::Add => Source::Sum,
        Kind::Combine if !written => Source::Elsewhere,
        // Never a constant, nor a call's result.
        Kind::Combine => Source::Value(Value::Unknown),
        Kind::Push | Kind::Realign if register != 4 => Source::Elsewhere,
        Kind::Pop if !written && register != 4 => other,
        Kind::Leave if register != 4 && register != 5 => Source::Elsewhere,
        Kind::Divide | Kind::DivideByte => match register {
            0 => Source::Value(Value::Unknown),
            2 if op.kind == Kind::Divide => Source::Value(Value::Unknown),
            _ => Source::Elsewhere,
        },
        Kind::Call if register == 0 => match op.a {
            CALLEE => Source::Value(Value::Result(op.value)),
            NONE => other,
            _ => Source::Unclear,
        },
        Kind::Call | Kind::Forget => other,
        _ => Source::Unclear,
    }
}
