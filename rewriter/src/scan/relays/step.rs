//! What one instruction does to the addresses that are followed.

use super::MOST_READ;
use super::places::{ELSEWHERE, Origins, Places, Spilled};
use super::track::{Made, Tracks};
use crate::model::{LinkVa, Read};
use crate::scan::Module;
use crate::scan::calls;
use crate::scan::cfg::Body;
use crate::scan::flow::dataflow::{Flow, slot};
use crate::scan::flow::leads::{callee, changed};
use crate::scan::flow::slots::Slot;
use crate::scan::flow::uses::is_write;
use crate::scan::flow::value::{State, Value, number};
use crate::thunk::through;
use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use ompfuse_format::abi::Probe;
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// Registers of arguments, and the static chain.
const ARGUMENTS: [usize; 7] = [7, 6, 2, 1, 8, 9, 10];

/// One instruction's effect.
pub(super) struct Step<'s, 'a> {
    pub(super) module: &'s Module<'a>,
    pub(super) body: &'s Body,
    pub(super) flow: &'s Flow,
    pub(super) tracks: &'s mut Tracks,
    pub(super) info: &'s mut InstructionInfoFactory,
    /// Places on the stack that the function writes.
    pub(super) written: &'s FxHashSet<Slot>,
    /// What is known before it.
    pub(super) state: &'s State,
}

impl Step<'_, '_> {
    /// Executes it.
    pub(super) fn run(&mut self, places: &mut Places, insn: &Instruction) {
        let thunk = through(&self.module.image, insn);
        match insn.flow_control() {
            _ if thunk.is_some_and(|(_, jumps)| jumps) => return self.jump(places, insn),
            FlowControl::Call | FlowControl::IndirectCall => return self.call(places, insn),
            FlowControl::IndirectBranch => return self.jump(places, insn),
            FlowControl::Return => {
                self.tracks.escape(&places.regs[0]);
                self.tracks.escape(&places.regs[2]);
                return;
            }
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch => {
                if self.body.insn_at(insn.near_branch_target()).is_none() {
                    self.hand_over(places, insn, None);
                }
                return;
            }
            _ => {}
        }
        if let Some(n) = self.tracks.load(self.module, insn)
            && let Some(r) = number(insn.op0_register())
        {
            places.regs[r] = Origins::from([n]);
            return;
        }
        if !self.passes_on(places, insn) {
            self.other(places, insn);
        }
    }

    /// Instructions that leave the address as it is, or add to it.
    fn passes_on(&mut self, places: &mut Places, insn: &Instruction) -> bool {
        let register = |op: u32| {
            let is = insn.op_count() > op && insn.op_kind(op) == OpKind::Register;
            let whole = is && insn.op_register(op).is_gpr64();
            whole.then(|| insn.op_register(op).number())
        };
        let memory = |op: u32| {
            let is = insn.op_count() > op && insn.op_kind(op) == OpKind::Memory;
            let whole = is && insn.memory_size().size() == 8;
            whole.then(|| slot(self.state, insn)).flatten()
        };
        match insn.mnemonic() {
            Mnemonic::Mov if self.distance(places, insn).is_some() => {
                let to = insn.op0_register().number();
                places.regs[to] = self.read_table(places, insn).unwrap_or_default();
            }
            Mnemonic::Mov => match (register(0), register(1), memory(0), memory(1)) {
                (Some(to), Some(from), ..) => places.regs[to] = places.regs[from].clone(),
                (Some(to), _, _, Some(from)) => places.regs[to] = self.read(places, from),
                (_, Some(from), Some(to), _) => {
                    let origins = places.regs[from].clone();
                    self.write(places, to, origins);
                }
                _ => return false,
            },
            Mnemonic::Push => {
                let below = self.state.regs.slot(4).and_then(|at| at.plus(-8));
                let (Some(from), Some(below)) = (register(0), below) else {
                    return false;
                };
                let origins = places.regs[from].clone();
                self.write(places, below, origins);
            }
            Mnemonic::Pop => {
                let (Some(to), Some(top)) = (register(0), self.state.regs.slot(4)) else {
                    return false;
                };
                places.regs[to] = self.read(places, top);
            }
            Mnemonic::Add => {
                let (Some(to), Some(from)) = (register(0), register(1)) else {
                    return false;
                };
                if to == from {
                    return false;
                }
                self.tracks.escape(&places.regs[from].clone());
                self.sum(places, to, to);
            }
            Mnemonic::Lea => {
                let Some(to) = register(0) else {
                    return false;
                };
                let part = |r: Register| r.is_gpr64().then(|| r.number());
                let (base, index) = (part(insn.memory_base()), part(insn.memory_index()));
                if insn.memory_base().is_gpr32() || insn.memory_index().is_gpr32() {
                    return false;
                }
                let has = |r: Option<usize>| r.filter(|&r| !places.regs[r].is_empty());
                match (has(base), has(index)) {
                    (Some(base), index) => {
                        if let Some(index) = index {
                            self.tracks.escape(&places.regs[index].clone());
                        }
                        self.sum(places, base, to);
                    }
                    (None, Some(index)) if insn.memory_index_scale() == 1 => {
                        self.sum(places, index, to);
                    }
                    (None, Some(_)) => return false,
                    (None, None) => places.regs[to] = Origins::new(),
                }
            }
            _ => return false,
        }
        true
    }

    /// Something is added to what is in `from`; the result is in `to`.
    fn sum(&mut self, places: &mut Places, from: usize, to: usize) {
        let origins = places.regs[from].clone();
        places.regs[to] = if self.tracks.are_numbers(&origins) {
            origins
        } else {
            self.tracks.escape(&origins);
            Origins::new()
        };
    }

    /// The register that holds the distance of a slot from what the other one holds, where an instruction takes what is in
    /// that slot; and the slot.
    fn distance(&self, places: &Places, insn: &Instruction) -> Option<(usize, u64)> {
        let is_whole = insn.op0_kind() == OpKind::Register && insn.op0_register().is_gpr64();
        let takes = match insn.code() {
            Code::Mov_r64_rm64 => is_whole && insn.op1_kind() == OpKind::Memory,
            Code::Call_rm64 | Code::Jmp_rm64 => insn.op0_kind() == OpKind::Memory,
            _ => false,
        };
        let (base, index) = (insn.memory_base(), insn.memory_index());
        let plain = insn.segment_prefix() == Register::None
            && insn.memory_index_scale() == 1
            && insn.memory_displacement64() == 0
            && insn.len() as u64 <= MOST_READ;
        if !takes || !plain || !base.is_gpr64() || !index.is_gpr64() || base == index {
            return None;
        }
        let constant = |r: Register| match self.state.reg(r.number()) {
            Value::Const(n) => Some(n),
            _ => None,
        };
        let slot = constant(base)?.wrapping_add(constant(index)?);
        if !self.module.entries.slots.contains_key(&slot) {
            return None;
        }
        let mut distances = [index, base].into_iter().filter(|&r| {
            let origins = &places.regs[r.number()];
            let is_it = |&n: &usize| {
                let made = self.tracks.loads.get(n).map(|l| l.made);
                made == constant(r).map(Made::Number)
            };
            !origins.is_empty() && origins.iter().all(is_it)
        });
        let found = distances.next()?;
        // Of two numbers nobody knows which one others use.
        distances.next().is_none().then_some((found.number(), slot))
    }

    /// Reads a slot by its distance from something known: what the distance comes from, then makes the address.
    fn read_table(&mut self, places: &Places, insn: &Instruction) -> Option<Origins> {
        let (register, slot) = self.distance(places, insn)?;
        let other = [insn.memory_base(), insn.memory_index()]
            .into_iter()
            .map(Register::number)
            .find(|&r| r != register)?;
        self.tracks.escape(&places.regs[other]);
        let origins = places.regs[register].clone();
        let read = Read {
            at: LinkVa(insn.ip()),
            register: register as u8,
        };
        self.tracks.read(&origins, slot, read);
        Some(origins)
    }

    /// Reads 8 bytes of the stack.
    fn read(&mut self, places: &Places, at: Slot) -> Origins {
        for other in places.overlapping(at, 8) {
            if other != at {
                self.tracks.escape(&places.slots[&other].origins);
            }
        }
        let Some(spilled) = places.slots.get(&at) else {
            return Origins::new();
        };
        let kept = spilled.passed.iter().map(|&call| (call, at));
        self.tracks.kept.extend(kept);
        spilled.origins.clone()
    }

    /// Writes 8 bytes of the stack.
    fn write(&mut self, places: &mut Places, at: Slot, origins: Origins) {
        self.overwrite(places, at, 8);
        if at.is_callers() || self.flow.is_exposed(at) {
            self.tracks.escape(&origins);
        } else if !origins.is_empty() {
            let passed = BTreeSet::new();
            places.slots.insert(at, Spilled { origins, passed });
        }
    }

    /// Forgets what lies in these bytes. What is left of an address that is written in part may be used.
    fn overwrite(&mut self, places: &mut Places, at: Slot, size: i64) {
        for other in places.overlapping(at, size) {
            if let Some(spilled) = places.slots.remove(&other)
                && (other < at || other.plus(8) > at.plus(size))
            {
                self.tracks.escape(&spilled.origins);
            }
        }
    }

    /// Any other instruction: what it reads is used.
    fn other(&mut self, places: &mut Places, insn: &Instruction) {
        let info = self.info.info(insn);
        let mut written = Vec::new();
        for used in info.used_registers() {
            let full = used.register().full_register();
            if !full.is_gpr64() {
                continue;
            }
            let r = full.number();
            let narrow = used.register().size() < 4;
            if reads(used.access()) || narrow {
                self.tracks.escape(&places.regs[r]);
            }
            if is_write(used.access()) {
                written.push(r);
            }
        }
        // Everything that isn't on the stack can't hold it; what is there is read in a known place or not at all.
        let touches = info.used_memory().iter().map(|m| m.access());
        let touches: Vec<OpAccess> = touches.collect();
        if let Some(at) = slot(self.state, insn) {
            let size = i64::try_from(insn.memory_size().size().max(1)).unwrap_or(64);
            if touches.iter().any(|&a| reads(a)) {
                for other in places.overlapping(at, size) {
                    self.tracks.escape(&places.slots[&other].origins);
                }
            }
            if touches.iter().any(|&a| is_write(a)) {
                self.overwrite(places, at, size);
            }
        }
        for r in written {
            places.regs[r] = Origins::new();
        }
    }

    fn call(&mut self, places: &mut Places, insn: &Instruction) {
        self.hand_over(places, insn, Some(false));
        let changed = changed(self.module, insn);
        for r in (0..16).filter(|r| changed & 1 << r != 0) {
            places.regs[r] = Origins::new();
        }
    }

    /// A jump through a register or memory: to another function, or to a jump table's target.
    fn jump(&mut self, places: &mut Places, insn: &Instruction) {
        let inside = self
            .body
            .block_at(insn.ip())
            .is_some_and(|b| !self.body.blocks[b].succs.is_empty());
        if inside {
            if let Some(r) = self.called_register(insn) {
                self.tracks.escape(&places.regs[r]);
            }
            return self.other(places, insn);
        }
        self.hand_over(places, insn, Some(true));
    }

    /// Control goes to another function. `through`: by way of a register or memory, and whether it doesn't come back.
    fn hand_over(&mut self, places: &mut Places, insn: &Instruction, through: Option<bool>) {
        let own = through.and_then(|_| self.called_register(insn));
        let is_direct = own.is_none() && insn.op0_kind() == OpKind::NearBranch64;
        if let Some(is_tail) = through.filter(|_| !is_direct) {
            let origins = match (own, insn.op0_kind()) {
                (Some(r), _) => places.regs[r].clone(),
                (None, OpKind::Memory) if self.distance(places, insn).is_some() => {
                    self.read_table(places, insn).unwrap_or_default()
                }
                (None, OpKind::Memory) => {
                    for r in [insn.memory_base(), insn.memory_index()] {
                        if let Some(r) = number(r) {
                            self.tracks.escape(&places.regs[r]);
                        }
                    }
                    match slot(self.state, insn) {
                        Some(at) => self.read(places, at),
                        None => Origins::new(),
                    }
                }
                _ => Origins::new(),
            };
            self.called(insn, origins, is_tail);
        }
        let taken = self.arguments(insn);
        for &r in ARGUMENTS.iter().take(taken) {
            self.tracks.escape(&places.regs[r]);
        }
        if taken > 6 && self.may_pass_on_stack() {
            for (&at, spilled) in &mut places.slots {
                spilled.passed.insert(insn.ip());
                let passed = self.tracks.passed.entry((insn.ip(), at)).or_default();
                passed.extend(&spilled.origins);
            }
        }
    }

    /// Whether there may be arguments on the stack: the first one lies where the stack pointer points.
    fn may_pass_on_stack(&self) -> bool {
        let first = self.state.regs.slot(4);
        first.is_none_or(|first| self.written.contains(&first) || self.flow.is_exposed(first))
    }

    /// How many integer arguments a callee takes: more than six if nobody knows.
    fn arguments(&self, insn: &Instruction) -> usize {
        let unknown = ARGUMENTS.len();
        let Some(n) = callee(self.module, insn, Some(self.state)) else {
            return unknown;
        };
        let entry = self.module.entries.callees[n].entry;
        let Some(entry) = entry.filter(|e| e.probe.is_some() && !e.variadic) else {
            return unknown;
        };
        // The second argument is the number of those behind the others.
        let fixed = match entry.probe {
            Some(Probe::Fork) => 3,
            Some(Probe::ForkIf) => 4,
            _ => return usize::from(entry.nargs),
        };
        match calls::argument(self.state, 1) {
            Value::Const(more) => {
                usize::try_from(more).map_or(unknown, |n| n.saturating_add(fixed))
            }
            _ => unknown,
        }
    }

    /// The register that a call or jump leads through.
    fn called_register(&self, insn: &Instruction) -> Option<usize> {
        match insn.op0_kind() {
            OpKind::Register => number(insn.op0_register()),
            _ => number(through(&self.module.image, insn)?.0),
        }
    }

    /// The address is called.
    fn called(&mut self, insn: &Instruction, origins: Origins, is_tail: bool) {
        let at = insn.ip();
        for &n in origins.iter().filter(|&&n| n != ELSEWHERE) {
            self.tracks.loads[n].calls.insert(at);
        }
        if is_tail {
            self.tracks.tails.insert(at);
        }
        let value = match insn.op0_kind() {
            OpKind::Register | OpKind::NearBranch64 => {
                self.called_register(insn).map(|r| self.state.reg(r))
            }
            OpKind::Memory => {
                let known = slot(self.state, insn).and_then(|at| self.state.slots.get(at));
                known.map(|(value, _)| value)
            }
            _ => None,
        };
        if let Some(Value::Const(va)) = value {
            self.tracks.constants.insert(at, va);
        }
        let known = self.tracks.calls.entry(at).or_default();
        match origins.is_empty() {
            true => {
                known.insert(ELSEWHERE);
            }
            false => known.extend(origins),
        }
    }
}

fn reads(access: OpAccess) -> bool {
    !matches!(
        access,
        OpAccess::None | OpAccess::Write | OpAccess::NoMemAccess
    )
}
