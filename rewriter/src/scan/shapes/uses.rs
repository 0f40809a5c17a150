//! What instructions use, for those who follow something of their own through a cycle.

use crate::scan::Module;
use crate::scan::dataflow;
use crate::scan::ops::VOLATILE;
use crate::scan::slots::Slot;
use crate::scan::value::State;
use iced_x86::{Instruction, OpAccess, OpKind, Register, UsedMemory};

/// The general registers that a call may change, a bit for each.
pub(super) fn changed(module: &Module<'_>, call: &Instruction) -> u16 {
    let known = matches!(
        dataflow::callee(module, call, None),
        dataflow::Callee::Runtime(_)
    );
    match call.op0_kind() {
        OpKind::NearBranch64 if !known => {
            VOLATILE & module.clobbers.of(module, call.near_branch_target())
        }
        _ => VOLATILE,
    }
}

/// The stack slot that is used.
pub(super) fn slot(memory: &UsedMemory, state: &State) -> Option<Slot> {
    let plain = memory.index() == Register::None && !is_thread_local(memory.segment());
    let base = dataflow::number(memory.base()).filter(|_| plain)?;
    let at = state.regs.slot(base)?;
    at.plus(memory.displacement().cast_signed())
}

fn is_thread_local(segment: Register) -> bool {
    matches!(segment, Register::FS | Register::GS)
}

/// Whether something is read, or may be.
pub(super) fn is_read(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(
        access,
        A::Read | A::CondRead | A::ReadWrite | A::ReadCondWrite
    )
}

/// Whether something is written, or may be.
pub(super) fn is_write(access: OpAccess) -> bool {
    use OpAccess as A;
    matches!(
        access,
        A::Write | A::CondWrite | A::ReadWrite | A::ReadCondWrite
    )
}
