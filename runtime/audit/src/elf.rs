//! A quick look into an ELF file: do its dynamic strings name functions of an OpenMP runtime? Has it thread-local variables?

use core::ffi::CStr;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Beginnings of the names that compilers emit calls of.
const PREFIXES: [&[u8]; 2] = [b"\0GOMP_", b"\0__kmpc_"];

/// Longest string table that is looked at.
const MAX_STRINGS: u64 = 256 << 20;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_TLS: u64 = 7;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const EM_X86_64: u64 = 62;

/// Whether a file is an x86-64 program or library that uses an OpenMP runtime, and no patched one. What can't be read isn't.
pub(crate) fn uses_openmp(path: &Path) -> bool {
    let strings = File::open(path).ok().and_then(|file| strings(&file));
    let strings = strings.unwrap_or_default();
    PREFIXES.iter().any(|p| has(&strings, p)) && !has(&strings, RUNTIME_LIBRARY.as_bytes())
}

/// Whether a file's dynamic strings have a name: it may define that function.
pub(crate) fn names(path: &Path, function: &CStr) -> bool {
    let strings = File::open(path).ok().and_then(|file| strings(&file));
    has(&strings.unwrap_or_default(), function.to_bytes_with_nul())
}

fn has(strings: &[u8], text: &[u8]) -> bool {
    strings.windows(text.len()).any(|w| w == text)
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

/// The dynamic string table.
fn strings(file: &File) -> Option<Vec<u8>> {
    let segments = segments(file)?;
    let segments = || segments.chunks_exact(56);
    let dynamic = segments().find(|s| number(s, 0, 4) == Some(PT_DYNAMIC))?;
    let len = number(dynamic, 32, 8)?.min(1 << 20);
    let entries = read(file, number(dynamic, 8, 8)?, len)?;
    let value = |tag: u64| {
        let entry = |e: &[u8]| number(e, 0, 8).filter(|&t| t == tag).and(number(e, 8, 8));
        entries.chunks_exact(16).find_map(entry)
    };
    let (address, len) = (value(DT_STRTAB)?, value(DT_STRSZ)?.min(MAX_STRINGS));
    let at = segments().find_map(|s| {
        let skip = address.checked_sub(number(s, 16, 8)?)?;
        let inside = number(s, 0, 4)? == PT_LOAD && skip < number(s, 32, 8)?;
        inside.then(|| number(s, 8, 8)?.checked_add(skip)).flatten()
    })?;
    read(file, at, len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_openmp_are_told_quickly() {
        assert!(!uses_openmp(Path::new("/nonexistent")));
        assert!(!uses_openmp(Path::new("/proc/self/exe")));
        assert!(!uses_openmp(Path::new("/dev/null")));
        let folder = std::env::temp_dir().join(format!("ompfuse-audit-{}", std::process::id()));
        std::fs::write(&folder, b"\x7fELF\x02\x01 and nothing else").unwrap();
        assert!(!uses_openmp(&folder));
        assert!(thread_local(&folder).is_none() && !names(&folder, c"malloc"));
        std::fs::remove_file(&folder).unwrap();
    }
}
