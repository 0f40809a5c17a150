//! Writes archives of the Open Trace Format 2 (OTF2) by the format's own C library.
//!
//! The library is loaded when somebody wants to write an archive, so nothing depends on it. An [`Archive`] has all that this project
//! writes: definitions, and the events of one location after the other. Identifiers are the caller's, from 0 for each kind.
//!
//! With `runtime` this is the only crate with `unsafe` code. The C functions take pointers that were made by the library itself and
//! belong to one [`Archive`], which is neither `Send` nor `Sync`; all other arguments are plain numbers, or slices and strings that the
//! library reads or copies before it returns.

mod api;
mod archive;
mod definitions;
mod events;
mod kinds;

pub use api::Library;
pub use archive::{Archive, Origin};
pub use definitions::{Clock, Group, GroupKind, Region};
pub use events::{Attribute, Events, Task};
pub use kinds::{Paradigm, ParadigmClass, Role, SystemDomain};

/// A reference that refers to nothing, where one is optional.
pub const UNDEFINED: u32 = u32::MAX;

/// Why an archive cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The C library isn't there.
    #[error("libopen-trace-format2 is not installed; apt-get install libopen-trace-format2-10")]
    Missing,
    /// It is there, and isn't what it should be.
    #[error("{file} cannot be used: {reason}; install libopen-trace-format2-10")]
    Unusable {
        /// Its name.
        file: String,
        /// What the dynamic linker says.
        reason: String,
    },
    /// The library says no.
    #[error("{0}")]
    Refused(String),
}
