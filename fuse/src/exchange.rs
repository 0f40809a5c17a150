//! Units for engines that run on many machines: Arrow columns of signed integers and text, which any of them has.
//!
//! `docs/reference/exchange.md` describes the columns. A *group* is the units of one type, or of one type on one MPI rank, of all runs.
//! Strategies match units of one type with each other only, so groups can be combined on any machine and in any order. The code is that of
//! [`combine`](crate::combine).

mod folder;
mod groups;
mod manifest;
mod read;
mod rows;

pub use folder::{Folder, FolderError, FolderRows};
pub use groups::{Done, GroupBy, GroupError, Groups};
pub use manifest::{
    Counted, MANIFEST_VERSION, Manifest, ManifestError, Part, PartSummary, bucket_of,
};
pub use rows::{order, write};
