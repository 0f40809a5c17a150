//! How many entries of a jump table an indirect jump may use: what the instructions before it say of the table's index.
//!
//! Values are followed through the instructions that run one behind the other up to the jump. A comparison counts only if it
//! is of the number that the table is indexed with, or of what that was made of; and only if no known branch leads in between.

mod number;

use crate::scan::flow::lift::{self, Effect, How, Part, Sets};
use crate::scan::flow::uses::{self, is_write};
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register};
use number::{Place, Value, bits, number};

/// How many entries a table has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// All of them may be used: a comparison lets no other number pass.
    Exactly(u64),
    /// There are no more, perhaps less: the index has no more bits.
    AtMost(u64),
}

/// What is known at an instruction.
struct State {
    ids: u32,
    registers: [Value; 16],
    memory: Vec<(Place, Value)>,
    /// The last comparison with a constant, while the flags are its: the number, the comparison's bits, the constant.
    compared: Option<(Value, u8, u64)>,
    /// Numbers that are at most so large, where compared with so many bits.
    bounds: Vec<(Value, u8, u64)>,
    /// Results of `and`, and their masks.
    masks: Vec<(u32, u64)>,
    /// What was read from a table, and the index.
    entries: Vec<(u32, Value)>,
}

/// The number of entries that a jump may use, if it is known; `before`: the instructions in front of it, the nearest first.
/// `through`: the register that it takes the address from, if it isn't its operand; `joins`: whether control comes to an
/// address from elsewhere.
pub(crate) fn limit(
    before: &[&Instruction],
    jump: &Instruction,
    through: Option<Register>,
    joins: impl Fn(u64) -> bool,
) -> Option<Limit> {
    let mut state = State::new();
    let mut next = jump.ip();
    let behind = before.iter().take_while(|insn| {
        let runs_on = insn.next_ip() == next && falls(insn);
        next = insn.ip();
        runs_on
    });
    let insns = &before[..behind.count()];
    let mut info = InstructionInfoFactory::new();
    for insn in insns.iter().rev() {
        if joins(insn.ip()) {
            state.forget();
        }
        state.step(insn, &mut info);
    }
    if joins(jump.ip()) {
        return None;
    }
    let index = match (through, jump.op0_kind()) {
        (None, OpKind::Memory) => state.index(jump),
        (None, _) => state.entry(state.register(jump.op0_register())?),
        (Some(register), _) => state.entry(state.register(register)?),
    };
    state.limit(index?)
}

/// What the nearest comparison before a jump may say of the table's length, though of another number as far as one sees.
/// Compilers widen an index in front of a loop, and compare the narrow one in it.
pub(crate) fn guess(before: &[&Instruction]) -> Option<u64> {
    let branch = before.iter().position(|i| largest(i, 1).is_some())?;
    let behind = &before[branch + 1..];
    let compare = behind.iter().find(|i| i.rflags_modified() != 0)?;
    let effect = Effect::of(compare).filter(|e| e.to == Part::None)?;
    largest(before[branch], effect.constant(compare)?)?.checked_add(1)
}

/// The largest number that doesn't take a branch behind a comparison with a constant.
fn largest(branch: &Instruction, constant: u64) -> Option<u64> {
    match branch.mnemonic() {
        Mnemonic::Ja => Some(constant),
        Mnemonic::Jae => constant.checked_sub(1),
        _ => None,
    }
}

/// Whether the instruction behind this one may be executed next, and nothing else happens in between.
fn falls(insn: &Instruction) -> bool {
    matches!(
        insn.flow_control(),
        FlowControl::Next | FlowControl::ConditionalBranch
    )
}

impl State {
    fn new() -> State {
        let mut state = State {
            ids: 0,
            registers: [Value {
                id: 0,
                bits: 64,
                shift: 0,
                scale: 1,
                signed: false,
            }; 16],
            memory: Vec::new(),
            compared: None,
            bounds: Vec::new(),
            masks: Vec::new(),
            entries: Vec::new(),
        };
        state.forget();
        state
    }

    /// Control comes from elsewhere: nothing is known.
    fn forget(&mut self) {
        self.registers = std::array::from_fn(|_| self.fresh(64));
        self.memory.clear();
        self.compared = None;
        self.bounds.clear();
        self.masks.clear();
        self.entries.clear();
    }

    fn fresh(&mut self, bits: u8) -> Value {
        self.ids += 1;
        Value {
            id: self.ids,
            bits,
            shift: 0,
            scale: 1,
            signed: false,
        }
    }

    fn register(&self, register: Register) -> Option<Value> {
        number(register).map(|n| self.registers[n])
    }

    /// What a part of an instruction is: a register's lower part, or what memory holds.
    fn part(&mut self, insn: &Instruction, part: Part) -> Option<Value> {
        match (lift::register(insn, part), part) {
            (Some(register), _) => self.register(register)?.low(bits(register)?),
            (None, Part::Operand(op)) if insn.op_kind(op) == OpKind::Memory => {
                Some(self.load(insn))
            }
            _ => None,
        }
    }

    /// What a memory operand holds.
    fn load(&mut self, insn: &Instruction) -> Value {
        let place = Place::of(insn);
        if let Some((_, value)) = self.memory.iter().find(|(p, _)| *p == place) {
            return *value;
        }
        let value = self.fresh((place.size * 8).min(64) as u8);
        self.memory.push((place, value));
        if let Some(index) = self.index(insn) {
            self.entries.push((value.id, index));
        }
        value
    }

    /// The number that a table of entries as long as the memory operand is indexed with.
    fn index(&self, insn: &Instruction) -> Option<Value> {
        let size = insn.memory_size().size();
        if !matches!(size, 4 | 8) {
            return None;
        }
        let indexed = (insn.memory_index(), insn.memory_index_scale());
        [indexed, (insn.memory_base(), 1)]
            .into_iter()
            .filter_map(|(register, scale)| {
                let value = self.registers[number(register).filter(|_| register.is_gpr64())?];
                value.scaled(scale)
            })
            .find(|value| usize::from(value.scale) == size)
    }

    /// The index of what was read from a table.
    fn entry(&self, value: Value) -> Option<Value> {
        let found = self.entries.iter().find(|(id, _)| *id == value.id);
        found.map(|(_, index)| *index)
    }

    /// A register gets a value; nothing is known where there is none.
    fn set(&mut self, register: Register, value: Option<Value>) {
        let Some(n) = number(register) else { return };
        let narrow = register.size() < 4;
        let value = match value.filter(|_| !narrow) {
            Some(value) => value,
            None => self.fresh(if register.size() == 4 { 32 } else { 64 }),
        };
        self.registers[n] = value;
        let full = register.full_register();
        self.memory
            .retain(|(p, _)| p.base.full_register() != full && p.index.full_register() != full);
    }

    fn step(&mut self, insn: &Instruction, info: &mut InstructionInfoFactory) {
        if insn.flow_control() == FlowControl::ConditionalBranch {
            return self.pass(insn);
        }
        let Some(effect) = Effect::of(insn) else {
            return self.other(insn, info);
        };
        match effect.sets {
            Sets::Nothing => {}
            Sets::Comparison => self.compare(insn, effect),
            _ => self.compared = None,
        }
        let parts = [effect.a, effect.b].map(|part| lift::register(insn, part));
        let entries = parts.map(|register| self.entry(self.register(register?)?));
        let value = self.computed(insn, effect);
        let Some(to) = lift::register(insn, effect.to) else {
            if effect.to != Part::None {
                self.memory.clear();
                self.memory.extend(value.map(|v| (Place::of(insn), v)));
            }
            return;
        };
        self.set(to, value);
        let Some(result) = self.register(to) else {
            return;
        };
        match (effect.how, entries) {
            // A table's entry and the table.
            (How::Add, [Some(index), None] | [None, Some(index)])
                if parts.iter().all(Option::is_some) =>
            {
                self.entries.push((result.id, index));
            }
            (How::And, _) if to.size() >= 4 => {
                let mask = effect.constant(insn);
                self.masks.extend(mask.map(|mask| (result.id, mask)));
            }
            _ => {}
        }
    }

    /// The number that an instruction computes; `None` where it isn't one that is followed.
    fn computed(&mut self, insn: &Instruction, effect: Effect) -> Option<Value> {
        let signed = |value: Value| Value {
            signed: true,
            ..value
        };
        match effect.how {
            How::Copy if effect.a == Part::Address => {
                let index = insn.memory_index();
                let copies = insn.memory_base() == Register::None
                    && insn.memory_displacement64() == 0
                    && lift::size(insn, effect.to) == 8
                    && index.is_gpr64();
                let value = self.register(index).filter(|_| copies)?;
                value.scaled(insn.memory_index_scale())
            }
            How::Copy => self.part(insn, effect.a),
            How::Extend => self.part(insn, effect.a).map(signed),
            How::ShiftLeft | How::ShiftRight | How::ShiftSigned => {
                let by = effect.constant(insn).filter(|&by| by < 32)? as u8;
                let value = self.part(insn, effect.a)?;
                match effect.how {
                    How::ShiftRight => value.shifted(by, false),
                    How::ShiftSigned => value.shifted(by, true),
                    _ if lift::size(insn, effect.to) == 8 => value.scaled(1 << by.min(4)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Any other instruction.
    fn other(&mut self, insn: &Instruction, info: &mut InstructionInfoFactory) {
        if insn.rflags_modified() != 0 {
            self.compared = None;
        }
        let written = uses::written(info, insn);
        for n in (0..16).filter(|n| written >> n & 1 == 1) {
            self.set(Register::RAX + n, None);
        }
        let used = info.info(insn).used_memory();
        if used.iter().any(|m| is_write(m.access())) {
            self.memory.clear();
        }
    }

    /// A comparison with a constant, or a subtraction, which sets the flags likewise.
    fn compare(&mut self, insn: &Instruction, effect: Effect) {
        self.compared = None;
        if let (How::Subtract, Some(constant)) = (effect.how, effect.constant(insn)) {
            let value = self.part(insn, effect.a);
            let bits = lift::size(insn, effect.a) as u8 * 8;
            self.compared = value.map(|value| (value, bits, constant));
        }
    }

    /// A conditional branch isn't taken.
    fn pass(&mut self, insn: &Instruction) {
        let Some((value, bits, constant)) = self.compared else {
            return;
        };
        let largest = largest(insn, constant);
        self.bounds.extend(largest.map(|l| (value, bits, l)));
    }

    /// How many values an index may have.
    fn limit(&self, index: Value) -> Option<Limit> {
        let exact = self.bounds.iter().filter_map(|&(value, bits, largest)| {
            let by = index.shift.checked_sub(value.shift)?;
            // What a compiler compares half of, and uses whole, has nothing in the other half; but not what it shifts.
            let whole = bits >= index.bits || (by == 0 && bits >= 32);
            let same = value.id == index.id && value.scale == 1 && whole;
            let sound = !index.signed || largest < 1 << (bits.min(32) - 1);
            (same && sound).then(|| (largest >> by).saturating_add(1))
        });
        if let Some(count) = exact.min() {
            return Some(Limit::Exactly(count));
        }
        if index.signed {
            return None;
        }
        let mask = self.masks.iter().find(|(id, _)| *id == index.id);
        let of_bits = u64::MAX >> (64 - index.bits);
        let largest = mask.map_or(of_bits, |(_, mask)| mask & of_bits) >> index.shift;
        Some(Limit::AtMost(largest.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests;
