//! Whom code is charged to, by the file that it was mapped from.

use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSymbol, ReadCache};
use ompfuse_format::abi::{NOTE_NAME, NOTE_TYPE, RUNTIME_LIBRARY};
use ompfuse_format::run::AUDIT_LIBRARY;
use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Whom a block of code is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The program, and libraries that only it calls.
    Own,
    /// The OpenMP runtime.
    OpenMp,
    /// The C library and its kind: whoever called it.
    Shared,
    /// A step on the way to another module (PLT): whoever takes it. It is ours where the runtime library does.
    Linkage,
    /// The loader: nobody, and whoever comes after it goes on as before.
    Loader,
    /// Ours: nobody.
    Excluded,
}

/// Defined by a library that is of this class. A program that defines one of them is a program nevertheless.
const TOLD_BY: &[(&str, Class)] = &[
    ("GOMP_parallel", Class::OpenMp),
    ("__kmpc_fork_call", Class::OpenMp),
    ("_rtld_global", Class::Loader),
    ("__libc_start_main", Class::Shared),
    ("pthread_create", Class::Shared),
    ("pthread_mutexattr_init", Class::Shared),
    ("_Unwind_RaiseException", Class::Shared),
    ("__cxa_throw", Class::Shared),
];

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Contents {
    class: Class,
    /// File offsets of the probes' stubs, if it is patched.
    added: Range<u64>,
}

impl Contents {
    const OWN: Contents = Contents {
        class: Class::Own,
        added: 0..0,
    };

    fn of(path: &Path) -> Contents {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or("");
        if [RUNTIME_LIBRARY, AUDIT_LIBRARY].contains(&name) {
            return Contents {
                class: Class::Excluded,
                ..Contents::OWN
            };
        }
        // What can't be read any more is the program's.
        File::open(path)
            .ok()
            .and_then(|file| Contents::parse(&ReadCache::new(file)))
            .unwrap_or(Contents::OWN)
    }

    fn parse(data: &ReadCache<File>) -> Option<Contents> {
        let file = ElfFile64::<LittleEndian, _>::parse(data).ok()?;
        let endian = LittleEndian;
        let headers = file.elf_program_headers();
        let added = added(&file, data).unwrap_or(0..0);
        let is_program = headers
            .iter()
            .any(|h| h.p_type(endian) == object::elf::PT_INTERP)
            || file.elf_header().e_type(endian) == object::elf::ET_EXEC;
        let told = || {
            let defined = file.dynamic_symbols().filter(|s| s.is_definition());
            defined
                .filter_map(|s| s.name().ok())
                .find_map(|name| TOLD_BY.iter().find(|(n, _)| *n == name))
        };
        // The C library and libpthread have an interpreter too, to be run as programs that tell their version.
        let class = match told() {
            Some(&(_, class)) if !is_program || class == Class::Shared => class,
            _ => Class::Own,
        };
        let class = if added.is_empty() { class } else { Class::Own };
        Some(Contents { class, added })
    }
}

/// The executable segment behind the one that holds our note: stubs and trampolines.
fn added<'d>(
    file: &ElfFile64<'d, LittleEndian, &'d ReadCache<File>>,
    data: &'d ReadCache<File>,
) -> Option<Range<u64>> {
    let endian = LittleEndian;
    let headers = file.elf_program_headers();
    let note = headers.iter().find(|h| {
        let Ok(Some(mut notes)) = h.notes(endian, data) else {
            return false;
        };
        while let Ok(Some(note)) = notes.next() {
            // object leaves out the terminating zero, which is a part of the name.
            if note.n_type(endian).0 == NOTE_TYPE && NOTE_NAME.starts_with(note.name()) {
                return true;
            }
        }
        false
    })?;
    let at = note.p_vaddr(endian);
    let mut behind: Vec<_> = headers
        .iter()
        .filter(|h| {
            h.p_type(endian) == object::elf::PT_LOAD
                && h.p_flags(endian).0 & object::elf::PF_X.0 != 0
                && h.p_vaddr(endian) > at
        })
        .collect();
    behind.sort_by_key(|h| h.p_vaddr(endian));
    let (start, len) = behind.first()?.file_range(endian);
    Some(start..start + len)
}

/// A mapping, by the host's addresses.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    addresses: Range<u64>,
    offset: u64,
    path: Option<PathBuf>,
}

impl Mapping {
    /// A line of `/proc/self/maps`.
    fn parse(line: &str) -> Option<Mapping> {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let offset = number(words.nth(1)?)?;
        let path = words.nth(2).map(str::trim_start);
        Some(Mapping {
            addresses: number(start)?..number(end)?,
            offset,
            path: path.filter(|p| p.starts_with('/')).map(PathBuf::from),
        })
    }
}

/// The files that are mapped in the simulator's process, as far as they have been asked for.
#[derive(Debug, Default)]
pub struct Modules {
    mappings: Vec<Mapping>,
    files: HashMap<PathBuf, Contents>,
}

impl Modules {
    /// Mappings may have changed.
    pub fn forget(&mut self) {
        self.mappings.clear();
    }

    /// Whom the code at an address of the host is charged to.
    pub fn class(&mut self, address: u64) -> Class {
        if self.find(address).is_none() {
            self.mappings = std::fs::read_to_string("/proc/self/maps")
                .unwrap_or_default()
                .lines()
                .filter_map(Mapping::parse)
                .collect();
        }
        let Some(mapping) = self.find(address) else {
            return Class::Own;
        };
        let Some(path) = mapping.path.clone() else {
            return Class::Own; // code that the program makes
        };
        let offset = address - mapping.addresses.start + mapping.offset;
        let contents = self
            .files
            .entry(path)
            .or_insert_with_key(|path| Contents::of(path));
        if contents.added.contains(&offset) {
            return Class::Excluded;
        }
        contents.class
    }

    fn find(&self, address: u64) -> Option<&Mapping> {
        let at = self
            .mappings
            .partition_point(|m| m.addresses.end <= address);
        self.mappings
            .get(at)
            .filter(|m| m.addresses.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let line = "7f00-7f80 r-xp 00001000 fe:01 77                         /a b/x.so";
        assert_eq!(
            Mapping::parse(line),
            Some(Mapping {
                addresses: 0x7f00..0x7f80,
                offset: 0x1000,
                path: Some("/a b/x.so".into()),
            })
        );
        assert_eq!(
            Mapping::parse("1000-2000 rw-p 00000000 00:00 0 ").and_then(|m| m.path),
            None
        );
        assert_eq!(
            Mapping::parse("1000-2000 rw-p 00000000 00:00 0 [heap]").and_then(|m| m.path),
            None
        );
    }

    #[test]
    fn the_c_library_and_the_loader_are_known() {
        let class_of = |symbol: &str| {
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let line = maps
                .lines()
                .find(|l| l.contains(symbol) && l.contains("r-xp"));
            let mapping = Mapping::parse(line.expect("it is mapped here")).unwrap();
            Modules::default().class(mapping.addresses.start)
        };
        assert_eq!(class_of("/libc.so"), Class::Shared);
        assert_eq!(class_of("/ld-linux"), Class::Loader);
        let own = std::env::current_exe().unwrap();
        assert_eq!(class_of(own.to_str().unwrap()), Class::Own);
    }

    #[test]
    fn ours_are_known_by_their_names() {
        let contents = Contents::of(Path::new("/nowhere").join(RUNTIME_LIBRARY).as_path());
        assert_eq!(contents.class, Class::Excluded);
        assert_eq!(Contents::of(Path::new("/nowhere/a")), Contents::OWN);
    }
}
