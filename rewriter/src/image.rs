//! The parts of an ELF file that a patch has to keep consistent: header, segments, sections, dynamic table.

use crate::model::LinkVa;
use crate::patch_error::PatchError;
use crate::thunk::FileCode;
use object::LittleEndian as LE;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use ompfuse_format::abi::NOTE_NAME;

/// Granularity of mappings on x86-64.
pub(crate) const PAGE: u64 = 0x1000;

/// The next multiple of `align`, a power of two; `None` on overflow.
pub(crate) fn align_up(value: u64, align: u64) -> Option<u64> {
    Some(value.checked_add(align - 1)? & !(align - 1))
}

/// A program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segment {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub va: u64,
    pub pa: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub align: u64,
}

impl Segment {
    pub(crate) const LEN: usize = 56;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0..4].copy_from_slice(&self.kind.to_le_bytes());
        out[4..8].copy_from_slice(&self.flags.to_le_bytes());
        let words = [
            self.offset,
            self.va,
            self.pa,
            self.file_size,
            self.mem_size,
            self.align,
        ];
        for (slot, word) in out[8..].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_le_bytes());
        }
        out
    }

    pub(crate) fn is_load(&self) -> bool {
        self.kind == elf::PT_LOAD.0
    }
}

/// A section header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Section {
    pub name: u32,
    pub kind: u32,
    pub flags: u64,
    pub va: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
    pub info: u32,
    pub align: u64,
    pub entry_size: u64,
}

impl Section {
    pub(crate) const LEN: usize = 64;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0..4].copy_from_slice(&self.name.to_le_bytes());
        out[4..8].copy_from_slice(&self.kind.to_le_bytes());
        for (at, word) in [
            (8, self.flags),
            (16, self.va),
            (24, self.offset),
            (32, self.size),
        ] {
            out[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        out[40..44].copy_from_slice(&self.link.to_le_bytes());
        out[44..48].copy_from_slice(&self.info.to_le_bytes());
        out[48..56].copy_from_slice(&self.align.to_le_bytes());
        out[56..64].copy_from_slice(&self.entry_size.to_le_bytes());
        out
    }
}

/// The dynamic table with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DynamicTable {
    /// Index of the `PT_DYNAMIC` segment.
    pub segment: usize,
    /// File offset.
    pub offset: u64,
    /// Every entry (tag, value), the null ones at the end too.
    pub entries: Vec<(u64, u64)>,
}

impl DynamicTable {
    /// Index and value of the first entry with this tag before the terminating null entry.
    pub(crate) fn get(&self, tag: u64) -> Option<(usize, u64)> {
        let mut used = self
            .entries
            .iter()
            .take_while(|(t, _)| *t != elf::DT_NULL.0 as u64);
        used.position(|(t, _)| *t == tag)
            .map(|i| (i, self.entries[i].1))
    }
}

/// A parsed file.
#[derive(Debug)]
pub(crate) struct Image<'d> {
    pub bytes: &'d [u8],
    pub path: &'d str,
    pub executable: bool,
    pub phoff: u64,
    pub shoff: u64,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
    pub section_names: usize,
    pub dynamic: Option<DynamicTable>,
}

impl FileCode for Image<'_> {
    fn from(&self, at: u64) -> Option<&[u8]> {
        self.loaded_from(LinkVa(at))
    }
}

impl<'d> Image<'d> {
    pub(crate) fn read(bytes: &'d [u8], path: &'d str) -> Result<Image<'d>, PatchError> {
        let format = |what: &str| PatchError::Format {
            path: path.into(),
            what: what.into(),
        };
        let header = elf::FileHeader64::<LE>::parse(bytes)
            .map_err(|_| format("it is not a 64-bit little-endian ELF file"))?;
        let endian = LE;
        if !header.is_little_endian() || header.e_machine(endian) != elf::EM_X86_64 {
            return Err(format("it is not for x86-64"));
        }
        let kind = header.e_type(endian);
        if kind != elf::ET_EXEC && kind != elf::ET_DYN {
            return Err(format("it is neither a program nor a shared library"));
        }
        let segments: Vec<Segment> = header
            .program_headers(endian, bytes)
            .map_err(|_| format("its program headers are damaged"))?
            .iter()
            .map(|p| Segment {
                kind: p.p_type(endian).0,
                flags: p.p_flags(endian).0,
                offset: p.p_offset(endian),
                va: p.p_vaddr(endian),
                pa: p.p_paddr(endian),
                file_size: p.p_filesz(endian),
                mem_size: p.p_memsz(endian),
                align: p.p_align(endian),
            })
            .collect();
        check_segments(&segments, bytes.len() as u64).map_err(format)?;
        let sections: Vec<Section> = header
            .section_headers(endian, bytes)
            .map_err(|_| format("its section headers are damaged"))?
            .iter()
            .map(|s| Section {
                name: s.sh_name(endian),
                kind: s.sh_type(endian).0,
                flags: s.sh_flags(endian).0,
                va: s.sh_addr(endian),
                offset: s.sh_offset(endian),
                size: s.sh_size(endian),
                link: s.sh_link(endian),
                info: s.sh_info(endian),
                align: s.sh_addralign(endian),
                entry_size: s.sh_entsize(endian),
            })
            .collect();
        // Extended numbering would need section 0 changed as well; no program comes near 65,280 sections.
        if sections.len() + 8 > usize::from(elf::SHN_LORESERVE) {
            return Err(format("it has too many sections"));
        }
        if segments.len() + 8 > usize::from(elf::PN_XNUM) {
            return Err(format("it has too many segments"));
        }
        let section_names = usize::from(header.e_shstrndx(endian).0);
        let mut image = Image {
            bytes,
            path,
            executable: kind == elf::ET_EXEC,
            phoff: header.e_phoff(endian),
            shoff: header.e_shoff(endian),
            segments,
            sections,
            section_names,
            dynamic: None,
        };
        image.dynamic = image.read_dynamic()?;
        Ok(image)
    }

    pub(crate) fn format_error(&self, what: impl Into<String>) -> PatchError {
        PatchError::Format {
            path: self.path.into(),
            what: what.into(),
        }
    }

    fn read_dynamic(&self) -> Result<Option<DynamicTable>, PatchError> {
        let Some(segment) = self
            .segments
            .iter()
            .position(|s| s.kind == elf::PT_DYNAMIC.0)
        else {
            return Ok(None);
        };
        let s = self.segments[segment];
        let raw = self
            .at_offset(s.offset, s.file_size)
            .ok_or_else(|| self.format_error("its dynamic table lies outside the file"))?;
        let word = |b: &[u8]| b.iter().rev().fold(0u64, |w, &x| w << 8 | u64::from(x));
        let entries: Vec<_> = raw
            .chunks_exact(16)
            .map(|e| (word(&e[..8]), word(&e[8..])))
            .collect();
        Ok(Some(DynamicTable {
            segment,
            offset: s.offset,
            entries,
        }))
    }

    /// The loaded segments, in the order of their headers: ascending, but BOLT puts its own in front of others.
    pub(crate) fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|s| s.is_load())
    }

    /// Bytes of the file.
    pub(crate) fn at_offset(&self, offset: u64, len: u64) -> Option<&'d [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes
            .get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }

    /// Offset in the file of `len` bytes at an address.
    pub(crate) fn offset_of(&self, at: LinkVa, len: u64) -> Option<u64> {
        self.loads().find_map(|s| {
            let skip = at.0.checked_sub(s.va)?;
            (skip.checked_add(len)? <= s.file_size).then(|| s.offset + skip)
        })
    }

    /// A table at an address, which may lie in several segments that adjoin each other in the file and in memory.
    pub(crate) fn table(&self, at: LinkVa, len: u64) -> Option<&'d [u8]> {
        let holds = |s: &&Segment| at.0 >= s.va && at.0 - s.va < s.file_size;
        let mut last = self.loads().find(holds)?;
        let offset = last.offset + (at.0 - last.va);
        let end = offset.checked_add(len)?;
        // Whole pages are mapped: what the file has behind a segment without zeros is there too.
        let extent = |s: &Segment| match s.file_size == s.mem_size {
            true => s.va.saturating_add(s.file_size).next_multiple_of(PAGE) - s.va,
            false => s.file_size,
        };
        while end > last.offset + extent(last) {
            let adjoins = |s: &&Segment| {
                let ahead = s.va.checked_sub(last.va).filter(|&ahead| ahead > 0);
                s.file_size > 0
                    && ahead == s.offset.checked_sub(last.offset)
                    && ahead.is_some_and(|ahead| ahead <= extent(last))
            };
            last = self.loads().find(adjoins)?;
        }
        self.at_offset(offset, len)
    }

    /// The rest of the loaded segment from an address on.
    pub(crate) fn loaded_from(&self, at: LinkVa) -> Option<&'d [u8]> {
        let segment = self
            .loads()
            .find(|s| at.0 >= s.va && at.0 - s.va < s.file_size)?;
        let skip = at.0 - segment.va;
        self.at_offset(segment.offset + skip, segment.file_size - skip)
    }

    /// Offset in the file of `len` bytes of code at an address.
    pub(crate) fn code_offset(&self, at: LinkVa, len: u64) -> Option<u64> {
        let in_code = self
            .loads()
            .any(|s| s.flags & elf::PF_X.0 != 0 && at.0 >= s.va && at.0 - s.va < s.file_size);
        self.offset_of(at, len).filter(|_| in_code)
    }

    /// First address behind every loaded segment, on a page boundary.
    pub(crate) fn top(&self) -> Option<u64> {
        let end = self.loads().map(|s| s.va + s.mem_size).max()?;
        align_up(end, PAGE)
    }

    /// File offset of data behind everything that the headers know of; `None` where there is none but padding.
    /// Self-extracting programs look for it at the end of their file, or behind the section headers.
    pub(crate) fn overlay(&self) -> Option<u64> {
        let segments = self.segments.iter().map(|s| (s.offset, s.file_size));
        let sections = self.sections.iter().filter(|s| s.occupies_file());
        let tables = [
            (self.phoff, self.segments.len() * Segment::LEN),
            (self.shoff, self.sections.len() * Section::LEN),
        ];
        let end = segments
            .chain(sections.map(|s| (s.offset, s.size)))
            .chain(tables.map(|(at, len)| (at, len as u64)))
            .map(|(at, len)| at.saturating_add(len))
            .max()?;
        let data = self.bytes.get(usize::try_from(end).ok()?..)?;
        data.iter().any(|&b| b != 0).then_some(end)
    }

    /// Whether this file was written by us.
    pub(crate) fn is_patched(&self) -> bool {
        self.segments
            .iter()
            .filter(|s| s.kind == elf::PT_NOTE.0)
            .any(|s| {
                self.at_offset(s.offset, s.file_size)
                    .is_some_and(|note| note.get(12..20) == Some(NOTE_NAME.as_slice()))
            })
    }
}

/// What everything else relies on: ranges that don't wrap, file parts in the file, loads apart from each other.
fn check_segments(segments: &[Segment], file_len: u64) -> Result<(), &'static str> {
    let mut end = 0;
    let mut loads = 0;
    let mut ascending: Vec<&Segment> = segments.iter().collect();
    ascending.sort_by_key(|s| s.va);
    for s in ascending {
        let in_file = s
            .offset
            .checked_add(s.file_size)
            .is_some_and(|e| e <= file_len);
        if !in_file && s.kind != elf::PT_NULL.0 {
            return Err("a segment lies outside the file");
        }
        if s.is_load() {
            loads += 1;
            let limit = s.va.checked_add(s.mem_size).filter(|&e| e < 1 << 47);
            if s.file_size > s.mem_size || s.va < end || s.va % PAGE != s.offset % PAGE {
                return Err("its segments overlap, or lie otherwise in the file than in memory");
            }
            end = limit.ok_or("a segment's addresses are out of range")?;
        }
    }
    if loads == 0 {
        return Err("nothing of it is loaded");
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Address of the code in [`tiny`].
    pub(crate) const CODE: u64 = 0x40_0100;

    /// The smallest program that holds this code.
    pub(crate) fn tiny(code: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 0x100];
        file[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        for (at, value) in [
            (16, 2u16),
            (18, 62),
            (20, 1),
            (52, 64),
            (54, 56),
            (56, 1),
            (58, 64),
        ] {
            file[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        file[32..40].copy_from_slice(&64u64.to_le_bytes());
        let len = (0x100 + code.len()) as u64;
        let load = Segment {
            kind: elf::PT_LOAD.0,
            flags: elf::PF_X.0,
            offset: 0,
            va: 0x40_0000,
            pa: 0x40_0000,
            file_size: len,
            mem_size: len,
            align: PAGE,
        };
        file[64..120].copy_from_slice(&load.to_bytes());
        file.extend(code);
        file
    }

    #[test]
    fn addresses_lead_to_offsets() {
        let file = tiny(&[0x90; 8]);
        let image = Image::read(&file, "tiny").unwrap();
        assert!(image.executable && !image.is_patched());
        assert_eq!(image.code_offset(LinkVa(CODE), 8), Some(0x100));
        assert_eq!(image.code_offset(LinkVa(CODE), 9), None);
        assert_eq!(image.top(), Some(0x40_1000));
        assert_eq!(image.loaded_from(LinkVa(CODE + 6)), Some(&[0x90, 0x90][..]));
        assert_eq!(image.table(LinkVa(CODE + 6), 2), Some(&[0x90, 0x90][..]));
        assert_eq!(image.table(LinkVa(CODE + 6), 3), None);
    }

    #[test]
    fn other_files_are_refused() {
        let mut file = tiny(&[]);
        file[18] = 183;
        let text = Image::read(&file, "tiny").unwrap_err().to_string();
        assert!(
            text.starts_with("cannot patch tiny: it is not for x86-64; give "),
            "{text}"
        );
        file[18] = 62;
        file[64 + 32] = 1; // beyond the end
        file[64 + 33] = 0xff;
        assert!(Image::read(&file, "tiny").is_err());
    }
}
