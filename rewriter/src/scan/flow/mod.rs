//! Values that are followed through a function, by one table of what instructions do (`lift`).

pub(crate) mod changes;
pub(super) mod dataflow;
mod flags;
pub(crate) mod lazy;
pub(super) mod leads;
pub(super) mod lift;
mod memory;
pub(crate) mod nearby;
mod op;
pub(super) mod refinement;
pub(crate) mod slots;
pub(super) mod step;
pub(crate) mod uses;
pub(crate) mod value;

pub(super) use flags::{Flags, mask};
