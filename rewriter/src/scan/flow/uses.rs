//! What an instruction reads and writes, of those that the table of effects doesn't have too.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess};

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
