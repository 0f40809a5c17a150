//! What the loader reads: needed libraries, imported and exported symbols, relocations. Works without section headers.

use super::bytes::{part, str_at, u16_at, u32_at, u64_at};
use super::image::Image;
use object::elf;
use std::ops::Range;

/// Sections and tables with more entries than this are cut: no real file comes near it.
const MAX_SYMBOLS: usize = 1 << 26;

/// A symbol table entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Symbol<'a> {
    pub name: &'a str,
    pub kind: u8,
    pub binding: u8,
    pub defined: bool,
    pub va: u64,
    pub size: u64,
}

impl Symbol<'_> {
    /// Whether it names code: functions, and what assemblers left untyped.
    pub(crate) fn is_function(&self) -> bool {
        self.defined && (self.kind == elf::STT_FUNC.0 || self.kind == elf::STT_GNU_IFUNC.0)
    }
}

/// The relocations that matter here: slots for symbols, and pointers within the module.
#[derive(Debug, Default)]
pub(crate) struct Dynamic<'a> {
    pub needed: Vec<&'a str>,
    pub soname: Option<&'a str>,
    pub pie_flag: bool,
    pub symbols: Vec<Symbol<'a>>,
    /// Address of a slot and the symbol whose address the loader puts there, ascending.
    pub slots: Vec<(u64, &'a str)>,
    /// Those of them that are variables of the program, which may change.
    pub variables: Vec<u64>,
    /// Address and value (before the bias) of pointers that the loader relocates, ascending.
    pub relative: Vec<(u64, u64)>,
    /// Where the global offset table begins, as far as the loader knows.
    pub table: Option<u64>,
    /// Values of those that are reckoned from symbols of the file.
    from_symbols: Vec<u64>,
}

/// Decodes one symbol (24 bytes).
fn symbol<'a>(entry: &[u8], names: &'a [u8]) -> Option<Symbol<'a>> {
    let info = *entry.get(4)?;
    Some(Symbol {
        name: str_at(names, u32_at(entry, 0)? as usize).unwrap_or(""),
        kind: info & 0xf,
        binding: info >> 4,
        defined: u16_at(entry, 6)? != 0,
        va: u64_at(entry, 8)?,
        size: u64_at(entry, 16)?,
    })
}

/// The symbols of `.symtab`; empty when it is stripped.
pub(crate) fn static_symbols<'a>(image: &Image<'a>) -> Vec<Symbol<'a>> {
    let Some(table) = image.sections.iter().find(|s| s.kind == elf::SHT_SYMTAB.0) else {
        return Vec::new();
    };
    let names = image
        .sections
        .get(table.link as usize)
        .and_then(|s| image.section_data(s));
    let (Some(data), Some(names)) = (image.section_data(table), names) else {
        return Vec::new();
    };
    data.chunks_exact(24)
        .take(MAX_SYMBOLS)
        .filter_map(|e| symbol(e, names))
        .collect()
}

/// The addresses and sizes that the dynamic table holds.
#[derive(Default)]
struct Tags {
    symtab: u64,
    strtab: u64,
    strsz: u64,
    jmprel: (u64, u64),
    rela: (u64, u64),
    relr: (u64, u64),
    hash: Option<u64>,
    gnu_hash: Option<u64>,
}

impl<'a> Dynamic<'a> {
    /// Reads everything from the dynamic table. What is out of bounds counts as absent.
    pub(crate) fn parse(image: &Image<'a>) -> Dynamic<'a> {
        let mut out = Dynamic::default();
        let Some(table) = image
            .dynamic
            .and_then(|(at, len)| part(image.bytes, at, len))
        else {
            return out;
        };
        let mut tags = Tags::default();
        let mut strings = Vec::new();
        for entry in table.chunks_exact(16) {
            let (tag, value) = (u64_at(entry, 0).unwrap_or(0), u64_at(entry, 8).unwrap_or(0));
            let Ok(tag) = i64::try_from(tag) else {
                continue;
            };
            match tag {
                t if t == elf::DT_NULL.0 => break,
                t if t == elf::DT_NEEDED.0 => strings.push((true, value)),
                t if t == elf::DT_SONAME.0 => strings.push((false, value)),
                t if t == elf::DT_FLAGS_1.0 => out.pie_flag = value & elf::DF_1_PIE.0 != 0,
                t if t == elf::DT_SYMTAB.0 => tags.symtab = value,
                t if t == elf::DT_STRTAB.0 => tags.strtab = value,
                t if t == elf::DT_STRSZ.0 => tags.strsz = value,
                t if t == elf::DT_JMPREL.0 => tags.jmprel.0 = value,
                t if t == elf::DT_PLTRELSZ.0 => tags.jmprel.1 = value,
                t if t == elf::DT_RELA.0 => tags.rela.0 = value,
                t if t == elf::DT_RELASZ.0 => tags.rela.1 = value,
                t if t == elf::DT_RELR.0 => tags.relr.0 = value,
                t if t == elf::DT_RELRSZ.0 => tags.relr.1 = value,
                t if t == elf::DT_PLTGOT.0 => out.table = Some(value),
                t if t == elf::DT_HASH.0 => tags.hash = Some(value),
                t if t == elf::DT_GNU_HASH.0 => tags.gnu_hash = Some(value),
                _ => {}
            }
        }
        let names = image
            .rest_of_table(tags.strtab)
            .map(|rest| {
                &rest[..rest
                    .len()
                    .min(usize::try_from(tags.strsz).unwrap_or(usize::MAX))]
            })
            .unwrap_or(&[]);
        for (needed, at) in strings {
            let Some(name) = usize::try_from(at).ok().and_then(|at| str_at(names, at)) else {
                continue;
            };
            if needed {
                out.needed.push(name);
            } else {
                out.soname = Some(name);
            }
        }
        let symbols = image.rest_of_table(tags.symtab).unwrap_or(&[]);
        let count = symbol_count(image, &tags);
        out.symbols = symbols
            .chunks_exact(24)
            .take(count)
            .filter_map(|e| symbol(e, names))
            .collect();
        for table in [tags.rela, tags.jmprel] {
            out.add_relocations(clamp(image, table), symbols, names);
        }
        out.add_relr(image, clamp(image, tags.relr));
        out.slots.sort_unstable();
        out.slots.dedup();
        out.variables.sort_unstable();
        out.relative.sort_unstable();
        out.relative.dedup_by_key(|r| r.0);
        out
    }

    fn add_relocations(&mut self, table: &[u8], symbols: &'a [u8], names: &'a [u8]) {
        for entry in table.chunks_exact(24) {
            let word = |at| u64_at(entry, at).unwrap_or(0);
            let (at, info, addend) = (word(0), word(8), word(16));
            let kind = (info & 0xffff_ffff) as u32;
            if kind == elf::R_X86_64_RELATIVE.0 {
                self.relative.push((at, addend));
                continue;
            }
            let symbol = usize::try_from(info >> 32)
                .ok()
                .and_then(|i| i.checked_mul(24))
                .and_then(|at| symbols.get(at..at.checked_add(24)?))
                .and_then(|e| symbol(e, names));
            if kind == elf::R_X86_64_64.0
                && let Some(symbol) = symbol.filter(|s| s.defined)
            {
                self.from_symbols.push(symbol.va.wrapping_add(addend));
            }
            if [
                elf::R_X86_64_JUMP_SLOT,
                elf::R_X86_64_GLOB_DAT,
                elf::R_X86_64_64,
            ]
            .iter()
            .any(|k| k.0 == kind)
                && (kind != elf::R_X86_64_64.0 || addend == 0)
                && let Some(symbol) = symbol.filter(|s| !s.name.is_empty())
            {
                self.slots.push((at, symbol.name));
                if kind == elf::R_X86_64_64.0 {
                    self.variables.push(at);
                }
            }
        }
    }

    /// Packed relative relocations: the value stands in place.
    fn add_relr(&mut self, image: &Image<'a>, table: &[u8]) {
        let mut next = 0u64;
        let mut add = |at: u64| {
            if let Some(value) = image.u64(at) {
                self.relative.push((at, value));
            }
        };
        for entry in table.chunks_exact(8) {
            let entry = u64_at(entry, 0).unwrap_or(0);
            if entry & 1 == 0 {
                add(entry);
                next = entry.wrapping_add(8);
            } else {
                for bit in 0..63 {
                    if entry >> (bit + 1) & 1 == 1 {
                        add(next.wrapping_add(8 * bit));
                    }
                }
                next = next.wrapping_add(8 * 63);
            }
        }
    }

    /// Values, before the bias, of all pointers into the file that the loader relocates; some twice.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = u64> + '_ {
        let relative = self.relative.iter().map(|r| r.1);
        relative.chain(self.from_symbols.iter().copied())
    }

    /// Whether the loader writes a word that has bytes in this range.
    pub(crate) fn writes_in(&self, range: &Range<u64>) -> bool {
        let from = range.start.saturating_sub(7);
        let relative = self.relative.partition_point(|r| r.0 < from);
        let slot = self.slots.partition_point(|s| s.0 < from);
        let places = [
            self.relative.get(relative).map(|r| r.0),
            self.slots.get(slot).map(|s| s.0),
        ];
        places.into_iter().flatten().any(|at| at < range.end)
    }

    /// Whether the loader writes a symbol's address there.
    pub(crate) fn is_slot(&self, at: u64) -> bool {
        self.slots.binary_search_by_key(&at, |s| s.0).is_ok()
    }

    /// The pointer at an address, as it is after relocation but without bias.
    pub(crate) fn pointer(&self, image: &Image<'_>, at: u64) -> Option<u64> {
        match self.relative.binary_search_by_key(&at, |r| r.0) {
            Ok(i) => self.relative.get(i).map(|r| r.1),
            Err(_) => image.u64(at),
        }
    }
}

/// The bytes of a table at an address, as far as they are in the file.
fn clamp<'a>(image: &Image<'a>, (va, size): (u64, u64)) -> &'a [u8] {
    let rest = if size == 0 {
        &[][..]
    } else {
        image.rest_of_table(va).unwrap_or(&[])
    };
    &rest[..rest.len().min(usize::try_from(size).unwrap_or(usize::MAX))]
}

/// Number of dynamic symbols: from the section header, else from the hash tables.
fn symbol_count(image: &Image<'_>, tags: &Tags) -> usize {
    let section = image
        .sections
        .iter()
        .find(|s| s.kind == elf::SHT_DYNSYM.0 && s.va == tags.symtab)
        .map(|s| s.size / 24);
    let count = section
        .or_else(|| Some(u64::from(image.u32(tags.hash?.checked_add(4)?)?)))
        .or_else(|| gnu_hash_count(image.rest_of_table(tags.gnu_hash?)?))
        .unwrap_or(0);
    usize::try_from(count)
        .unwrap_or(usize::MAX)
        .min(MAX_SYMBOLS)
}

/// Highest symbol index in a GNU hash table, plus one.
fn gnu_hash_count(table: &[u8]) -> Option<u64> {
    let (buckets, first, bloom) = (
        u32_at(table, 0)? as usize,
        u32_at(table, 4)?,
        u32_at(table, 8)? as usize,
    );
    let bucket_at = 16usize.checked_add(bloom.checked_mul(8)?)?;
    let chain_at = bucket_at.checked_add(buckets.checked_mul(4)?)?;
    let highest = table
        .get(bucket_at..chain_at)?
        .chunks_exact(4)
        .filter_map(|b| u32_at(b, 0))
        .max()
        .unwrap_or(0);
    if highest < first {
        return Some(u64::from(first));
    }
    let mut index = highest;
    loop {
        let at = chain_at.checked_add(((index - first) as usize).checked_mul(4)?)?;
        if u32_at(table, at)? & 1 == 1 {
            return Some(u64::from(index) + 1);
        }
        index = index.checked_add(1)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gnu_hash_tables_tell_the_number_of_symbols() {
        let words = |w: &[u32]| w.iter().flat_map(|w| w.to_le_bytes()).collect::<Vec<u8>>();
        // One bucket, symbols from 3, one bloom word; the chain of symbols 3 and 4 ends at 4.
        let table = words(&[1, 3, 1, 0, 0, 0, 3, 0x10, 0x11]);
        assert_eq!(gnu_hash_count(&table), Some(5));
        // A chain that never ends within the table.
        assert_eq!(gnu_hash_count(&words(&[1, 3, 1, 0, 0, 0, 3, 0x10])), None);
        // Only undefined symbols.
        assert_eq!(gnu_hash_count(&words(&[1, 7, 1, 0, 0, 0, 0])), Some(7));
        assert_eq!(gnu_hash_count(&words(&[u32::MAX, 0, u32::MAX])), None);
    }
}
