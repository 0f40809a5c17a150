//! Indirect calls and jumps in another form: through code that puts a register in the place of its return address and returns,
//! which no processor predicts (retpolines, `-mindirect-branch=thunk` and `thunk-inline`).

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// A file's code.
pub(crate) trait FileCode {
    /// The bytes from an address on.
    fn from(&self, at: u64) -> Option<&[u8]>;
}

/// Bytes that a thunk has at most.
const LONGEST: usize = 48;

/// The register that a direct branch leads through to an address, and whether it is a jump. It is one if it is a jump to a thunk,
/// or the call in one that stands in the place of a jump.
pub(crate) fn through(file: &impl FileCode, insn: &Instruction) -> Option<(Register, bool)> {
    if insn.op0_kind() != OpKind::NearBranch64 {
        return None;
    }
    let target = insn.near_branch_target();
    match insn.flow_control() {
        FlowControl::UnconditionalBranch => thunk(file, target).map(|r| (r, true)),
        FlowControl::Call => match thunk(file, target) {
            Some(register) => Some((register, false)),
            None => capture(file, target).map(|r| (r, true)),
        },
        _ => None,
    }
}

/// The register to whose address the code at this one leads, if it is a thunk. It is one if it has a call of code in it
/// that takes the register for its return address, or a fence before the jump.
pub(crate) fn thunk(file: &impl FileCode, at: u64) -> Option<Register> {
    let code = file.from(at)?;
    let code = &code[..code.len().min(LONGEST)];
    // What most functions begin with needn't be decoded.
    if !matches!(code, [0xe8, ..] | [0x0f, 0xae, ..] | [0xf3, 0x0f, ..]) {
        return None;
    }
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
            near.then(|| capture(file, to))?
        }
        FlowControl::IndirectBranch if fenced && insn.op0_kind() == OpKind::Register => {
            Some(insn.op0_register())
        }
        _ => None,
    }
}

/// The register that the code at this address puts in the place of its return address, to return to it.
pub(crate) fn capture(file: &impl FileCode, at: u64) -> Option<Register> {
    let code = file.from(at)?;
    // What else begins functions needn't be decoded.
    if !matches!(code, [0x48 | 0x4c, 0x89, ..]) {
        return None;
    }
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

/// Whether a direct jump leads to code that takes its own return address off the stack and returns to the one above, or a call
/// stands in the place of such a jump. Then what was pushed before is jumped to, or the function returns.
pub(crate) fn returns(file: &impl FileCode, insn: &Instruction) -> bool {
    if insn.op0_kind() != OpKind::NearBranch64 {
        return false;
    }
    let target = insn.near_branch_target();
    match insn.flow_control() {
        FlowControl::Call => drops(file, target),
        FlowControl::UnconditionalBranch => {
            let Some(code @ [0xe8, ..]) = file.from(target) else {
                return false;
            };
            let code = &code[..code.len().min(LONGEST)];
            let call = Decoder::with_ip(64, code, target, DecoderOptions::NONE).decode();
            let to = call.near_branch_target();
            let near = to > target && to - target < LONGEST as u64;
            near && !call.is_invalid() && drops(file, to)
        }
        _ => false,
    }
}

/// Whether the code at this address takes its return address off the stack and returns: `lea rsp, [rsp + 8]; ret`.
fn drops(file: &impl FileCode, at: u64) -> bool {
    const DROPS: [u8; 6] = [0x48, 0x8d, 0x64, 0x24, 0x08, 0xc3];
    file.from(at).is_some_and(|code| code.starts_with(&DROPS))
}

/// Whether code at this address pushes what a slot holds and jumps to that, and the call behind it leads there: in the place
/// of a call through memory, of code that isn't position-independent, `jmp 2; 1: push [slot]; jmp thunk; 2: call 1`.
pub(crate) fn is_pushing_stub(file: &impl FileCode, at: u64) -> bool {
    let Some(code) = file.from(at) else {
        return false;
    };
    let code = &code[..code.len().min(LONGEST)];
    let mut decoder = Decoder::with_ip(64, code, at, DecoderOptions::NONE);
    let push = decoder.decode();
    let jump = decoder.decode();
    if push.mnemonic() != Mnemonic::Push
        || !push.is_ip_rel_memory_operand()
        || !returns(file, &jump)
    {
        return false;
    }
    while decoder.can_decode() {
        let insn = decoder.decode();
        match insn.flow_control() {
            FlowControl::Call => return insn.near_branch_target() == at,
            // What is executed while a processor guesses, and the code that takes the address off.
            FlowControl::Next | FlowControl::UnconditionalBranch | FlowControl::Return => {}
            _ => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bytes<'b>(&'b [u8]);

    impl FileCode for Bytes<'_> {
        fn from(&self, at: u64) -> Option<&[u8]> {
            self.0.get(at.checked_sub(0x1000)? as usize..)
        }
    }

    #[test]
    fn forms_of_compilers() {
        let through = |code: &[u8]| thunk(&Bytes(code), 0x1000);
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
