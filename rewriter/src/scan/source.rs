//! Source lines from DWARF.

use super::image::{Image, u32_at, u64_at};
use gimli::{EndianSlice, LittleEndian};
use object::elf;
use object::read::{CompressedData, CompressionFormat};
use ompfuse_format::site::Source;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

/// The debug sections, decompressed where they are compressed.
pub(crate) struct DebugSections<'a>(Vec<(&'static str, Cow<'a, [u8]>)>);

/// No section grows more than this by decompression; what claims to is damaged.
const MAX_RATIO: u64 = 2000;

impl<'a> DebugSections<'a> {
    /// Finds the sections. What can't be decompressed counts as absent.
    pub(crate) fn read(image: &Image<'a>) -> DebugSections<'a> {
        // The sections that lines, and the names of their files, are made of.
        let wanted = [
            gimli::SectionId::DebugAbbrev,
            gimli::SectionId::DebugAddr,
            gimli::SectionId::DebugAranges,
            gimli::SectionId::DebugInfo,
            gimli::SectionId::DebugLine,
            gimli::SectionId::DebugLineStr,
            gimli::SectionId::DebugRanges,
            gimli::SectionId::DebugRngLists,
            gimli::SectionId::DebugStr,
            gimli::SectionId::DebugStrOffsets,
        ];
        let named = |name: &str| image.sections.iter().find(|s| s.name == name);
        let mut out = Vec::new();
        for name in wanted.map(|id| id.name()) {
            let old_name = format!(".z{}", &name[1..]);
            let section = named(name).or_else(|| named(&old_name));
            let data = section.and_then(|s| {
                let data = image.section_data(s)?;
                if s.flags & elf::SHF_COMPRESSED.0 != 0 {
                    decompressed(data)
                } else if s.name.starts_with(".z") {
                    decompressed_old(data)
                } else {
                    Some(Cow::Borrowed(data))
                }
            });
            out.extend(data.map(|d| (name, d)));
        }
        DebugSections(out)
    }

    fn get(&self, name: &str) -> &[u8] {
        let found = self.0.iter().find(|(n, _)| *n == name);
        found.map_or(&[], |(_, data)| data)
    }
}

/// A section with a compression header: format, reserved, size, alignment.
fn decompressed(data: &[u8]) -> Option<Cow<'_, [u8]>> {
    let format = match u32_at(data, 0)? {
        k if k == elf::ELFCOMPRESS_ZLIB.0 => CompressionFormat::Zlib,
        k if k == elf::ELFCOMPRESS_ZSTD.0 => CompressionFormat::Zstandard,
        _ => return None,
    };
    inflate(format, u64_at(data, 8)?, data.get(24..)?)
}

/// A `.zdebug_*` section of old: "ZLIB" and the size, big-endian.
fn decompressed_old(data: &[u8]) -> Option<Cow<'_, [u8]>> {
    let rest = data.strip_prefix(b"ZLIB")?;
    let size = u64::from_be_bytes(rest.get(..8)?.try_into().ok()?);
    inflate(CompressionFormat::Zlib, size, rest.get(8..)?)
}

fn inflate(format: CompressionFormat, size: u64, data: &[u8]) -> Option<Cow<'_, [u8]>> {
    if size > MAX_RATIO.saturating_mul(data.len() as u64) {
        return None;
    }
    let compressed = CompressedData {
        format,
        data,
        uncompressed_size: size,
    };
    compressed.decompress().ok()
}

/// Looks source lines up. Without (readable) debug information it finds none.
pub(crate) struct Lines<'a> {
    dwarf: Option<gimli::Dwarf<EndianSlice<'a, LittleEndian>>>,
    context: Option<addr2line::Context<EndianSlice<'a, LittleEndian>>>,
}

impl<'a> Lines<'a> {
    /// Reads the debug sections.
    pub(crate) fn read(sections: &'a DebugSections<'_>) -> Lines<'a> {
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            Ok(EndianSlice::new(sections.get(id.name()), LittleEndian))
        };
        let context = gimli::Dwarf::load(load)
            .ok()
            .and_then(|d| addr2line::Context::from_dwarf(d).ok());
        Lines {
            dwarf: gimli::Dwarf::load(load).ok(),
            context,
        }
    }

    /// The lines with which functions begin: of several that the table has for one address, the first, where a look-up
    /// of the address finds the last.
    pub(crate) fn beginnings(&self, functions: &BTreeSet<u64>) -> HashMap<u64, Source> {
        let mut out = HashMap::new();
        let Some(dwarf) = self.dwarf.as_ref().filter(|_| !functions.is_empty()) else {
            return out;
        };
        let mut units = dwarf.units();
        // A unit that can't be read has no lines.
        while let Ok(Some(header)) = units.next() {
            if let Ok(unit) = dwarf.unit(header) {
                let _ = unit_beginnings(dwarf, &unit, functions, &mut out);
            }
        }
        out
    }

    /// Whether two of these groups of instructions have no line in common: both have some.
    pub(crate) fn are_apart(&self, groups: &[Vec<u64>]) -> bool {
        let lines = |group: &Vec<u64>| -> BTreeSet<(String, u32)> {
            let all = group.iter().filter_map(|&va| self.at(va));
            all.map(|s| (s.file, s.line)).collect()
        };
        let groups: Vec<_> = groups.iter().map(lines).filter(|g| !g.is_empty()).collect();
        let apart = |x: &BTreeSet<_>| groups.iter().any(|y| x.is_disjoint(y));
        groups.iter().any(apart)
    }

    /// The line of the instruction at an address.
    pub(crate) fn at(&self, va: u64) -> Option<Source> {
        let location = self.context.as_ref()?.find_location(va).ok()??;
        let line = location.line.filter(|&l| l > 0)?;
        Some(Source {
            file: location.file?.to_owned(),
            line,
        })
    }
}

fn unit_beginnings<'a>(
    dwarf: &gimli::Dwarf<EndianSlice<'a, LittleEndian>>,
    unit: &gimli::Unit<EndianSlice<'a, LittleEndian>>,
    functions: &BTreeSet<u64>,
    out: &mut HashMap<u64, Source>,
) -> Result<(), gimli::Error> {
    let Some(program) = unit.line_program.clone() else {
        return Ok(());
    };
    let mut rows = program.rows();
    while let Some((header, row)) = rows.next_row()? {
        let (va, Some(line)) = (row.address(), row.line()) else {
            continue;
        };
        // The function before may have a last row at this address, which begins no statement.
        let begins = row.is_stmt() && !row.end_sequence();
        if !begins || !functions.contains(&va) || out.contains_key(&va) {
            continue;
        }
        let Some(file) = row.file(header) else {
            continue;
        };
        let mut path = String::new();
        let directory = file
            .directory(header)
            .filter(|_| file.directory_index() != 0);
        let compiled_in = unit.comp_dir.map(|d| d.to_string_lossy().into_owned());
        let parts = [
            directory.map(|d| dwarf.attr_string(unit, d)).transpose()?,
            Some(dwarf.attr_string(unit, file.path_name())?),
        ];
        path.push_str(&compiled_in.unwrap_or_default());
        for part in parts.into_iter().flatten() {
            let part = part.to_string_lossy();
            if part.starts_with('/') {
                path.clear();
            } else if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&part);
        }
        out.insert(
            va,
            Source {
                file: path,
                line: u32::try_from(line.get()).unwrap_or(u32::MAX),
            },
        );
    }
    Ok(())
}
