//! The new section-header table: debuggers and disassemblers find the added code by it.

use crate::image::{Image, Section, align_up};
use crate::layout::Placed;
use object::elf::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS, SHT_NOTE, SHT_PROGBITS};

/// Name of the section with the code that is added to a file.
pub(crate) const TEXT: &str = ".ompfuse.text";

/// A section that is added.
pub(crate) struct NewSection {
    name: &'static str,
    kind: u32,
    flags: u64,
    at: Placed,
    align: u64,
}

impl NewSection {
    pub(crate) fn note(at: Placed) -> NewSection {
        Self::new(".note.ompfuse", SHT_NOTE.0, SHF_ALLOC.0, at, 4)
    }

    pub(crate) fn read_only(at: Placed) -> NewSection {
        Self::new(".ompfuse.ro", SHT_PROGBITS.0, SHF_ALLOC.0, at, 8)
    }

    pub(crate) fn code(at: Placed) -> NewSection {
        let flags = SHF_ALLOC.0 | SHF_EXECINSTR.0;
        Self::new(TEXT, SHT_PROGBITS.0, flags, at, 32)
    }

    pub(crate) fn data(at: Placed) -> NewSection {
        Self::new(
            ".ompfuse.data",
            SHT_PROGBITS.0,
            SHF_ALLOC.0 | SHF_WRITE.0,
            at,
            16,
        )
    }

    /// Not loaded: it has no address.
    pub(crate) fn description(at: Placed) -> NewSection {
        Self::new(".ompfuse", SHT_PROGBITS.0, 0, at, 1)
    }

    /// Rules for the added code, for unwinders in the process.
    pub(crate) fn eh_frame(at: Placed) -> NewSection {
        Self::new(".ompfuse.eh_frame", SHT_PROGBITS.0, SHF_ALLOC.0, at, 8)
    }

    /// The same for debuggers.
    pub(crate) fn debug_frame(at: Placed) -> NewSection {
        Self::new(".debug_frame", SHT_PROGBITS.0, 0, at, 8)
    }

    fn new(name: &'static str, kind: u32, flags: u64, at: Placed, align: u64) -> NewSection {
        NewSection {
            name,
            kind,
            flags,
            at,
            align,
        }
    }
}

impl Section {
    pub(crate) fn occupies_file(&self) -> bool {
        self.kind != SHT_NOBITS.0 && self.kind != 0
    }
}

impl Image<'_> {
    /// Whether there is a section of this name.
    pub(crate) fn has_section(&self, name: &[u8]) -> bool {
        let names = self.sections.get(self.section_names);
        let names = names
            .and_then(|s| self.at_offset(s.offset, s.size))
            .unwrap_or_default();
        self.sections.iter().any(|s| {
            let rest = names.get(s.name as usize..).unwrap_or_default();
            rest.strip_prefix(name)
                .is_some_and(|r| r.first() == Some(&0))
        })
    }
}

/// The table and its names, ready to be appended.
pub(crate) struct SectionTable {
    pub names: Vec<u8>,
    pub names_offset: u64,
    pub headers: Vec<u8>,
    pub headers_offset: u64,
    pub count: u16,
}

/// Builds the table at the end of the file; `None` for a file that has none. `moved`: index and new place.
pub(crate) fn section_table(
    image: &Image<'_>,
    new: &[NewSection],
    moved: &[(usize, Placed)],
    end: u64,
) -> Option<SectionTable> {
    let old_names = image.sections.get(image.section_names)?;
    let mut names = image.at_offset(old_names.offset, old_names.size)?.to_vec();
    let mut sections = image.sections.clone();
    for &(index, to) in moved {
        let section = sections.get_mut(index)?;
        (section.va, section.offset, section.size) = (to.va, to.offset, to.len);
    }
    for n in new {
        sections.push(Section {
            name: u32::try_from(names.len()).ok()?,
            kind: n.kind,
            flags: n.flags,
            va: n.at.va,
            offset: n.at.offset,
            size: n.at.len,
            align: n.align,
            ..Section::default()
        });
        names.extend_from_slice(n.name.as_bytes());
        names.push(0);
    }
    let own = sections.get_mut(image.section_names)?;
    (own.offset, own.size) = (end, names.len() as u64);
    let headers_offset = align_up(end + names.len() as u64, 8)?;
    let count = u16::try_from(sections.len()).ok()?;
    let headers = sections.iter().flat_map(|s| s.to_bytes()).collect();
    Some(SectionTable {
        names,
        names_offset: end,
        headers,
        headers_offset,
        count,
    })
}
