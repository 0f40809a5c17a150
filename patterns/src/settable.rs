//! What OpenMP leaves open among a call's arguments.

use serde::Deserialize;

/// Positions of arguments that a call may be given other values for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settable {
    /// The team's size; 0 asks for the default, 1 for a team of one.
    pub threads: Option<u8>,
    /// Iterations of a range.
    pub chunk: Option<u8>,
    /// KMPC's number of a schedule, with the bits of its modifiers.
    pub schedule: Option<u8>,
    /// GOMP's step of a loop: libgomp multiplies the chunk by it, and doesn't look whether the product fits.
    pub step: Option<u8>,
    /// A taskloop's grain size or number of tasks; which of them, GOMP's flags say.
    pub grain: Option<u8>,
    /// GOMP's flags of a taskloop.
    pub flags: Option<u8>,
    /// GOMP's function that copies a task's data, 0 if bytes are copied. With one, libgomp may keep all tasks of a taskloop on the stack,
    /// and libomp doesn't call it for a task that is executed at once.
    pub copier: Option<u8>,
    /// KMPC's word for what the grain is: 1 a size, 2 a number.
    pub grain_kind: Option<u8>,
    /// GOMP's `if` clause of a task: false if it is executed at once.
    pub deferred: Option<u8>,
}
