//! Reading ELF: segments, sections, notes, and bytes by link-time address. Every access is bounds-checked.

use super::bytes::{notes, part, str_at, u16_at, u32_at, u64_at};
use super::error::ScanError;
use crate::describe::decode;
use crate::thunk::FileCode;
use object::elf;
use ompfuse_format::abi::{NOTE_NAME, NOTE_TYPE, NoteDesc};
use ompfuse_format::site::SelfDescription;

/// A loadable segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub va: u64,
    pub offset: u64,
    pub file_size: u64,
    /// Zeros follow in memory.
    pub has_zeros: bool,
    pub exec: bool,
}

impl Load {
    /// So many bytes of the file are in memory from its address on: whole pages are mapped.
    fn extent(&self) -> u64 {
        match self.has_zeros {
            true => self.file_size,
            false => (self.va.saturating_add(self.file_size) | 0xfff).saturating_add(1) - self.va,
        }
    }

    /// Whether what lies behind it, in the file and in memory, is the next segment.
    fn goes_on_in(&self, next: &Load) -> bool {
        let ahead = next.va.checked_sub(self.va);
        ahead == next.offset.checked_sub(self.offset) && ahead.is_some_and(|n| n <= self.extent())
    }
}

/// A section header with its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub name: &'a str,
    pub kind: u32,
    pub va: u64,
    pub offset: u64,
    pub size: u64,
    pub link: u32,
}

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Executable,
    Dynamic,
}

/// An ELF file's structure.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    pub bytes: &'a [u8],
    pub kind: Kind,
    pub loads: Vec<Load>,
    pub sections: Vec<Section<'a>>,
    /// File offset and size of the dynamic table.
    pub dynamic: Option<(u64, u64)>,
    pub interpreter: bool,
    /// Address and size of `.eh_frame_hdr`.
    pub eh_frame_hdr: Option<(u64, u64)>,
    /// File offset and size of each note segment.
    pub notes: Vec<(u64, u64)>,
}

fn machine_name(number: u16) -> String {
    match number {
        3 => "i386".into(),
        21 => "ppc64".into(),
        22 => "s390".into(),
        40 => "arm".into(),
        183 => "aarch64".into(),
        243 => "riscv".into(),
        other => format!("ELF machine {other}"),
    }
}

impl FileCode for Image<'_> {
    fn from(&self, at: u64) -> Option<&[u8]> {
        self.rest(at)
    }
}

impl<'a> Image<'a> {
    /// Reads the headers.
    pub(crate) fn parse(bytes: &'a [u8], path: &str) -> Result<Image<'a>, ScanError> {
        let path = || path.to_owned();
        if bytes.get(..4) != Some(b"\x7fELF".as_slice()) {
            return Err(ScanError::NotElf { path: path() });
        }
        let len = bytes.len() as u64;
        let truncated = |what, offset| ScanError::Truncated {
            path: path(),
            what,
            offset,
            len,
        };
        match bytes.get(4..6) {
            Some(&[2, 1]) => {}
            Some(&[1, _]) => {
                return Err(ScanError::Form {
                    path: path(),
                    form: "32-bit",
                });
            }
            Some(&[_, 2]) => {
                return Err(ScanError::Form {
                    path: path(),
                    form: "big-endian",
                });
            }
            _ => return Err(truncated("the ELF header", 4)),
        }
        let head = bytes
            .get(..64)
            .ok_or_else(|| truncated("the ELF header", 0))?;
        let half = |at| u16_at(head, at).unwrap_or(0);
        let word = |at| u64_at(head, at).unwrap_or(0);
        if half(18) != elf::EM_X86_64.0 {
            return Err(ScanError::Machine {
                path: path(),
                machine: machine_name(half(18)),
            });
        }
        let kind = match half(16) {
            k if k == elf::ET_EXEC.0 => Kind::Executable,
            k if k == elf::ET_DYN.0 => Kind::Dynamic,
            k if k == elf::ET_REL.0 => {
                return Err(ScanError::Kind {
                    path: path(),
                    kind: "an object file; link it and give the program or library",
                });
            }
            k if k == elf::ET_CORE.0 => {
                return Err(ScanError::Kind {
                    path: path(),
                    kind: "a core file; give the program that left it",
                });
            }
            _ => {
                return Err(ScanError::Kind {
                    path: path(),
                    kind: "neither a program nor a shared library; give one of these",
                });
            }
        };
        let (phoff, phentsize, phnum) = (word(32), half(54), half(56));
        if phnum == 0 || phentsize != 56 {
            return Err(ScanError::Malformed {
                path: path(),
                what: format!(
                    "{phnum} program headers of {phentsize} bytes each in the ELF header"
                ),
            });
        }
        let headers = part(bytes, phoff, 56 * u64::from(phnum))
            .ok_or_else(|| truncated("the program header table", phoff))?;
        let mut image = Image {
            bytes,
            kind,
            loads: Vec::new(),
            sections: Vec::new(),
            dynamic: None,
            interpreter: false,
            eh_frame_hdr: None,
            notes: Vec::new(),
        };
        for header in headers.chunks_exact(56) {
            image.add_segment(header, &truncated)?;
        }
        image.loads.sort_by_key(|l| l.va);
        image.add_sections(word(40), half(58), half(60), half(62), &truncated)?;
        Ok(image)
    }

    fn add_segment(
        &mut self,
        header: &[u8],
        truncated: &dyn Fn(&'static str, u64) -> ScanError,
    ) -> Result<(), ScanError> {
        let word = |at| u64_at(header, at).unwrap_or(0);
        let (kind, flags) = (
            u32_at(header, 0).unwrap_or(0),
            u32_at(header, 4).unwrap_or(0),
        );
        let (offset, va, file_size) = (word(8), word(16), word(32));
        let present = || part(self.bytes, offset, file_size).is_some();
        if kind == elf::PT_LOAD.0 {
            if !present() || va.checked_add(file_size).is_none() {
                return Err(truncated("a loadable segment", offset));
            }
            let exec = flags & elf::PF_X.0 != 0;
            self.loads.push(Load {
                va,
                offset,
                file_size,
                has_zeros: word(40) > file_size,
                exec,
            });
        } else if kind == elf::PT_DYNAMIC.0 {
            if !present() {
                return Err(truncated("the dynamic table", offset));
            }
            self.dynamic = Some((offset, file_size));
        } else if kind == elf::PT_INTERP.0 {
            self.interpreter = true;
        } else if kind == elf::PT_NOTE.0 && present() {
            self.notes.push((offset, file_size));
        } else if kind == elf::PT_GNU_EH_FRAME.0 {
            self.eh_frame_hdr = Some((va, file_size));
        }
        Ok(())
    }

    /// Files without section headers are fine; promised ones that are missing mean a truncated file.
    fn add_sections(
        &mut self,
        shoff: u64,
        shentsize: u16,
        shnum: u16,
        shstrndx: u16,
        truncated: &dyn Fn(&'static str, u64) -> ScanError,
    ) -> Result<(), ScanError> {
        if shoff == 0 || shentsize != 64 {
            return Ok(());
        }
        let first = part(self.bytes, shoff, 64)
            .ok_or_else(|| truncated("the section header table", shoff))?;
        let count = match shnum {
            0 => u64_at(first, 32).unwrap_or(0),
            n => u64::from(n),
        };
        let names_index = match shstrndx {
            0xffff => u64::from(u32_at(first, 40).unwrap_or(0)),
            n => u64::from(n),
        };
        let table = count
            .checked_mul(64)
            .and_then(|size| part(self.bytes, shoff, size))
            .ok_or_else(|| truncated("the section header table", shoff))?;
        let names = usize::try_from(names_index)
            .ok()
            .and_then(|i| table.chunks_exact(64).nth(i))
            .and_then(|h| part(self.bytes, u64_at(h, 24)?, u64_at(h, 32)?))
            .unwrap_or(&[]);
        for header in table.chunks_exact(64) {
            let word = |at| u64_at(header, at).unwrap_or(0);
            let half = |at| u32_at(header, at).unwrap_or(0);
            self.sections.push(Section {
                name: str_at(names, half(0) as usize).unwrap_or(""),
                kind: half(4),
                va: word(16),
                offset: word(24),
                size: word(32),
                link: half(40),
            });
        }
        Ok(())
    }

    /// The bytes of a section in the file.
    pub(crate) fn section_data(&self, section: &Section<'a>) -> Option<&'a [u8]> {
        if section.kind == elf::SHT_NOBITS.0 {
            return None;
        }
        part(self.bytes, section.offset, section.size)
    }

    /// The segment that holds this address in its file-backed part.
    pub(crate) fn load_at(&self, va: u64) -> Option<&Load> {
        self.loads
            .iter()
            .find(|l| va >= l.va && va - l.va < l.file_size)
    }

    /// The file's bytes from this address to the end of its segment.
    pub(crate) fn rest(&self, va: u64) -> Option<&'a [u8]> {
        let load = self.load_at(va)?;
        let skip = va - load.va;
        part(
            self.bytes,
            load.offset.checked_add(skip)?,
            load.file_size - skip,
        )
    }

    /// The file's bytes from this address on, as the loader sees them: tools move tables to segments of their own, which adjoin others,
    /// so that a table may lie in several.
    pub(crate) fn rest_of_table(&self, va: u64) -> Option<&'a [u8]> {
        let mut at = self
            .loads
            .iter()
            .position(|l| va >= l.va && va - l.va < l.file_size)?;
        let first = self.loads[at];
        while let Some(next) = self.loads.get(at + 1)
            && self.loads[at].goes_on_in(next)
        {
            at += 1;
        }
        let last = self.loads[at];
        let offset = first.offset.checked_add(va - first.va)?;
        let end = last
            .offset
            .checked_add(last.extent())?
            .min(self.bytes.len() as u64);
        part(self.bytes, offset, end.checked_sub(offset)?)
    }

    /// Bytes at an address.
    pub(crate) fn read(&self, va: u64, len: usize) -> Option<&'a [u8]> {
        self.rest(va)?.get(..len)
    }

    /// The `u32` at an address.
    pub(crate) fn u32(&self, va: u64) -> Option<u32> {
        u32_at(self.rest(va)?, 0)
    }

    /// The `u64` at an address.
    pub(crate) fn u64(&self, va: u64) -> Option<u64> {
        u64_at(self.rest(va)?, 0)
    }

    /// The string at an address.
    pub(crate) fn str(&self, va: u64) -> Option<&'a str> {
        str_at(self.rest(va)?, 0)
    }

    /// Whether the address is in an executable segment.
    pub(crate) fn is_code(&self, va: u64) -> bool {
        self.load_at(va).is_some_and(|l| l.exec)
    }

    /// Executable parts: address and bytes.
    pub(crate) fn code(&self) -> impl Iterator<Item = (u64, &'a [u8])> + '_ {
        self.loads
            .iter()
            .filter(|l| l.exec)
            .filter_map(|l| Some((l.va, part(self.bytes, l.offset, l.file_size)?)))
    }

    /// The description of the first note with this name and type.
    pub(crate) fn note(&self, name: &[u8], kind: u32) -> Option<&'a [u8]> {
        let segments = self.notes.iter();
        let data = segments.filter_map(|&(offset, size)| part(self.bytes, offset, size));
        let mut all = data.flat_map(notes);
        all.find_map(|(of, kind_of, desc)| (of == name && kind_of == kind).then_some(desc))
    }

    /// GNU build id in hexadecimal.
    pub(crate) fn build_id(&self) -> Option<String> {
        let id = self.note(b"GNU\0", elf::NT_GNU_BUILD_ID.0)?;
        Some(id.iter().map(|b| format!("{b:02x}")).collect())
    }

    /// Whether `ompfuse patch` wrote this file, and what it says of itself where that is readable.
    pub(crate) fn self_description(&self) -> Option<Option<SelfDescription>> {
        let desc = self.note(NOTE_NAME, NOTE_TYPE)?;
        let noted = NoteDesc::from_bytes(desc)
            .and_then(|note| part(self.bytes, note.description_offset, note.description_len));
        // Tools that strip a file move what isn't loaded; the section header then says where it is.
        let moved = self
            .sections
            .iter()
            .find(|s| s.name == ".ompfuse")
            .and_then(|s| self.section_data(s));
        let mut found = [noted, moved].into_iter().flatten();
        Some(found.find_map(|text| decode(text).ok()))
    }
}
