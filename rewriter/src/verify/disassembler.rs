//! Capstone, and a text form of instructions in which addresses are absolute.

use super::error::VerifyError;
use capstone::arch::x86::ArchMode;
use capstone::arch::x86::X86OperandType;
use capstone::prelude::*;

/// A decoded instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Insn {
    pub at: u64,
    pub bytes: Vec<u8>,
    /// Without prefixes: `jmp`, `call`, `ret`.
    pub verb: String,
    /// Mnemonic and operands; rip-relative ones as absolute addresses.
    pub text: String,
    /// Destination of a direct branch.
    pub to: Option<u64>,
    /// Address of a rip-relative operand.
    pub memory: Option<u64>,
}

impl Insn {
    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    /// Whether control never continues behind it.
    pub(super) fn ends(&self) -> bool {
        const LAST: [&str; 10] = [
            "ret", "jmp", "retf", "retfq", "iret", "iretd", "iretq", "ud0", "ud1", "ud2",
        ];
        LAST.contains(&self.verb.as_str())
    }

    /// Places in `bytes` of a 32-bit displacement that leads to the rip-relative operand.
    pub(super) fn displacements(&self) -> Option<Vec<usize>> {
        let displacement = self.memory?.wrapping_sub(self.end()) as u32;
        let fields = self.bytes.windows(4).enumerate();
        let here = fields.filter(|(_, field)| **field == displacement.to_le_bytes());
        Some(here.map(|(i, _)| i).collect())
    }

    pub(super) fn is_branch(&self) -> bool {
        self.to.is_some()
    }
}

/// Decodes one instruction at a time.
pub(super) struct Disassembler(Capstone);

impl Disassembler {
    pub(super) fn new() -> Result<Disassembler, VerifyError> {
        let built = Capstone::new()
            .x86()
            .mode(ArchMode::Mode64)
            .detail(true)
            .build();
        let failed = |e| VerifyError::damaged(format!("capstone doesn't start: {e}"));
        Ok(Disassembler(built.map_err(failed)?))
    }

    /// The instruction at the start of `code`, which lies at `at`.
    pub(super) fn decode(&self, code: &[u8], at: u64) -> Option<Insn> {
        let decoded = self
            .0
            .disasm_count(&code[..code.len().min(15)], at, 1)
            .ok()?;
        let insn = decoded.iter().next()?;
        let detail = self.0.insn_detail(insn).ok()?;
        let arch = detail.arch_detail();
        let x86 = arch.x86()?;
        let mnemonic = insn.mnemonic()?;
        let verb = mnemonic.split(' ').next_back()?.to_string();
        let operands = insn.op_str().unwrap_or_default();
        let branches = verb.starts_with('j') || verb == "call" || verb.starts_with("loop");
        let to = x86.operands().find_map(|o| match o.op_type {
            X86OperandType::Imm(to) if branches => Some(to as u64),
            _ => None,
        });
        let bytes = insn.bytes().to_vec();
        let end = at + bytes.len() as u64;
        let (operands, memory) = absolute(operands, end);
        let text = format!("{mnemonic} {operands}").trim_end().to_string();
        Some(Insn {
            at,
            bytes,
            verb,
            text,
            to,
            memory,
        })
    }
}

/// Replaces `[rip + x]` by the address that it means.
fn absolute(operands: &str, end: u64) -> (String, Option<u64>) {
    let Some((before, rest)) = operands.split_once("[rip") else {
        return (operands.to_string(), None);
    };
    let Some((offset, after)) = rest.split_once(']') else {
        return (operands.to_string(), None);
    };
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    };
    let offset = offset.trim();
    let address = match offset.strip_prefix("- ") {
        Some(text) => number(text).map(|n| end.wrapping_sub(n)),
        None if offset.is_empty() => Some(end),
        None => offset
            .strip_prefix("+ ")
            .and_then(number)
            .map(|n| end.wrapping_add(n)),
    };
    match address {
        Some(a) => (format!("{before}[{a:#x}]{after}"), Some(a)),
        None => (operands.to_string(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(bytes: &[u8]) -> Insn {
        Disassembler::new().unwrap().decode(bytes, 0x1000).unwrap()
    }

    #[test]
    fn addresses_are_absolute() {
        let insn = decode(&[0x48, 0x83, 0x3d, 0x08, 0, 0, 0, 7, 0x90]);
        assert_eq!(insn.text, "cmp qword ptr [0x1010], 7");
        assert_eq!(
            (insn.memory, insn.displacements()),
            (Some(0x1010), Some(vec![3]))
        );
        assert_eq!(
            decode(&[0x8b, 0x05, 0xfa, 0xff, 0xff, 0xff]).text,
            "mov eax, dword ptr [0x1000]"
        );
        assert_eq!(
            decode(&[0x8b, 0x05, 0, 0, 0, 0]).text,
            "mov eax, dword ptr [0x1006]"
        );
    }

    #[test]
    fn prefixed_calls_are_calls() {
        let insn = decode(&[0x67, 0xe8, 0xfa, 0x0e, 0, 0]);
        assert_eq!(
            (insn.verb.as_str(), insn.to, insn.bytes.len()),
            ("call", Some(0x1f00), 6)
        );
        let insn = decode(&[0xff, 0x15, 0xfa, 0x0e, 0, 0]);
        assert_eq!((insn.to, insn.memory), (None, Some(0x1f00)));
    }

    #[test]
    fn returns_with_prefix_end() {
        assert!(decode(&[0xf3, 0xc3]).ends());
        assert!(decode(&[0xeb, 0xfe]).ends());
        assert!(!decode(&[0x74, 0xfe]).ends());
    }
}
