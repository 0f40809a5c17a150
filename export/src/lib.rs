//! Profiles and runs in formats that other tools read, one module a format.
//!
//! Each has a function `write`, which takes a writer and values and opens nothing. Writes are many and small: the caller buffers them.
//! The exception is OTF2, whose own library writes a folder of files.
#![forbid(unsafe_code)]

pub mod caliper;
pub mod calltree;
pub mod chrome;
pub mod collapsed;
pub mod csv;
pub mod cube;
pub mod dot;
pub mod extrap;
pub mod firefox;
pub mod groups;
mod kinds;
pub mod openmetrics;
pub mod otf2;
pub mod perfetto;
pub mod pprof;
pub mod regions;
pub mod speedscope;
pub mod stacks;
pub mod table;
pub mod tau;
mod trace;
pub mod units;

pub use trace::{Orders, View};
