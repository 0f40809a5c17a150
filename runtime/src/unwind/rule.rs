//! How one goes from a frame to its caller's, as a word: what the unwind information says at a return address.

use super::object::{self, Found};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindExpression, UnwindSection,
    UnwindTableRow, X86_64,
};

/// See [`Rule::of`]. 0 is "nothing known".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Rule(u64);

/// What an offset is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    Bp,
    /// What lies near the frame pointer ([`Rule::base_at`]): functions that align their stack keep the old one there.
    BehindBp,
}

/// Where the caller's frame pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// Still in its register.
    Same,
    /// So far from the caller's frame.
    At(isize),
    /// So far from the frame pointer.
    BehindBp(isize),
}

/// Code of this library.
const OWN: u64 = 1;
/// Nobody has called this.
const LAST: u64 = 2;
/// There is a caller.
const ON: u64 = 3;
const STATE: u64 = 3;
const BASE: u32 = 2;
const KEPT: u32 = 4;
const BASE_AT: u32 = 8;
const KEPT_AT: u32 = 16;
const OFFSET: u32 = 32;

impl Rule {
    const UNKNOWN: Rule = Rule(0);

    fn of(base: (Base, i8), offset: i32, kept: Kept) -> Option<Rule> {
        let (kind, at) = match kept {
            Kept::Same => (0, 0),
            Kept::At(at) => (1, at),
            Kept::BehindBp(at) => (2, at),
        };
        let at = i16::try_from(at).ok()? as u16;
        Some(Rule(
            ON | (base.0 as u64) << BASE
                | kind << KEPT
                | u64::from(base.1 as u8) << BASE_AT
                | u64::from(at) << KEPT_AT
                | u64::from(offset as u32) << OFFSET,
        ))
    }

    #[inline(always)]
    pub(super) fn is_own(self) -> bool {
        self.0 & STATE == OWN
    }

    #[inline(always)]
    pub(super) fn is_last(self) -> bool {
        self.0 & STATE == LAST
    }

    #[inline(always)]
    pub(super) fn goes_on(self) -> bool {
        self.0 & STATE == ON
    }

    #[inline(always)]
    pub(super) fn base(self) -> Base {
        match self.0 >> BASE & 3 {
            0 => Base::Sp,
            1 => Base::Bp,
            _ => Base::BehindBp,
        }
    }

    /// Of [`Base::BehindBp`]: how far from the frame pointer.
    #[inline(always)]
    pub(super) fn base_at(self) -> isize {
        (self.0 >> BASE_AT) as i8 as isize
    }

    /// From the base to the caller's frame; the return address lies right below that.
    #[inline(always)]
    pub(super) fn offset(self) -> isize {
        (self.0 >> OFFSET) as i32 as isize
    }

    #[inline(always)]
    pub(super) fn kept(self) -> Kept {
        let at = (self.0 >> KEPT_AT) as i16 as isize;
        match self.0 >> KEPT & 3 {
            0 => Kept::Same,
            1 => Kept::At(at),
            _ => Kept::BehindBp(at),
        }
    }
}

/// Room for unwind tables on the stack: nothing is allocated. What needs more is not followed.
struct OnStack;

impl UnwindContextStorage<usize> for OnStack {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, OnStack>; 4];
}

type Slice = EndianSlice<'static, LittleEndian>;

/// What to do at this return address.
pub(super) fn of(address: u64) -> Rule {
    // The call is right before.
    let Some(found) = object::find(address.wrapping_sub(1)) else {
        return Rule::UNKNOWN;
    };
    if found.is_own() {
        return Rule(OWN);
    }
    of_function(&found, address - 1).unwrap_or(Rule::UNKNOWN)
}

fn of_function(found: &Found, address: u64) -> Option<Rule> {
    let (section, at, base) = found.function(address)?;
    let frames = EhFrame::<Slice>::from(EndianSlice::new(section, LittleEndian));
    let bases = BaseAddresses::default().set_eh_frame(base);
    let function = frames
        .fde_from_offset(&bases, EhFrameOffset(at), EhFrame::cie_from_offset)
        .ok()?;
    if !function.contains(address) || function.is_signal_trampoline() {
        return None;
    }
    let mut context = UnwindContext::<usize, OnStack>::new_in();
    let row = function.unwind_info_for_address(&frames, &bases, &mut context, address);
    of_row(row.ok()?, &frames)
}

fn of_row(row: &UnwindTableRow<usize, OnStack>, frames: &EhFrame<Slice>) -> Option<Rule> {
    match row.register(X86_64::RA) {
        Some(RegisterRule::Offset(-8)) => {}
        Some(RegisterRule::Undefined) => return Some(Rule(LAST)),
        _ => return None,
    }
    let (base, offset) = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            let base = match *register {
                X86_64::RSP => Base::Sp,
                X86_64::RBP => Base::Bp,
                _ => return None,
            };
            ((base, 0), i32::try_from(*offset).ok()?)
        }
        CfaRule::Expression(e) => match bytes(e, frames)? {
            [DW_OP_BREG6, at, DW_OP_DEREF] => ((Base::BehindBp, short(*at)?), 0),
            _ => return None,
        },
    };
    let kept = match row.register(X86_64::RBP) {
        // Not mentioned: it is the caller's.
        None | Some(RegisterRule::Undefined | RegisterRule::SameValue) => Kept::Same,
        Some(RegisterRule::Offset(at)) => Kept::At(isize::try_from(at).ok()?),
        Some(RegisterRule::Expression(e)) => match bytes(&e, frames)? {
            [DW_OP_BREG6, at] => Kept::BehindBp(short(*at)?.into()),
            _ => return None,
        },
        _ => return None,
    };
    Rule::of(base, offset, kept)
}

/// The frame pointer plus a number (DWARF, 7.7.1).
const DW_OP_BREG6: u8 = 0x76;
const DW_OP_DEREF: u8 = 0x06;

/// A signed LEB128 number of one byte.
fn short(byte: u8) -> Option<i8> {
    (byte & 0x80 == 0).then_some((byte << 1) as i8 >> 1)
}

fn bytes(e: &UnwindExpression<usize>, frames: &EhFrame<Slice>) -> Option<&'static [u8]> {
    Some(e.get(frames).ok()?.0.slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_words() {
        for base in [(Base::Sp, 0), (Base::Bp, 0), (Base::BehindBp, -8)] {
            for offset in [8, 16, 1 << 20, -16] {
                for kept in [
                    Kept::Same,
                    Kept::At(-16),
                    Kept::At(-4096),
                    Kept::BehindBp(0),
                ] {
                    let rule = Rule::of(base, offset, kept).expect("it fits");
                    assert!(rule.goes_on() && !rule.is_last() && !rule.is_own());
                    assert_eq!((rule.base(), rule.base_at()), (base.0, base.1.into()));
                    assert_eq!((rule.offset(), rule.kept()), (offset as isize, kept));
                }
            }
        }
        assert_eq!(Rule::of((Base::Sp, 0), 8, Kept::At(-40_000)), None);
        assert!(!Rule::UNKNOWN.goes_on() && !Rule::UNKNOWN.is_last());
        assert_eq!(short(0x78), Some(-8));
        assert_eq!(short(0x80), None);
    }
}
