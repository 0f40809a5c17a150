//! Indirect jumps in another form: through code that puts a register in the place of its return address and returns, which no
//! processor predicts (retpolines, `-mindirect-branch=thunk` and `thunk-inline`).

use crate::scan::image::Image;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// Bytes that a thunk has at most.
const LONGEST: usize = 48;

/// The register to whose address the code at this one leads, if it is a thunk: a call of code in it that takes the register
/// for its return address, or a fence before the jump.
pub(crate) fn thunk(image: &Image<'_>, at: u64) -> Option<Register> {
    let code = image.rest(at)?;
    let code = &code[..code.len().min(LONGEST)];
    let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    let mut fenced = false;
    loop {
        decoder.decode_out(&mut insn);
        match insn.mnemonic() {
            Mnemonic::Endbr64 => {}
            Mnemonic::Lfence => fenced = true,
            _ => break,
        }
    }
    match insn.flow_control() {
        FlowControl::Call if insn.op0_kind() == OpKind::NearBranch64 => {
            let to = insn.near_branch_target();
            let near = to > insn.ip() && to - at < LONGEST as u64;
            near.then(|| capture(image, to))?
        }
        FlowControl::IndirectBranch if fenced && insn.op0_kind() == OpKind::Register => {
            Some(insn.op0_register())
        }
        _ => None,
    }
}

/// The register that the code at this address puts in the place of its return address, to return to it.
pub(crate) fn capture(image: &Image<'_>, at: u64) -> Option<Register> {
    let code = image.rest(at)?;
    let mut decoder = Decoder::with_ip(64, &code[..code.len().min(16)], at, DecoderOptions::NONE);
    let store = decoder.decode();
    let takes = store.mnemonic() == Mnemonic::Mov
        && store.op0_kind() == OpKind::Memory
        && store.op1_kind() == OpKind::Register
        && store.op1_register().is_gpr64()
        && store.memory_base() == Register::RSP
        && store.memory_index() == Register::None
        && store.memory_displacement64() == 0;
    let returns = takes && decoder.decode().flow_control() == FlowControl::Return;
    returns.then(|| store.op1_register())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::image::{Kind, Load};

    #[test]
    fn forms_of_compilers() {
        let through = |code: &[u8]| {
            let image = Image {
                bytes: code,
                kind: Kind::Dynamic,
                loads: vec![Load {
                    va: 0x1000,
                    offset: 0,
                    file_size: code.len() as u64,
                    exec: true,
                }],
                sections: Vec::new(),
                dynamic: None,
                interpreter: true,
                eh_frame_hdr: None,
                notes: Vec::new(),
            };
            thunk(&image, 0x1000)
        };
        // call; pause; lfence; jmp; mov [rsp], rdx; ret
        let gcc = [
            0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x89, 0x14, 0x24,
            0xc3,
        ];
        assert_eq!(through(&gcc), Some(Register::RDX));
        // That of a function's return: lea rsp, [rsp + 8]; ret.
        let mut returns = gcc[..12].to_vec();
        returns.extend([0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3]);
        assert_eq!(through(&returns), None);
        assert_eq!(
            through(&[0x0f, 0xae, 0xe8, 0xff, 0xe0]),
            Some(Register::RAX)
        );
        // A function that calls another at its end.
        assert_eq!(through(&[0xff, 0xe7]), None);
    }
}
