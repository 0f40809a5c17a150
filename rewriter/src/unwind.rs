//! Unwind information: the original's rules, and the same rules for the code that stands in for it in trampolines.
//!
//! Unwinders of the process find `.eh_frame` by the sorted table in `.eh_frame_hdr`; debuggers, which read only one
//! section `.eh_frame`, find the same rules in a `.debug_frame` of ours.

mod emit;

pub(crate) use emit::{Function, debug_frame, eh_frame, eh_frame_len, table, table_len};

use crate::image::Image;
use crate::model::LinkVa;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, FrameDescriptionEntry,
    LittleEndian, RegisterRule, UnwindContext, UnwindSection,
};
use object::elf::PT_GNU_EH_FRAME;

/// DWARF's number of the stack pointer.
const RSP: u16 = 7;
/// `DW_OP_breg6`: an address relative to rbp, which nothing of ours changes.
const BREG_RBP: u8 = 0x76;
/// The header of `.eh_frame_hdr` before its table.
const TABLE_HEAD: usize = 12;

/// How to find the caller's frame at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub cfa: Cfa,
    /// By register; the default is the initial rule.
    pub registers: Vec<(u16, Rule)>,
}

/// The caller's stack pointer at the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cfa {
    Offset(u16, i64),
    Expression(Vec<u8>),
}

/// Where the caller's value of a register is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    Undefined,
    SameValue,
    Offset(i64),
    ValOffset(i64),
    Register(u16),
    Expression(Vec<u8>),
    ValExpression(Vec<u8>),
}

impl Row {
    /// The rules where `depth` more bytes are on the stack; `None` where they depend on what a trampoline changes.
    pub(crate) fn deeper(&self, depth: u32) -> Option<Row> {
        let stable = |expression: &[u8]| expression.first() == Some(&BREG_RBP);
        let mut row = self.clone();
        match &mut row.cfa {
            Cfa::Offset(RSP, offset) => *offset += i64::from(depth),
            Cfa::Offset(10..=11, _) => return None,
            Cfa::Offset(_, offset) if *offset < 0 => return None,
            Cfa::Offset(..) => {}
            Cfa::Expression(expression) => {
                if !stable(expression) {
                    return None;
                }
            }
        }
        let kept = self.registers.iter().all(|(_, rule)| match rule {
            Rule::Expression(e) | Rule::ValExpression(e) => stable(e),
            Rule::Register(register) => !(10..=11).contains(register),
            Rule::Offset(n) | Rule::ValOffset(n) => n % 8 == 0,
            Rule::Undefined | Rule::SameValue => true,
        });
        kept.then_some(row)
    }
}

/// A file's unwind information.
pub(crate) struct Frames<'d> {
    section: EhFrame<EndianSlice<'d, LittleEndian>>,
    bases: BaseAddresses,
    /// Address of `.eh_frame`.
    va: u64,
    /// Address of `.eh_frame_hdr`.
    pub table_va: u64,
    /// Index of the segment that leads to it.
    pub segment: usize,
    /// First address and rules' address of each function, ascending.
    pub entries: Vec<(u64, u64)>,
}

impl<'d> Frames<'d> {
    /// `None` for files without the sorted table in its usual form: nothing can be added there.
    pub(crate) fn read(image: &Image<'d>) -> Option<Frames<'d>> {
        let segment = image
            .segments
            .iter()
            .position(|s| s.kind == PT_GNU_EH_FRAME.0)?;
        let s = image.segments[segment];
        let table = image.at_offset(image.offset_of(LinkVa(s.va), s.file_size)?, s.file_size)?;
        let (va, entries) = parse_table(table, s.va)?;
        let bytes = image.loaded_from(LinkVa(va))?;
        Some(Frames {
            section: EhFrame::new(bytes, LittleEndian),
            bases: BaseAddresses::default().set_eh_frame(va),
            va,
            table_va: s.va,
            segment,
            entries,
        })
    }

    /// The rules at an address. `context`: room for gimli, many kilobytes.
    pub(crate) fn row(&self, at: u64, context: &mut UnwindContext<usize>) -> Option<Row> {
        let table = (self.va, &self.entries[..]);
        row(&self.section, &self.bases, table, at, context)
    }

    /// Address of `.eh_frame`.
    pub(crate) fn va(&self) -> u64 {
        self.va
    }
}

/// The rules at an address. `va`, `entries`: as in [`Frames`].
pub(crate) fn row<'d>(
    section: &EhFrame<EndianSlice<'d, LittleEndian>>,
    bases: &BaseAddresses,
    (va, entries): (u64, &[(u64, u64)]),
    at: u64,
    context: &mut UnwindContext<usize>,
) -> Option<Row> {
    let fde = entry(section, bases, (va, entries), at)?;
    let row = fde.unwind_info_for_address(section, bases, context, at);
    read_row(row.ok()?, section)
}

/// The function at an address. `va`, `entries`: as in [`Frames`].
pub(crate) fn entry<'d>(
    section: &EhFrame<EndianSlice<'d, LittleEndian>>,
    bases: &BaseAddresses,
    (va, entries): (u64, &[(u64, u64)]),
    at: u64,
) -> Option<FrameDescriptionEntry<EndianSlice<'d, LittleEndian>>> {
    let next = entries.partition_point(|(start, _)| *start <= at);
    let (_, fde) = *entries.get(next.checked_sub(1)?)?;
    let offset = usize::try_from(fde.checked_sub(va)?).ok()?;
    let fde = section.fde_from_offset(bases, EhFrameOffset(offset), EhFrame::cie_from_offset);
    fde.ok().filter(|f| f.contains(at))
}

/// The table of `.eh_frame_hdr`: address of `.eh_frame`, and its entries.
pub(crate) fn parse_table(table: &[u8], va: u64) -> Option<(u64, Vec<(u64, u64)>)> {
    let word = |at: usize| Some(i32::from_le_bytes(table.get(at..at + 4)?.try_into().ok()?));
    let relative = |from: u64, at| Some(from.wrapping_add(i64::from(word(at)?) as u64));
    if table.get(..4)? != [1, 0x1b, 0x03, 0x3b] {
        return None;
    }
    let frames = relative(va + 4, 4)?;
    let count = word(8)? as u32 as usize;
    let rows = table.get(TABLE_HEAD..TABLE_HEAD.checked_add(count.checked_mul(8)?)?)?;
    let entry = |i| {
        Some((
            relative(va, TABLE_HEAD + 8 * i)?,
            relative(va, TABLE_HEAD + 8 * i + 4)?,
        ))
    };
    let entries: Option<Vec<_>> = (0..rows.len() / 8).map(entry).collect();
    entries
        .filter(|e| e.is_sorted_by_key(|e| e.0))
        .map(|e| (frames, e))
}

/// Copies the rules out of gimli's form.
pub(crate) fn read_row<'d, S>(row: &gimli::UnwindTableRow<usize>, section: &S) -> Option<Row>
where
    S: UnwindSection<EndianSlice<'d, LittleEndian>>,
{
    let bytes = |e: &gimli::UnwindExpression<usize>| Some(e.get(section).ok()?.0.slice().to_vec());
    let cfa = match row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => Cfa::Offset(register.0, *offset),
        CfaRule::Expression(e) => Cfa::Expression(bytes(e)?),
    };
    let rule = |rule: &RegisterRule<usize>| {
        Some(match rule {
            RegisterRule::Undefined => Rule::Undefined,
            RegisterRule::SameValue => Rule::SameValue,
            RegisterRule::Offset(n) => Rule::Offset(*n),
            RegisterRule::ValOffset(n) => Rule::ValOffset(*n),
            RegisterRule::Register(r) => Rule::Register(r.0),
            RegisterRule::Expression(e) => Rule::Expression(bytes(e)?),
            RegisterRule::ValExpression(e) => Rule::ValExpression(bytes(e)?),
            _ => return None,
        })
    };
    let registers: Option<Vec<_>> = row
        .registers()
        .map(|(r, value)| Some((r.0, rule(value)?)))
        .collect();
    let mut registers = registers?;
    registers.sort_by_key(|(r, _)| *r);
    Some(Row { cfa, registers })
}
