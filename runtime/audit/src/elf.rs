//! A quick look into an ELF file: do its dynamic strings name functions of an OpenMP runtime?

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
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const EM_X86_64: u64 = 62;

/// Whether a file is an x86-64 program or library that uses an OpenMP runtime, and no patched one. What can't be read isn't.
pub(crate) fn uses_openmp(path: &Path) -> bool {
    let strings = File::open(path).ok().and_then(|file| strings(&file));
    let strings = strings.unwrap_or_default();
    let has = |text: &[u8]| strings.windows(text.len()).any(|w| w == text);
    PREFIXES.iter().any(|p| has(p)) && !has(RUNTIME_LIBRARY.as_bytes())
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

/// The dynamic string table.
fn strings(file: &File) -> Option<Vec<u8>> {
    let header = read(file, 0, 64)?;
    let wanted = header.starts_with(b"\x7fELF\x02\x01") && number(&header, 18, 2)? == EM_X86_64;
    if !wanted {
        return None;
    }
    let (offset, count) = (number(&header, 32, 8)?, number(&header, 56, 2)?);
    let segments = read(file, offset, count * 56)?;
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
        std::fs::remove_file(&folder).unwrap();
    }
}
