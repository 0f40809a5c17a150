//! Forward constant propagation over a function's registers and stack slots.

use super::super::Module;
use super::super::cfg::Body;
use super::super::graph::post_order;
use super::lift::{self, Part};
use super::refinement::{Learnt, Refinement};
use super::slots::Slot;
use super::step::{Exposed, Names, Step};
use super::uses::is_call;
use super::value::{State, Value};
use crate::thunk::{returns, through};
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use ompfuse_patterns::Query;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The states of a function, by block; those within a block are computed on demand. The default knows nothing of any.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    starts: Vec<Option<State>>,
    /// Blocks with calls that may ask for a number.
    asking: Vec<bool>,
    exposed: Exposed,
    /// Division -> the one shortly before it by the same divisor, whose quotient goes with its remainder.
    twins: FxHashMap<u64, u64>,
    names: Names,
}

/// Instructions between the two divisions that unoptimised code makes of one.
const TWIN_DISTANCE: usize = 12;

/// Finds divisions by the same operand in one block: without optimisation quotient and remainder take one each.
fn twins(body: &Body) -> FxHashMap<u64, u64> {
    let mut out = FxHashMap::default();
    for block in 0..body.blocks.len() {
        let mut last: Option<(usize, &Instruction)> = None;
        for (i, insn) in body.block_insns(block).iter().enumerate() {
            match insn.mnemonic() {
                Mnemonic::Div | Mnemonic::Idiv => {
                    let first = last
                        .filter(|(at, first)| i - at <= TWIN_DISTANCE && same_operand(first, insn));
                    if let Some((_, first)) = first {
                        out.insert(insn.ip(), first.ip());
                        last = None;
                    } else {
                        last = Some((i, insn));
                    }
                }
                Mnemonic::Call => last = None,
                _ => last = last.filter(|(_, first)| !redefines(insn, first)),
            }
        }
    }
    out
}

/// Whether an instruction changes the register that a division divides by.
fn redefines(insn: &Instruction, division: &Instruction) -> bool {
    division.op0_kind() == OpKind::Register
        && insn.op_count() > 0
        && insn.op0_kind() == OpKind::Register
        && insn.op0_register().full_register() == division.op0_register().full_register()
        && !matches!(
            insn.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        )
}

fn same_operand(a: &Instruction, b: &Instruction) -> bool {
    a.code() == b.code()
        && a.op0_kind() == b.op0_kind()
        && match a.op0_kind() {
            OpKind::Register => a.op0_register() == b.op0_register(),
            _ => {
                a.memory_base() == b.memory_base()
                    && a.memory_index() == b.memory_index()
                    && a.memory_displacement64() == b.memory_displacement64()
            }
        }
}

/// The number of a general register, of any width but the second byte's.
pub(crate) fn number(register: Register) -> Option<usize> {
    let full = register.full_register();
    (full.is_gpr64() && !is_high_byte(register)).then(|| full.number())
}

fn is_high_byte(register: Register) -> bool {
    matches!(
        register,
        Register::AH | Register::BH | Register::CH | Register::DH
    )
}

/// Where a call leads, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Callee {
    /// The runtime function with this number.
    Runtime(usize),
    /// Something else, or unknown.
    Other,
}

/// Where a call or jump leads.
pub(crate) fn callee(module: &Module<'_>, insn: &Instruction, state: Option<&State>) -> Callee {
    let held = |register| match number(register).and_then(|r| Some(state?.reg(r))) {
        Some(Value::Callee(n)) => Some(n),
        Some(Value::Const(va)) => module.entries.targets.get(&va).copied(),
        _ => None,
    };
    let found = match insn.op0_kind() {
        OpKind::NearBranch64 => match module.entries.targets.get(&insn.near_branch_target()) {
            Some(&n) => Some(n),
            None => state.and_then(|state| match through(&module.image, insn) {
                Some((register, _)) => held(register),
                None if returns(&module.image, insn) => pushed(state),
                None => None,
            }),
        },
        OpKind::Memory if insn.is_ip_rel_memory_operand() => module
            .entries
            .slots
            .get(&insn.ip_rel_memory_address())
            .copied(),
        OpKind::Memory => match state.and_then(|s| read(s, insn)) {
            Some(Value::Callee(n)) => Some(n),
            Some(_) => None,
            None => state.and_then(|s| module.entries.slots.get(&reached(s, insn)?).copied()),
        },
        OpKind::Register => held(insn.op0_register()),
        _ => None,
    };
    found.map_or(Callee::Other, Callee::Runtime)
}

/// The number that a call asks the runtime for.
pub(crate) fn query(
    module: &Module<'_>,
    insn: &Instruction,
    state: Option<&State>,
) -> Option<Query> {
    match callee(module, insn, state) {
        Callee::Runtime(n) => module.entries.callees[n].query(),
        Callee::Other => None,
    }
}

/// The function of the runtime whose address lies at the end of the stack.
fn pushed(state: &State) -> Option<usize> {
    match state.slots.get(state.regs.slot(4)?)? {
        (Value::Callee(n), _) => Some(n),
        _ => None,
    }
}

/// The stack slot that a memory operand means.
pub(crate) fn slot(state: &State, insn: &Instruction) -> Option<Slot> {
    if insn.memory_index() != Register::None || insn.segment_prefix() != Register::None {
        return None;
    }
    let base = state.regs.slot(number(insn.memory_base())?)?;
    base.plus(insn.memory_displacement64().cast_signed())
}

/// The address of a memory operand, where the registers that it is made of are known.
pub(super) fn reached(state: &State, insn: &Instruction) -> Option<u64> {
    let part = |register: Register| match register {
        Register::None => Some(0),
        register => match state.reg(number(register)?) {
            Value::Const(n) => Some(n),
            _ => None,
        },
    };
    if insn.segment_prefix() != Register::None {
        return None;
    }
    let scaled = part(insn.memory_index())?.wrapping_mul(u64::from(insn.memory_index_scale()));
    let base = part(insn.memory_base())?.wrapping_add(scaled);
    Some(base.wrapping_add(insn.memory_displacement64()))
}

/// What is known of a memory operand.
fn read(state: &State, insn: &Instruction) -> Option<Value> {
    let (value, size) = state.slots.get(slot(state, insn)?)?;
    let is_loaded = value.is_loaded(insn.memory_size().size(), size);
    is_loaded.then_some(value)
}

/// The value of an operand.
pub(crate) fn operand(state: &State, insn: &Instruction, op: u32) -> Value {
    if op >= insn.op_count() {
        return Value::Unknown;
    }
    match insn.op_kind(op) {
        OpKind::Register => number(insn.op_register(op)).map_or(Value::Unknown, |r| state.reg(r)),
        OpKind::Memory => read(state, insn).unwrap_or(Value::Unknown),
        _ => lift::immediate(insn, op).map_or(Value::Unknown, Value::Const),
    }
}

/// The value of a part of an instruction.
pub(crate) fn part(state: &State, insn: &Instruction, part: Part) -> Value {
    match part {
        Part::Operand(op) => operand(state, insn, op),
        Part::Constant(value) => Value::Const(value),
        Part::Register(register) => number(register).map_or(Value::Unknown, |r| state.reg(r)),
        Part::None | Part::Address => Value::Unknown,
    }
}

/// The function of the runtime that a call leads to, with what is known of registers and stack.
pub(super) fn called(module: &Module<'_>, insn: &Instruction, state: &State) -> Option<usize> {
    match callee(module, insn, Some(state)) {
        Callee::Runtime(n) => Some(n),
        Callee::Other => None,
    }
}

/// A function's blocks, each after those that lead to it, but for what leads back; and their places among them. Compilers put code that is
/// seldom executed last: who went by addresses would follow the rest of a function once more for every piece of it.
fn order(body: &Body) -> (Vec<usize>, Vec<usize>) {
    let edge = |block: usize, n: usize| body.following(block).nth(n);
    let mut order = post_order(body.blocks.len(), &body.roots, edge);
    order.reverse();
    let mut places = vec![0; body.blocks.len()];
    for (place, &block) in order.iter().enumerate() {
        places[block] = place;
    }
    (order, places)
}

/// Of each block, whether it has a call that may ask for a number.
fn asking(module: &Module<'_>, body: &Body) -> Vec<bool> {
    let mut asking = vec![false; body.blocks.len()];
    let calls = body.leads.iter().filter(|&&i| is_call(&body.insns[i]));
    for &lead in calls {
        let asks = match callee(module, &body.insns[lead], None) {
            Callee::Runtime(n) => module.entries.callees[n].query().is_some(),
            Callee::Other => true,
        };
        if asks && let Some(block) = body.block_at(body.insns[lead].ip()) {
            asking[block] = true;
        }
    }
    asking
}

impl Flow {
    /// Propagates values through a function until nothing changes.
    pub(crate) fn compute(module: &Module<'_>, body: &Body) -> Flow {
        let mut names = Names::default();
        let mut divides = false;
        for insn in &body.insns {
            match insn.mnemonic() {
                Mnemonic::And if insn.op0_register() == Register::RSP => {
                    names.realigned.push(insn.ip());
                }
                Mnemonic::Div | Mnemonic::Idiv => divides = true,
                _ => {}
            }
        }
        let twins = match divides {
            true => twins(body),
            false => FxHashMap::default(),
        };
        names.divisions = twins.clone();
        let asking = asking(module, body);
        let refinement = |block| Refinement::of(body, block);
        let refinements: Vec<_> = match asking.contains(&true) {
            true => (0..body.blocks.len()).map(refinement).collect(),
            false => Vec::new(),
        };
        let order = order(body);
        let mut exposed = Exposed::default();
        loop {
            let mut step = Step::new(module, exposed, &names);
            let (starts, merged) = Flow::pass(body, &refinements, &order, &mut step);
            let late = step.late;
            exposed = step.exposed;
            if let Some((first, second)) = merged {
                // One loop behind two divisions, each on its own path: their results have one name.
                let divisions = &mut names.divisions;
                for name in divisions.values_mut().filter(|n| **n == second) {
                    *name = first;
                }
                divisions.insert(second, first);
            } else if !late {
                return Flow {
                    starts,
                    asking,
                    exposed,
                    twins,
                    names,
                };
            }
        }
    }

    /// The states at the blocks' beginnings; also two divisions whose results meet.
    fn pass(
        body: &Body,
        refinements: &[Option<Refinement>],
        (order, places): &(Vec<usize>, Vec<usize>),
        step: &mut Step<'_, '_>,
    ) -> (Vec<Option<State>>, Option<(u64, u64)>) {
        let mut merged = None;
        let mut starts: Vec<Option<State>> = vec![None; body.blocks.len()];
        let mut work = BTreeSet::new();
        for (i, &root) in body.roots.iter().enumerate() {
            starts[root] = Some(if i == 0 {
                State::entry()
            } else {
                State::unknown()
            });
            work.insert(places[root]);
        }
        while let Some(place) = work.pop_first() {
            let block = order[place];
            let Some(mut state) = starts[block].clone() else {
                continue;
            };
            let refinement = refinements.get(block).copied().flatten();
            let mut learnt = None;
            for i in body.blocks[block].insns.clone() {
                if let Some(refinement) = refinement.filter(|r| r.compare == i) {
                    learnt = refinement.learns(body, &state);
                }
                step.run(&mut state, &body.insns[i]);
            }
            let thread = state.thread;
            let held = match learnt {
                Some(Learnt::Register(register, _)) => state.reg(register),
                _ => Value::Unknown,
            };
            for &to in body.blocks[block]
                .succs
                .iter()
                .chain(&body.blocks[block].pads)
            {
                let equal = refinement.is_some_and(|a| a.enters == body.blocks[to].start);
                state.thread = thread;
                match learnt {
                    Some(Learnt::Thread(number)) if equal => state.thread = Some(number),
                    Some(Learnt::Register(register, value)) => {
                        state.regs.set(register, if equal { value } else { held });
                    }
                    _ => {}
                }
                let changed = match &mut starts[to] {
                    Some(old) => {
                        // Right behind the divisions: further on it would be chance.
                        let behind = |d| {
                            body.block_at(d)
                                .is_some_and(|b| body.blocks[b].succs.contains(&to))
                        };
                        merged = merged.or_else(|| {
                            if !step.divides {
                                return None;
                            }
                            let found = old.merged_divisions(&state)?;
                            (behind(found.0) && behind(found.1)).then_some(found)
                        });
                        old.meet(&state)
                    }
                    new => {
                        *new = Some(state.clone());
                        true
                    }
                };
                if changed {
                    work.insert(places[to]);
                }
            }
        }
        (starts, merged)
    }

    /// Calls `f` with every instruction of a block, its number, and the state before it.
    pub(crate) fn visit(
        &self,
        module: &Module<'_>,
        body: &Body,
        block: usize,
        mut f: impl FnMut(usize, &Instruction, &State),
    ) {
        let Some(mut state) = self.starts.get(block).cloned().flatten() else {
            return;
        };
        let mut step = Step::new(module, self.exposed.clone(), &self.names);
        step.settled = true;
        for i in body.blocks[block].insns.clone() {
            f(i, &body.insns[i], &state);
            step.run(&mut state, &body.insns[i]);
        }
    }

    /// Whether values that come from queries may be met in a block.
    pub(crate) fn is_queried(&self, block: usize) -> bool {
        let start = self.starts.get(block).and_then(Option::as_ref);
        start.is_some_and(|state| state.is_queried() || self.asking[block])
    }

    /// Whether others may know the address of a place on the stack.
    pub(crate) fn is_exposed(&self, at: Slot) -> bool {
        self.exposed.contains(&at)
    }

    /// The address that a division's results are named by.
    pub(crate) fn name(&self, division: u64) -> u64 {
        self.names
            .divisions
            .get(&division)
            .copied()
            .unwrap_or(division)
    }

    /// Whether a division only repeats the one before it for the remainder.
    pub(crate) fn is_twin(&self, insn: &Instruction) -> bool {
        self.twins.contains_key(&insn.ip())
    }
}
