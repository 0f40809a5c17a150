//! What instructions do to places, for those who ask where values come from.

use super::dataflow;
use super::flags::mask;
use super::lift::{self, Effect, Part};
use super::uses::{self, Place};
use super::value::State;
use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};
use ompfuse_patterns::Query;
use smallvec::SmallVec;

/// What an instruction does to places.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(super) reads: SmallVec<[Place; 4]>,
    pub(super) writes: SmallVec<[Write; 4]>,
    pub(super) sum: Option<Sum>,
    /// It is a call that asks for this.
    pub(super) call: Option<Option<Query>>,
}

/// A place gets so much more than what another one holds, or than 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub to: Place,
    pub from: Option<Place>,
    pub more: i64,
    /// That holds of 8 bytes, else of 4.
    pub whole: bool,
}

#[derive(Debug)]
pub(super) struct Write {
    pub place: Place,
    /// Bytes.
    pub size: u64,
    /// What was there may stay.
    pub keeps: bool,
}

/// How an instruction changes a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// To what it computes from what it reads.
    Sets,
    /// The same, but what was there may stay.
    Mixes,
    /// Something unknown may get there, or into a part of the 8 bytes that a slot may have.
    Clobbers,
}

impl Step {
    /// `state`: what is known before the instruction, no call. The stack pointer is left out.
    pub(crate) fn of(info: &mut InstructionInfoFactory, insn: &Instruction, state: &State) -> Step {
        let mut step = Step::default();
        let info = info.info(insn);
        let memory = info.used_memory().iter().map(|m| {
            let size = m.memory_size().size().max(1) as u64;
            (uses::place(m, state), m.access(), size)
        });
        let registers = info.used_registers().iter();
        let registers = registers.map(|r| (r.register().full_register(), r.access()));
        let registers = registers.filter(|(register, _)| *register != Register::RSP);
        let registers = registers.map(|(r, access)| (Place::Register(r), access, 0));
        for (place, access, size) in memory.chain(registers) {
            if uses::is_read(access) {
                step.reads.push(place);
            }
            if uses::is_write(access) {
                let always = matches!(access, OpAccess::Write | OpAccess::ReadWrite);
                let keeps = place == Place::Frame || !always;
                step.writes.push(Write { place, size, keeps });
            }
        }
        if insn.rflags_read() != 0 {
            step.reads.push(Place::Flags);
        }
        if insn.rflags_modified() != 0 {
            step.writes.push(Write {
                place: Place::Flags,
                size: 0,
                keeps: false,
            });
        }
        step.sum = sum(insn, state);
        step
    }

    /// Of a call that may change these general registers, and asks for something.
    pub(crate) fn of_call(changed: u16, query: Option<Query>) -> Step {
        let general = (0..16).filter(|n| changed & 1 << n != 0);
        let general = general.map(|n| Place::Register(Register::RAX + n));
        let vectors = (0..16).map(|n| Place::Register(Register::ZMM0 + n));
        let write = |place| Write {
            place,
            size: 0,
            keeps: false,
        };
        Step {
            writes: general.chain(vectors).map(write).collect(),
            call: Some(query),
            ..Step::default()
        }
    }

    /// How it changes a place, if it does.
    pub(super) fn change(&self, place: Place, is_exposed: bool) -> Option<Change> {
        let one = |write: &Write| match (place, write.place) {
            (Place::Stack(at), Place::Stack(to)) if at != to => {
                to.overlaps(write.size, at).then_some(Change::Clobbers)
            }
            (Place::Stack(_), Place::Memory | Place::Frame) => {
                is_exposed.then_some(Change::Clobbers)
            }
            (place, to) if place == to => Some(match write.keeps {
                true => Change::Mixes,
                false => Change::Sets,
            }),
            _ => None,
        };
        let by_call = (self.call.is_some() && is_exposed).then_some(Change::Clobbers);
        self.writes.iter().find_map(one).or(by_call)
    }
}

/// The sum with a constant that an instruction computes.
fn sum(insn: &Instruction, state: &State) -> Option<Sum> {
    let effect = Effect::of(insn)?;
    let place = |part| match (lift::register(insn, part), part) {
        (Some(register), _) => {
            let is_wide = register.is_gpr32() || register.is_gpr64();
            is_wide.then(|| Place::Register(register.full_register()))
        }
        (None, Part::Operand(op)) if insn.op_kind(op) == OpKind::Memory => {
            let slot = dataflow::slot(state, insn);
            slot.filter(|_| lift::size(insn, part) >= 4)
                .map(Place::Stack)
        }
        _ => None,
    };
    let (from, more) = effect.sum(insn)?;
    let to = place(effect.to)?;
    let size = |part| lift::size(insn, part);
    let sum = |from, more, whole| Sum {
        to,
        from,
        more,
        whole,
    };
    if let Some(value) = lift::constant_part(insn, from) {
        // A write of a register's lower half makes the upper one 0.
        let whole = size(effect.to) == 8 || matches!(to, Place::Register(_));
        let value = value & mask(size(effect.to));
        return Some(sum(None, value.cast_signed(), whole));
    }
    let whole = size(effect.to) == 8 && size(from) == 8;
    Some(sum(Some(place(from)?), more, whole))
}
