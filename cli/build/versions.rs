//! Binds a library's calls to the C library, whatever the program and its other libraries define.
//!
//! A program may define any name that isn't reserved, `write` for one, and the dynamic linker looks there first. A library
//! asks for its names in versions (`write@GLIBC_2.2.5`). The linker of glibc takes a definition without any version for every
//! version, but where the wanted version is marked as hidden: then it takes no other than that version's. Linkers leave that mark
//! out of what a library needs, so it is set here, in the section `.gnu.version_r` of the linked library.

/// Files whose functions are meant. Not libgcc: what unwinds the stack calls us with its own data, so it must be the program's.
/// The C library's were four files before glibc 2.34: `write` was in that of threads, too, where the linker finds it first.
const BOUND: [&[u8]; 4] = [
    b"libc.so.6",
    b"libpthread.so.0",
    b"libdl.so.2",
    b"ld-linux-x86-64.so.2",
];

/// The mark in a version's number.
const HIDDEN: u16 = 0x8000;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_VERNEED: u64 = 0x6fff_fffe;
const DT_VERNEEDNUM: u64 = 0x6fff_ffff;

/// Marks the versions that a library (x86-64 ELF) needs of the C library. Returns how many; `None`: the file is not as expected.
pub(crate) fn mark(library: &mut [u8]) -> Option<usize> {
    let dynamic = segments(library)
        .into_iter()
        .find(|s| s.kind == PT_DYNAMIC)?;
    let entry = |tag: u64| {
        let places = (dynamic.offset..dynamic.offset + dynamic.len).step_by(16);
        let entry = |at: usize| {
            let is_it = number(library, at, 8)? == tag;
            is_it.then(|| number(library, at + 8, 8)).flatten()
        };
        places.into_iter().find_map(entry)
    };
    let strings = place(library, entry(DT_STRTAB)?)?;
    let mut file = place(library, entry(DT_VERNEED)?)?;
    let mut marked = 0;
    for _ in 0..entry(DT_VERNEEDNUM)? {
        // Elf64_Verneed: version, number of entries, name, offset of the first entry, offset of the next file.
        let name = strings + number(library, file + 4, 4)? as usize;
        let is_bound = BOUND.iter().any(|bound| {
            let text = library.get(name..name + bound.len() + 1);
            text.is_some_and(|t| t.starts_with(bound) && t.ends_with(&[0]))
        });
        let mut version = file + number(library, file + 8, 4)? as usize;
        for _ in 0..number(library, file + 2, 2)? {
            // Elf64_Vernaux: hash, flags, number, name, offset of the next one.
            if is_bound {
                let own = number(library, version + 6, 2)? as u16 | HIDDEN;
                library[version + 6..version + 8].copy_from_slice(&own.to_le_bytes());
                marked += 1;
            }
            version += number(library, version + 12, 4)? as usize;
        }
        file += number(library, file + 12, 4)? as usize;
    }
    Some(marked)
}

struct Segment {
    kind: u64,
    offset: usize,
    address: u64,
    len: usize,
}

fn segments(library: &[u8]) -> Vec<Segment> {
    let segment = |at: usize| {
        Some(Segment {
            kind: number(library, at, 4)?,
            offset: number(library, at + 8, 8)? as usize,
            address: number(library, at + 16, 8)?,
            len: number(library, at + 32, 8)? as usize,
        })
    };
    let table = number(library, 32, 8).zip(number(library, 56, 2));
    let (first, count) = table.unwrap_or_default();
    (0..count as usize)
        .filter_map(|i| segment(first as usize + 56 * i))
        .collect()
}

/// Where in the file an address is.
fn place(library: &[u8], address: u64) -> Option<usize> {
    let loaded = segments(library).into_iter().filter(|s| s.kind == PT_LOAD);
    let inside = |s: Segment| {
        let skip = address.checked_sub(s.address)? as usize;
        (skip < s.len).then_some(s.offset + skip)
    };
    loaded.into_iter().find_map(inside)
}

fn number(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let raw = bytes.get(at..at.checked_add(len)?)?;
    Some(raw.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)))
}
