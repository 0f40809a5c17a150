//! What addresses are: functions and source lines of code that may have no part in OpenMP, as the callers of regions.

use crate::debug::{self, DebugFiles};
use crate::scan::source::{AllSections, Lines};
use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSymbol, SymbolKind};
use ompfuse_format::site::Source;

/// What is known of an address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AddressName {
    /// The function's symbol, as the file has it, and how many bytes behind its begin the address is.
    pub function: Option<(String, u64)>,
    /// Where in the source the call is; of inlined functions the outermost one's.
    pub source: Option<Source>,
}

/// A function's begin, end and symbol.
#[derive(Debug)]
struct Function<'a> {
    begin: u64,
    end: u64,
    name: &'a str,
}

/// Names return addresses (link-time addresses) in a file, in their order. Names come from the file's symbols, or else from those of
/// separate debug information, or else from the exported ones.
#[must_use]
pub fn names(bytes: &[u8], files: DebugFiles<'_>, addresses: &[u64]) -> Vec<AddressName> {
    let functions = functions(bytes, files);
    let sections = AllSections::read(bytes, files);
    let lines = Lines::read(&sections);
    let name = |&address: &u64| {
        // The call is right before.
        let call = address.wrapping_sub(1);
        let at = functions.partition_point(|f| f.begin <= call);
        let function = at.checked_sub(1).map(|at| &functions[at]);
        let function = function.filter(|f| call < f.end);
        let frames = lines.frames(call);
        let outermost = frames.last();
        AddressName {
            function: function.map(|f| (f.name.to_owned(), address - f.begin)),
            source: outermost.and_then(|frame| frame.source.clone()),
        }
    };
    addresses.iter().map(name).collect()
}

/// The functions by their begin, without overlaps.
fn functions<'a>(bytes: &'a [u8], files: DebugFiles<'a>) -> Vec<Function<'a>> {
    let has_symbols = |bytes: &[u8]| {
        let file = ElfFile64::<Endianness>::parse(bytes);
        file.is_ok_and(|f| f.symbols().next().is_some())
    };
    let separate = files.separate.filter(|_| !has_symbols(bytes));
    let mut functions: Vec<Function<'a>> = vec![];
    for file in [Some(bytes), separate].into_iter().flatten() {
        let Ok(file) = ElfFile64::<Endianness>::parse(file) else {
            continue;
        };
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let name = symbol.name_bytes().ok();
            let name = name.and_then(|n| std::str::from_utf8(n).ok());
            let name = name.filter(|n| !n.is_empty());
            let is_function = symbol.kind() == SymbolKind::Text && symbol.is_definition();
            if let Some(name) = name.filter(|_| is_function && symbol.size() > 0) {
                functions.push(Function {
                    begin: symbol.address(),
                    end: symbol.address().saturating_add(symbol.size()),
                    name,
                });
            }
        }
    }
    // Of several names of one function the shortest: others are aliases with versions and underscores.
    functions.sort_by_key(|f| (f.begin, f.name.len(), f.name));
    functions.dedup_by_key(|f| f.begin);
    functions
}

/// The build id of a file in hexadecimal.
#[must_use]
pub fn build_id(bytes: &[u8]) -> Option<String> {
    debug::links(bytes).build_id
}
