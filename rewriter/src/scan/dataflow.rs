//! Forward constant propagation over a function's registers and stack slots.

use super::Module;
use super::cfg::Body;
use super::value::{Slot, State, Value};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind,
    Register,
};
use ompfuse_patterns::Query;
use std::collections::{BTreeSet, HashMap};

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 ... r11.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// The states of a function, by block; those within a block are computed on demand.
#[derive(Debug)]
pub(crate) struct Flow {
    starts: Vec<Option<State>>,
    /// Slots whose address is taken, so that others may change them.
    exposed: BTreeSet<Slot>,
    /// Division -> the one shortly before it by the same divisor, whose quotient goes with its remainder.
    twins: HashMap<u64, u64>,
}

/// Instructions between the two divisions that unoptimised code makes of one.
const TWIN_DISTANCE: usize = 12;

/// Finds divisions by the same operand in one block: without optimisation quotient and remainder take one each.
fn twins(body: &Body) -> HashMap<u64, u64> {
    let mut out = HashMap::new();
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
    let found = match insn.op0_kind() {
        OpKind::NearBranch64 => module
            .entries
            .targets
            .get(&insn.near_branch_target())
            .copied(),
        OpKind::Memory if insn.is_ip_rel_memory_operand() => module
            .entries
            .slots
            .get(&insn.ip_rel_memory_address())
            .copied(),
        OpKind::Memory => match state.and_then(|s| read(s, insn)) {
            Some(Value::Callee(n)) => Some(n),
            _ => None,
        },
        OpKind::Register => match number(insn.op0_register()).and_then(|r| Some(state?.regs[r])) {
            Some(Value::Callee(n)) => Some(n),
            Some(Value::Const(va)) => module.entries.targets.get(&va).copied(),
            _ => None,
        },
        _ => None,
    };
    found.map_or(Callee::Other, Callee::Runtime)
}

/// The stack slot that a memory operand means.
fn slot(state: &State, insn: &Instruction) -> Option<Slot> {
    if insn.memory_index() != Register::None || insn.segment_prefix() != Register::None {
        return None;
    }
    match state.regs[number(insn.memory_base())?] {
        Value::Stack { base, offset } => Some((
            base,
            offset.checked_add(insn.memory_displacement64().cast_signed())?,
        )),
        _ => None,
    }
}

/// What is known of a memory operand.
fn read(state: &State, insn: &Instruction) -> Option<Value> {
    let &(value, size) = state.slots.get(&slot(state, insn)?)?;
    (insn.memory_size().size() <= size).then_some(value)
}

/// The value of an operand.
pub(crate) fn operand(state: &State, insn: &Instruction, op: u32) -> Value {
    if op >= insn.op_count() {
        return Value::Unknown;
    }
    match insn.op_kind(op) {
        OpKind::Register => number(insn.op_register(op)).map_or(Value::Unknown, |r| state.regs[r]),
        OpKind::Memory => read(state, insn).unwrap_or(Value::Unknown),
        OpKind::Immediate8
        | OpKind::Immediate16
        | OpKind::Immediate32
        | OpKind::Immediate64
        | OpKind::Immediate8to16
        | OpKind::Immediate8to32
        | OpKind::Immediate8to64
        | OpKind::Immediate32to64 => Value::Const(insn.immediate(op)),
        _ => Value::Unknown,
    }
}

/// The address that a memory operand computes.
fn address(state: &State, insn: &Instruction) -> Value {
    if insn.is_ip_rel_memory_operand() {
        return Value::Const(insn.ip_rel_memory_address());
    }
    let disp = insn.memory_displacement64();
    let part = |r: Register| match r {
        Register::None => Some(Value::Const(0)),
        r => number(r).map(|n| state.regs[n]),
    };
    let (Some(base), Some(index)) = (part(insn.memory_base()), part(insn.memory_index())) else {
        return Value::Unknown;
    };
    match (base, index) {
        (Value::Const(b), Value::Const(i)) => {
            let scaled = i.wrapping_mul(u64::from(insn.memory_index_scale()));
            Value::Const(b.wrapping_add(scaled).wrapping_add(disp))
        }
        (Value::Stack { base, offset }, Value::Const(0)) => offset
            .checked_add(disp.cast_signed())
            .map_or(Value::Unknown, |offset| Value::Stack { base, offset }),
        (b, Value::Const(0)) if disp == 0 && insn.memory_index() == Register::None => b,
        (b, i) => b.combine(i),
    }
}

impl Flow {
    /// Propagates values through a function until nothing changes.
    pub(crate) fn compute(module: &Module<'_>, body: &Body) -> Flow {
        let twins = twins(body);
        let mut exposed = BTreeSet::new();
        loop {
            let known = exposed.len();
            let mut step = Step::new(module, exposed, &twins);
            let starts = Flow::pass(body, &mut step);
            exposed = step.exposed;
            if exposed.len() == known {
                return Flow {
                    starts,
                    exposed,
                    twins,
                };
            }
        }
    }

    fn pass(body: &Body, step: &mut Step<'_, '_>) -> Vec<Option<State>> {
        let mut starts: Vec<Option<State>> = vec![None; body.blocks.len()];
        let mut work = BTreeSet::new();
        for (i, &root) in body.roots.iter().enumerate() {
            starts[root] = Some(if i == 0 {
                State::entry()
            } else {
                State::unknown()
            });
            work.insert(root);
        }
        while let Some(block) = work.pop_first() {
            let Some(mut state) = starts[block].clone() else {
                continue;
            };
            for insn in body.block_insns(block) {
                step.run(&mut state, insn);
            }
            for &to in body.blocks[block]
                .succs
                .iter()
                .chain(&body.blocks[block].pads)
            {
                let changed = match &mut starts[to] {
                    Some(old) => old.meet(&state),
                    new => {
                        *new = Some(state.clone());
                        true
                    }
                };
                if changed {
                    work.insert(to);
                }
            }
        }
        starts
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
        let mut step = Step::new(module, self.exposed.clone(), &self.twins);
        for i in body.blocks[block].insns.clone() {
            f(i, &body.insns[i], &state);
            step.run(&mut state, &body.insns[i]);
        }
    }

    /// Whether a division only repeats the one before it for the remainder.
    pub(crate) fn is_twin(&self, insn: &Instruction) -> bool {
        self.twins.contains_key(&insn.ip())
    }
}

/// Executes instructions on a state.
struct Step<'m, 'a> {
    module: &'m Module<'a>,
    exposed: BTreeSet<Slot>,
    twins: &'m HashMap<u64, u64>,
    info: InstructionInfoFactory,
}

impl<'m, 'a> Step<'m, 'a> {
    fn new(module: &'m Module<'a>, exposed: BTreeSet<Slot>, twins: &'m HashMap<u64, u64>) -> Self {
        Step {
            module,
            exposed,
            twins,
            info: InstructionInfoFactory::new(),
        }
    }

    fn set(&self, state: &mut State, register: Register, value: Value) {
        match number(register) {
            // Writing 1 or 2 bytes leaves the rest.
            Some(n) if register.size() >= 4 => state.regs[n] = value,
            Some(n) => state.regs[n] = Value::Unknown,
            None => {
                let full = register.full_register();
                if full.is_gpr64() {
                    state.regs[full.number()] = Value::Unknown;
                }
            }
        }
    }

    /// Forgets slots that a store of `size` bytes may change.
    fn forget(state: &mut State, (base, offset): Slot, size: i64) {
        let overlaps = |&(&(_, at), &(_, len)): &(&Slot, &(Value, usize))| {
            at.saturating_add(len as i64) > offset
        };
        let keys: Vec<Slot> = state
            .slots
            .range((base, offset.saturating_sub(7))..(base, offset.saturating_add(size)))
            .filter(overlaps)
            .map(|(&k, _)| k)
            .collect();
        for key in keys {
            state.slots.remove(&key);
        }
    }

    fn store(&self, state: &mut State, at: Slot, size: i64, value: Value) {
        Self::forget(state, at, size);
        let hidden = !self.exposed.contains(&at);
        if hidden && (size == 4 || size == 8) && value != Value::Unknown {
            state.slots.insert(at, (value, size as usize));
        }
    }

    fn push(&self, state: &mut State, value: Value) {
        if let Value::Stack { base, offset } = state.regs[4] {
            let offset = offset.wrapping_sub(8);
            state.regs[4] = Value::Stack { base, offset };
            self.store(state, (base, offset), 8, value);
        }
    }

    fn pop(state: &mut State) -> Value {
        let Value::Stack { base, offset } = state.regs[4] else {
            return Value::Unknown;
        };
        state.regs[4] = Value::Stack {
            base,
            offset: offset.wrapping_add(8),
        };
        match state.slots.get(&(base, offset)) {
            Some(&(value, 8)) => value,
            _ => Value::Unknown,
        }
    }

    fn run(&mut self, state: &mut State, insn: &Instruction) {
        if matches!(
            insn.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        ) {
            return self.call(state, insn);
        }
        match insn.mnemonic() {
            Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Movzx | Mnemonic::Movsx => {
                self.mov(state, insn)
            }
            Mnemonic::Lea => self.lea(state, insn),
            Mnemonic::Push => {
                let value = operand(state, insn, 0);
                self.push(state, value);
            }
            Mnemonic::Pop if insn.op0_kind() == OpKind::Register => {
                let value = Self::pop(state);
                self.set(state, insn.op0_register(), value);
            }
            Mnemonic::Leave => {
                state.regs[4] = state.regs[5];
                state.regs[5] = Self::pop(state);
            }
            Mnemonic::Cdqe | Mnemonic::Cwde => {}
            Mnemonic::Cdq | Mnemonic::Cqo => state.regs[2] = Value::Unknown,
            Mnemonic::Div | Mnemonic::Idiv => self.divide(state, insn),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop | Mnemonic::Endbr64 => {}
            Mnemonic::Xor | Mnemonic::Sub
                if insn.op0_kind() == OpKind::Register
                    && insn.op1_kind() == OpKind::Register
                    && insn.op0_register() == insn.op1_register() =>
            {
                self.set(state, insn.op0_register(), Value::Const(0));
            }
            Mnemonic::And if insn.op0_register() == Register::RSP => {
                state.regs[4] = Value::Stack {
                    base: insn.ip(),
                    offset: 0,
                };
            }
            _ => self.other(state, insn),
        }
    }

    fn call(&mut self, state: &mut State, insn: &Instruction) {
        let known = callee(self.module, insn, Some(state));
        for register in VOLATILE {
            state.regs[register] = Value::Unknown;
        }
        state.regs[0] = match known {
            Callee::Runtime(n) => match self.module.entries.callees[n].query() {
                Some(query) => Value::Query(query),
                None => Value::Result(insn.ip()),
            },
            Callee::Other => Value::Unknown,
        };
    }

    fn mov(&mut self, state: &mut State, insn: &Instruction) {
        let mut value = operand(state, insn, 1);
        if insn.op1_kind() == OpKind::Memory && insn.is_ip_rel_memory_operand() {
            value = match self.module.entries.slots.get(&insn.ip_rel_memory_address()) {
                Some(&n) if insn.memory_size() == MemorySize::UInt64 => Value::Callee(n),
                _ => Value::Unknown,
            };
        }
        // Widening a part of a value is not the value.
        let narrow = match insn.op1_kind() {
            OpKind::Register => insn.op1_register().size() < 4,
            OpKind::Memory => insn.memory_size().size() < 4,
            _ => false,
        };
        let result_kept = matches!(value, Value::Result(_));
        if narrow && !result_kept {
            value = Value::Unknown;
        }
        match insn.op0_kind() {
            OpKind::Register => {
                let register = insn.op0_register();
                if let (Value::Const(c), 4) = (value, register.size()) {
                    value = Value::Const(c & 0xffff_ffff);
                }
                self.set(state, register, value);
            }
            _ => self.write_memory(state, insn, value),
        }
    }

    /// A store: known slots change, and an unknown address is taken not to be one of them.
    fn write_memory(&mut self, state: &mut State, insn: &Instruction, value: Value) {
        let size = insn.memory_size().size();
        if let Some(at) = slot(state, insn) {
            self.store(state, at, i64::try_from(size.max(1)).unwrap_or(64), value);
        }
    }

    fn lea(&mut self, state: &mut State, insn: &Instruction) {
        let mut value = address(state, insn);
        if let (Value::Stack { base, offset }, true) = (
            value,
            !matches!(insn.op0_register(), Register::RSP | Register::RBP),
        ) {
            self.exposed.insert((base, offset));
            Self::forget(state, (base, offset), 8);
        }
        if insn.op0_register().size() == 4
            && let Value::Const(c) = value
        {
            value = Value::Const(c & 0xffff_ffff);
        }
        self.set(state, insn.op0_register(), value);
    }

    fn divide(&mut self, state: &mut State, insn: &Instruction) {
        let by_threads = matches!(
            operand(state, insn, 0),
            Value::Query(Query::NumThreads) | Value::Query(Query::NumTeams)
        );
        let id = self.twins.get(&insn.ip()).copied().unwrap_or(insn.ip());
        let (quotient, remainder) = if by_threads {
            (Value::Quotient(id), Value::Remainder(id))
        } else {
            (Value::Unknown, Value::Unknown)
        };
        (state.regs[0], state.regs[2]) = (quotient, remainder);
    }

    /// Any other instruction: arithmetic of tracked values stays related to them, all else is unknown.
    fn other(&mut self, state: &mut State, insn: &Instruction) {
        let result = arithmetic(state, insn);
        let info = self.info.info(insn);
        let written: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|u| is_write(u.access()))
            .map(|u| u.register())
            .collect();
        let to_memory = info.used_memory().iter().any(|m| is_write(m.access()));
        for register in written {
            let first = insn.op_count() > 0
                && insn.op0_kind() == OpKind::Register
                && insn.op0_register().full_register() == register.full_register();
            let value = if first { result } else { Value::Unknown };
            self.set(state, register, value);
        }
        if to_memory {
            let value = if insn.op0_kind() == OpKind::Memory {
                result
            } else {
                Value::Unknown
            };
            self.write_memory(state, insn, value);
        }
    }
}

fn is_write(access: OpAccess) -> bool {
    matches!(
        access,
        OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
    )
}

/// The first operand's value after an arithmetic instruction.
fn arithmetic(state: &State, insn: &Instruction) -> Value {
    let (a, b) = (operand(state, insn, 0), operand(state, insn, 1));
    let offset = |c: u64| match insn.mnemonic() {
        Mnemonic::Add => Some(c.cast_signed()),
        Mnemonic::Sub => c.cast_signed().checked_neg(),
        _ => None,
    };
    match insn.mnemonic() {
        Mnemonic::Add | Mnemonic::Sub => match (a, b) {
            (Value::Stack { base, offset: at }, Value::Const(c)) => offset(c)
                .and_then(|c| at.checked_add(c))
                .map_or(Value::Unknown, |offset| Value::Stack { base, offset }),
            (Value::Const(x), Value::Const(c)) => {
                let sum = x.wrapping_add_signed(offset(c).unwrap_or(0));
                let narrow = insn.op0_kind() == OpKind::Register && insn.op0_register().size() == 4;
                Value::Const(if narrow { sum & 0xffff_ffff } else { sum })
            }
            _ => a.combine(b),
        },
        Mnemonic::Imul if insn.op_count() == 3 => b.combine(operand(state, insn, 2)),
        Mnemonic::Imul if insn.op_count() == 1 => Value::Unknown,
        Mnemonic::Imul
        | Mnemonic::Shl
        | Mnemonic::Sar
        | Mnemonic::Shr
        | Mnemonic::Neg
        | Mnemonic::Inc
        | Mnemonic::Dec
        | Mnemonic::Adc
        | Mnemonic::Sbb => a.combine(b),
        m if is_cmov(m) => a.meet(b).combine_if_related(a, b),
        _ => Value::Unknown,
    }
}

fn is_cmov(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Cmova
            | Mnemonic::Cmovae
            | Mnemonic::Cmovb
            | Mnemonic::Cmovbe
            | Mnemonic::Cmove
            | Mnemonic::Cmovg
            | Mnemonic::Cmovge
            | Mnemonic::Cmovl
            | Mnemonic::Cmovle
            | Mnemonic::Cmovne
            | Mnemonic::Cmovno
            | Mnemonic::Cmovns
            | Mnemonic::Cmovs
    )
}

impl Value {
    /// The result of a conditional move: related to a division or to the thread number if one of both is.
    fn combine_if_related(self, a: Value, b: Value) -> Value {
        if self == Value::Unknown {
            a.combine(b)
        } else {
            self
        }
    }
}
