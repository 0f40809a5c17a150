//! What single registers hold, looked for backwards: arguments are mostly set shortly before their calls, so that nothing has to be
//! followed through the whole function for them.
//!
//! An answer is what [`Flow`](super::dataflow::Flow) has in the same place, but that values which come from queries are unknown here, and
//! places on the stack are not told apart. There is none where more than registers have to be known, or more has to be looked at than it
//! is worth.
//!
//! Registers at the beginnings of blocks are what is computed, from one another, until nothing changes; only those that somebody asks
//! for, and what these come from.

use super::super::Module;
use super::super::cfg::Body;
use super::super::graph::{BlockSet, walk};
use super::leads::{self, Leads};
use super::op::{Maker, Op, Rule, Source, To};
use super::refinement::Refinement;
use super::slots::Slot;
use super::step::{Exposed, Names, Step};
use super::uses::is_call;
use super::value::{State, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The number of the stack pointer.
const STACK_POINTER: usize = 4;

/// Values in a block that are computed from others in it, and so on, are not looked for any deeper.
const MAX_DEPTH: u32 = 32;
/// So many instructions of a function may be looked at, and twice as many as it has.
const LEAST: usize = 64;

/// Somewhere between instructions: before this one of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub block: usize,
    pub insn: usize,
}

/// What is known of a register. Where ways meet, the later of these is what holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Held {
    /// No way was looked at yet.
    Unseen,
    /// Something other than [`Value::Unknown`].
    Value(Value),
    /// More than registers would have to be known.
    Beyond,
    Unknown,
}

impl Held {
    fn of(value: Value) -> Held {
        match value {
            Value::Unknown => Held::Unknown,
            value => Held::Value(value),
        }
    }

    fn meet(self, other: Held) -> Held {
        match (self, other) {
            (Held::Unknown, _) | (_, Held::Unknown) => Held::Unknown,
            (Held::Beyond, _) | (_, Held::Beyond) => Held::Beyond,
            (Held::Unseen, held) | (held, Held::Unseen) => held,
            (Held::Value(a), Held::Value(b)) => Held::of(a.meet(b)),
        }
    }

    /// The value, where it is known what that is.
    fn value(self) -> Option<Value> {
        match self {
            Held::Unseen | Held::Beyond => None,
            Held::Value(value) => Some(value),
            Held::Unknown => Some(Value::Unknown),
        }
    }
}

/// A register at the beginning of a block.
type Node = (usize, usize);

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
    nodes: FxHashMap<Node, Held>,
    /// What is computed from each.
    users: FxHashMap<Node, SmallVec<[Node; 2]>>,
    /// Those to compute, once more perhaps.
    work: Vec<Node>,
    /// Instructions that may still be looked at.
    left: usize,
    /// So many instructions wait for what others write.
    depth: u32,
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
            nodes: FxHashMap::default(),
            users: FxHashMap::default(),
            work: Vec::new(),
            left: 2 * body.insns.len() + LEAST,
            depth: 0,
        }
    }

    /// Whether control comes to a block.
    pub(crate) fn reaches(&self, block: usize) -> bool {
        self.reached.contains(&block)
    }

    /// What a register holds at a point.
    pub(crate) fn register(&mut self, at: Point, register: usize) -> Option<Value> {
        if !self.reaches(at.block) {
            return Some(Value::Unknown);
        }
        self.settled(|nearby| nearby.held(at, register, None))?
            .value()
    }

    /// The number of the runtime's function that a call or jump leads to.
    pub(crate) fn callee(&mut self, at: Point) -> Option<Option<usize>> {
        let leads = Leads::of(self.module, &self.body.insns[at.insn]);
        match self.reaches(at.block) {
            true => self.settled(|nearby| nearby.leads(at, &leads, None))?.ok(),
            false => Some(leads.callee(self.module, Some(&State::unknown()))),
        }
    }

    /// Asks until nothing changes that the answer comes from; none if that takes too long.
    fn settled<T>(&mut self, mut ask: impl FnMut(&mut Self) -> T) -> Option<T> {
        let mut answer = ask(self);
        while !self.work.is_empty() {
            while let Some(node) = self.work.pop() {
                let held = self.entering(node);
                let old = self.nodes.insert(node, held);
                if old != Some(held) {
                    self.work
                        .extend(self.users.get(&node).into_iter().flatten());
                }
            }
            answer = ask(self);
        }
        (self.left > 0).then_some(answer)
    }

    /// What a register is where control comes to a block, and never more than that was found to be before.
    fn entering(&mut self, node: Node) -> Held {
        let (to, register) = node;
        let mut met = self.nodes.get(&node).copied().unwrap_or(Held::Unseen);
        if self.body.roots.contains(&to) {
            return Held::Unknown;
        }
        let body = self.body;
        for &block in &body.blocks[to].preds {
            if met == Held::Unknown {
                break;
            }
            if self.reaches(block) {
                let insn = body.blocks[block].insns.end;
                let held = match self.may_tell(block, node) {
                    true => Held::Beyond,
                    false => self.held(Point { block, insn }, register, Some(node)),
                };
                met = met.meet(held);
            }
        }
        met
    }

    /// Whether a comparison at a block's end may tell more of a register.
    fn may_tell(&self, block: usize, (to, register): Node) -> bool {
        let start = self.body.blocks[to].start;
        let tells = |r: Refinement| r.enters == start && r.may_tell(self.body, register);
        self.asks && Refinement::of(self.body, block).is_some_and(tells)
    }

    /// What a register holds at a point. `user`: what that is asked for.
    fn held(&mut self, at: Point, register: usize, user: Option<Node>) -> Held {
        if register == STACK_POINTER {
            return Held::Value(Value::Stack(Slot::base(0)));
        }
        if self.depth > MAX_DEPTH {
            return Held::Beyond;
        }
        let body = self.body;
        for insn in (body.blocks[at.block].insns.start..at.insn).rev() {
            self.left = self.left.saturating_sub(1);
            if self.left == 0 {
                return Held::Unknown;
            }
            let op = self.maker.op(&body.insns[insn]);
            let Some(op) = op.filter(|op| op.may_write(register)) else {
                continue;
            };
            self.depth += 1;
            let held = self.written(Point { insn, ..at }, &op, register, user);
            self.depth -= 1;
            if let Some(held) = held {
                return held;
            }
        }
        let node = (at.block, register);
        if let Some(user) = user {
            let users = self.users.entry(node).or_default();
            if !users.contains(&user) {
                users.push(user);
            }
        }
        *self.nodes.entry(node).or_insert_with(|| {
            self.work.push(node);
            Held::Unseen
        })
    }

    /// What an instruction writes to a register, if it does.
    fn written(&mut self, at: Point, op: &Op, register: usize, user: Option<Node>) -> Option<Held> {
        match op {
            Op::Compute {
                rule: Rule::Copy,
                parts: [Source::Register(from), _],
                to: To::Register(_),
                ..
            } => Some(self.held(at, usize::from(*from), user)),
            // What lies on the stack isn't followed.
            Op::Pop(_) | Op::Leave => Some(Held::Beyond),
            Op::Call {
                leads,
                changes,
                at: va,
            } => {
                let callee = match register {
                    0 => self.leads(at, leads, user),
                    _ => Ok(None),
                };
                match callee {
                    Err(held) => Some(held),
                    Ok(None) if changes >> register & 1 == 0 => None,
                    Ok(None) => Some(Held::Unknown),
                    Ok(Some(n)) => Some(match self.module.entries.callees[n].query() {
                        Some(_) => Held::Unknown,
                        None => Held::Value(Value::Result(*va)),
                    }),
                }
            }
            Op::Compute {
                rule: Rule::Combine,
                ..
            } => Some(Held::Unknown),
            op => Some(self.computed(at, op, register, user)),
        }
    }

    /// What an instruction computes from other registers.
    fn computed(&mut self, at: Point, op: &Op, register: usize, user: Option<Node>) -> Held {
        let (registers, memory) = op.reads();
        let mut state = match self.state(at, &registers, user) {
            Ok(state) => state,
            // From what is unknown only unknown values are computed, and nothing on the stack is read there.
            Err(held) => return held,
        };
        if memory.is_some_and(|memory| memory.slot(&state).is_some()) {
            return Held::Beyond;
        }
        let mut step = Step::new(self.module, Exposed::default(), &self.names);
        step.run(&mut state, op);
        Held::of(state.reg(register))
    }

    /// What some registers hold, where all of them have values; else what the worst of them is.
    fn state(&mut self, at: Point, registers: &[usize], user: Option<Node>) -> Result<State, Held> {
        let mut state = State::unknown();
        let mut without = None;
        for &n in registers {
            match (self.held(at, n, user), without) {
                (Held::Value(value), _) => state.regs.set(n, value),
                (Held::Unknown, _) => return Err(Held::Unknown),
                (Held::Unseen, Some(Held::Beyond)) => {}
                (held, _) => without = Some(held),
            }
        }
        without.map_or(Ok(state), Err)
    }

    /// The number of the runtime's function that a call or jump leads to, or why that isn't known.
    fn leads(
        &mut self,
        at: Point,
        leads: &Leads,
        user: Option<Node>,
    ) -> Result<Option<usize>, Held> {
        let registers = match leads {
            Leads::Runtime(_) | Leads::Elsewhere => SmallVec::new(),
            Leads::Register(n) => SmallVec::from_slice(&[usize::from(*n)]),
            Leads::Pushed => return Err(Held::Beyond),
            Leads::Memory(memory) => memory.registers(),
        };
        let state = match self.state(at, &registers, user) {
            Ok(state) => state,
            Err(Held::Unknown) => State::unknown(),
            Err(held) => return Err(held),
        };
        match leads {
            Leads::Memory(memory) if memory.slot(&state).is_some() => Err(Held::Beyond),
            leads => Ok(leads.callee(self.module, Some(&state))),
        }
    }
}
