//! Where the addresses go that instructions make: on all paths, to everything that may use them.

use super::super::Module;
use super::super::calls;
use super::super::cfg::Body;
use super::super::dataflow::{Callee, Flow, callee, number, slot};
use super::super::slots::Slot;
use super::super::value::{State, Value};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use ompfuse_format::abi::Probe;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// Instead of an instruction's number: the value may come from elsewhere.
pub(super) const ELSEWHERE: usize = usize::MAX;

/// Registers of arguments, and the static chain.
const ARGUMENTS: [usize; 7] = [7, 6, 2, 1, 8, 9, 10];

/// Registers that a call may change.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// What an instruction that makes an address has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    /// What this slot holds: `mov r64, [rip + slot]`.
    Slot(u64),
    /// `lea r64, [rip + address]`.
    Address(u64),
    /// `movabs r64, number`: the address, or its distance from something that is added.
    Number(u64),
}

/// An instruction that makes an address.
#[derive(Debug)]
pub(super) struct Load {
    pub at: u64,
    pub end: u64,
    pub made: Made,
    /// Something else than a call, or nobody knows what, may use it.
    pub escapes: bool,
    /// The calls and jumps that may use it.
    pub calls: BTreeSet<u64>,
}

/// Numbers of the instructions that a value may come from; empty: from elsewhere only.
type Origins = BTreeSet<usize>;

/// An address on the stack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Spilled {
    origins: Origins,
    /// Calls since then that may have got it as an argument.
    passed: BTreeSet<u64>,
}

/// What may be where at one point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Places {
    regs: [Origins; 16],
    slots: BTreeMap<Slot, Spilled>,
}

impl Places {
    /// What may be in either; tells whether that is more than before.
    fn join(&mut self, other: &Places) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.regs.iter_mut().zip(&other.regs) {
            changed |= join(mine, theirs);
        }
        let none = Spilled::default();
        for (at, mine) in &mut self.slots {
            let theirs = other.slots.get(at).unwrap_or(&none);
            changed |= join(&mut mine.origins, &theirs.origins);
            let before = mine.passed.len();
            mine.passed.extend(&theirs.passed);
            changed |= mine.passed.len() != before;
        }
        for (at, theirs) in &other.slots {
            if !self.slots.contains_key(at) {
                let mut both = theirs.clone();
                both.origins.insert(ELSEWHERE);
                self.slots.insert(*at, both);
                changed = true;
            }
        }
        changed
    }

    /// Slots that hold something of these bytes.
    fn overlapping(&self, at: Slot, size: i64) -> Vec<Slot> {
        let (from, to) = (at.plus(-7).unwrap_or(at), at.plus(size));
        match to {
            Some(to) => self.slots.range(from..to).map(|s| *s.0).collect(),
            None => self.slots.range(from..).map(|s| *s.0).collect(),
        }
    }
}

/// Adds what the other has, or that it has nothing.
fn join(mine: &mut Origins, theirs: &Origins) -> bool {
    let before = mine.len();
    match (mine.is_empty(), theirs.is_empty()) {
        (true, true) => {}
        (true, false) => {
            mine.extend(theirs);
            mine.insert(ELSEWHERE);
        }
        (false, true) => {
            mine.insert(ELSEWHERE);
        }
        (false, false) => mine.extend(theirs),
    }
    mine.len() != before
}

/// Everything that was followed in a function.
#[derive(Debug, Default)]
pub(super) struct Tracks {
    pub loads: Vec<Load>,
    /// By call or jump through a register or variable: what the address may come from.
    pub calls: FxHashMap<u64, Origins>,
    /// The jumps among them.
    pub tails: FxHashSet<u64>,
    /// The address itself, where it is a constant.
    pub constants: FxHashMap<u64, u64>,
    by_address: FxHashMap<u64, usize>,
    /// Slots that a call may have got as arguments, and what they held.
    passed: FxHashMap<(u64, Slot), Origins>,
    /// Those that were read again behind the call: a callee owns its arguments, so that they were none.
    kept: FxHashSet<(u64, Slot)>,
}

impl Tracks {
    /// Follows every address of a function that may be the runtime's.
    pub(super) fn follow(module: &Module<'_>, body: &Body, flow: &Flow) -> Tracks {
        let mut tracks = Tracks::default();
        let Some(&root) = body.roots.first() else {
            return tracks;
        };
        let mut starts: Vec<Option<Places>> = vec![None; body.blocks.len()];
        starts[root] = Some(Places::default());
        let mut work = BTreeSet::from([root]);
        let mut info = InstructionInfoFactory::new();
        let written = written(module, body, flow);
        while let Some(block) = work.pop_first() {
            let Some(mut places) = starts[block].clone() else {
                continue;
            };
            flow.visit(module, body, block, |_, insn, state| {
                let mut step = Step {
                    module,
                    body,
                    flow,
                    tracks: &mut tracks,
                    info: &mut info,
                    written: &written,
                    state,
                };
                step.run(&mut places, insn);
            });
            let after = &body.blocks[block];
            for &to in after.succs.iter().chain(&after.pads) {
                let changed = match &mut starts[to] {
                    Some(known) => known.join(&places),
                    new => {
                        *new = Some(places.clone());
                        true
                    }
                };
                if changed {
                    work.insert(to);
                }
            }
        }
        for (at, origins) in std::mem::take(&mut tracks.passed) {
            if !tracks.kept.contains(&at) {
                tracks.escape(&origins);
            }
        }
        tracks
    }

    /// The instruction's number, if it makes an address that may be the runtime's.
    fn load(&mut self, module: &Module<'_>, insn: &Instruction) -> Option<usize> {
        if let Some(&n) = self.by_address.get(&insn.ip()) {
            return Some(n);
        }
        let made = makes(module, insn)?;
        let n = self.loads.len();
        self.loads.push(Load {
            at: insn.ip(),
            end: insn.next_ip(),
            made,
            escapes: false,
            calls: BTreeSet::new(),
        });
        self.by_address.insert(insn.ip(), n);
        Some(n)
    }

    fn escape(&mut self, origins: &Origins) {
        for &n in origins.iter().filter(|&&n| n != ELSEWHERE) {
            self.loads[n].escapes = true;
        }
    }

    /// Whether a number that is added to it changes the address as it should.
    fn are_numbers(&self, origins: &Origins) -> bool {
        origins
            .iter()
            .all(|&n| n == ELSEWHERE || matches!(self.loads[n].made, Made::Number(_)))
    }
}

/// Places on the stack that a function writes.
fn written(module: &Module<'_>, body: &Body, flow: &Flow) -> FxHashSet<Slot> {
    let mut info = InstructionInfoFactory::new();
    let mut out = FxHashSet::default();
    for block in 0..body.blocks.len() {
        flow.visit(module, body, block, |_, insn, state| {
            let used = info.info(insn).used_memory();
            if !used.iter().any(|m| writes(m.access())) {
                return;
            }
            let at = match insn.mnemonic() {
                Mnemonic::Push => state.regs.slot(4).and_then(|at| at.plus(-8)),
                _ => slot(state, insn),
            };
            let Some(at) = at else {
                return;
            };
            // Words that have bytes in common with it.
            let size = i64::try_from(insn.memory_size().size().max(8)).unwrap_or(64);
            out.extend((-7..size).filter_map(|n| at.plus(n)));
        });
    }
    out
}

/// What the instruction makes, if its bytes can be changed to make another address.
fn makes(module: &Module<'_>, insn: &Instruction) -> Option<Made> {
    use iced_x86::Code;
    let relative = insn.is_ip_rel_memory_operand()
        && insn.memory_base() == Register::RIP
        && insn.segment_prefix() == Register::None;
    match insn.code() {
        Code::Mov_r64_rm64 if relative && insn.len() == 7 => {
            let slot = insn.ip_rel_memory_address();
            let known = module.entries.slots.contains_key(&slot);
            known.then_some(Made::Slot(slot))
        }
        Code::Lea_r64_m if relative && insn.len() == 7 => {
            let va = insn.ip_rel_memory_address();
            let known = module.entries.targets.contains_key(&va);
            known.then_some(Made::Address(va))
        }
        Code::Mov_r64_imm64 if insn.len() == 10 => Some(Made::Number(insn.immediate64())),
        _ => None,
    }
}

/// One instruction's effect.
struct Step<'s, 'a> {
    module: &'s Module<'a>,
    body: &'s Body,
    flow: &'s Flow,
    tracks: &'s mut Tracks,
    info: &'s mut InstructionInfoFactory,
    /// Places on the stack that the function writes.
    written: &'s FxHashSet<Slot>,
    /// What is known before it.
    state: &'s State,
}

impl Step<'_, '_> {
    fn run(&mut self, places: &mut Places, insn: &Instruction) {
        match insn.flow_control() {
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
            if writes(used.access()) {
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
            if touches.iter().any(|&a| writes(a)) {
                self.overwrite(places, at, size);
            }
        }
        for r in written {
            places.regs[r] = Origins::new();
        }
    }

    fn call(&mut self, places: &mut Places, insn: &Instruction) {
        self.hand_over(places, insn, Some(false));
        let known = callee(self.module, insn, Some(self.state));
        let changed = match (known, insn.op0_kind()) {
            (Callee::Other, OpKind::NearBranch64) => self
                .module
                .clobbers
                .of(self.module, insn.near_branch_target()),
            _ => !0,
        };
        for r in VOLATILE {
            if changed & 1 << r != 0 {
                places.regs[r] = Origins::new();
            }
        }
    }

    /// A jump through a register or memory: to another function, or to a jump table's target.
    fn jump(&mut self, places: &mut Places, insn: &Instruction) {
        let inside = self
            .body
            .block_at(insn.ip())
            .is_some_and(|b| !self.body.blocks[b].succs.is_empty());
        if inside {
            return self.other(places, insn);
        }
        self.hand_over(places, insn, Some(true));
    }

    /// Control goes to another function. `through`: by way of a register or memory, and whether it doesn't come back.
    fn hand_over(&mut self, places: &mut Places, insn: &Instruction, through: Option<bool>) {
        let own = match (through, insn.op0_kind()) {
            (Some(_), OpKind::Register) => number(insn.op0_register()),
            _ => None,
        };
        if let Some(is_tail) = through.filter(|_| insn.op0_kind() != OpKind::NearBranch64) {
            let origins = match (own, insn.op0_kind()) {
                (Some(r), _) => places.regs[r].clone(),
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
        let Callee::Runtime(n) = callee(self.module, insn, Some(self.state)) else {
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
            OpKind::Register => number(insn.op0_register()).map(|r| self.state.reg(r)),
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

fn writes(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}
