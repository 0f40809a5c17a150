//! The program headers: the original's, with the changes that a patch needs.

use super::error::VerifyError;
use super::ledger::Ledger;
use super::moves::Moves;
use super::tables::Tables;
use super::view::View;
use goblin::elf::program_header::{
    PF_R, PT_DYNAMIC, PT_GNU_EH_FRAME, PT_LOAD, PT_NOTE, PT_PHDR, ProgramHeader,
};
use goblin::elf::section_header::SHT_NOBITS;
use std::ops::Range;

const PAGE: u64 = 0x1000;

/// Checks the program headers and where they are.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    moves: &Moves,
    ledger: &mut Ledger,
) -> Result<(), VerifyError> {
    ledger.enter(32, 8, "e_phoff")?;
    ledger.enter(56, 2, "e_phnum")?;
    let table = (
        new.elf.header.e_phoff,
        new.elf.program_headers.len() as u64 * 56,
    );
    ledger.enter(table.0, table.1, "the program headers")?;
    check_entries(old, new, tables, moves, table)?;
    check_placement(new, table)?;
    check_loads(old, new, tables)
}

fn damaged<T>(what: impl Into<String>) -> Result<T, VerifyError> {
    Err(VerifyError::damaged(what))
}

/// Old entries in their order, with the changes that a patch needs; new ones where they belong.
fn check_entries(
    old: &View<'_>,
    new: &View<'_>,
    tables: &Tables<'_>,
    moves: &Moves,
    table: (u64, u64),
) -> Result<(), VerifyError> {
    let mut kept: Vec<_> = new.elf.program_headers.iter().collect();
    match kept.pop() {
        Some(last) if *last == tables.note && last.p_type == PT_NOTE => {}
        _ => return damaged("the last program header isn't that of the note"),
    }
    kept.retain(|p| !tables.loads.contains(p));
    let before = &old.elf.program_headers;
    if kept.len() != before.len() {
        return damaged("the program headers aren't the original's and four more");
    }
    let first_load = before.iter().position(|p| p.p_type == PT_LOAD);
    for (i, (was, &is)) in before.iter().zip(&kept).enumerate() {
        let place = match was.p_type {
            PT_PHDR => Some((table.0, is.p_vaddr, table.1)),
            PT_DYNAMIC => moves.dynamic.map(|m| (m.offset, m.va, m.len)),
            PT_GNU_EH_FRAME => moves.frames.map(|m| (m.offset, m.va, m.len)),
            _ => None,
        };
        let sound = match place {
            Some((offset, va, len)) => {
                let moved = ProgramHeader {
                    p_offset: offset,
                    p_vaddr: va,
                    p_paddr: va,
                    p_filesz: len,
                    p_memsz: len,
                    ..was.clone()
                };
                *is == moved && new.offset_of(va, len) == Some(offset)
            }
            None if Some(i) == first_load => was == is || grew(old, was, is, table),
            None => was == is,
        };
        if !sound {
            return damaged(format!("program header {i} isn't the original's"));
        }
    }
    let note = &tables.note;
    let sound = note.p_flags == PF_R
        && note.p_align == 4
        && note.p_vaddr == note.p_paddr
        && note.p_filesz == note.p_memsz
        && new.offset_of(note.p_vaddr, note.p_filesz) == Some(note.p_offset);
    match sound {
        true => Ok(()),
        false => damaged("the note's program header is damaged"),
    }
}

/// The first load may have grown over the new header table, and only over that.
fn grew(old: &View<'_>, was: &ProgramHeader, is: &ProgramHeader, table: (u64, u64)) -> bool {
    let longer = ProgramHeader {
        p_filesz: is.p_filesz,
        p_memsz: is.p_memsz,
        ..was.clone()
    };
    let end = was.p_offset + was.p_filesz;
    *is == longer
        && is.p_filesz == is.p_memsz
        && was.p_filesz == was.p_memsz
        && (end..end + 8).contains(&table.0)
        && is.p_offset + is.p_filesz == table.0 + table.1
        && is_unused(old, end..table.0 + table.1)
}

/// No segment, section or table of the original lies in this range of the file, and it is zero.
fn is_unused(old: &View<'_>, range: Range<u64>) -> bool {
    let clear = |from: u64, len: u64| {
        len == 0 || from >= range.end || from.saturating_add(len) <= range.start
    };
    let header = &old.elf.header;
    let bytes = old.at_offset(range.start, range.end - range.start);
    bytes.is_some_and(|b| b.iter().all(|&b| b == 0))
        && old
            .elf
            .program_headers
            .iter()
            .all(|p| clear(p.p_offset, p.p_filesz))
        && (old.elf.section_headers.iter())
            .all(|s| matches!(s.sh_type, 0 | SHT_NOBITS) || clear(s.sh_offset, s.sh_size))
        && clear(header.e_phoff, 56 * u64::from(header.e_phnum))
        && clear(header.e_shoff, 64 * u64::from(header.e_shnum))
}

/// The header table is loaded, where every kernel and the dynamic linker look for it.
fn check_placement(new: &View<'_>, (offset, len): (u64, u64)) -> Result<(), VerifyError> {
    let Some(va) = new.loads().find_map(|p| {
        let skip = offset.checked_sub(p.p_offset)?;
        (skip.checked_add(len)? <= p.p_filesz).then(|| p.p_vaddr.checked_add(skip))?
    }) else {
        return damaged("the program headers aren't loaded");
    };
    let first = new
        .loads()
        .next()
        .map(|p| p.p_vaddr.wrapping_sub(p.p_offset).wrapping_add(offset));
    if new.starts() && first != Some(va) {
        return damaged("kernels before 5.18 would look for the program headers elsewhere");
    }
    let declared = new.elf.program_headers.iter().find(|p| p.p_type == PT_PHDR);
    if declared.is_some_and(|p| p.p_vaddr != va) {
        return damaged("PT_PHDR doesn't lead to the program headers");
    }
    Ok(())
}

/// Loads share no page with a new one, agree with their place in the file, and ascend if the original's do: the dynamic linker wants
/// that of libraries. In programs the kernel takes any order, and BOLT leaves them so.
fn check_loads(old: &View<'_>, new: &View<'_>, tables: &Tables<'_>) -> Result<(), VerifyError> {
    let ascend = |view: &View<'_>| view.loads().is_sorted_by_key(|p| p.p_vaddr);
    if ascend(old) && !ascend(new) {
        return damaged("the segments don't ascend");
    }
    let mut loads: Vec<_> = new.loads().collect();
    loads.sort_by_key(|p| p.p_vaddr);
    let mut end = 0;
    let mut alone = false;
    for p in loads {
        let added = tables.loads.contains(p);
        let start = if added || alone {
            p.p_vaddr & !(PAGE - 1)
        } else {
            p.p_vaddr
        };
        let sound = start >= end
            && p.p_vaddr % PAGE == p.p_offset % PAGE
            && (!added || p.p_align == PAGE && p.p_vaddr == p.p_paddr);
        if !sound {
            return damaged(format!("the segment at {:#x} is misplaced", p.p_vaddr));
        }
        end = p.p_vaddr + p.p_memsz;
        alone = added;
    }
    Ok(())
}
