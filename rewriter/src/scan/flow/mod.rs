//! Values that are followed through a function, by one table of what instructions do (`lift`).

pub(super) mod changes;
pub(super) mod comparison;
pub(super) mod dataflow;
mod flags;
pub(super) mod lazy;
pub(super) mod lift;
pub(super) mod nearby;
pub(super) mod ops;
pub(crate) mod recurrence;
mod refinement;
pub(super) mod slots;
mod step;
pub(super) mod uses;
pub(super) mod value;
mod work;

pub(super) use flags::{Flags, mask};
