//! A quick look into an ELF file: which names are in its dynamic symbols, and has it thread-local variables?

use core::ffi::CStr;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Longest string table that is looked at.
const MAX_STRINGS: u64 = 256 << 20;
/// Most symbols that are looked at.
const MAX_SYMBOLS: u64 = 1 << 20;
/// Bytes of a symbol.
const SYMBOL: usize = 24;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_TLS: u64 = 7;
const DT_HASH: u64 = 4;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_STRSZ: u64 = 10;
const DT_GNU_HASH: u64 = 0x6fff_fef5;
const EM_X86_64: u64 = 62;

/// What the loader reads in a file.
pub(crate) struct Dynamic {
    file: File,
    segments: Vec<u8>,
    entries: Vec<u8>,
    strings: Vec<u8>,
}

impl Dynamic {
    /// Of an x86-64 program or library; `None`: it is none, or can't be read.
    pub(crate) fn read(path: &Path) -> Option<Dynamic> {
        let file = File::open(path).ok()?;
        let segments = segments(&file)?;
        let mut all = segments.chunks_exact(56);
        let dynamic = all.find(|s| number(s, 0, 4) == Some(PT_DYNAMIC))?;
        let len = number(dynamic, 32, 8)?.min(1 << 20);
        let entries = read(&file, number(dynamic, 8, 8)?, len)?;
        let mut found = Dynamic {
            file,
            segments,
            entries,
            strings: Vec::new(),
        };
        let len = found.value(DT_STRSZ)?.min(MAX_STRINGS);
        found.strings = found.read_at(found.value(DT_STRTAB)?, len)?;
        Some(found)
    }

    fn value(&self, tag: u64) -> Option<u64> {
        let entry = |e: &[u8]| number(e, 0, 8).filter(|&t| t == tag).and(number(e, 8, 8));
        self.entries.chunks_exact(16).find_map(entry)
    }

    /// Bytes at an address.
    fn read_at(&self, address: u64, len: u64) -> Option<Vec<u8>> {
        let at = self.segments.chunks_exact(56).find_map(|s| {
            let skip = address.checked_sub(number(s, 16, 8)?)?;
            let inside = number(s, 0, 4)? == PT_LOAD && skip < number(s, 32, 8)?;
            inside.then(|| number(s, 8, 8)?.checked_add(skip)).flatten()
        })?;
        read(&self.file, at, len)
    }

    /// Whether some text is in its strings.
    pub(crate) fn has(&self, text: &[u8]) -> bool {
        self.strings.windows(text.len()).any(|w| w == text)
    }

    /// Whether a symbol is there that it doesn't define and that is `wanted`; `begins`: a name may be, by how it begins.
    pub(crate) fn imports(
        &self,
        begins: impl Fn(&[u8]) -> bool,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> bool {
        let table = self.value(DT_SYMTAB).and_then(|at| {
            let count = self.count_imports(at)?.min(MAX_SYMBOLS);
            self.read_at(at, count * SYMBOL as u64)
        });
        let table = table.unwrap_or_default();
        table.chunks_exact(SYMBOL).any(|symbol| {
            let name = number(symbol, 0, 4).filter(|&n| n != 0);
            let is_defined = number(symbol, 6, 2) != Some(0);
            let name = name.and_then(|at| self.strings.get(usize::try_from(at).ok()?..));
            let name = name.filter(|rest| begins(rest));
            let name = name.and_then(|rest| rest.split(|&b| b == 0).next());
            !is_defined && name.is_some_and(&wanted)
        })
    }

    /// So many symbols, from the table's beginning on, have among them all that the file doesn't define.
    fn count_imports(&self, table: u64) -> Option<u64> {
        let word = |address: u64| number(&self.read_at(address, 4)?, 0, 4);
        // The GNU table has those from some number on that are defined; where it has none, nobody knows what it says.
        let defined = self.value(DT_GNU_HASH).and_then(|hash| word(hash + 4));
        let all = || self.value(DT_HASH).and_then(|hash| word(hash + 4));
        // The strings lie behind the symbols, with nothing or little between.
        let before = || self.value(DT_STRTAB)?.checked_sub(table);
        let defined = defined.filter(|&n| n > 1).or_else(all);
        defined.or_else(|| Some(before()? / SYMBOL as u64))
    }
}

/// Whether a file's dynamic strings have a name: it may define that function.
pub(crate) fn names(path: &Path, function: &CStr) -> bool {
    Dynamic::read(path).is_some_and(|d| d.has(function.to_bytes_with_nul()))
}

/// A file's thread-local variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadLocal {
    /// Bytes of each thread.
    pub(crate) size: usize,
    pub(crate) align: usize,
}

/// The thread-local variables of a library; `None`: it has none.
pub(crate) fn thread_local(path: &Path) -> Option<ThreadLocal> {
    let file = File::open(path).ok()?;
    let segments = segments(&file)?;
    let mut segments = segments.chunks_exact(56);
    let variables = segments.find(|s| number(s, 0, 4) == Some(PT_TLS))?;
    let size = usize::try_from(number(variables, 40, 8)?).ok()?;
    let align = usize::try_from(number(variables, 48, 8)?).ok()?;
    (size > 0).then_some(ThreadLocal {
        size,
        align: align.max(1),
    })
}

fn read(file: &File, offset: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(len).ok()?];
    file.read_exact_at(&mut bytes, offset).ok()?;
    Some(bytes)
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let raw = bytes.get(at..at + len)?;
    Some(raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}

/// The program headers of an x86-64 file, 56 bytes each.
fn segments(file: &File) -> Option<Vec<u8>> {
    let header = read(file, 0, 64)?;
    let wanted = header.starts_with(b"\x7fELF\x02\x01") && number(&header, 18, 2)? == EM_X86_64;
    if !wanted {
        return None;
    }
    let (offset, count) = (number(&header, 32, 8)?, number(&header, 56, 2)?);
    read(file, offset, count * 56)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_looked_at_as_far_as_they_can_be() {
        let own = Dynamic::read(Path::new("/proc/self/exe")).unwrap();
        assert!(own.imports(|rest| rest.starts_with(b"re"), |name| name == b"read"));
        assert!(!own.imports(|_| true, |name| name == b"main" || name.is_empty()));
        assert!(!own.imports(|_| false, |_| true));
        assert!(own.has(b"\0read\0") && !own.has(b"\0__kmpc_"));
        for none in ["/nonexistent", "/dev/null"] {
            assert!(Dynamic::read(Path::new(none)).is_none());
        }
        let file = std::env::temp_dir().join(format!("ompfuse-audit-{}", std::process::id()));
        std::fs::write(&file, b"\x7fELF\x02\x01 and nothing else").unwrap();
        assert!(Dynamic::read(&file).is_none());
        assert!(thread_local(&file).is_none() && !names(&file, c"malloc"));
        std::fs::remove_file(&file).unwrap();
    }
}
