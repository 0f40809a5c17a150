//! What single registers hold, looked for backwards: arguments are mostly set shortly before their calls, so that nothing has to be
//! followed through the whole function for them.
//!
//! An answer is what [`Flow`](super::dataflow::Flow) has in the same place, but that values which come from queries are unknown here, and
//! places on the stack are not told apart. There is none (`None`) where more than registers have to be known, or more has to be
//! looked at than it is worth.

use super::super::Module;
use super::super::cfg::Body;
use super::super::graph::BlockSet;
use super::super::graph::walk;
use super::leads::{self, Leads};
use super::op::{Maker, Op, Rule, Source, To};
use super::refinement::Refinement;
use super::slots::Slot;
use super::step::{Exposed, Names, Step};
use super::uses::is_call;
use super::value::{State, Value};
use rustc_hash::FxHashSet;

/// Values that are computed from others that are computed from others are looked for, no deeper.
const MAX_DEPTH: u32 = 3;
/// The number of the stack pointer.
const STACK_POINTER: usize = 4;

/// Somewhere between instructions: before this one of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub block: usize,
    pub insn: usize,
}

/// What a register is at some point.
enum Origin {
    Is(Value),
    /// What another one is at another point.
    Copied(Point, usize),
    /// What it is where the block begins.
    Before,
}

/// The values of a function's registers.
pub(crate) struct Nearby<'x, 'm, 'a> {
    module: &'m Module<'a>,
    body: &'x Body,
    maker: Maker<'m, 'a>,
    /// Blocks that control comes to.
    reached: BlockSet,
    /// Some call may ask for a number.
    asks: bool,
    names: Names,
    /// Instructions that may still be looked at.
    left: usize,
}

impl<'x, 'm, 'a> Nearby<'x, 'm, 'a> {
    pub(crate) fn of(module: &'m Module<'a>, body: &'x Body) -> Self {
        let roots = body.roots.iter().copied();
        let mut calls = body.leads.iter().map(|&i| &body.insns[i]);
        let asks = |insn| match leads::callee(module, insn, None) {
            Some(n) => module.entries.callees[n].query().is_some(),
            None => true,
        };
        Nearby {
            module,
            body,
            maker: Maker::new(module),
            reached: walk(body.blocks.len(), roots, |b| body.following(b), |_| true),
            asks: calls.any(|insn| is_call(insn) && asks(insn)),
            names: Names::default(),
            left: body.insns.len(),
        }
    }

    /// Whether control comes to a block.
    pub(crate) fn reaches(&self, block: usize) -> bool {
        self.reached.contains(&block)
    }

    /// What a register holds at a point.
    pub(crate) fn register(&mut self, at: Point, register: usize) -> Option<Value> {
        match self.reached.contains(&at.block) {
            true => self.value(at, register, 0),
            false => Some(Value::Unknown),
        }
    }

    /// The number of the runtime's function that a call or jump leads to.
    pub(crate) fn callee(&mut self, at: Point) -> Option<Option<usize>> {
        let leads = Leads::of(self.module, &self.body.insns[at.insn]);
        match self.reached.contains(&at.block) {
            true => self.leads(at, &leads, 0),
            false => Some(leads.callee(self.module, Some(&State::unknown()))),
        }
    }

    /// What holds on all ways to a point.
    fn value(&mut self, at: Point, register: usize, depth: u32) -> Option<Value> {
        if register == STACK_POINTER {
            return Some(Value::Stack(Slot::base(0)));
        }
        if depth > MAX_DEPTH {
            return None;
        }
        let mut met: Option<Value> = None;
        let mut seen = FxHashSet::default();
        let mut work = vec![(at, register)];
        while let Some((at, register)) = work.pop() {
            let value = match self.origin(at, register, depth)? {
                Origin::Is(value) => value,
                Origin::Copied(at, STACK_POINTER) => self.value(at, STACK_POINTER, depth)?,
                Origin::Copied(at, other) => {
                    work.push((at, other));
                    continue;
                }
                Origin::Before if self.body.roots.contains(&at.block) => Value::Unknown,
                Origin::Before => {
                    if seen.insert((at.block, register)) {
                        self.enter(at.block, register, &mut work)?;
                    }
                    continue;
                }
            };
            met = Some(met.map_or(value, |met| met.meet(value)));
            // What isn't the same on all ways is unknown.
            if met == Some(Value::Unknown) {
                return met;
            }
        }
        Some(met.unwrap_or(Value::Unknown))
    }

    /// Goes on at the ends of the blocks that lead to a block.
    fn enter(&self, to: usize, register: usize, work: &mut Vec<(Point, usize)>) -> Option<()> {
        let start = self.body.blocks[to].start;
        for &block in &self.body.blocks[to].preds {
            if !self.reached.contains(&block) {
                continue;
            }
            // A comparison may tell more of the register.
            if self.asks && Refinement::of(self.body, block).is_some_and(|r| r.enters == start) {
                return None;
            }
            let insn = self.body.blocks[block].insns.end;
            work.push((Point { block, insn }, register));
        }
        Some(())
    }

    /// What gives a register its value, in the same block.
    fn origin(&mut self, at: Point, register: usize, depth: u32) -> Option<Origin> {
        let body = self.body;
        for insn in (body.blocks[at.block].insns.start..at.insn).rev() {
            self.left = self.left.checked_sub(1)?;
            let Some(op) = self.maker.op(&body.insns[insn]) else {
                continue;
            };
            let at = Point { insn, ..at };
            match &op {
                op if !op.may_write(register) => continue,
                Op::Compute {
                    rule: Rule::Copy,
                    parts: [Source::Register(from), _],
                    to: To::Register(_),
                    ..
                } => return Some(Origin::Copied(at, usize::from(*from))),
                // What lies on the stack isn't followed.
                Op::Pop(_) | Op::Leave => return None,
                Op::Call {
                    leads,
                    changes,
                    at: va,
                } => {
                    let is_result = register == 0;
                    let callee = match is_result {
                        true => self.leads(at, leads, depth + 1)?,
                        false => None,
                    };
                    let value = callee.map(|n| match self.module.entries.callees[n].query() {
                        Some(_) => Value::Unknown,
                        None => Value::Result(*va),
                    });
                    if value.is_none() && changes >> register & 1 == 0 {
                        continue;
                    }
                    return Some(Origin::Is(value.unwrap_or(Value::Unknown)));
                }
                op => {
                    let mut state = self.state(at, op, depth + 1)?;
                    let mut step = Step::new(self.module, Exposed::default(), &self.names);
                    step.run(&mut state, op);
                    return Some(Origin::Is(state.reg(register)));
                }
            }
        }
        Some(Origin::Before)
    }

    /// What is known of the registers that an instruction computes with. None where it reads what may be a place on the stack.
    fn state(&mut self, at: Point, op: &Op, depth: u32) -> Option<State> {
        let mut state = State::unknown();
        let (registers, memory) = op.reads();
        for register in registers {
            let value = self.value(at, register, depth)?;
            state.regs.set(register, value);
        }
        let is_known = memory.is_none_or(|memory| memory.slot(&state).is_none());
        is_known.then_some(state)
    }

    /// The number of the runtime's function that a call or jump leads to.
    fn leads(&mut self, at: Point, leads: &Leads, depth: u32) -> Option<Option<usize>> {
        let mut state = State::unknown();
        let registers = match leads {
            Leads::Runtime(_) | Leads::Elsewhere => Default::default(),
            Leads::Register(n) => [usize::from(*n)].into_iter().collect(),
            Leads::Pushed => return None,
            Leads::Memory(memory) => memory.registers(),
        };
        for register in registers {
            let value = self.value(at, register, depth)?;
            state.regs.set(register, value);
        }
        match leads {
            Leads::Memory(memory) if memory.slot(&state).is_some() => None,
            leads => Some(leads.callee(self.module, Some(&state))),
        }
    }
}
