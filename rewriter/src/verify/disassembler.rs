//! Capstone, and a form of instructions in which addresses are apart from the text.

use super::error::VerifyError;
use capstone::DisasmIter;
use capstone::arch::x86::ArchMode;
use capstone::prelude::*;
use smallvec::SmallVec;

/// Stands in a shape where the instruction has an address.
const ADDRESS: u8 = b'@';

/// A decoded instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Insn {
    pub at: u64,
    bytes: SmallVec<[u8; 15]>,
    /// Mnemonic and operands, with `@` for the destination of a direct branch and for the address of an operand that is
    /// relative to rip.
    shape: SmallVec<[u8; 32]>,
    /// Where the mnemonic stands in it without prefixes: `jmp`, `call`, `ret`.
    verb: (u8, u8),
    /// Destination of a direct branch.
    pub to: Option<u64>,
    /// Address of a rip-relative operand.
    pub memory: Option<u64>,
}

impl Insn {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(super) fn end(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(super) fn verb(&self) -> &[u8] {
        &self.shape[usize::from(self.verb.0)..usize::from(self.verb.1)]
    }

    pub(super) fn shape(&self) -> &[u8] {
        &self.shape
    }

    /// Destination or operand's address.
    pub(super) fn address(&self) -> Option<u64> {
        self.to.or(self.memory)
    }

    /// With the address in its place.
    pub(super) fn text(&self) -> String {
        text(&self.shape, self.address())
    }

    /// Whether control never continues behind it.
    pub(super) fn ends(&self) -> bool {
        const LAST: [&str; 10] = [
            "ret", "jmp", "retf", "retfq", "iret", "iretd", "iretq", "ud0", "ud1", "ud2",
        ];
        LAST.iter().any(|last| last.as_bytes() == self.verb())
    }

    /// Places in the bytes of a 32-bit displacement that leads to the rip-relative operand.
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

/// A shape with an address in its place.
pub(super) fn text(shape: &[u8], address: Option<u64>) -> String {
    let shape = String::from_utf8_lossy(shape);
    match address {
        Some(address) => shape.replacen(ADDRESS as char, &format!("{address:#x}"), 1),
        None => shape.into_owned(),
    }
}

/// Decodes one instruction at a time.
pub(super) struct Disassembler(Capstone);

impl Disassembler {
    pub(super) fn new() -> Result<Disassembler, VerifyError> {
        // Without details, which take most of its time: the text says all.
        let built = Capstone::new()
            .x86()
            .mode(ArchMode::Mode64)
            .detail(false)
            .build();
        let failed = |e| VerifyError::damaged(format!("capstone doesn't start: {e}"));
        Ok(Disassembler(built.map_err(failed)?))
    }

    pub(super) fn reader<'d>(&self) -> Result<Reader<'_, 'd>, VerifyError> {
        let failed = |e| VerifyError::damaged(format!("capstone doesn't start: {e}"));
        Ok(Reader(self.0.disasm_iter(&[], 0).map_err(failed)?))
    }
}

/// Reads with a buffer of its own.
pub(super) struct Reader<'c, 'd>(DisasmIter<'c, 'd>);

impl<'d> Reader<'_, 'd> {
    /// The instruction at the start of `code`, which lies at `at`.
    pub(super) fn decode(&mut self, code: &'d [u8], at: u64) -> Option<Insn> {
        self.0.reset(&code[..code.len().min(15)], at);
        let insn = self.0.next()?;
        let mnemonic = insn.mnemonic()?;
        let verb = mnemonic.split(' ').next_back()?;
        let verb = ((mnemonic.len() - verb.len()) as u8, mnemonic.len() as u8);
        let operands = insn.op_str().unwrap_or_default();
        let mut decoded = Insn {
            at,
            bytes: SmallVec::from_slice(insn.bytes()),
            shape: SmallVec::from_slice(mnemonic.as_bytes()),
            verb,
            to: None,
            memory: None,
        };
        if operands.is_empty() {
            return Some(decoded);
        }
        decoded.shape.push(b' ');
        let name = decoded.verb();
        let branches = name.starts_with(b"j") || name == b"call" || name.starts_with(b"loop");
        decoded.to = number(operands).filter(|_| branches);
        if decoded.is_branch() {
            decoded.shape.push(ADDRESS);
            return Some(decoded);
        }
        match absolute(operands, decoded.end()) {
            Some((before, address, after)) => {
                decoded.memory = Some(address);
                decoded.shape.extend_from_slice(before.as_bytes());
                decoded.shape.push(ADDRESS);
                decoded.shape.extend_from_slice(after.as_bytes());
            }
            None => decoded.shape.extend_from_slice(operands.as_bytes()),
        }
        Some(decoded)
    }
}

/// What stands before and behind the address of `[rip + x]`, and the address.
fn absolute(operands: &str, end: u64) -> Option<(&str, u64, &str)> {
    let at = operands.find("[rip")?;
    let rest = &operands[at + 4..];
    let close = rest.find(']')?;
    let offset = rest[..close].trim();
    let address = match offset.strip_prefix("- ") {
        Some(text) => end.wrapping_sub(number(text)?),
        None if offset.is_empty() => end,
        None => end.wrapping_add(number(offset.strip_prefix("+ ")?)?),
    };
    Some((&operands[..=at], address, &rest[close..]))
}

/// A number as capstone writes it: small ones decimal.
fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::place;
    use iced_x86::{Decoder, DecoderOptions, FlowControl};
    use std::collections::BTreeMap;

    fn decode(bytes: &[u8]) -> Insn {
        let disassembler = Disassembler::new().unwrap();
        let mut reader = disassembler.reader().unwrap();
        reader.decode(bytes, 0x1000).unwrap()
    }

    #[test]
    fn addresses_are_absolute() {
        let insn = decode(&[0x48, 0x83, 0x3d, 0x08, 0, 0, 0, 7, 0x90]);
        assert_eq!(insn.text(), "cmp qword ptr [0x1010], 7");
        assert_eq!(insn.shape(), b"cmp qword ptr [@], 7");
        assert_eq!(
            (insn.memory, insn.displacements()),
            (Some(0x1010), Some(vec![3]))
        );
        assert_eq!(
            decode(&[0x8b, 0x05, 0xfa, 0xff, 0xff, 0xff]).text(),
            "mov eax, dword ptr [0x1000]"
        );
        assert_eq!(
            decode(&[0x8b, 0x05, 0, 0, 0, 0]).text(),
            "mov eax, dword ptr [0x1006]"
        );
    }

    #[test]
    fn prefixed_calls_are_calls() {
        let insn = decode(&[0x67, 0xe8, 0xfa, 0x0e, 0, 0]);
        assert_eq!(
            (insn.verb(), insn.to, insn.bytes().len()),
            (&b"call"[..], Some(0x1f00), 6)
        );
        assert_eq!(insn.text(), "call 0x1f00");
        let insn = decode(&[0xff, 0x15, 0xfa, 0x0e, 0, 0]);
        assert_eq!((insn.to, insn.memory), (None, Some(0x1f00)));
    }

    #[test]
    fn branches_near_zero_lead_somewhere() {
        // Capstone writes what is below 10 without 0x.
        let insn = decode(&[0xe9, 0x00, 0xf0, 0xff, 0xff]);
        assert_eq!((insn.to, insn.shape()), (Some(5), &b"jmp @"[..]));
        let insn = decode(&[0xe9, 0x00, 0xe0, 0xff, 0xff]);
        assert_eq!(insn.to, Some(0xffff_ffff_ffff_f005));
    }

    #[test]
    fn numbers_of_other_instructions_are_no_destinations() {
        let insn = decode(&[0x68, 0x34, 0x12, 0, 0]); // push 0x1234
        assert_eq!((insn.to, insn.shape()), (None, &b"push 0x1234"[..]));
        let insn = decode(&[0xff, 0xe0]); // jmp rax
        assert_eq!((insn.to, insn.shape()), (None, &b"jmp rax"[..]));
    }

    #[test]
    fn returns_with_prefix_end() {
        assert!(decode(&[0xf3, 0xc3]).ends());
        assert!(decode(&[0xeb, 0xfe]).ends());
        assert!(!decode(&[0x74, 0xfe]).ends());
    }

    /// Random bytes behind the prefixes of vector instructions and of two-byte opcodes.
    fn random() -> Vec<[u8; 16]> {
        let mut state = 88172645463325252u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let mut code = |n: usize| {
            let mut code = [0; 16];
            code[..8].copy_from_slice(&next().to_le_bytes());
            code[8..].copy_from_slice(&next().to_le_bytes());
            let (odd, p) = (code[1], code[2]);
            match n % 8 {
                0..4 => {
                    let map = [1, 2, 3, 5, 6][usize::from(odd % 5)];
                    code[..3].copy_from_slice(&[0x62, odd & 0xf0 | map, p | 4]);
                }
                4 => code[..2].copy_from_slice(&[0xc4, odd & 0xe0 | [1, 2, 3][n % 3]]),
                5 => code[0] = 0xc5,
                6 => code[..2].copy_from_slice(&[[0x66, 0xf2, 0xf3, 0x48][n / 8 % 4], 0x0f]),
                _ => {}
            }
            code
        };
        (0..1_000_000).map(&mut code).collect()
    }

    #[test]
    fn what_only_the_planner_reads_never_moves() {
        let codes = random();
        let disassembler = Disassembler::new().unwrap();
        let mut reader = disassembler.reader().unwrap();
        let mut features: BTreeMap<String, (bool, u32, u32)> = BTreeMap::new();
        for code in &codes {
            let mut decoder = Decoder::with_ip(64, &code[..15], 0x1000, DecoderOptions::NONE);
            let insn = decoder.decode();
            if insn.is_invalid() || insn.flow_control() != FlowControl::Next {
                continue;
            }
            let read = reader.decode(&code[..15], 0x1000);
            let known = read.is_some_and(|read| read.bytes().len() == insn.len());
            for feature in insn.cpuid_features() {
                let seen = features.entry(format!("{feature:?}")).or_default();
                *seen = (
                    place::UNREAD.contains(feature),
                    seen.1 + 1,
                    seen.2 + u32::from(known),
                );
            }
        }
        assert!(
            features.values().filter(|f| f.0).count() > 10,
            "{features:?}"
        );
        for (name, (stays, seen, known)) in features {
            let none = seen >= 20 && known == 0;
            assert!(!none || stays, "{name}: {known} of {seen} are known");
            assert!(!stays || known == 0, "{name}: {known} of {seen} are known");
        }
    }
}
