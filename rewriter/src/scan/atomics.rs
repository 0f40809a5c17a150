//! Locked instructions and fences in outlined functions: what compilers make of `atomic` and `flush`, and of other things
//! too (C11's atomics look the same). A probe would cost more than the instruction: they are listed only.

use super::Module;
use super::cfg::Body;
use super::draft::Draft;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use ompfuse_format::Construct;
use ompfuse_format::site::{Edge, Mechanism};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// An atomic instruction or fence: its address, and what it may stand for.
pub(crate) type Atomic = (u64, Construct);

/// Adds those in the functions that the drafts hand over. `known`: the instructions of some functions, by the functions'
/// addresses.
pub(crate) fn add(
    module: &Module<'_>,
    known: &FxHashMap<u64, Vec<Atomic>>,
    drafts: &mut Vec<Draft>,
) {
    let mut outlined: Vec<u64> = drafts.iter().filter_map(|d| d.outlined).collect();
    outlined.sort_unstable();
    outlined.dedup();
    let found: Vec<Vec<Draft>> = outlined
        .par_iter()
        .map(|&start| match known.get(&start) {
            Some(known) => known.iter().map(|a| draft(module, start, a)).collect(),
            None => {
                let function = module.functions.at(start).map(|i| module.functions.get(i));
                let end = function.map_or(start, |f| f.end);
                let code = module.image.rest(start).unwrap_or_default();
                let len = usize::try_from(end - start).unwrap_or(usize::MAX);
                let mut found = Vec::new();
                if bytes_may_hold(&code[..len.min(code.len())]) {
                    sweep(module, start, end, &mut found);
                }
                module.madvise.read(end - start);
                found.iter().map(|a| draft(module, start, a)).collect()
            }
        })
        .collect();
    drafts.extend(found.into_iter().flatten());
}

fn draft(module: &Module<'_>, function: u64, &(va, construct): &Atomic) -> Draft {
    let function = module.functions.at(function);
    let mut draft = Draft::new(va, construct, Edge::Encloses);
    draft.function = function.map(|i| i as u32);
    draft.detail = Some("or equivalent".into());
    draft.skip("a probe would cost more than the instruction; listed only");
    draft.mechanism = Mechanism::Inline;
    draft
}

/// Whether bytes of code may hold an atomic instruction or a fence, wherever the instructions begin: most functions' bytes
/// tell that they don't, which is much quicker than decoding them.
fn bytes_may_hold(code: &[u8]) -> bool {
    let fences = |at: usize| {
        let modrm = code.get(at + FENCES.len());
        modrm.is_none_or(|modrm| modrm & 0xf8 == 0xf0)
    };
    memchr::memchr3_iter(LOCK, 0x86, 0x87, code).any(|at| match code[at] {
        LOCK => may_be_locked(&code[at + 1..]),
        _ => code.get(at + 1).is_none_or(|modrm| modrm >> 6 != 3),
    }) || memchr::memmem::find_iter(code, &FENCES).any(fences)
}

/// The prefix.
const LOCK: u8 = 0xf0;
/// The opcode of fences.
const FENCES: [u8; 2] = [0x0f, 0xae];

/// Whether what stands behind a lock prefix may be an instruction that can be locked; it may be cut off.
fn may_be_locked(code: &[u8]) -> bool {
    let is_prefix = |b: &&u8| {
        matches!(
            **b,
            0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
        )
    };
    let prefixes = code.iter().take_while(is_prefix).count();
    let memory = |at: usize| code.get(prefixes + at).is_none_or(|modrm| modrm >> 6 != 3);
    match code.get(prefixes) {
        None => true,
        Some(0x0f) => code.get(prefixes + 1).is_none_or(|&b| match b {
            // Of control registers: there is no memory operand.
            0x20 | 0x22 => true,
            0xab | 0xb0 | 0xb1 | 0xb3 | 0xba | 0xbb | 0xc0 | 0xc1 | 0xc7 => memory(2),
            _ => false,
        }),
        Some(0x00..=0x31 | 0x80..=0x83 | 0x86 | 0x87 | 0xf6 | 0xf7 | 0xfe | 0xff) => memory(1),
        Some(_) => false,
    }
}

/// Adds what decoding one instruction after the other finds; tells where the last one ends.
fn sweep(module: &Module<'_>, start: u64, end: u64, out: &mut Vec<Atomic>) -> u64 {
    let Some(code) = module.image.rest(start) else {
        return start;
    };
    let mut start = start;
    let mut code = code;
    // Most gaps are filled like this only.
    while start < end
        && let Some(len) = filler(code)
    {
        code = &code[len..];
        start += len as u64;
    }
    if start >= end {
        return start;
    }
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut insn = Instruction::default();
    while decoder.can_decode() && decoder.ip() < end {
        decoder.decode_out(&mut insn);
        out.extend(construct(&insn).map(|c| (insn.ip(), c)));
    }
    decoder.ip()
}

/// Length of the instruction that code begins with, if it is one of those that compilers and assemblers fill gaps with, of
/// any length.
fn filler(code: &[u8]) -> Option<usize> {
    const MOST_PREFIXES: usize = 6;
    let prefixes = code.iter().take_while(|&&b| b == 0x66).count();
    let prefixes = prefixes + usize::from(code.get(prefixes) == Some(&0x2e));
    let len = match code.get(prefixes..)? {
        [0x90, ..] => 1,
        [0xcc, ..] if prefixes == 0 => 1,
        [0x0f, 0x1f, modrm, ..] => match modrm {
            0x00 => 3,
            0x40 => 4,
            0x44 => 5,
            0x80 => 7,
            0x84 => 8,
            _ => return None,
        },
        _ => return None,
    };
    (prefixes <= MOST_PREFIXES && prefixes + len <= code.len()).then_some(prefixes + len)
}

/// Those of a function that is decoded already, as decoding it from beginning to end finds them; `None` where its
/// instructions don't tell, since they overlap or their gaps hold no whole ones.
pub(crate) fn of_body(module: &Module<'_>, body: &Body) -> Option<Vec<Atomic>> {
    let function = module.functions.get(body.function);
    let first = body.blocks.partition_point(|b| b.start < function.start);
    let mut out = Vec::new();
    let mut at = function.start;
    for block in &body.blocks[first..] {
        let insns = &body.insns[block.insns.clone()];
        let here = block.start.min(function.end);
        if at < here {
            at = sweep(module, at, here, &mut out);
        }
        if at != here {
            return None;
        }
        if here == function.end {
            return Some(out);
        }
        at = insns.last()?.next_ip();
        // There are no gaps within a block.
        if body.atomics || at > function.end {
            for insn in insns {
                match insn.ip().cmp(&function.end) {
                    Ordering::Less => out.extend(construct(insn).map(|c| (insn.ip(), c))),
                    Ordering::Equal => return Some(out),
                    Ordering::Greater => return None,
                }
            }
        }
    }
    sweep(module, at, function.end, &mut out);
    Some(out)
}

/// Whether an instruction with this code, and without a lock prefix, may be an atomic one or a fence.
pub(crate) fn may_be_one(code: Code) -> bool {
    matches!(
        code,
        Code::Xchg_rm8_r8
            | Code::Xchg_rm16_r16
            | Code::Xchg_rm32_r32
            | Code::Xchg_rm64_r64
            | Code::Mfence
    )
}

fn construct(insn: &Instruction) -> Option<Construct> {
    let to_memory = insn.op_count() > 0 && insn.op0_kind() == OpKind::Memory;
    match insn.mnemonic() {
        Mnemonic::Mfence => Some(Construct::Flush),
        _ if insn.has_lock_prefix() && changes_nothing(insn) => Some(Construct::Flush),
        _ if insn.has_lock_prefix() => Some(Construct::Atomic),
        Mnemonic::Xchg if to_memory => Some(Construct::Atomic),
        _ => None,
    }
}

/// A fence has this form when it is locked: 0 is or-ed to what is on the stack.
fn changes_nothing(locked: &Instruction) -> bool {
    locked.mnemonic() == Mnemonic::Or
        && locked.memory_base() == Register::RSP
        && matches!(locked.try_immediate(1), Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn of(bytes: &[u8]) -> Option<Construct> {
        let insn = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let found = construct(&insn);
        assert!(found.is_none() || insn.has_lock_prefix() || may_be_one(insn.code()));
        assert!(found.is_none() || bytes_may_hold(bytes));
        found
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

    #[test]
    fn what_fills_gaps_is_as_long_as_the_decoder_says() {
        let mut found = BTreeSet::new();
        for prefixes in 0..16 {
            for cs in [false, true] {
                for head in 0..0x200u32 {
                    // Every opcode of one byte, and every ModRM byte behind the one of nops.
                    let [a, b, c] = match head {
                        0..0x100 => [head as u8, 0, 0],
                        _ => [0x0f, 0x1f, head as u8],
                    };
                    let mut bytes = vec![0x66; prefixes];
                    bytes.extend(cs.then_some(0x2e));
                    bytes.extend([a, b, c, 0x04, 0, 0, 0, 0, 0]);
                    let Some(len) = filler(&bytes) else { continue };
                    let insn = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                    assert_eq!(insn.len(), len, "{bytes:x?}");
                    assert_eq!(construct(&insn), None);
                    assert!(!insn.is_invalid());
                    assert_eq!(filler(&bytes[..len]), Some(len));
                    assert_eq!(filler(&bytes[..len - 1]).filter(|&l| l >= len), None);
                    found.insert(len);
                }
            }
        }
        assert_eq!(found.last(), Some(&14));
        assert_eq!(filler(&[0xf3, 0x90]), None);
        assert_eq!(filler(&[]), None);
    }

    #[test]
    fn bytes_tell_of_every_atomic_instruction() {
        // Every opcode with every ModRM byte, locked or not.
        for prefix in [
            &[][..],
            &[0xf0],
            &[0xf0, 0x48],
            &[0x66, 0xf0],
            &[0xf0, 0xf2],
        ] {
            for (escape, opcode, modrm) in (0..1 << 17).map(|n| (n >> 16, n >> 8, n)) {
                let mut bytes = prefix.to_vec();
                bytes.extend([0x0f].iter().take(escape as usize));
                bytes.extend([opcode as u8, modrm as u8, 0, 0, 0, 0, 0, 0, 0, 0]);
                let insn = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                assert!(
                    construct(&insn).is_none() || bytes_may_hold(&bytes),
                    "{bytes:x?}"
                );
            }
        }
        assert!(!bytes_may_hold(&[
            0x48, 0x8b, 0x45, 0xf0, 0x48, 0x89, 0xc8, 0x0f, 0x87, 0xc0
        ]));
        assert!(bytes_may_hold(&[0x90, 0xf0]));
    }
}
