//! What an instruction does to registers and stack slots.

use super::Module;
use super::dataflow::{Callee, address, callee, number, operand, slot};
use super::value::{Slot, State, Value};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, MemorySize, Mnemonic, OpAccess, OpKind,
    Register,
};
use ompfuse_patterns::Query;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Registers that a call may change: rax, rcx, rdx, rsi, rdi, r8 ... r11.
const VOLATILE: [usize; 9] = [0, 1, 2, 6, 7, 8, 9, 10, 11];

/// Slots whose address is taken, so that others may change them.
pub(crate) type Exposed = Rc<FxHashSet<Slot>>;

/// Executes instructions on a state.
pub(crate) struct Step<'m, 'a> {
    module: &'m Module<'a>,
    /// Grows.
    pub(crate) exposed: Exposed,
    /// Slots that held a value.
    used: FxHashSet<Slot>,
    /// A slot that held a value was exposed afterwards.
    pub(crate) late: bool,
    /// A division by the number of threads was met.
    pub(crate) divides: bool,
    names: &'m FxHashMap<u64, u64>,
    /// Divisions of two bytes by one, by name: the remainder is in ah.
    bytes: FxHashSet<u64>,
    info: Option<InstructionInfoFactory>,
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
            used: FxHashSet::default(),
            late: false,
            divides: false,
            names,
            bytes: FxHashSet::default(),
            info: None,
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

    fn store(&mut self, state: &mut State, at: Slot, size: i64, value: Value) {
        state.slots.forget(at, size);
        let keeps = (size == 4 || size == 8) && value != Value::Unknown;
        if keeps && !self.exposed.contains(&at) {
            self.used.insert(at);
            state.slots.insert(at, value, size as usize);
        }
    }

    fn expose(&mut self, at: Slot) {
        if !self.exposed.contains(&at) {
            Rc::make_mut(&mut self.exposed).insert(at);
            self.late |= self.used.contains(&at);
        }
    }

    fn push(&mut self, state: &mut State, value: Value) {
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
        match state.slots.get((base, offset)) {
            Some((value, 8)) => value,
            _ => Value::Unknown,
        }
    }

    /// Executes one instruction.
    pub(crate) fn run(&mut self, state: &mut State, insn: &Instruction) {
        match insn.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => return self.call(state, insn),
            _ if insn.is_jcc_short_or_near() || insn.is_jmp_short_or_near() => return,
            _ => return self.other(state, insn),
        }
        // Most instructions of numerical code.
        match (insn.op0_kind(), insn.op1_kind()) {
            (OpKind::Register, _) if is_vector(insn.op0_register()) && !sets_rcx(insn) => return,
            (OpKind::Memory, OpKind::Register)
                if insn.op_count() == 2 && is_vector(insn.op1_register()) =>
            {
                return self.write_memory(state, insn, Value::Unknown);
            }
            _ => {}
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
            m if only_first_changes(m) && insn.op_count() >= first_operands(m) => {
                let result = arithmetic(state, insn);
                match insn.op0_kind() {
                    OpKind::Register => self.set(state, insn.op0_register(), result),
                    _ => self.write_memory(state, insn, result),
                }
            }
            _ => self.other(state, insn),
        }
    }

    fn call(&mut self, state: &mut State, insn: &Instruction) {
        let known = callee(self.module, insn, Some(state));
        let changed = match (known, insn.op0_kind()) {
            (Callee::Other, OpKind::NearBranch64) => self
                .module
                .clobbers
                .of(self.module, insn.near_branch_target()),
            _ => !0,
        };
        for register in VOLATILE {
            if changed & 1 << register != 0 {
                state.regs[register] = Value::Unknown;
            }
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
        let mut result_kept = matches!(value, Value::Result(_));
        if insn.op1_register() == Register::AH
            && let Value::Quotient(id) = state.regs[0]
            && self.bytes.contains(&id)
        {
            (value, result_kept) = (Value::Remainder(id), true);
        }
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
            self.expose((base, offset));
            state.slots.forget((base, offset), 8);
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
        let id = self.names.get(&insn.ip()).copied().unwrap_or(insn.ip());
        self.divides |= by_threads;
        let (quotient, remainder) = if by_threads {
            (Value::Quotient(id), Value::Remainder(id))
        } else {
            (Value::Unknown, Value::Unknown)
        };
        let size = match insn.op0_kind() {
            OpKind::Register => insn.op0_register().size(),
            _ => insn.memory_size().size(),
        };
        state.regs[0] = quotient;
        if size > 1 {
            state.regs[2] = remainder;
        } else if by_threads {
            self.bytes.insert(id);
        }
    }

    /// Any other instruction: arithmetic of tracked values stays related to them, all else is unknown.
    fn other(&mut self, state: &mut State, insn: &Instruction) {
        let result = arithmetic(state, insn);
        let factory = self.info.get_or_insert_with(InstructionInfoFactory::new);
        let info = factory.info(insn);
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

fn is_vector(register: Register) -> bool {
    register.is_vector_register() || register.is_k()
}

/// Whether it compares strings in vector registers: the only such instructions with another result.
fn sets_rcx(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Pcmpestri | Mnemonic::Pcmpistri | Mnemonic::Vpcmpestri | Mnemonic::Vpcmpistri
    )
}

/// Whether the only register or memory that an instruction changes is its first operand, which is general.
fn only_first_changes(mnemonic: Mnemonic) -> bool {
    matches!(
        mnemonic,
        Mnemonic::Add
            | Mnemonic::Sub
            | Mnemonic::And
            | Mnemonic::Or
            | Mnemonic::Xor
            | Mnemonic::Adc
            | Mnemonic::Sbb
            | Mnemonic::Imul
            | Mnemonic::Shl
            | Mnemonic::Shr
            | Mnemonic::Sar
            | Mnemonic::Inc
            | Mnemonic::Dec
            | Mnemonic::Neg
            | Mnemonic::Not
    ) || is_cmov(mnemonic)
}

/// The least number of operands with which that holds: with one, `imul` changes two registers.
fn first_operands(mnemonic: Mnemonic) -> u32 {
    match mnemonic {
        Mnemonic::Imul => 2,
        _ => 1,
    }
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
