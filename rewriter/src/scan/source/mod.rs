//! Source lines, and the functions that were inlined, from DWARF.

mod library;
pub(crate) mod place;
mod sections;

pub(crate) use sections::DebugSections;

use crate::debug::{self, DebugFiles};
use gimli::{EndianSlice, LittleEndian};
use ompfuse_format::site::{Frame, Source, Text};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Of functions that are inlined into each other more are not kept.
const MAX_FRAMES: usize = 100;

/// The debug sections of a file, and of what it shares with others.
#[derive(Default)]
pub(crate) struct AllSections<'a> {
    own: DebugSections<'a>,
    supplementary: Option<DebugSections<'a>>,
}

impl<'a> AllSections<'a> {
    /// Finds them: the file's own, or those that were stripped off it.
    pub(crate) fn read(bytes: &'a [u8], files: DebugFiles<'a>) -> AllSections<'a> {
        let separate = files.separate.filter(|_| !debug::links(bytes).has_lines);
        AllSections {
            own: DebugSections::read(separate.unwrap_or(bytes)),
            supplementary: files.supplementary.map(DebugSections::read),
        }
    }

    pub(crate) fn dwarf(&self) -> Option<gimli::Dwarf<Bytes<'_>>> {
        let mut dwarf = gimli::Dwarf::load(|id| bytes(&self.own, id)).ok()?;
        if let Some(supplementary) = &self.supplementary {
            dwarf.load_sup(|id| bytes(supplementary, id)).ok()?;
        }
        Some(dwarf)
    }
}

fn bytes<'a>(
    sections: &'a DebugSections<'_>,
    id: gimli::SectionId,
) -> Result<Bytes<'a>, gimli::Error> {
    Ok(EndianSlice::new(sections.get(id), LittleEndian))
}

pub(crate) type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Looks source lines up. Without (readable) debug information it finds none.
pub(crate) struct Lines<'a> {
    context: Option<addr2line::Context<Bytes<'a>>>,
    dwarf: Option<Arc<gimli::Dwarf<Bytes<'a>>>>,
    /// Names of functions that were met.
    names: RefCell<HashMap<&'a [u8], Text>>,
}

impl<'a> Lines<'a> {
    /// Reads the debug sections.
    pub(crate) fn read(sections: &'a AllSections<'_>) -> Lines<'a> {
        let dwarf = sections.dwarf().map(Arc::new);
        let context = dwarf.clone().map(addr2line::Context::from_arc_dwarf);
        Lines {
            context: context.and_then(Result::ok),
            dwarf,
            names: RefCell::default(),
        }
    }

    /// Whether there is any debug information.
    pub(crate) fn are_there(&self) -> bool {
        let first = self.dwarf.as_ref().map(|dwarf| dwarf.units().next());
        self.context.is_some() && matches!(first, Some(Ok(Some(_))))
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

    /// The functions that the instruction at an address is in, with its lines, the innermost first; without debug
    /// information none.
    pub(crate) fn frames(&self, va: u64) -> Arc<[Frame]> {
        let mut out = Vec::new();
        let Some(context) = &self.context else {
            return out.into();
        };
        // What is in files of its own (split DWARF) is not looked for.
        let Ok(mut frames) = context.find_frames(va).skip_all_loads() else {
            return out.into();
        };
        while let Ok(Some(frame)) = frames.next()
            && out.len() < MAX_FRAMES
        {
            let source = frame.location.and_then(source);
            let function = frame.function.and_then(|f| self.name(f.name.slice()));
            out.push(Frame { function, source });
        }
        if out.iter().all(|f| f.source.is_none()) {
            out.clear();
        }
        out.into()
    }

    /// A function's name.
    fn name(&self, bytes: &'a [u8]) -> Option<Text> {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(bytes) {
            return Some(known.clone());
        }
        let name = Text::from(std::str::from_utf8(bytes).ok()?);
        names.insert(bytes, name.clone());
        Some(name)
    }

    /// The file that the instruction at an address is from, also where it has no line.
    pub(crate) fn file(&self, va: u64) -> Option<String> {
        let location = self.context.as_ref()?.find_location(va).ok()??;
        location.file.map(str::to_owned)
    }

    /// The line of the instruction at an address.
    pub(crate) fn at(&self, va: u64) -> Option<Source> {
        source(self.context.as_ref()?.find_location(va).ok()??)
    }
}

fn source(location: addr2line::Location<'_>) -> Option<Source> {
    Some(Source {
        line: location.line.filter(|&l| l > 0)?,
        file: location.file?.to_owned(),
    })
}

fn unit_beginnings<'a>(
    dwarf: &gimli::Dwarf<Bytes<'a>>,
    unit: &gimli::Unit<Bytes<'a>>,
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
