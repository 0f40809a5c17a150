//! Probes before a comparison, which read what it compares.

use super::why::Why;
use crate::model::ProbeSpec;
use crate::scan::flow::value;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use ompfuse_format::abi::{NO_ARG, Probe};

/// The probe before a comparing instruction; `start_at`: the operand that is the chunk's start; the order of the operands
/// under which there is a chunk: strict, less (else greater), unsigned.
pub(super) fn probe(
    insn: &Instruction,
    start_at: u32,
    (strict, less, unsigned): (bool, bool, bool),
) -> Result<ProbeSpec, Why> {
    // What is compared with, where no operand is.
    let implied = match insn.mnemonic() {
        Mnemonic::Cmp => None,
        Mnemonic::Test => Some(0),
        Mnemonic::Dec if start_at == 0 && insn.op0_kind() == OpKind::Register => Some(1),
        _ => return Err(Why::Unclear),
    };
    let bound_at = 1 - start_at;
    if less != (start_at == 0) {
        return Err(Why::Unclear);
    }
    let mut args = [NO_ARG; 8];
    let (mut param, mut second) = (0, implied.unwrap_or(0));
    let ends_with_constant = match insn.try_op_kind(bound_at).unwrap_or(OpKind::Immediate8) {
        _ if implied.is_some() => true,
        OpKind::Register | OpKind::Memory => false,
        _ => {
            second = insn.immediate(bound_at).cast_signed();
            true
        }
    };
    for (at, arg) in [(start_at, 0), (bound_at, 1)] {
        if at == bound_at && implied.is_some() {
            continue;
        }
        if insn.op_kind(at) == OpKind::Memory {
            args[2] = base_alone(insn).ok_or(Why::InMemory)?;
            param = insn.memory_displacement64().cast_signed();
        } else if at == start_at || !ends_with_constant {
            args[arg] = value::number(insn.op_register(at)).ok_or(Why::Unclear)? as u8;
        }
    }
    let width = match insn.op_kind(start_at) {
        OpKind::Memory => insn.memory_size().size(),
        _ => insn.op_register(start_at).size(),
    };
    // An immediate operand has no sign of its own.
    let unused = 64 - 8 * width.clamp(1, 8);
    second = match unsigned {
        true => ((second.cast_unsigned() << unused) >> unused).cast_signed(),
        false => (second << unused) >> unused,
    };
    Ok(ProbeSpec {
        probe: Probe::InlineChunk,
        args,
        nargs: 0,
        width: width as u8,
        unsigned,
        param,
        second: second + i64::from(!strict),
        chunks: false,
    })
}

/// The register that the memory operand is a constant distance from.
fn base_alone(insn: &Instruction) -> Option<u8> {
    let alone = insn.memory_index() == Register::None && insn.segment_prefix() == Register::None;
    let base = insn.memory_base();
    (alone && base.size() == 8)
        .then(|| value::number(base))
        .flatten()
        .map(|n| n as u8)
}
