//! Who has called an instruction: what a file's unwind information says of the frame there, for stacks that were copied while the
//! program ran.
//!
//! Only the stack pointer and the frame pointer are followed, since compilers describe frames by these. Where they don't, nothing is
//! said: a stack that ends there is better than one that is guessed.

use crate::image::Image;
use crate::model::LinkVa;
use crate::unwind::{Cfa, Frames, Row, Rule, entry, row};
use gimli::{BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindContext, UnwindSection};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection};
use std::fmt;
use std::ops::Range;

/// DWARF's numbers of the frame pointer, the stack pointer, the return address.
const RBP: u16 = 6;
const RSP: u16 = 7;
const RA: u16 = 16;
/// Operations of expressions (DWARF 5, 7.7.1): a register plus a number; what lies there; small numbers; arithmetic.
const BREG_RBP: u8 = 0x76;
const BREG_RSP: u8 = 0x77;
const BREG_RA: u8 = 0x80;
const DEREF: u8 = 0x06;
const LIT0: u8 = 0x30;
const LIT3: u8 = LIT0 + 3;
const LIT15: u8 = LIT0 + 15;
const AND: u8 = 0x1a;
const GE: u8 = 0x2a;
const SHL: u8 = 0x24;
const PLUS: u8 = 0x22;

/// How to go from a frame to its caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerRule {
    /// Nobody has called this.
    Last,
    /// There is a caller. Its frame begins so many bytes above the base; the return address lies right below that.
    Up {
        /// What the number is added to.
        base: Base,
        /// In bytes.
        offset: i64,
        /// Where its frame pointer is.
        kept: Kept,
    },
}

/// What an offset is added to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// The stack pointer.
    Sp,
    /// The frame pointer.
    Bp,
    /// What lies so far from the frame pointer: functions that align their stack keep the old one there.
    BehindBp(i64),
}

/// Where the caller's frame pointer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Still in its register.
    Same,
    /// In memory, so far from where the caller's frame begins.
    At(i64),
    /// In memory, so far from the frame pointer.
    BehindBp(i64),
}

/// A file's unwind information, by place. It has no part of the file's bytes, which are asked for again.
pub struct CallerRules {
    /// Of segments: where they are in the file, and their link-time address.
    loads: Vec<(Range<u64>, u64)>,
    /// Where `.eh_frame` and what is behind it is in the file, and its link-time address.
    section: Range<usize>,
    va: u64,
    /// First address and rules' address of each function, ascending.
    entries: Vec<(u64, u64)>,
    /// Many kilobytes, of use again and again.
    context: UnwindContext<usize>,
}

impl fmt::Debug for CallerRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallerRules").finish_non_exhaustive()
    }
}

impl CallerRules {
    /// Reads where rules are. `None`: the file has none.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<CallerRules> {
        let image = Image::read(bytes, "").ok()?;
        let (va, entries) = match Frames::read(&image) {
            Some(frames) => (frames.va(), frames.entries),
            None => listed(bytes)?,
        };
        let from = usize::try_from(image.offset_of(LinkVa(va), 1)?).ok()?;
        let len = image.loaded_from(LinkVa(va))?.len();
        let load =
            |s: &crate::image::Segment| Some((s.offset..s.offset.checked_add(s.file_size)?, s.va));
        Some(CallerRules {
            loads: image.loads().filter_map(load).collect(),
            section: from..from.checked_add(len)?,
            va,
            entries,
            context: UnwindContext::new(),
        })
    }

    /// What to do at an instruction, given by where it is in the file. `bytes`: those of the same file. `None`: nothing is known.
    pub fn at(&mut self, bytes: &[u8], offset: u64) -> Option<CallerRule> {
        let (load, va) = self.loads.iter().find(|(file, _)| file.contains(&offset))?;
        let address = va.checked_add(offset - load.start)?;
        let section = EhFrame::new(bytes.get(self.section.clone())?, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.va);
        let table = (self.va, &self.entries[..]);
        let row = row(&section, &bases, table, address, &mut self.context)?;
        caller(&row, address)
    }
}

impl CallerRules {
    /// Where the function at a link-time address begins, as far as unwind information tells. `bytes`: those of the same file.
    pub(crate) fn begin(&self, bytes: &[u8], address: u64) -> Option<u64> {
        let section = EhFrame::new(bytes.get(self.section.clone())?, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.va);
        let fde = entry(&section, &bases, (self.va, &self.entries), address)?;
        Some(fde.initial_address())
    }
}

/// The same as [`Frames`] has, of a file without a sorted table, as linkers make static programs: its section's entries one by one.
fn listed(bytes: &[u8]) -> Option<(u64, Vec<(u64, u64)>)> {
    let file = ElfFile64::<Endianness>::parse(bytes).ok()?;
    let section = file.section_by_name(".eh_frame")?;
    let va = section.address();
    let rules = EhFrame::new(section.data().ok()?, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(va);
    let mut all = rules.entries(&bases);
    let mut entries = vec![];
    while let Ok(Some(entry)) = all.next() {
        if let CieOrFde::Fde(fde) = entry
            && let Ok(fde) = fde.parse(EhFrame::cie_from_offset)
        {
            let at = va.checked_add(fde.offset() as u64)?;
            entries.push((fde.initial_address(), at));
        }
    }
    entries.sort_unstable();
    (!entries.is_empty()).then_some((va, entries))
}

fn caller(row: &Row, address: u64) -> Option<CallerRule> {
    let rule = |register| row.registers.iter().find(|(r, _)| *r == register);
    match rule(RA) {
        Some((_, Rule::Offset(-8))) => {}
        Some((_, Rule::Undefined)) => return Some(CallerRule::Last),
        _ => return None,
    }
    let (base, offset) = match &row.cfa {
        Cfa::Offset(RSP, offset) => (Base::Sp, *offset),
        Cfa::Offset(RBP, offset) => (Base::Bp, *offset),
        Cfa::Offset(..) => return None,
        Cfa::Expression(e) => match e[..] {
            [BREG_RBP, at, DEREF] => (Base::BehindBp(short(at)?), 0),
            // Entries of linkage tables have 16 bytes; from one of them on a word more is on the stack.
            [
                BREG_RSP,
                8,
                BREG_RA,
                0,
                LIT15,
                AND,
                from,
                GE,
                LIT3,
                SHL,
                PLUS,
            ] => {
                let pushed = address & 15 >= u64::from(from.checked_sub(LIT0)?);
                (Base::Sp, if pushed { 16 } else { 8 })
            }
            _ => return None,
        },
    };
    let kept = match rule(RBP).map(|(_, rule)| rule) {
        // Not mentioned: it is the caller's.
        None | Some(Rule::Undefined | Rule::SameValue) => Kept::Same,
        Some(Rule::Offset(at)) => Kept::At(*at),
        Some(Rule::Expression(e)) => match e[..] {
            [BREG_RBP, at] => Kept::BehindBp(short(at)?),
            _ => return None,
        },
        Some(_) => return None,
    };
    Some(CallerRule::Up { base, offset, kept })
}

/// A signed LEB128 number of one byte.
fn short(byte: u8) -> Option<i64> {
    (byte & 0x80 == 0).then_some(i64::from((byte << 1).cast_signed() >> 1))
}
