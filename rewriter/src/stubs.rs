//! Call sites: the changed call instruction, its stub and its way, as `ompfuse_format::abi` documents them.

use crate::image::Image;
use crate::model::{LinkVa, Target};
use crate::patch_error::PatchError;
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Length of a stub; they stand one behind the other.
pub(crate) const STUB_LEN: u64 = 12;

/// Distance between ways: two to a cache line, and a jump target is aligned.
pub(crate) const WAY_LEN: u64 = 32;

/// A direct branch with a 32-bit displacement, the only kind that we change or write.
pub(crate) const JUMP_LEN: u32 = 5;

/// Length of its short form.
pub(crate) const SHORT_JUMP_LEN: u32 = 2;

/// Fills what control can't reach: it traps should a mistake of ours lead there.
pub(crate) const UNREACHABLE: u8 = 0xcc;

/// `address-size` prefix without effect on a relative branch; linkers pad calls with it too.
const PAD_PREFIX: u8 = 0x67;

/// A call or jump that is led to a stub.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Redirect {
    /// The site.
    pub site: u32,
    /// Address of the instruction.
    pub at: LinkVa,
    /// Its length.
    pub len: u32,
    /// A `jmp`, not a `call`.
    pub tail: bool,
    /// It stays as it is: a relay leads to the stub.
    pub relayed: bool,
    /// Where it leads in the original.
    pub target: Target,
    /// Address of the stub.
    pub stub: LinkVa,
    /// What changes arguments first, and leads to the stub.
    pub setter: Option<LinkVa>,
}

/// Appends instructions at a known address and remembers the first displacement that doesn't fit.
pub(crate) struct Code64 {
    pub at: u64,
    pub bytes: Vec<u8>,
    too_far: Option<u64>,
}

impl Code64 {
    pub(crate) fn new(at: LinkVa) -> Code64 {
        Code64 {
            at: at.0,
            bytes: Vec::new(),
            too_far: None,
        }
    }

    pub(crate) fn here(&self) -> u64 {
        self.at + self.bytes.len() as u64
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An instruction whose last four bytes before `tail` are a displacement relative to its end.
    pub(crate) fn relative_with(&mut self, opcode: &[u8], to: u64, tail: &[u8]) {
        let end = self.here() + (opcode.len() + 4 + tail.len()) as u64;
        let displacement = to.wrapping_sub(end) as i64;
        if i32::try_from(displacement).is_err() {
            self.too_far.get_or_insert(to);
        }
        self.raw(opcode);
        self.raw(&(displacement as i32).to_le_bytes());
        self.raw(tail);
    }

    pub(crate) fn relative(&mut self, opcode: &[u8], to: u64) {
        self.relative_with(opcode, to, &[]);
    }

    /// The bytes, or the address that can't be reached.
    pub(crate) fn finish(self) -> Result<Vec<u8>, LinkVa> {
        match self.too_far {
            Some(to) => Err(LinkVa(to)),
            None => Ok(self.bytes),
        }
    }
}

/// `mov r11, [slot]; test r11, r11`: the thunk's address, 0 without the runtime library.
pub(crate) fn load_slot(code: &mut Code64, slot: u64) {
    code.relative(&[0x4c, 0x8b, 0x1d], slot);
    code.raw(&[0x4d, 0x85, 0xdb]);
}

/// `lea r10, [site]`.
pub(crate) fn load_site(code: &mut Code64, desc: u64) {
    code.relative(&[0x4c, 0x8d, 0x15], desc);
}

/// What calls of the same target have in common: the slot of their thunk, and the target.
pub(crate) type Way = (usize, Target);

/// Every way of the calls, in the order of their first use, and the number of each call's.
pub(crate) fn ways(calls: impl Iterator<Item = Way>) -> (Vec<Way>, Vec<u32>) {
    let mut numbers = FxHashMap::default();
    let mut all = Vec::new();
    let of_calls = calls.map(|way| {
        *numbers.entry(way).or_insert_with(|| {
            all.push(way);
            all.len() as u32 - 1
        })
    });
    let of_calls = of_calls.collect();
    (all, of_calls)
}

/// The stub of a call site.
pub(crate) fn stub(at: LinkVa, desc: u64, way: u64) -> Result<Vec<u8>, LinkVa> {
    let mut code = Code64::new(at);
    load_site(&mut code, desc);
    code.relative(&[0xe9], way);
    code.finish()
}

/// Changes arguments by `changes`, and goes on to the stub.
pub(crate) fn setter(at: LinkVa, changes: &[u8], stub: LinkVa) -> Result<Vec<u8>, LinkVa> {
    let mut code = Code64::new(at);
    code.raw(changes);
    code.relative(&[0xe9], stub.0);
    code.finish()
}

/// To the thunk whose address is in `slot`, or to the target.
pub(crate) fn way(at: LinkVa, slot: u64, target: Target) -> Result<Vec<u8>, LinkVa> {
    let mut code = Code64::new(at);
    load_slot(&mut code, slot);
    match target {
        Target::Direct(to) => code.relative(&[0x0f, 0x84], to.0), // jz target
        Target::Slot(_) => code.raw(&[0x74, 3]),                  // jz behind `jmp r11`
    }
    code.raw(&[0x41, 0xff, 0xe3]); // jmp r11
    if let Target::Slot(got) = target {
        code.relative(&[0xff, 0x25], got.0); // jmp [got]
    }
    code.finish()
}

/// The instruction that takes the place of a site's call or jump.
///
/// A call keeps its end, so that the return address is the original's.
pub(crate) fn redirected(redirect: &Redirect) -> Result<Vec<u8>, LinkVa> {
    let mut code = Code64::new(redirect.at);
    let to = redirect.setter.unwrap_or(redirect.stub).0;
    let spare = (redirect.len - JUMP_LEN) as usize;
    if redirect.tail {
        code.relative(&[0xe9], to);
        code.raw(&vec![UNREACHABLE; spare]);
    } else {
        code.raw(&vec![PAD_PREFIX; spare]);
        code.relative(&[0xe8], to);
    }
    code.finish()
}

/// An instruction of the original.
pub(crate) struct Decoded<'d> {
    pub instruction: Instruction,
    pub bytes: &'d [u8],
    /// Where in `bytes` a 32-bit displacement of a memory operand stands.
    pub displacement: Option<usize>,
}

/// Decodes the instruction at an address.
pub(crate) fn decode<'d>(image: &Image<'d>, at: LinkVa) -> Option<Decoded<'d>> {
    let offset = image.code_offset(at, 1)?;
    let rest = image.bytes.get(usize::try_from(offset).ok()?..)?;
    let mut decoder = Decoder::with_ip(64, &rest[..rest.len().min(15)], at.0, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let len = instruction.len();
    if instruction.is_invalid() || image.code_offset(at, len as u64).is_none() {
        return None;
    }
    let constants = decoder.get_constant_offsets(&instruction);
    let displacement =
        (constants.displacement_size() == 4).then(|| constants.displacement_offset());
    Some(Decoded {
        instruction,
        bytes: rest.get(..len)?,
        displacement,
    })
}

/// Where a call or jump leads, and whether it is a jump; `None` for everything else.
pub(crate) fn branch_target(instruction: &Instruction) -> Option<(Target, bool)> {
    match instruction.code() {
        Code::Call_rel32_64 => Some((Target::Direct(LinkVa(instruction.near_branch64())), false)),
        Code::Jmp_rel32_64 => Some((Target::Direct(LinkVa(instruction.near_branch64())), true)),
        code @ (Code::Call_rm64 | Code::Jmp_rm64)
            if instruction.op0_kind() == OpKind::Memory
                && instruction.memory_base() == Register::RIP
                && instruction.segment_prefix() == Register::None =>
        {
            let slot = LinkVa(instruction.memory_displacement64());
            Some((Target::Slot(slot), code == Code::Jmp_rm64))
        }
        _ => None,
    }
}

/// Checks that the code at a site is what the scan says.
pub(crate) fn check_site(
    image: &Image<'_>,
    at: LinkVa,
    len: u8,
    tail: bool,
    target: Target,
) -> Result<(), PatchError> {
    let error = |what: &str| PatchError::Site {
        path: image.path.into(),
        at,
        what: what.into(),
    };
    let Some(Decoded { instruction, .. }) = decode(image, at) else {
        return Err(error("there is no instruction in this file"));
    };
    if branch_target(&instruction) != Some((target, tail)) {
        return Err(error(
            "the instruction there is not the call that was found",
        ));
    }
    let len = u32::from(len);
    if instruction.len() != len as usize {
        return Err(error("the instruction there has another length"));
    }
    match len {
        0..JUMP_LEN => Err(PatchError::TooShort {
            path: image.path.into(),
            at,
            len,
        }),
        // One prefix is an established form; more would be legal but no linker writes them.
        JUMP_LEN | 6 => Ok(()),
        _ => Err(error("its call has prefixes")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_and_ways_are_the_documented_ones() {
        let code = stub(LinkVa(0x1000), 0x2040, 0x1100).unwrap();
        assert_eq!(
            code,
            [
                0x4c, 0x8d, 0x15, 0x39, 0x10, 0, 0, // lea r10, [rip + 0x1039]
                0xe9, 0xf4, 0, 0, 0, // jmp 0x1100
            ]
        );
        assert_eq!(code.len() as u64, STUB_LEN);
        let code = way(LinkVa(0x1000), 0x3010, Target::Direct(LinkVa(0x500))).unwrap();
        assert_eq!(
            code,
            [
                0x4c, 0x8b, 0x1d, 0x09, 0x20, 0, 0, // mov r11, [rip + 0x2009]
                0x4d, 0x85, 0xdb, // test r11, r11
                0x0f, 0x84, 0xf0, 0xf4, 0xff, 0xff, // jz 0x500
                0x41, 0xff, 0xe3, // jmp r11
            ]
        );
    }

    #[test]
    fn ways_through_a_slot_step_over_the_thunk() {
        let code = way(LinkVa(0x1000), 0x3010, Target::Slot(LinkVa(0x4000))).unwrap();
        assert_eq!(code[10..12], [0x74, 3]);
        assert_eq!(code[15..21], [0xff, 0x25, 0xeb, 0x2f, 0, 0]);
        assert!(code.len() as u64 <= WAY_LEN);
    }

    #[test]
    fn calls_of_one_target_share_their_way() {
        let way = |slot, to| (slot, Target::Direct(LinkVa(to)));
        let calls = [way(0, 1), way(0, 2), way(0, 1), way(1, 1)];
        let (all, of_calls) = ways(calls.into_iter());
        assert_eq!(all, [way(0, 1), way(0, 2), way(1, 1)]);
        assert_eq!(of_calls, [0, 1, 0, 2]);
    }

    fn redirect(len: u32, tail: bool) -> Redirect {
        let target = Target::Direct(LinkVa(0));
        Redirect {
            site: 0,
            at: LinkVa(0x100),
            len,
            tail,
            relayed: false,
            target,
            stub: LinkVa(0x1000),
            setter: None,
        }
    }

    #[test]
    fn calls_keep_their_end() {
        assert_eq!(
            redirected(&redirect(5, false)).unwrap(),
            [0xe8, 0xfb, 0x0e, 0, 0]
        );
        assert_eq!(
            redirected(&redirect(6, false)).unwrap(),
            [0x67, 0xe8, 0xfa, 0x0e, 0, 0]
        );
        assert_eq!(
            redirected(&redirect(6, true)).unwrap(),
            [0xe9, 0xfb, 0x0e, 0, 0, 0xcc]
        );
    }

    #[test]
    fn distances_beyond_two_gib_are_an_error() {
        let far = LinkVa(0x1_0000_0000);
        assert_eq!(way(LinkVa(0x1000), 0x3010, Target::Direct(far)), Err(far));
    }
}
