//! Writing: the two forms of the added code's rules, and the table that leads to the first.

use super::{Cfa, Frames, RSP, Row, Rule, TABLE_HEAD};
use crate::layout::Placed;
use crate::model::LinkVa;

impl Row {
    /// The common initial rules, at a function's first instruction.
    pub(crate) fn entered() -> Row {
        Row {
            cfa: Cfa::Offset(RSP, 8),
            registers: vec![(16, Rule::Offset(-8))],
        }
    }
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
    /// `rows`: rules from an offset on, ascending; the first offset is 0.
    pub(crate) fn new(start: u64, len: u64, rows: &[(u32, Row)]) -> Function {
        let mut out = Vec::new();
        let mut at = 0;
        let mut before = Row::entered();
        for (offset, row) in rows {
            if *row != before {
                advance(&mut out, offset - at);
                at = *offset;
                change(&mut out, &before, row);
                before = row.clone();
            }
        }
        Function {
            start,
            len,
            instructions: out,
        }
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
        i32::try_from(distance)
            .map(i32::to_le_bytes)
            .map_err(|_| LinkVa(to))
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
    use crate::unwind::{BREG_RBP, Cfa, read_row};
    use gimli::{BaseAddresses, EhFrame, LittleEndian, UnwindContext, UnwindSection};

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
        let deep = Row {
            cfa: Cfa::Offset(RSP, 400),
            registers: vec![(16, Rule::Offset(-8))],
        };
        let odd = Row {
            cfa: Cfa::Expression(vec![BREG_RBP, 0x70, 6]),
            registers: vec![
                (3, Rule::Expression(vec![BREG_RBP, 0x68])),
                (16, Rule::Offset(-8)),
            ],
        };
        let rows = [(0, rbp(-16)), (7, deep), (90, odd), (1000, rbp(-24))];
        let functions = [Function::new(0, 64, &[]), Function::new(64, 2000, &rows)];
        let (bytes, entries) = eh_frame(0x5000, 0x8000, &functions);
        let section = EhFrame::new(&bytes, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(0x5000);
        let row = |at: u64| {
            let fde = section
                .fde_for_address(&bases, at, EhFrame::cie_from_offset)
                .unwrap();
            let mut context = UnwindContext::new();
            let row = fde
                .unwind_info_for_address(&section, &bases, &mut context, at)
                .unwrap();
            read_row(row, &section).unwrap()
        };
        assert_eq!(row(0x8020).cfa, Cfa::Offset(RSP, 8));
        for (offset, expected) in rows {
            assert_eq!(row(0x8040 + u64::from(offset)), expected);
        }
        assert_eq!(entries[1].0, 0x8040);
    }
}
