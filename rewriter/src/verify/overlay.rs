//! Data that somebody appended to the original: programs that read it look for it at their file's end.

use super::error::VerifyError;
use super::ledger::Ledger;
use super::view::View;
use goblin::elf::section_header::{SHT_NOBITS, SHT_NULL};

/// The patched file ends with the original's appended data, right behind its section headers if it has any.
pub(super) fn check(
    old: &View<'_>,
    new: &View<'_>,
    ledger: &mut Ledger,
) -> Result<(), VerifyError> {
    let start = end_of_known(old);
    let data = usize::try_from(start).ok().and_then(|s| old.bytes.get(s..));
    let Some(data) = data.filter(|d| d.iter().any(|&b| b != 0)) else {
        return Ok(());
    };
    let len = data.len() as u64;
    let at = new.bytes.len() as u64 - len;
    let header = &new.elf.header;
    let behind = header.e_shoff + 64 * u64::from(header.e_shnum);
    let misplaced = !new.elf.section_headers.is_empty() && at != behind;
    if misplaced || !new.bytes.ends_with(data) {
        return Err(VerifyError::damaged(
            "the file doesn't end with the data that was appended to the original",
        ));
    }
    ledger.enter(at, len, "the appended data")
}

/// First offset behind everything that the headers know of.
fn end_of_known(view: &View<'_>) -> u64 {
    let header = &view.elf.header;
    let segments = view.elf.program_headers.iter();
    let sections = view.elf.section_headers.iter();
    let mut ends: Vec<u64> = segments
        .map(|p| p.p_offset.saturating_add(p.p_filesz))
        .collect();
    ends.extend(
        sections
            .filter(|s| !matches!(s.sh_type, SHT_NULL | SHT_NOBITS))
            .map(|s| s.sh_offset.saturating_add(s.sh_size)),
    );
    let table = |at: u64, count: u16, len: u64| at.saturating_add(len * u64::from(count));
    ends.push(table(header.e_phoff, header.e_phnum, 56));
    ends.push(table(header.e_shoff, header.e_shnum, 64));
    ends.into_iter().max().unwrap_or(0)
}
