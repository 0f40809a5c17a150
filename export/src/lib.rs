//! Profiles and runs in formats that other tools read, one module a format.
//!
//! Each has a function `write`, which takes a writer and values and opens nothing. Writes are many and small: the caller buffers them.
#![forbid(unsafe_code)]

pub mod chrome;
pub mod csv;
pub mod firefox;
pub mod openmetrics;
pub mod perfetto;
pub mod regions;
pub mod speedscope;
pub mod table;
mod trace;
pub mod units;
