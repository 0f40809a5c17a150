//! Unwind information: the original's rules, and the same rules for the code that stands in for it in trampolines.
//!
//! Unwinders of the process find `.eh_frame` by the sorted table in `.eh_frame_hdr`; debuggers, which read only one
//! section `.eh_frame`, find the same rules in a `.debug_frame` of ours.

use crate::image::Image;
use crate::layout::Placed;
use crate::model::LinkVa;
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameOffset, EndianSlice, LittleEndian, RegisterRule,
    UnwindContext, UnwindSection,
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
        let segment = image.segments.iter().position(|s| s.kind == PT_GNU_EH_FRAME.0)?;
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

    /// The rules at an address.
    pub(crate) fn row(&self, at: u64) -> Option<Row> {
        let next = self.entries.partition_point(|(start, _)| *start <= at);
        let (_, fde) = *self.entries.get(next.checked_sub(1)?)?;
        let offset = usize::try_from(fde.checked_sub(self.va)?).ok()?;
        let fde = self.section.fde_from_offset(
            &self.bases,
            EhFrameOffset(offset),
            EhFrame::cie_from_offset,
        );
        let fde = fde.ok().filter(|f| f.contains(at))?;
        let mut context = UnwindContext::new();
        let row = fde.unwind_info_for_address(&self.section, &self.bases, &mut context, at).ok()?;
        read_row(row, &self.section)
    }
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
    let entry = |i| Some((relative(va, TABLE_HEAD + 8 * i)?, relative(va, TABLE_HEAD + 8 * i + 4)?));
    let entries: Option<Vec<_>> = (0..rows.len() / 8).map(entry).collect();
    entries.filter(|e| e.is_sorted_by_key(|e| e.0)).map(|e| (frames, e))
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
    let registers: Option<Vec<_>> =
        row.registers().map(|(r, value)| Some((r.0, rule(value)?))).collect();
    let mut registers = registers?;
    registers.sort_by_key(|(r, _)| *r);
    Some(Row { cfa, registers })
}

/// Rules for a range of added code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Offset in the added code.
    pub start: u64,
    pub len: u64,
    /// Call-frame instructions.
    instructions: Vec<u8>,
}

impl Function {
    /// A stub, entered as the callee is: the common initial rules hold all the way.
    pub(crate) fn stubs(len: u64) -> Function {
        Function { start: 0, len, instructions: Vec::new() }
    }

    /// `rows`: rules from an offset on, ascending; the first offset is 0.
    pub(crate) fn new(start: u64, len: u64, rows: &[(u32, Row)]) -> Function {
        let mut out = Vec::new();
        let mut at = 0;
        let mut before = Row { cfa: Cfa::Offset(RSP, 8), registers: vec![(16, Rule::Offset(-8))] };
        for (offset, row) in rows {
            if *row != before {
                advance(&mut out, offset - at);
                at = *offset;
                change(&mut out, &before, row);
                before = row.clone();
            }
        }
        Function { start, len, instructions: out }
    }
}

fn advance(out: &mut Vec<u8>, by: u32) {
    match by {
        0 => {}
        1..=0x3f => out.push(0x40 | by as u8), // DW_CFA_advance_loc
        0x40..=0xff => out.extend([0x02, by as u8]),
        _ => {
            out.push(0x04); // DW_CFA_advance_loc4
            out.extend(by.to_le_bytes());
        }
    }
}

fn change(out: &mut Vec<u8>, before: &Row, row: &Row) {
    if row.cfa != before.cfa {
        match &row.cfa {
            Cfa::Offset(register, offset) => {
                out.push(0x0c); // DW_CFA_def_cfa
                unsigned(out, u64::from(*register));
                unsigned(out, *offset as u64);
            }
            Cfa::Expression(e) => {
                out.push(0x0f);
                block(out, e);
            }
        }
    }
    for (register, rule) in &row.registers {
        if !before.registers.contains(&(*register, rule.clone())) {
            set(out, *register, rule);
        }
    }
    for (register, _) in &before.registers {
        if row.registers.iter().all(|(r, _)| r != register) {
            out.push(0x06); // DW_CFA_restore_extended
            unsigned(out, u64::from(*register));
        }
    }
}

fn set(out: &mut Vec<u8>, register: u16, rule: &Rule) {
    let register = u64::from(register);
    let start = |code: u8, out: &mut Vec<u8>| {
        out.push(code);
        unsigned(out, register);
    };
    match rule {
        Rule::Undefined => start(0x07, out),
        Rule::SameValue => start(0x08, out),
        Rule::Offset(n) => {
            start(0x11, out);
            signed(out, n / -8);
        }
        Rule::ValOffset(n) => {
            start(0x15, out);
            signed(out, n / -8);
        }
        Rule::Register(other) => {
            start(0x09, out);
            unsigned(out, u64::from(*other));
        }
        Rule::Expression(e) => {
            start(0x10, out);
            block(out, e);
        }
        Rule::ValExpression(e) => {
            start(0x16, out);
            block(out, e);
        }
    }
}

fn block(out: &mut Vec<u8>, bytes: &[u8]) {
    unsigned(out, bytes.len() as u64);
    out.extend(bytes);
}

fn unsigned(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn signed(out: &mut Vec<u8>, mut value: i64) {
    while !(-0x40..0x40).contains(&value) {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8 & 0x7f);
}

/// Common part of all entries: version 1, factors 1 and -8, return address in 16; CFA = rsp + 8, caller's address below.
fn common(section: Form) -> Vec<u8> {
    let (id, augmentation): (u32, &[u8]) = match section {
        Form::EhFrame => (0, b"zR\0\x01\x78\x10\x01\x1b"),
        Form::DebugFrame => (u32::MAX, b"\0\x01\x78\x10"),
    };
    let initial = [0x0c, RSP as u8, 8, 0x90, 1];
    entry(&[&id.to_le_bytes(), &[1], augmentation, &initial])
}

/// A length and the parts, padded with `DW_CFA_nop` to a multiple of 8.
fn entry(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = vec![0; 4];
    out.extend(parts.concat());
    out.resize(out.len().next_multiple_of(8), 0);
    let len = out.len() as u32 - 4;
    out[..4].copy_from_slice(&len.to_le_bytes());
    out
}

/// The two forms of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    EhFrame,
    DebugFrame,
}

/// `.eh_frame` of the added code, at an address; and the address of each function's rules.
pub(crate) fn eh_frame(at: u64, code: u64, functions: &[Function]) -> (Vec<u8>, Vec<(u64, u64)>) {
    let mut out = common(Form::EhFrame);
    let mut entries = Vec::new();
    for f in functions {
        let here = out.len() as u64;
        entries.push((code + f.start, at + here));
        let back = here as u32 + 4;
        let start = (code + f.start).wrapping_sub(at + here + 8) as u32;
        let head = [back, start, f.len as u32].map(u32::to_le_bytes);
        out.extend(entry(&[head.as_flattened(), &[0], &f.instructions]));
    }
    out.extend([0; 8]);
    (out, entries)
}

/// Length in bytes of [`eh_frame`]; it doesn't depend on addresses.
pub(crate) fn eh_frame_len(functions: &[Function]) -> u64 {
    eh_frame(0, 0, functions).0.len() as u64
}

/// `.debug_frame` of the added code. It isn't loaded: addresses are absolute.
pub(crate) fn debug_frame(code: u64, functions: &[Function]) -> Vec<u8> {
    let mut out = common(Form::DebugFrame);
    for f in functions {
        let head = [(code + f.start).to_le_bytes(), f.len.to_le_bytes()];
        out.extend(entry(&[&[0; 4], head.as_flattened(), &f.instructions]));
    }
    out
}

/// Length in bytes of [`table`].
pub(crate) fn table_len(frames: &Frames<'_>, functions: &[Function]) -> u64 {
    (TABLE_HEAD + 8 * (frames.entries.len() + functions.len())) as u64
}

/// `.eh_frame_hdr` with the original's entries and the added ones; what can't be reached from there otherwise.
pub(crate) fn table(
    frames: &Frames<'_>,
    at: Placed,
    added: &[(u64, u64)],
) -> Result<Vec<u8>, LinkVa> {
    let relative = |to: u64, from: u64| {
        let distance = to.wrapping_sub(from) as i64;
        i32::try_from(distance).map(i32::to_le_bytes).map_err(|_| LinkVa(to))
    };
    let mut entries = [&frames.entries, added].concat();
    entries.sort_by_key(|(start, _)| *start);
    let mut out = vec![1, 0x1b, 0x03, 0x3b];
    out.extend(relative(frames.va, at.va + 4)?);
    out.extend((entries.len() as u32).to_le_bytes());
    for (start, rules) in entries {
        out.extend(relative(start, at.va)?);
        out.extend(relative(rules, at.va)?);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_leb128() {
        let text = |value| {
            let mut out = Vec::new();
            signed(&mut out, value);
            out
        };
        assert_eq!(text(-19), [0x6d]);
        assert_eq!(text(64), [0xc0, 0]);
        assert_eq!(text(-65), [0xbf, 0x7f]);
        let mut out = Vec::new();
        unsigned(&mut out, 300);
        assert_eq!(out, [0xac, 2]);
    }

    #[test]
    fn rules_survive_the_round_trip() {
        let rbp = |offset| Row {
            cfa: Cfa::Offset(6, 16),
            registers: vec![(6, Rule::Offset(offset)), (16, Rule::Offset(-8))],
        };
        let deep = Row { cfa: Cfa::Offset(RSP, 400), registers: vec![(16, Rule::Offset(-8))] };
        let odd = Row {
            cfa: Cfa::Expression(vec![BREG_RBP, 0x70, 6]),
            registers: vec![(3, Rule::Expression(vec![BREG_RBP, 0x68])), (16, Rule::Offset(-8))],
        };
        let rows = [(0, rbp(-16)), (7, deep), (90, odd), (1000, rbp(-24))];
        let functions = [Function::stubs(64), Function::new(64, 2000, &rows)];
        let (bytes, entries) = eh_frame(0x5000, 0x8000, &functions);
        let section = EhFrame::new(&bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(0x5000);
        let row = |at: u64| {
            let fde = section.fde_for_address(&bases, at, EhFrame::cie_from_offset).unwrap();
            let mut context = UnwindContext::new();
            let row = fde.unwind_info_for_address(&section, &bases, &mut context, at).unwrap();
            read_row(row, &section).unwrap()
        };
        assert_eq!(row(0x8020).cfa, Cfa::Offset(RSP, 8));
        for (offset, expected) in rows {
            assert_eq!(row(0x8040 + u64::from(offset)), expected);
        }
        assert_eq!(entries[1].0, 0x8040);
    }
}
