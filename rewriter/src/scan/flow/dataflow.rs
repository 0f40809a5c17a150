//! Forward constant propagation over a function's registers and stack slots.

use super::super::Module;
use super::super::cfg::Body;
use super::super::graph::{Worklist, post_order};
use super::leads::callee;
use super::lift::Part;
use super::memory::Memory;
use super::op::{Maker, Op, Source};
use super::refinement::{Learnt, Refinement};
use super::slots::Slot;
use super::step::{Exposed, Names, Step};
use super::uses::is_call;
use super::value::{State, Value};
use iced_x86::{Instruction, Mnemonic, OpKind};
use rustc_hash::FxHashMap;

/// The states of a function, by block; those within a block are computed on demand. The default knows nothing of any.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    starts: Vec<Option<State>>,
    ops: Ops,
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

/// The stack slot that a memory operand means.
pub(crate) fn slot(state: &State, insn: &Instruction) -> Option<Slot> {
    Memory::of(insn).slot(state)
}

/// The value of an operand.
pub(crate) fn operand(state: &State, insn: &Instruction, op: u32) -> Value {
    part(state, insn, Part::Operand(op))
}

/// The value of a part of an instruction.
pub(crate) fn part(state: &State, insn: &Instruction, part: Part) -> Value {
    Source::of(insn, part).value(state, &Memory::of(insn))
}

/// What the instructions of each block do.
#[derive(Debug, Default)]
struct Ops {
    /// With the instructions' numbers, ascending.
    list: Vec<(u32, Op)>,
    /// Of each block the first one, and how many there are.
    firsts: Vec<u32>,
}

impl Ops {
    fn of(module: &Module<'_>, body: &Body) -> Ops {
        let mut maker = Maker::new(module);
        let mut ops = Ops {
            list: Vec::with_capacity(body.insns.len()),
            firsts: Vec::with_capacity(body.blocks.len() + 1),
        };
        for block in &body.blocks {
            ops.firsts.push(ops.list.len() as u32);
            for i in block.insns.clone() {
                let op = maker.op(&body.insns[i]);
                ops.list.extend(op.map(|op| (i as u32, op)));
            }
        }
        ops.firsts.push(ops.list.len() as u32);
        ops
    }

    fn of_block(&self, block: usize) -> &[(u32, Op)] {
        &self.list[self.firsts[block] as usize..self.firsts[block + 1] as usize]
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
            Some(n) => module.entries.callees[n].query().is_some(),
            None => true,
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
        let ops = Ops::of(module, body);
        let divides = |(_, op): &(u32, Op)| matches!(op, Op::Divide { .. });
        let twins = match ops.list.iter().any(divides) {
            true => twins(body),
            false => FxHashMap::default(),
        };
        let mut names = twins.clone();
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
            let (starts, merged) = Flow::pass(body, &ops, &refinements, &order, &mut step);
            exposed = step.exposed;
            if let Some((first, second)) = merged {
                // One loop behind two divisions, each on its own path: their results have one name.
                for name in names.values_mut().filter(|n| **n == second) {
                    *name = first;
                }
                names.insert(second, first);
            } else {
                return Flow {
                    starts,
                    ops,
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
        ops: &Ops,
        refinements: &[Option<Refinement>],
        (order, places): &(Vec<usize>, Vec<usize>),
        step: &mut Step<'_, '_>,
    ) -> (Vec<Option<State>>, Option<(u64, u64)>) {
        let mut merged = None;
        let mut starts: Vec<Option<State>> = vec![None; body.blocks.len()];
        let mut work = Worklist::of(body.blocks.len());
        for (i, &root) in body.roots.iter().enumerate() {
            starts[root] = Some(if i == 0 {
                State::entry()
            } else {
                State::unknown()
            });
            work.insert(places[root]);
        }
        while let Some(place) = work.pop() {
            let block = order[place];
            let Some(mut state) = starts[block].clone() else {
                continue;
            };
            step.block = block;
            let refinement = refinements.get(block).copied().flatten();
            // The comparison itself changes nothing that is followed.
            let ops = ops.of_block(block);
            let (before, behind) =
                ops.split_at(ops.partition_point(|(i, _)| {
                    refinement.is_some_and(|r| (*i as usize) < r.compare)
                }));
            for (_, op) in before {
                step.run(&mut state, op);
            }
            let learnt = refinement.and_then(|r| r.learns(body, &state));
            for (_, op) in behind {
                step.run(&mut state, op);
            }
            let late = std::mem::take(&mut step.late);
            if !late.is_empty() {
                // What was put there may have been changed by others, so that it wasn't known where it was taken from there.
                state.slots.remove(&late);
                for (block, start) in starts.iter_mut().enumerate() {
                    if start
                        .as_mut()
                        .is_some_and(|start| start.slots.remove(&late))
                    {
                        work.insert(places[block]);
                    }
                }
                for block in late.iter().flat_map(|&at| step.users(at)) {
                    work.insert(places[block]);
                }
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
        let mut ops = self.ops.of_block(block).iter().peekable();
        for i in body.blocks[block].insns.clone() {
            f(i, &body.insns[i], &state);
            if let Some((_, op)) = ops.next_if(|(at, _)| *at as usize == i) {
                step.run(&mut state, op);
            }
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
        self.names.get(&division).copied().unwrap_or(division)
    }

    /// Whether a division only repeats the one before it for the remainder.
    pub(crate) fn is_twin(&self, insn: &Instruction) -> bool {
        self.twins.contains_key(&insn.ip())
    }
}
