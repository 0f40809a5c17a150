//! What an instruction reads and writes, of those that the table of effects doesn't have too.

use crate::scan::flow::slots::Slot;
use crate::scan::flow::value::{self, State};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    UsedMemory,
};

/// Where a value can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    /// A general or vector register, as a whole.
    Register(Register),
    Stack(Slot),
    /// Somewhere on the function's stack.
    Frame,
    /// Elsewhere in memory.
    Memory,
    Flags,
}

/// The place that is used.
pub(crate) fn place(memory: &UsedMemory, state: &State) -> Place {
    match slot(memory, state) {
        Some(at) => Place::Stack(at),
        None if matches!(memory.base(), Register::RSP | Register::RBP) => Place::Frame,
        None => Place::Memory,
    }
}

/// The place that an operand is, if it is one.
pub(crate) fn of_operand(
    info: &mut InstructionInfoFactory,
    insn: &Instruction,
    operand: u32,
    state: &State,
) -> Option<Place> {
    match insn.op_kind(operand) {
        OpKind::Register => Some(Place::Register(insn.op_register(operand).full_register())),
        OpKind::Memory => {
            let used = info.info(insn).used_memory();
            used.first().map(|memory| place(memory, state))
        }
        _ => None,
    }
}

/// The stack slot that is used.
pub(crate) fn slot(memory: &UsedMemory, state: &State) -> Option<Slot> {
    let is_thread_local = matches!(memory.segment(), Register::FS | Register::GS);
    let plain = memory.index() == Register::None && !is_thread_local;
    let base = value::number(memory.base()).filter(|_| plain)?;
    let at = state.regs.slot(base)?;
    at.plus(memory.displacement().cast_signed())
}

/// Whether something is read, or may be.
pub(crate) fn is_read(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(
        access,
        A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite
    )
}

/// Whether something is written, or may be.
pub(crate) fn is_write(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(
        access,
        A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite
    )
}

/// The general registers that an instruction may write, a bit for each.
pub(crate) fn written(info: &mut InstructionInfoFactory, insn: &Instruction) -> u16 {
    let used = info.info(insn).used_registers().iter();
    used.filter(|used| is_write(used.access()))
        .map(|used| used.register().full_register())
        .filter(|full| full.is_gpr64())
        .fold(0, |set, full| set | 1 << full.number())
}

/// Whether the first operand is a vector or mask register: what such an instruction computes is no number of a general one.
pub(crate) fn is_of_vectors(insn: &Instruction) -> bool {
    insn.op0_kind() == OpKind::Register && is_vector(insn.op0_register())
}

/// Whether it is a vector or mask register.
pub(crate) fn is_vector(register: Register) -> bool {
    register.is_vector_register() || register.is_k()
}

/// Whether it compares strings in vector registers: the only such instructions with another result.
pub(crate) fn sets_rcx(insn: &Instruction) -> bool {
    matches!(
        insn.mnemonic(),
        Mnemonic::Pcmpestri | Mnemonic::Pcmpistri | Mnemonic::Vpcmpestri | Mnemonic::Vpcmpistri
    )
}

/// Whether control goes to another function and comes back.
pub(crate) fn is_call(insn: &Instruction) -> bool {
    matches!(
        insn.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    )
}
