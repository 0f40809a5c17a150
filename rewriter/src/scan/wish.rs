//! What a caller asks for besides constructs: which functions it wants, and what it is told of them to choose by.

/// Whether a function is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wanted {
    /// It isn't.
    #[default]
    No,
    /// A pattern fits several.
    ByPattern,
    /// It is named, so that it is recorded whatever a probe costs beside it.
    ByName,
}

/// What a function can be chosen by.
#[derive(Debug, Clone, Copy)]
pub struct Known<'x> {
    /// Its name in the symbol table, or its address (`0x401136`) where it has none.
    pub name: &'x str,
    /// Its address.
    pub start: u64,
    /// Address of the instruction that its first probe stands before.
    pub entry: u64,
    /// Length in bytes, without parts that lie elsewhere.
    pub size: u64,
    /// Path of its source file; known only if [`Wish::needs_files`].
    pub file: Option<&'x str>,
    /// Names of the functions that call it directly, of those for which [`Wish::asks_for_callees`].
    pub callers: &'x [&'x str],
}

/// Tells which functions are wanted.
pub trait Wish: Sync {
    /// Whether this one is.
    fn wanted(&self, function: &Known<'_>) -> Wanted;

    /// Whether functions are chosen by their source files.
    fn needs_files(&self) -> bool {
        false
    }

    /// Whether functions are chosen because one of this name calls them.
    fn asks_for_callees(&self, _caller: &str) -> bool {
        false
    }
}
