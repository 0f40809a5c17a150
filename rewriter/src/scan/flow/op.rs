//! What a function's instructions do to the values that are followed: made once of each, and executed whenever control comes by.

use super::super::Module;
use super::leads::{Leads, changed};
use super::lift::{self, Effect, How, Part};
use super::memory::Memory;
use super::slots::Slot;
use super::uses;
use super::value::{State, Value, number};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use smallvec::SmallVec;

/// Nothing is known of it.
const UNKNOWN: Source = Source::Known(Value::Unknown);

/// Where a value is taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Known(Value),
    Register(u8),
    /// The memory operand.
    Memory,
}

impl Source {
    pub(super) fn of(insn: &Instruction, part: Part) -> Source {
        let register = |register| number(register).map_or(UNKNOWN, |n| Source::Register(n as u8));
        match part {
            Part::Operand(op) if op >= insn.op_count() => UNKNOWN,
            Part::Operand(op) => match insn.op_kind(op) {
                OpKind::Register => register(insn.op_register(op)),
                OpKind::Memory => Source::Memory,
                _ => Source::Known(lift::immediate(insn, op).map_or(Value::Unknown, Value::Const)),
            },
            Part::Constant(value) => Source::Known(Value::Const(value)),
            Part::Register(this) => register(this),
            Part::None | Part::Address => UNKNOWN,
        }
    }

    /// `memory`: the instruction's memory operand.
    #[inline]
    pub(super) fn value(self, state: &State, memory: &Memory) -> Value {
        match self {
            Source::Known(value) => value,
            Source::Register(n) => state.reg(usize::from(n)),
            Source::Memory => memory.read(state).unwrap_or(Value::Unknown),
        }
    }
}

/// What a value is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    /// Something that isn't followed.
    Nowhere,
    /// A general register.
    Register(u8),
    /// Its lower half: the upper one is 0 then.
    Half(u8),
    /// A smaller part of it: nothing is known of the register then.
    Part(u8),
    /// The memory operand.
    Memory,
}

impl To {
    fn of(insn: &Instruction, part: Part) -> To {
        let Some(register) = lift::register(insn, part) else {
            return To::Memory;
        };
        let full = register.full_register();
        match (full.is_gpr64(), number(register)) {
            (false, _) => To::Nowhere,
            (true, None) => To::Part(full.number() as u8),
            (true, Some(n)) if register.size() == 4 => To::Half(n as u8),
            (true, Some(n)) => To::Register(n as u8),
        }
    }

    /// Where a value is written of which parts are unknown.
    fn whole(self, is_whole: bool) -> To {
        match self {
            To::Register(n) if !is_whole => To::Part(n),
            to => to,
        }
    }
}

/// How a value is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rule {
    /// It is the first one.
    Copy,
    /// It is the first one, or the address of the runtime's function that a slot elsewhere in memory holds.
    Load,
    /// It is a part of the first one.
    Narrow,
    /// It is in `ah`.
    HighByte,
    Add,
    Subtract,
    /// It is one of both.
    Choose,
    /// It has to do with both.
    Combine,
}

/// What an instruction does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    /// Something gets a value.
    Compute {
        rule: Rule,
        parts: [Source; 2],
        to: To,
        memory: Memory,
    },
    /// Something gets an address; `own`: the function itself goes on from there.
    Address {
        to: To,
        own: bool,
        memory: Memory,
    },
    /// Nothing is known any more of general registers, a bit for each, and of what lies in memory.
    Forget {
        registers: u16,
        memory: Memory,
    },
    Push {
        value: Source,
        memory: Memory,
    },
    Pop(To),
    Leave,
    /// `at`: its address.
    Divide {
        by: Source,
        of_bytes: bool,
        memory: Memory,
        at: u64,
    },
    /// The stack pointer gets a value.
    Realign(Value),
    /// `at`: its address; `changes`: general registers, a bit for each.
    Call {
        leads: Leads,
        changes: u16,
        at: u64,
    },
}

impl Op {
    /// Whether a general register other than the stack pointer may get another value.
    pub(super) fn may_write(&self, register: usize) -> bool {
        let is = |to: &To| match *to {
            To::Register(n) | To::Half(n) | To::Part(n) => usize::from(n) == register,
            To::Nowhere | To::Memory => false,
        };
        let among = |set: u16| set >> register & 1 != 0;
        match self {
            Op::Compute { to, .. } | Op::Address { to, .. } | Op::Pop(to) => is(to),
            Op::Forget { registers, .. } => among(*registers),
            Op::Push { .. } | Op::Realign(_) => false,
            Op::Leave => register == 5,
            Op::Divide { of_bytes, .. } => register == 0 || register == 2 && !of_bytes,
            Op::Call { leads, changes, .. } => {
                among(*changes) || register == 0 && !matches!(leads, Leads::Elsewhere)
            }
        }
    }

    /// The registers that it computes a register's value from, and the memory that it does.
    pub(super) fn reads(&self) -> (SmallVec<[usize; 4]>, Option<&Memory>) {
        match self {
            Op::Compute {
                parts,
                memory,
                rule,
                ..
            } => {
                let own = parts.iter().filter_map(|part| match part {
                    Source::Register(n) => Some(usize::from(*n)),
                    Source::Known(_) | Source::Memory => None,
                });
                let own = own.chain((*rule == Rule::HighByte).then_some(0));
                match parts.contains(&Source::Memory) || *rule == Rule::Load {
                    true => (own.chain(memory.registers()).collect(), Some(memory)),
                    false => (own.collect(), None),
                }
            }
            Op::Address { memory, .. } => (memory.registers(), None),
            _ => (SmallVec::new(), None),
        }
    }

    /// None where nothing that is followed changes.
    fn forgets(registers: u16, memory: Memory) -> Option<Op> {
        let any = registers != 0 || memory.may_be_slot();
        any.then_some(Op::Forget { registers, memory })
    }
}

/// Makes operations of a function's instructions.
pub(super) struct Maker<'m, 'a> {
    module: &'m Module<'a>,
    info: InstructionInfoFactory,
    /// How often the stack pointer was rounded down: each makes a base of its own.
    realigned: usize,
}

impl<'m, 'a> Maker<'m, 'a> {
    pub(super) fn new(module: &'m Module<'a>) -> Self {
        Maker {
            module,
            info: InstructionInfoFactory::new(),
            realigned: 0,
        }
    }

    /// What the function's next instruction does, if that is anything.
    pub(super) fn op(&mut self, insn: &Instruction) -> Option<Op> {
        // What changes flags at most.
        if matches!(
            insn.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Nop
        ) || insn.is_jcc_short_or_near()
        {
            return None;
        }
        // Most instructions of numerical code.
        if uses::is_of_vectors(insn) && !uses::sets_rcx(insn) {
            return None;
        }
        if insn.op0_kind() == OpKind::Memory
            && insn.op_count() == 2
            && insn.op1_kind() == OpKind::Register
            && uses::is_vector(insn.op1_register())
        {
            return Op::forgets(0, Memory::of(insn));
        }
        match insn.flow_control() {
            FlowControl::Next => {}
            FlowControl::Call | FlowControl::IndirectCall => {
                return Some(Op::Call {
                    leads: Leads::of(self.module, insn),
                    changes: changed(self.module, insn),
                    at: insn.ip(),
                });
            }
            _ if insn.is_jmp_short_or_near() => return None,
            _ => return self.other(insn),
        }
        match insn.mnemonic() {
            Mnemonic::Push => Some(Op::Push {
                value: match insn.is_ip_rel_memory_operand() {
                    true => self.held(insn),
                    false => Source::of(insn, Part::Operand(0)),
                },
                memory: Memory::of(insn),
            }),
            Mnemonic::Pop if insn.op0_kind() == OpKind::Register => {
                let is_whole = insn.op0_register().size() >= 4;
                Some(Op::Pop(To::of(insn, Part::Operand(0)).whole(is_whole)))
            }
            Mnemonic::Leave => Some(Op::Leave),
            Mnemonic::Div | Mnemonic::Idiv => Some(Op::Divide {
                by: Source::of(insn, Part::Operand(0)),
                of_bytes: lift::size(insn, Part::Operand(0)) <= 1,
                memory: Memory::of(insn),
                at: insn.ip(),
            }),
            Mnemonic::And if insn.op0_register() == Register::RSP => {
                self.realigned += 1;
                let base = u16::try_from(self.realigned).map(Slot::base);
                Some(Op::Realign(base.map_or(Value::Unknown, Value::Stack)))
            }
            _ => match Effect::of(insn) {
                Some(effect) if effect.to == Part::None => None,
                Some(effect) => self.computed(insn, effect),
                None => self.other(insn),
            },
        }
    }

    /// An instruction that the table of effects has.
    fn computed(&self, insn: &Instruction, effect: Effect) -> Option<Op> {
        let is_whole = lift::register(insn, effect.to).is_none_or(|to| to.size() >= 4);
        let to = To::of(insn, effect.to);
        let (a, b) = (Source::of(insn, effect.a), Source::of(insn, effect.b));
        let memory = match to == To::Memory || [a, b].contains(&Source::Memory) {
            true => Memory::of(insn),
            false => Memory::elsewhere(),
        };
        let in_memory = a == Source::Memory;
        let [a, b] = [a, b].map(|source| match source {
            Source::Memory if !memory.may_be_slot() => UNKNOWN,
            source => source,
        });
        let (rule, a) = match effect.how {
            How::Copy if effect.a == Part::Address => {
                let to = to.whole(is_whole);
                if !insn.is_ip_rel_memory_operand() {
                    let own = matches!(insn.op0_register(), Register::RSP | Register::RBP);
                    let memory = Memory::computed(insn);
                    return Some(Op::Address { to, own, memory });
                }
                let address = Value::Const(insn.ip_rel_memory_address());
                let address = if is_whole { address } else { Value::Unknown };
                (Rule::Copy, Source::Known(address))
            }
            How::Copy | How::Extend => match lift::size(insn, effect.a) {
                0..4 if lift::register(insn, effect.a) == Some(Register::AH) => match is_whole {
                    true => (Rule::HighByte, a),
                    false => (Rule::Copy, UNKNOWN),
                },
                0..4 => (Rule::Narrow, a),
                // Constants, too, are unknown as parts of registers.
                _ if !is_whole => (Rule::Copy, UNKNOWN),
                8 if in_memory && insn.is_ip_rel_memory_operand() => (Rule::Copy, self.held(insn)),
                8 if in_memory => (Rule::Load, a),
                _ => (Rule::Copy, a),
            },
            How::Add if is_whole => (Rule::Add, a),
            How::Subtract if is_whole => (Rule::Subtract, a),
            // Related to a division or to the thread number if one of both is.
            How::Choose(_) if is_whole => (Rule::Choose, a),
            // What is computed for a part is computed from these, and the rest is nobody's business.
            How::Add | How::Subtract | How::Choose(_) => (Rule::Combine, a),
            How::AddCarry | How::SubtractBorrow | How::Multiply => (Rule::Combine, a),
            How::ShiftLeft | How::ShiftRight | How::ShiftSigned => (Rule::Combine, a),
            How::And | How::Or | How::Xor | How::Not | How::Condition(_) => (Rule::Copy, UNKNOWN),
        };
        let is_unknown = matches!(rule, Rule::Copy | Rule::Narrow) && a == UNKNOWN;
        match to {
            To::Nowhere => None,
            To::Memory if is_unknown || !memory.may_be_slot() => Op::forgets(0, memory),
            To::Part(n) => Op::forgets(1 << n, Memory::elsewhere()),
            To::Register(n) | To::Half(n) if is_unknown => Op::forgets(1 << n, Memory::elsewhere()),
            to => Some(Op::Compute {
                rule,
                parts: [a, b],
                to,
                memory,
            }),
        }
    }

    /// What the place relative to an instruction holds: it may be a slot of one of the runtime's functions.
    fn held(&self, insn: &Instruction) -> Source {
        let slots = &self.module.entries.slots;
        let callee = slots.get(&insn.ip_rel_memory_address());
        Source::Known(callee.map_or(Value::Unknown, |&n| Value::Callee(n)))
    }

    /// Any other instruction: what it writes is unknown.
    fn other(&mut self, insn: &Instruction) -> Option<Op> {
        let registers = uses::written(&mut self.info, insn);
        let mut used = self.info.info(insn).used_memory().iter();
        let memory = match used.any(|m| uses::is_write(m.access())) {
            true => Memory::of(insn),
            false => Memory::elsewhere(),
        };
        Op::forgets(registers, memory)
    }
}
