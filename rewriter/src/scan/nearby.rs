//! Arguments of a call as the instructions shortly before it tell: enough for most calls, and much quicker than following
//! values through the whole function. What isn't told there is unclear, never guessed.

use super::Module;
use super::cfg::Body;
use super::ops::{CALLEE, CONST, Kind, MEMORY, NONE, Op, Reducer};
use super::value::Value;
use std::cell::{Cell, RefCell};

/// How many blocks before the call's own are looked at, as long as there is one way only.
const MAX_BLOCKS: usize = 8;

/// Looks for arguments of calls in one function.
pub(crate) struct Nearby<'x, 'm, 'a> {
    body: &'x Body,
    reducer: RefCell<Reducer<'m, 'a>>,
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
    Unclear,
}

impl<'x, 'm, 'a> Nearby<'x, 'm, 'a> {
    pub(crate) fn new(module: &'m Module<'a>, body: &'x Body) -> Self {
        Nearby {
            body,
            reducer: RefCell::new(Reducer::new(module)),
            unclear: Cell::new(false),
        }
    }

    /// Whether an answer was wrong, as what it depends on isn't told nearby.
    pub(crate) fn is_unclear(&self) -> bool {
        self.unclear.get()
    }

    /// A register's value before an instruction, if that is a constant or the result of a call of the runtime.
    pub(crate) fn register(&self, insn: usize, block: usize, register: usize) -> Value {
        let found = self.look(insn, block, register as u8);
        self.unclear.set(self.unclear.get() || found.is_none());
        found.unwrap_or(Value::Unknown)
    }

    fn look(&self, insn: usize, block: usize, mut register: u8) -> Option<Value> {
        let mut reducer = self.reducer.borrow_mut();
        let (mut end, mut block, mut half) = (insn, block, false);
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
                    Source::Value(Value::Const(c)) if half => {
                        return Some(Value::Const(c & 0xffff_ffff));
                    }
                    Source::Value(value) => return Some(value),
                    Source::Unclear => return None,
                }
            }
            if self.body.roots.contains(&block) {
                // Somebody else has set it.
                return (register != 4).then_some(Value::Unknown);
            }
            let &[before] = &self.body.blocks[block].preds[..] else {
                return None;
            };
            block = before;
            end = self.body.blocks[block].insns.end;
        }
        None
    }
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
            MEMORY if op.base == NONE => Source::Value(Value::Unknown),
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
