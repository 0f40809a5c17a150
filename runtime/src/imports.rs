//! What a module calls of its OpenMP runtime: the names, and where the loader keeps the addresses that they are bound to. In a
//! process with several runtimes only these say which one a module uses.

use core::ffi::CStr;
use core::ops::Range;
use std::ffi::CString;

/// What names begin with: of two runtimes the one counts that executes a module's constructs.
const PREFIXES: [&str; 3] = ["__kmpc_", "GOMP_", "omp_"];

/// Entries of a dynamic section (elf.h).
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_RELA: u64 = 7;
const DT_RELASZ: u64 = 8;
const DT_JMPREL: u64 = 23;

/// Relocations of functions' addresses.
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

/// Slots that are looked at: which of them is bound first isn't known.
const MAX_SLOTS: usize = 64;

/// As in elf.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct Relocation {
    offset: u64,
    kind: u32,
    symbol: u32,
    addend: i64,
}

/// A module as it lies in memory.
pub(crate) struct Place {
    /// What its addresses are moved by.
    bias: u64,
    /// Its dynamic section.
    dynamic: *const [u64; 2],
    memory: Range<usize>,
}

/// Where a module lies.
pub(crate) fn memory(info: &libc::dl_phdr_info) -> Option<Range<usize>> {
    let loaded = headers(info).iter().filter(|p| p.p_type == libc::PT_LOAD);
    let ends = loaded.map(|p| (p.p_vaddr, p.p_vaddr.saturating_add(p.p_memsz)));
    let (first, last) = ends.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    let at = |va: u64| info.dlpi_addr.wrapping_add(va) as usize;
    Some(at(first)..at(last))
}

/// The module's program headers.
pub(crate) fn headers(info: &libc::dl_phdr_info) -> &[libc::Elf64_Phdr] {
    if info.dlpi_phdr.is_null() {
        return &[];
    }
    // SAFETY: the loader's description of the module's program headers.
    unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) }
}

impl Place {
    /// As the loader tells it.
    pub(crate) fn of(info: &libc::dl_phdr_info) -> Option<Place> {
        let dynamic = headers(info)
            .iter()
            .find(|p| p.p_type == libc::PT_DYNAMIC)?;
        Some(Place {
            bias: info.dlpi_addr,
            dynamic: info.dlpi_addr.wrapping_add(dynamic.p_vaddr) as *const [u64; 2],
            memory: memory(info)?,
        })
    }
}

/// Functions of a module's OpenMP runtime that it calls.
pub(crate) struct Imports {
    /// One of their names.
    pub(crate) name: CString,
    slots: Vec<*const usize>,
    /// Addresses in there are of the module's own code: a function that was not called yet.
    own: Range<usize>,
}

impl Imports {
    /// `None` if the module imports nothing of the kind.
    ///
    /// # Safety
    /// The place is that of a module whose relocations the loader has read, and that stays loaded as long as the result is used.
    pub(crate) unsafe fn of(place: &Place) -> Option<Imports> {
        // SAFETY: a dynamic section ends with an entry 0; the loader has made addresses of what it says.
        let entry = |wanted: u64| unsafe {
            let mut at = place.dynamic;
            while (*at)[0] != 0 {
                if (*at)[0] == wanted {
                    return Some((*at)[1] as usize);
                }
                at = at.add(1);
            }
            None
        };
        let (strings, symbols) = (entry(DT_STRTAB)?, entry(DT_SYMTAB)?);
        let tables = [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)]
            .map(|(table, len)| Some((entry(table)?, entry(len)?)));
        let (mut found, mut rank) = (None, PREFIXES.len());
        for (table, len) in tables.into_iter().flatten() {
            // SAFETY: the loader has just read the same table.
            let relocations = unsafe {
                core::slice::from_raw_parts(
                    table as *const Relocation,
                    len / size_of::<Relocation>(),
                )
            };
            let functions = relocations.iter().filter(|r| {
                matches!(r.kind, R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT) && r.symbol != 0
            });
            for relocation in functions {
                // SAFETY: a symbol's first half word is where its name is.
                let name = unsafe {
                    let symbol = symbols as *const [u32; 6];
                    let at = (*symbol.add(relocation.symbol as usize))[0];
                    CStr::from_ptr((strings + at as usize) as *const _)
                };
                let begins = |p: &&str| name.to_bytes().starts_with(p.as_bytes());
                let Some(this) = PREFIXES.iter().position(begins) else {
                    continue;
                };
                if this < rank {
                    (found, rank) = (Some((name, Vec::new())), this);
                }
                if let Some((_, slots)) = &mut found
                    && this == rank
                    && slots.len() < MAX_SLOTS
                {
                    slots.push((place.bias + relocation.offset) as *const usize);
                }
            }
        }
        found.map(|(name, slots)| Imports {
            name: name.to_owned(),
            slots,
            own: place.memory.clone(),
        })
    }

    /// Where one of the functions is, if one is bound already.
    pub(crate) fn bound(&self) -> Option<usize> {
        // SAFETY: slots of a loaded module, aligned; the loader stores whole words there.
        let mut values = self.slots.iter().map(|s| unsafe { s.read_volatile() });
        values.find(|v| *v != 0 && !self.own.contains(v))
    }
}
