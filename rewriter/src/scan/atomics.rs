//! Locked instructions and fences in outlined functions: what compilers make of `atomic` and `flush`, and of other things
//! too (C11's atomics look the same). A probe would cost more than the instruction: they are listed only.

use super::Module;
use super::draft::Draft;
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Mechanism};
use rayon::prelude::*;

/// Adds those in the functions that the drafts hand over.
pub(crate) fn add(module: &Module<'_>, drafts: &mut Vec<Draft>) {
    let mut outlined: Vec<u64> = drafts.iter().filter_map(|d| d.outlined).collect();
    outlined.sort_unstable();
    outlined.dedup();
    let found: Vec<Vec<Draft>> = outlined
        .par_iter()
        .map(|&start| of_function(module, start))
        .collect();
    drafts.extend(found.into_iter().flatten());
}

/// Those from an address to the end of its function.
fn of_function(module: &Module<'_>, start: u64) -> Vec<Draft> {
    let mut out = Vec::new();
    let function = module.functions.at(start).map(|i| module.functions.get(i));
    let (Some(function), Some(code)) = (function, module.image.rest(start)) else {
        return out;
    };
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    while decoder.can_decode() && decoder.ip() < function.end {
        decoder.decode_out(&mut insn);
        if let Some(construct) = construct(&insn) {
            let mut draft = Draft::new(insn.ip(), construct, Edge::Encloses);
            draft.function = function.base_name().map(str::to_owned);
            draft.detail = Some("or equivalent".to_owned());
            draft.skip("a probe would cost more than the instruction; listed only");
            draft.mechanism = Mechanism::Inline;
            out.push(draft);
        }
    }
    out
}

fn construct(insn: &Instruction) -> Option<Construct> {
    let to_memory = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory;
    // A fence in the form of a locked instruction that changes nothing.
    let idle = insn.mnemonic() == Mnemonic::Or
        && insn.memory_base() == Register::RSP
        && insn.op_count() == 2
        && insn.op1_kind() != OpKind::Register
        && insn.immediate(1) == 0;
    match insn.mnemonic() {
        Mnemonic::Mfence => Some(Construct::Flush),
        _ if insn.has_lock_prefix() && idle => Some(Construct::Flush),
        _ if insn.has_lock_prefix() => Some(Construct::Atomic),
        Mnemonic::Xchg if to_memory => Some(Construct::Atomic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8]) -> Option<Construct> {
        construct(&Decoder::new(64, bytes, DecoderOptions::NONE).decode())
    }

    #[test]
    fn locked_instructions_and_fences() {
        assert_eq!(
            of(&[0xf0, 0x48, 0x83, 0x0c, 0x24, 0x00]),
            Some(Construct::Flush)
        ); // lock or qword [rsp], 0
        assert_eq!(of(&[0x0f, 0xae, 0xf0]), Some(Construct::Flush)); // mfence
        assert_eq!(of(&[0xf0, 0x83, 0x07, 0x01]), Some(Construct::Atomic)); // lock add dword [rdi], 1
        assert_eq!(of(&[0xf0, 0x0f, 0xb1, 0x17]), Some(Construct::Atomic)); // lock cmpxchg [rdi], edx
        assert_eq!(of(&[0x87, 0x07]), Some(Construct::Atomic)); // xchg [rdi], eax
        assert_eq!(of(&[0x87, 0xc8]), None); // xchg eax, ecx
        assert_eq!(of(&[0x83, 0x07, 0x01]), None); // add dword [rdi], 1
    }
}
