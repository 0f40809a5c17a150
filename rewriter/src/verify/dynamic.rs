//! The dynamic table and relocations.

use super::error::VerifyError;
use super::ledger::Ledger;
use super::moves::{Move, Moves};
use super::tables::{Tables, number};
use super::view::View;
use goblin::elf::dynamic::{DT_NEEDED, DT_STRSZ, DT_STRTAB};
use goblin::elf::program_header::PT_DYNAMIC;
use std::ops::Range;

fn damaged<T>(what: impl Into<String>) -> Result<T, VerifyError> {
    Err(VerifyError::damaged(what))
}

/// The dynamic table is the original's, or has one more needed library.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    ledger: &mut Ledger,
) -> Result<Moves, VerifyError> {
    let (before, after) = (old.dynamic_entries(), new.dynamic_entries());
    let place = |v: &View<'_>| v.header(PT_DYNAMIC).cloned();
    let (from, to) = match (place(old), place(new)) {
        (None, None) => return Ok(Moves::default()),
        (Some(from), Some(to)) if before == after && from == to => return Ok(Moves::default()),
        (Some(from), Some(to)) => (from, to),
        _ => return damaged("the dynamic table came or went"),
    };
    let value = |v: &View<'_>, tag| {
        v.dynamic_value(tag)
            .ok_or_else(|| VerifyError::damaged("the dynamic table has no string table"))
    };
    let (old_size, new_size) = (value(old, DT_STRSZ)?, value(new, DT_STRSZ)?);
    let strings_va = value(new, DT_STRTAB)?;
    let expected: Vec<_> = before
        .iter()
        .map(|&(tag, v)| match tag {
            DT_STRTAB => (tag, strings_va),
            DT_STRSZ => (tag, new_size),
            _ => (tag, v),
        })
        .chain([(DT_NEEDED, old_size)])
        .collect();
    if after != expected {
        return damaged("the dynamic table isn't the original's with one more library");
    }
    let old_strings = old.table_at(value(old, DT_STRTAB)?, old_size);
    let strings = new.at_va(strings_va, new_size);
    let (Some(old_strings), Some(strings)) = (old_strings, strings) else {
        return damaged("the dynamic string table lies outside the file");
    };
    let name = strings
        .strip_prefix(old_strings)
        .and_then(|s| s.strip_suffix(&[0]));
    if name.is_none_or(|n| n.is_empty() || n.contains(&0)) || strings_va != tables.tables_end {
        return damaged("the dynamic string table isn't the original's with one more library");
    }
    let offset = new.offset_of(strings_va, new_size).unwrap_or(u64::MAX);
    ledger.enter(offset, new_size, "the dynamic strings")?;
    let from_strings = value(old, DT_STRTAB)?;
    let strings = Move {
        from: from_strings,
        va: strings_va,
        offset,
        len: new_size,
    };
    let used = 16 * after.len() as u64;
    let end = new
        .at_offset(to.p_offset.saturating_add(used), 16)
        .filter(|_| used + 16 <= to.p_filesz);
    if end.is_none_or(|null| number(null, 0, 8) != Some(0)) {
        return damaged("the dynamic table has no end");
    }
    let mut moves = Moves {
        strings: Some(strings),
        ..Moves::default()
    };
    if from.p_offset != to.p_offset {
        let len = used + 16;
        ledger.enter(to.p_offset, len, "the dynamic table")?;
        if to.p_filesz != len {
            return damaged("the dynamic table has another length");
        }
        moves.dynamic = Some(Move {
            from: from.p_vaddr,
            va: to.p_vaddr,
            offset: to.p_offset,
            len,
        });
    } else {
        for (i, (tag, _)) in (0..).zip(&before) {
            if matches!(*tag, DT_STRTAB | DT_STRSZ) {
                ledger.enter(to.p_offset + 16 * i + 8, 8, "the dynamic table")?;
            }
        }
        ledger.enter(to.p_offset + used - 16, 16, "the dynamic table")?;
    }
    Ok(moves)
}

const DT_RELR: u64 = 36;
const DT_RELRSZ: u64 = 35;

/// No relocation of the original writes to a byte that changed.
pub(super) fn check_relocations(old: &View<'_>, changed: &[Range<u64>]) -> Result<(), VerifyError> {
    let elf = &old.elf;
    let sections = [&elf.dynrelas, &elf.dynrels, &elf.pltrelocs];
    let places = sections
        .into_iter()
        .flat_map(|s| s.iter().map(|r| r.r_offset));
    for va in places.chain(relative_places(old)) {
        let Some(offset) = old.offset_of(va, 1) else {
            continue;
        };
        // At most 8 bytes are written; a shorter field near a changed byte doesn't occur in practice.
        let next = changed.partition_point(|r| r.end <= offset);
        if changed
            .get(next)
            .is_some_and(|r| r.start < offset.saturating_add(8))
        {
            return Err(VerifyError::Relocation { at: va });
        }
    }
    Ok(())
}

/// Places of the packed relative relocations, which goblin doesn't read.
fn relative_places(old: &View<'_>) -> Vec<u64> {
    let table = old.dynamic_value(DT_RELR).zip(old.dynamic_value(DT_RELRSZ));
    let bytes = table
        .and_then(|(va, len)| old.table_at(va, len))
        .unwrap_or_default();
    let mut places = Vec::new();
    let mut next = 0u64;
    for raw in bytes.chunks_exact(8) {
        let entry = number(raw, 0, 8).unwrap_or(0);
        if entry & 1 == 0 {
            places.push(entry);
            next = entry.wrapping_add(8);
        } else {
            let set = (0..63).filter(|bit| entry >> (bit + 1) & 1 != 0);
            places.extend(set.map(|bit: u64| next.wrapping_add(8 * bit)));
            next = next.wrapping_add(63 * 8);
        }
    }
    places
}
