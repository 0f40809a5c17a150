//! What addresses are: functions and source lines of code that may have no part in OpenMP, as the callers of regions.

use crate::callers::CallerRules;
use crate::debug::{self, DebugFiles};
use crate::members::members;
use crate::scan::source::{AllSections, Lines};
use crate::sections;
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};
use ompfuse_format::site::{Frame, Source};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What is known of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressName {
    /// The function's symbol, as the file has it.
    pub function: Option<String>,
    /// How many bytes behind the function's begin the address is, by symbols, or else by unwind information.
    pub offset: Option<u64>,
    /// Where in the source the call is; of inlined functions the outermost one's.
    pub source: Option<Source>,
}

/// A function's or variable's begin, end and symbol.
#[derive(Debug)]
struct Named<'a> {
    begin: u64,
    end: u64,
    name: &'a str,
}

/// Names return addresses (link-time addresses) in a file, in their order. Names come from the file's symbols, or else from those of
/// separate debug information, or else from the exported ones.
#[must_use]
pub fn names(bytes: &[u8], files: DebugFiles<'_>, addresses: &[u64]) -> Vec<AddressName> {
    let functions = symbols(bytes, files, SymbolKind::Text);
    let sections = AllSections::read(bytes, files);
    let lines = Lines::read(&sections);
    let unwound = Unwound::read(bytes);
    let name = |&address: &u64| {
        // The call is right before.
        let call = address.wrapping_sub(1);
        let function = covering(&functions, call);
        let frames = lines.frames(call);
        let outermost = frames.last();
        let begin = function.map_or_else(|| unwound.begin(call), |f| Some(f.begin));
        AddressName {
            function: function.map(|f| f.name.to_owned()),
            offset: begin.map(|begin| address - begin),
            source: outermost.and_then(|frame| frame.source.clone()),
        }
    };
    addresses.iter().map(name).collect()
}

/// What is known of an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// The function's symbol, as the file has it.
    pub function: Option<String>,
    /// The functions that it is in, with lines, the innermost inlined one first; without debug information none.
    pub frames: Arc<[Frame]>,
    /// It is code that was added to a patched file.
    pub is_added: bool,
    /// Its link-time address, where the file has one for it.
    pub address: Option<u64>,
    /// That of the function's begin, by symbols, or else by unwind information. Of a part that was moved away it is the function's.
    pub begin: Option<u64>,
}

/// Names instructions, which are given by where they are in the file, in their order.
#[must_use]
pub fn places(bytes: &[u8], files: DebugFiles<'_>, offsets: &[u64]) -> Vec<CodePlace> {
    let Ok(file) = ElfFile64::<Endianness>::parse(bytes) else {
        return vec![CodePlace::default(); offsets.len()];
    };
    let functions = symbols(bytes, files, SymbolKind::Text);
    let debug = AllSections::read(bytes, files);
    let lines = Lines::read(&debug);
    let added = file.section_by_name(sections::TEXT);
    let added = added.map(|s| s.address()..s.address().saturating_add(s.size()));
    let address = |offset: u64| {
        let at = |s: object::read::elf::ElfSegment64<'_, '_, Endianness>| {
            let (begin, size) = s.file_range();
            let within = offset.checked_sub(begin).filter(|&within| within < size)?;
            s.address().checked_add(within)
        };
        file.segments().find_map(at)
    };
    let unwound = Unwound::read(bytes);
    let begin = |address: u64| {
        let Some(function) = covering(&functions, address) else {
            return unwound.begin(address);
        };
        let whole = function.name.strip_suffix(".cold");
        let whole = whole.and_then(|whole| functions.iter().find(|f| f.name == whole));
        Some(whole.unwrap_or(function).begin)
    };
    let name = |&offset: &u64| {
        let Some(address) = address(offset) else {
            return CodePlace::default();
        };
        CodePlace {
            begin: begin(address),
            function: covering(&functions, address).map(|f| f.name.to_owned()),
            frames: lines.frames(address),
            is_added: added.as_ref().is_some_and(|added| added.contains(&address)),
            address: Some(address),
        }
    };
    offsets.iter().map(name).collect()
}

/// A place in a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableName {
    /// The variable's symbol, as the file has it.
    pub symbol: String,
    /// Bytes from its begin.
    pub offset: u64,
    /// What is there, as it stands behind the variable's name in the source (`[5].m`), if debug information tells.
    pub member: Option<String>,
}

/// The variables at these link-time addresses, in their order.
#[must_use]
pub fn variables(
    bytes: &[u8],
    files: DebugFiles<'_>,
    addresses: &[u64],
) -> Vec<Option<VariableName>> {
    let variables = symbols(bytes, files, SymbolKind::Data);
    let mut wanted: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for &address in addresses {
        if let Some(variable) = covering(&variables, address) {
            let offsets = wanted.entry(variable.begin).or_default();
            offsets.push(address - variable.begin);
        }
    }
    let members = members(bytes, files, &wanted);
    let name = |&address: &u64| {
        let variable = covering(&variables, address)?;
        let offset = address - variable.begin;
        Some(VariableName {
            symbol: variable.name.to_owned(),
            offset,
            member: members.get(&(variable.begin, offset)).cloned(),
        })
    };
    addresses.iter().map(name).collect()
}

/// What linkage tables' sections are called begins with this. They have unwind information, and are no functions.
const LINKAGE: &str = ".plt";

/// Where functions begin by unwind information.
struct Unwound<'b> {
    bytes: &'b [u8],
    rules: Option<CallerRules>,
    linkage: Vec<Range<u64>>,
}

impl<'b> Unwound<'b> {
    fn read(bytes: &'b [u8]) -> Unwound<'b> {
        let file = ElfFile64::<Endianness>::parse(bytes).ok();
        let sections = file.iter().flat_map(|file| file.sections());
        let linkage = sections.filter(|s| s.name().is_ok_and(|name| name.starts_with(LINKAGE)));
        Unwound {
            bytes,
            rules: CallerRules::read(bytes),
            linkage: linkage
                .map(|s| s.address()..s.address().saturating_add(s.size()))
                .collect(),
        }
    }

    fn begin(&self, address: u64) -> Option<u64> {
        let is_linkage = self.linkage.iter().any(|table| table.contains(&address));
        let rules = self.rules.as_ref().filter(|_| !is_linkage)?;
        rules.begin(self.bytes, address)
    }
}

/// The symbols of a file's functions.
#[must_use]
pub fn functions<'a>(bytes: &'a [u8], files: DebugFiles<'a>) -> Vec<&'a str> {
    let all = symbols(bytes, files, SymbolKind::Text);
    all.into_iter().map(|function| function.name).collect()
}

fn covering<'n, 'a>(all: &'n [Named<'a>], address: u64) -> Option<&'n Named<'a>> {
    let at = all.partition_point(|f| f.begin <= address).checked_sub(1)?;
    Some(&all[at]).filter(|f| address < f.end)
}

/// The symbols of a kind by their begin, of each begin one.
fn symbols<'a>(bytes: &'a [u8], files: DebugFiles<'a>, kind: SymbolKind) -> Vec<Named<'a>> {
    let has_symbols = |bytes: &[u8]| {
        let file = ElfFile64::<Endianness>::parse(bytes);
        file.is_ok_and(|f| f.symbols().next().is_some())
    };
    let separate = files.separate.filter(|_| !has_symbols(bytes));
    let mut named: Vec<Named<'a>> = vec![];
    for file in [Some(bytes), separate].into_iter().flatten() {
        let Ok(file) = ElfFile64::<Endianness>::parse(file) else {
            continue;
        };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = symbol.name_bytes().ok();
            let name = name.and_then(|n| std::str::from_utf8(n).ok());
            let name = name.filter(|n| !n.is_empty());
            let is_wanted = symbol.kind() == kind && symbol.is_definition();
            if let Some(name) = name.filter(|_| is_wanted && symbol.size() > 0) {
                named.push(Named {
                    begin: symbol.address(),
                    end: symbol.address().saturating_add(symbol.size()),
                    name,
                });
            }
        }
    }
    // Of several names of one place the shortest: others are aliases with versions and underscores.
    named.sort_by_key(|f| (f.begin, f.name.len(), f.name));
    named.dedup_by_key(|f| f.begin);
    named
}

/// The build id of a file in hexadecimal.
#[must_use]
pub fn build_id(bytes: &[u8]) -> Option<String> {
    debug::links(bytes).build_id
}
