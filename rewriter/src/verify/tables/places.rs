//! Where the tables are: note, new segments, and the slots that the original's own functions may stand in.

use super::number;
use crate::describe::NOTE_LEN;
use crate::verify::error::VerifyError;
use crate::verify::view::View;
use goblin::elf::program_header::{PF_R, PF_W, PF_X, PT_NOTE, ProgramHeader};
use ompfuse_format::abi::{NOTE_NAME, NOTE_TYPE, NoteDesc, OWN_FUNCTIONS};

/// The slots for the runtime's own functions are empty, or lead to functions of these names in the original.
pub(super) fn own_functions(old: &View<'_>, header_va: u64, slots: &[u8]) -> bool {
    let slot = |at: usize| number(slots, 8 * OWN_FUNCTIONS[at].0, 8).unwrap_or(0);
    let defines = |name: &str, va: u64| {
        let elf = &old.elf;
        let tables = [(&elf.syms, &elf.strtab), (&elf.dynsyms, &elf.dynstrtab)];
        tables.iter().any(|(symbols, names)| {
            let mut here = symbols
                .iter()
                .filter(|s| s.st_shndx != 0 && s.st_value == va);
            here.any(|s| names.get_at(s.st_name) == Some(name))
        })
    };
    (slot(0) == 0) == (slot(1) == 0)
        && OWN_FUNCTIONS.iter().enumerate().all(|(at, (_, name))| {
            slot(at) == 0 || slot(0) != 0 && defines(name, header_va.wrapping_add(slot(at)))
        })
}

/// The note that leads to everything else.
pub(super) fn find_note(new: &View<'_>) -> Result<(ProgramHeader, NoteDesc), VerifyError> {
    let notes = new
        .elf
        .program_headers
        .iter()
        .filter(|p| p.p_type == PT_NOTE);
    let mut ours = notes.filter_map(|p| {
        let raw = new.at_offset(p.p_offset, p.p_filesz)?;
        let head = raw.get(12..20)? == NOTE_NAME
            && number(raw, 0, 4)? == NOTE_NAME.len() as u64
            && number(raw, 4, 4)? == NoteDesc::LEN as u64
            && number(raw, 8, 4)? == u64::from(NOTE_TYPE)
            && p.p_filesz == NOTE_LEN;
        Some((p.clone(), NoteDesc::from_bytes(&raw[20..])?)).filter(|_| head)
    });
    let note = ours.next().ok_or(VerifyError::NotPatched)?;
    match ours.next() {
        None => Ok(note),
        Some(_) => Err(VerifyError::damaged("there are two notes of ompfuse")),
    }
}

/// The loads behind the original's end in the file: three, one behind the other, first or last of all.
pub(super) fn new_loads(old: &View<'_>, new: &View<'_>) -> Result<[ProgramHeader; 3], VerifyError> {
    let all: Vec<_> = new.loads().collect();
    let is_new = |p: &ProgramHeader| p.p_offset >= old.bytes.len() as u64;
    let first = all.iter().position(|p| is_new(p)).unwrap_or(all.len());
    let three: Vec<_> = all[first..]
        .iter()
        .take_while(|p| is_new(p))
        .map(|&p| p.clone())
        .collect();
    let at_an_end = first == 0 || first + three.len() == all.len();
    let whole = all.len() == old.loads().count() + 3 && at_an_end;
    let three: Result<[ProgramHeader; 3], _> = three.try_into();
    let Some(three) = three.ok().filter(|_| whole) else {
        return Err(VerifyError::damaged("there aren't three new segments"));
    };
    let rights = [PF_R, PF_R | PF_X, PF_R | PF_W];
    if three
        .iter()
        .zip(rights)
        .any(|(p, flags)| p.p_flags != flags || p.p_filesz != p.p_memsz)
    {
        return Err(VerifyError::damaged(
            "the new segments have other rights than read, execute, write",
        ));
    }
    Ok(three)
}
