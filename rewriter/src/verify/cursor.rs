//! Reading added code, and comparing instructions.

use super::disassembler::{Insn, Reader, text};
use super::error::VerifyError;
use super::view::View;

/// Reads added code instruction by instruction.
pub(super) struct Cursor<'a, 'c, 'd> {
    pub reader: &'a mut Reader<'c, 'd>,
    pub view: &'a View<'d>,
    pub at: u64,
}

/// `lea r10, [rip + ...]`.
pub(super) const LEA_R10: [u8; 3] = [0x4c, 0x8d, 0x15];

impl Cursor<'_, '_, '_> {
    pub(super) fn load_slot(&mut self, slot: u64) -> Result<(), VerifyError> {
        self.expect_at(&[0x4c, 0x8b, 0x1d], "mov r11, qword ptr [@]", slot)?;
        self.expect(&[0x4d, 0x85, 0xdb], "test r11, r11")?;
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Insn, VerifyError> {
        let code = self.view.code_at(self.at);
        let insn = code.and_then(|code| self.reader.decode(code, self.at));
        let insn = insn.ok_or_else(|| mismatch(self.at, "an instruction", "none"))?;
        self.at = insn.end();
        Ok(insn)
    }

    /// An instruction without address, encoded as documented.
    pub(super) fn expect(&mut self, bytes: &[u8], shape: &str) -> Result<Insn, VerifyError> {
        let insn = self.next()?;
        compare(insn, bytes, 0, shape, None)
    }

    /// An instruction of this shape with this address, encoded as `head` and a displacement.
    pub(super) fn expect_at(
        &mut self,
        head: &[u8],
        shape: &str,
        address: u64,
    ) -> Result<Insn, VerifyError> {
        let insn = self.next()?;
        compare(insn, head, 4, shape, Some(address))
    }

    /// A conditional branch in its short form over the next instructions.
    pub(super) fn expect_short(
        &mut self,
        bytes: &[u8],
        shape: &str,
        to: u64,
    ) -> Result<Insn, VerifyError> {
        let insn = self.next()?;
        compare(insn, bytes, 0, shape, Some(to))
    }
}

fn compare(
    insn: Insn,
    head: &[u8],
    field: usize,
    shape: &str,
    address: Option<u64>,
) -> Result<Insn, VerifyError> {
    let form = insn.bytes().len() == head.len() + field && insn.bytes().starts_with(head);
    let same = insn.shape() == shape.as_bytes() && insn.address() == address;
    if same && form {
        return Ok(insn);
    }
    let expected = text(shape.as_bytes(), address);
    Err(match same {
        true => mismatch(insn.at, &expected, "another encoding of it"),
        false => mismatch(insn.at, &expected, &insn.text()),
    })
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
    match branch.bytes() {
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
        return was.bytes() == is.bytes();
    }
    // Capstone is unsure where the field is behind a mandatory prefix, so look where the address is made.
    let (Some(old), Some(new)) = (was.displacements(), is.displacements()) else {
        return false;
    };
    let rest =
        |insn: &Insn, field: usize| [&insn.bytes()[..field], &insn.bytes()[field + 4..]].concat();
    old.iter()
        .any(|field| new.contains(field) && rest(was, *field) == rest(is, *field))
}
