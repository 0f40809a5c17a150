//! A file as goblin reads it.

use super::error::VerifyError;
use goblin::elf::Elf;
use goblin::elf::dynamic::{DF_1_PIE, DT_FLAGS_1};
use goblin::elf::header::{EM_X86_64, ET_DYN, ET_EXEC};
use goblin::elf::program_header::{PT_INTERP, PT_LOAD, ProgramHeader};

/// A file and what goblin makes of it.
pub(super) struct View<'d> {
    pub bytes: &'d [u8],
    pub elf: Elf<'d>,
}

impl<'d> View<'d> {
    pub(super) fn parse(bytes: &'d [u8], which: &'static str) -> Result<View<'d>, VerifyError> {
        let error = |what: String| VerifyError::Elf { which, what };
        let elf = Elf::parse(bytes).map_err(|e| error(e.to_string()))?;
        let kind = elf.header.e_type;
        if !elf.is_64 || !elf.little_endian || elf.header.e_machine != EM_X86_64 {
            return Err(error("it is not for x86-64".into()));
        }
        if kind != ET_EXEC && kind != ET_DYN {
            return Err(error("it is neither a program nor a shared library".into()));
        }
        let view = View { bytes, elf };
        // From here on sums of these don't wrap.
        let bounded = |p: &ProgramHeader| {
            let in_memory = p
                .p_vaddr
                .checked_add(p.p_memsz)
                .is_some_and(|e| e < 1 << 47);
            let in_file = p
                .p_offset
                .checked_add(p.p_filesz)
                .is_some_and(|e| e <= bytes.len() as u64);
            in_file && (p.p_type != PT_LOAD || in_memory && p.p_filesz <= p.p_memsz)
        };
        match view.elf.program_headers.iter().all(bounded) {
            true => Ok(view),
            false => Err(error("a segment lies outside the file".into())),
        }
    }

    pub(super) fn at_offset(&self, offset: u64, len: u64) -> Option<&'d [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.bytes
            .get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }

    pub(super) fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.elf
            .program_headers
            .iter()
            .filter(|p| p.p_type == PT_LOAD)
    }

    /// File offset of `len` bytes at an address.
    pub(super) fn offset_of(&self, va: u64, len: u64) -> Option<u64> {
        self.loads().find_map(|p| {
            let skip = va.checked_sub(p.p_vaddr)?;
            (skip.checked_add(len)? <= p.p_filesz).then(|| p.p_offset.checked_add(skip))?
        })
    }

    pub(super) fn at_va(&self, va: u64, len: u64) -> Option<&'d [u8]> {
        self.at_offset(self.offset_of(va, len)?, len)
    }

    /// A table at an address, which may lie in several segments, each of which begins where the one before ends.
    pub(super) fn table_at(&self, va: u64, len: u64) -> Option<&'d [u8]> {
        let begin = self.offset_of(va, 1)?;
        // Whole pages are mapped.
        let end = |p: &ProgramHeader| match p.p_filesz == p.p_memsz {
            true => (p.p_vaddr + p.p_filesz).next_multiple_of(0x1000),
            false => p.p_vaddr + p.p_filesz,
        };
        let mut last = self
            .loads()
            .find(|p| va >= p.p_vaddr && va - p.p_vaddr < p.p_filesz)?;
        while end(last) < va.checked_add(len)? {
            let same = |p: &ProgramHeader| {
                p.p_vaddr.wrapping_sub(p.p_offset) == last.p_vaddr.wrapping_sub(last.p_offset)
            };
            let adjoins = |p: &&ProgramHeader| {
                (last.p_vaddr + 1..=end(last)).contains(&p.p_vaddr) && same(p) && p.p_filesz > 0
            };
            last = self.loads().find(adjoins)?;
        }
        self.at_offset(begin, len)
    }

    /// The rest of the segment from an address on, if it is code.
    pub(super) fn code_at(&self, va: u64) -> Option<&'d [u8]> {
        let segment = self
            .loads()
            .find(|p| p.is_executable() && va >= p.p_vaddr && va - p.p_vaddr < p.p_filesz)?;
        self.at_va(va, segment.p_filesz - (va - segment.p_vaddr))
    }

    pub(super) fn dynamic_entries(&self) -> Vec<(u64, u64)> {
        let dynamic = self.elf.dynamic.as_ref();
        let entries = dynamic
            .map_or(&[][..], |d| &d.dyns)
            .iter()
            .map(|d| (d.d_tag, d.d_val));
        entries.take_while(|(tag, _)| *tag != 0).collect()
    }

    pub(super) fn dynamic_value(&self, tag: u64) -> Option<u64> {
        self.dynamic_entries()
            .iter()
            .find(|(t, _)| *t == tag)
            .map(|(_, v)| *v)
    }

    /// Whether the kernel can start it, so that it gets the header table's address from the kernel.
    pub(super) fn starts(&self) -> bool {
        let interpreter = self
            .elf
            .program_headers
            .iter()
            .any(|p| p.p_type == PT_INTERP);
        let pie = self
            .dynamic_value(DT_FLAGS_1)
            .is_some_and(|f| f & DF_1_PIE != 0);
        self.elf.header.e_type == ET_EXEC || interpreter || pie || self.elf.dynamic.is_none()
    }

    /// All program headers.
    pub(super) fn headers(&self) -> &[ProgramHeader] {
        &self.elf.program_headers
    }

    /// The only program header of a type.
    pub(super) fn header(&self, kind: u32) -> Option<&ProgramHeader> {
        self.elf.program_headers.iter().find(|p| p.p_type == kind)
    }

    /// The rest of the loaded segment from an address on.
    pub(super) fn loaded_from(&self, va: u64) -> Option<&'d [u8]> {
        let mut loads = self.loads();
        let segment = loads.find(|p| va >= p.p_vaddr && va - p.p_vaddr < p.p_filesz)?;
        let skip = va - segment.p_vaddr;
        self.at_offset(segment.p_offset + skip, segment.p_filesz - skip)
    }
}
