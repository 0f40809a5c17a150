//! Addresses that instructions make and name.

use super::Decoded;
use crate::scan::Module;
use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};

/// How many for the parts of a constant address: a table's is made where a function begins.
const FAR: usize = 512;

/// The address that an instruction makes; with `absolute` a number may be one.
pub(crate) fn made(i: &Instruction, absolute: bool) -> Option<u64> {
    match i.code() {
        _ if is_table_load(i) => Some(i.ip_rel_memory_address()),
        Code::Mov_r64_imm64 if absolute => Some(i.immediate64()),
        Code::Mov_r32_imm32 | Code::Mov_rm64_imm32 | Code::Mov_rm32_imm32 if absolute => {
            Some(u64::from(i.immediate32()))
        }
        _ => None,
    }
}

/// Steps that a constant is followed back: compilers need three. Each may look for two others.
const DEEPEST: u32 = 5;

/// Whether an instruction reads the linker's slot of a symbol, where two registers' sum leads that hold constants: code of
/// the large model adds a slot's distance to a table's address. Of a jump table's entries one register holds the number.
pub(super) fn reads_slot(module: &Module<'_>, insns: &Decoded, i: &Instruction) -> bool {
    let (base, index) = (i.memory_base(), i.memory_index());
    if !base.is_gpr64() || !index.is_gpr64() || i.memory_index_scale() != 1 {
        return false;
    }
    let before: Vec<&Instruction> = insns.before(i.ip()).take(FAR).collect();
    let sum = constant(&before, base, DEEPEST).zip(constant(&before, index, DEEPEST));
    sum.is_some_and(|(base, index)| {
        let at = base
            .wrapping_add(index)
            .wrapping_add(i.memory_displacement64());
        module.dynamic.is_slot(at)
    })
}

/// What a register holds behind these instructions, the last one first, if it is made of constants in so many steps.
fn constant(before: &[&Instruction], register: Register, steps: u32) -> Option<u64> {
    let steps = steps.checked_sub(1)?;
    let at = before.iter().position(|i| writes(i, register))?;
    let (def, rest) = (before[at], &before[at + 1..]);
    let from = |op: u32| {
        let is_register = def.op_kind(op) == OpKind::Register;
        is_register.then(|| constant(rest, def.op_register(op), steps))?
    };
    match def.code() {
        Code::Mov_r64_imm64 => Some(def.immediate64()),
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => from(1),
        Code::Lea_r64_m if def.is_ip_rel_memory_operand() => Some(def.ip_rel_memory_address()),
        Code::Add_r64_rm64 | Code::Add_rm64_r64 => Some(from(0)?.wrapping_add(from(1)?)),
        _ => None,
    }
}

/// Whether an instruction may write a register.
pub(super) fn may_write(i: &Instruction, register: Register) -> bool {
    let simple = matches!(
        i.mnemonic(),
        Mnemonic::Mov | Mnemonic::Movsxd | Mnemonic::Cdqe | Mnemonic::Lea | Mnemonic::And
    );
    !simple || writes(i, register) || (i.op_count() == 0 && register == Register::RAX)
}

fn writes(i: &Instruction, register: Register) -> bool {
    i.op_count() > 0
        && i.op0_kind() == OpKind::Register
        && i.op0_register().full_register() == register
        && !matches!(
            i.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        )
}

/// The address that an instruction names: something begins there, so it isn't in the midst of a table.
pub(crate) fn named(i: &Instruction) -> Option<u64> {
    if is_table_load(i) {
        return Some(i.ip_rel_memory_address());
    }
    let indexed = i.memory_base() == Register::None && i.memory_index() != Register::None;
    indexed.then(|| i.memory_displacement64())
}

/// Whether an instruction makes an address.
pub(crate) fn is_table_load(i: &Instruction) -> bool {
    i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand()
}
