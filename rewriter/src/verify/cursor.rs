//! Reading added code, and comparing instructions.

use super::disassembler::{Disassembler, Insn};
use super::error::VerifyError;
use super::view::View;

/// Reads added code instruction by instruction.
pub(super) struct Cursor<'a> {
    pub disassembler: &'a Disassembler,
    pub view: &'a View<'a>,
    pub at: u64,
}

/// `lea r10, [rip + ...]`.
pub(super) const LEA_R10: [u8; 3] = [0x4c, 0x8d, 0x15];

impl Cursor<'_> {
    pub(super) fn load_slot(&mut self, slot: u64) -> Result<(), VerifyError> {
        self.expect(
            &[0x4c, 0x8b, 0x1d],
            &format!("mov r11, qword ptr [{slot:#x}]"),
        )?;
        self.expect(&[0x4d, 0x85, 0xdb], "test r11, r11")?;
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Insn, VerifyError> {
        let code = self.view.code_at(self.at);
        let insn = code.and_then(|code| self.disassembler.decode(code, self.at));
        let insn = insn.ok_or_else(|| mismatch(self.at, "an instruction", "none"))?;
        self.at = insn.end();
        Ok(insn)
    }

    /// An instruction with this text, encoded as documented: `head`, and an address if it has one.
    pub(super) fn expect(&mut self, head: &[u8], text: &str) -> Result<Insn, VerifyError> {
        let insn = self.next()?;
        let addressed = insn.memory.is_some() || insn.to.is_some();
        let field = if addressed { 4 } else { 0 };
        let with_field = insn.bytes.len() == head.len() + field && insn.bytes.starts_with(head);
        let form = insn.bytes == head || with_field;
        match (insn.text == text, form) {
            (true, true) => Ok(insn),
            (true, false) => Err(mismatch(insn.at, text, "another encoding of it")),
            (false, _) => Err(mismatch(insn.at, text, &insn.text)),
        }
    }
}

pub(super) fn mismatch(at: u64, expected: &str, found: &str) -> VerifyError {
    VerifyError::Code {
        at,
        expected: expected.into(),
        found: found.into(),
    }
}

/// A direct jump in its long form, without prefixes.
pub(super) fn canonical(branch: &Insn) -> bool {
    match branch.bytes[..] {
        [0xe9, _, _, _, _] => true,
        [0x0f, code, _, _, _, _] => code & 0xf0 == 0x80,
        _ => false,
    }
}

/// Byte for byte the same but for the displacement of a rip-relative operand; branches may be longer.
pub(super) fn same_form(was: &Insn, is: &Insn) -> bool {
    if was.is_branch() {
        return canonical(is);
    }
    if was.memory.is_none() {
        return was.bytes == is.bytes;
    }
    // Capstone is unsure where the field is behind a mandatory prefix, so look where the address is made.
    let (Some(old), Some(new)) = (was.displacements(), is.displacements()) else {
        return false;
    };
    let rest =
        |insn: &Insn, field: usize| [&insn.bytes[..field], &insn.bytes[field + 4..]].concat();
    old.iter()
        .any(|field| new.contains(field) && rest(was, *field) == rest(is, *field))
}
