//! Source lines from DWARF.

use super::image::Image;
use gimli::{EndianSlice, LittleEndian};
use object::elf;
use ompfuse_format::site::Source;
use std::collections::{BTreeSet, HashMap};

/// Looks source lines up. Without (readable) debug information it finds none.
pub(crate) struct Lines<'a> {
    dwarf: Option<gimli::Dwarf<EndianSlice<'a, LittleEndian>>>,
    context: Option<addr2line::Context<EndianSlice<'a, LittleEndian>>>,
}

impl<'a> Lines<'a> {
    /// Reads the debug sections; compressed ones count as absent.
    pub(crate) fn read(image: &Image<'a>) -> Lines<'a> {
        let load = |id: gimli::SectionId| -> Result<_, gimli::Error> {
            let data = image
                .sections
                .iter()
                .find(|s| s.name == id.name() && s.flags & elf::SHF_COMPRESSED.0 == 0)
                .and_then(|s| image.section_data(s))
                .unwrap_or(&[]);
            Ok(EndianSlice::new(data, LittleEndian))
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
