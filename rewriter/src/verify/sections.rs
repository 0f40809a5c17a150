//! The section headers: the original's, and those of the added sections.

use super::error::VerifyError;
use super::ledger::Ledger;
use super::moves::Moves;
use super::tables::Tables;
use super::view::View;
use goblin::elf::section_header::{
    SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOTE, SHT_PROGBITS, SectionHeader,
};
use ompfuse_format::abi::ModuleHeader;

fn damaged<T>(what: impl Into<String>) -> Result<T, VerifyError> {
    Err(VerifyError::damaged(what))
}

/// Names of the sections that a patch adds; the last two with unwind information, the very last only where the
/// original has none of that name.
const ADDED: [&str; 7] = [
    ".note.ompfuse",
    ".ompfuse.ro",
    ".ompfuse.text",
    ".ompfuse.data",
    ".ompfuse",
    ".ompfuse.eh_frame",
    ".debug_frame",
];

/// Checks the section headers. Returns the bytes of the added `.debug_frame`.
pub(super) fn check<'d>(
    old: &View<'_>,
    new: &View<'d>,
    tables: &Tables<'_>,
    moves: &Moves,
    ledger: &mut Ledger,
) -> Result<Option<&'d [u8]>, VerifyError> {
    let (before, after) = (&old.elf.section_headers, &new.elf.section_headers);
    if old.elf.header.e_shoff == new.elf.header.e_shoff {
        return match before == after {
            true => Ok(None),
            false => damaged("the section headers changed"),
        };
    }
    let header = &new.elf.header;
    let mut expected = vec![
        note(tables),
        site_table(tables),
        code(tables),
        data(tables),
        description(tables),
    ];
    let has_debug_frame = before
        .iter()
        .any(|s| old.elf.shdr_strtab.get_at(s.sh_name) == Some(ADDED[6]));
    let mut debug = None;
    if let Some(hdr) = &moves.frames {
        expected.push(eh_frame(tables, moves, hdr.offset, hdr.va));
        if !has_debug_frame {
            let section = after.last().cloned().unwrap_or_default();
            let bytes = new.at_offset(section.sh_offset, section.sh_size);
            debug =
                Some(bytes.ok_or_else(|| VerifyError::damaged("a section lies outside the file"))?);
            ledger.enter(section.sh_offset, section.sh_size, "the debug frames")?;
            expected.push(debug_frame(&section));
        }
    }
    let count = expected.len();
    ledger.enter(40, 8, "e_shoff")?;
    ledger.enter(60, 2, "e_shnum")?;
    ledger.enter(
        header.e_shoff,
        64 * after.len() as u64,
        "the section headers",
    )?;
    if after.len() != before.len() + count || header.e_shstrndx != old.elf.header.e_shstrndx {
        return damaged(format!(
            "the section headers aren't the original's and {count} more"
        ));
    }
    let strings = |v: &View<'d>| -> Option<(u64, &'d [u8])> {
        let index = usize::from(v.elf.header.e_shstrndx);
        let section = v.elf.section_headers.get(index)?;
        Some((
            section.sh_offset,
            v.at_offset(section.sh_offset, section.sh_size)?,
        ))
    };
    let old_names = old.elf.section_headers.get(usize::from(header.e_shstrndx));
    let old_names = old_names.and_then(|s| old.at_offset(s.sh_offset, s.sh_size));
    let (Some(old_names), Some((names_offset, names))) = (old_names, strings(new)) else {
        return damaged("the section names lie outside the file");
    };
    let names_len = names.len() as u64;
    ledger.enter(names_offset, names_len, "the section names")?;
    let added: Vec<u8> = ADDED[..count]
        .iter()
        .flat_map(|n| n.bytes().chain([0]))
        .collect();
    if names.strip_prefix(old_names) != Some(&added[..]) {
        return damaged("the section names aren't the original's and the added ones");
    }
    for (i, (was, is)) in before.iter().zip(after.iter()).enumerate() {
        let mut moved = was.clone();
        if i == usize::from(header.e_shstrndx) {
            (moved.sh_offset, moved.sh_size) = (names_offset, names_len);
        } else if let Some(m) = moves.all().find(|m| m.from == was.sh_addr) {
            (moved.sh_addr, moved.sh_offset, moved.sh_size) = (m.va, m.offset, m.len);
        }
        if *is != moved && is != was {
            return damaged(format!("section header {i} isn't the original's"));
        }
    }
    let mut name = old_names.len();
    for ((mut section, is), text) in expected.into_iter().zip(&after[before.len()..]).zip(ADDED) {
        section.sh_name = name;
        name += text.len() + 1;
        if section != *is {
            return damaged(format!("the header of section {text} is damaged"));
        }
    }
    Ok(debug)
}

/// A header without name.
fn section(kind: u32, flags: u32, va: u64, offset: u64, len: u64, align: u64) -> SectionHeader {
    SectionHeader {
        sh_name: 0,
        sh_type: kind,
        sh_flags: u64::from(flags),
        sh_addr: va,
        sh_offset: offset,
        sh_size: len,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: align,
        sh_entsize: 0,
    }
}

fn note(tables: &Tables<'_>) -> SectionHeader {
    let note = &tables.note;
    section(
        SHT_NOTE,
        SHF_ALLOC,
        note.p_vaddr,
        note.p_offset,
        note.p_filesz,
        4,
    )
}

fn site_table(tables: &Tables<'_>) -> SectionHeader {
    let read_only = &tables.loads[0];
    let offset = read_only.p_offset + (tables.sites_va - read_only.p_vaddr);
    let len = tables.tables_end - tables.sites_va;
    section(SHT_PROGBITS, SHF_ALLOC, tables.sites_va, offset, len, 8)
}

fn code(tables: &Tables<'_>) -> SectionHeader {
    let code = &tables.loads[1];
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    section(
        SHT_PROGBITS,
        flags,
        code.p_vaddr,
        code.p_offset,
        code.p_filesz,
        32,
    )
}

fn data(tables: &Tables<'_>) -> SectionHeader {
    let data = &tables.loads[2];
    let len = ModuleHeader::LEN as u64;
    section(
        SHT_PROGBITS,
        SHF_ALLOC | SHF_WRITE,
        data.p_vaddr,
        data.p_offset,
        len,
        16,
    )
}

fn description(tables: &Tables<'_>) -> SectionHeader {
    let text = tables.text();
    section(SHT_PROGBITS, 0, 0, text.start, text.end - text.start, 1)
}

/// From the first multiple of 8 behind the strings up to the table that leads to it.
fn eh_frame(tables: &Tables<'_>, moves: &Moves, hdr_offset: u64, hdr_va: u64) -> SectionHeader {
    let start = frames_start(tables, moves);
    let len = hdr_va.saturating_sub(start);
    section(
        SHT_PROGBITS,
        SHF_ALLOC,
        start,
        hdr_offset.saturating_sub(len),
        len,
        8,
    )
}

/// Address of the added `.eh_frame`.
pub(super) fn frames_start(tables: &Tables<'_>, moves: &Moves) -> u64 {
    let end = moves.strings.map_or(tables.tables_end, |m| m.va + m.len);
    end.next_multiple_of(8)
}

fn debug_frame(is: &SectionHeader) -> SectionHeader {
    section(SHT_PROGBITS, 0, 0, is.sh_offset, is.sh_size, 8)
}
