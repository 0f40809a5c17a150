//! Bytes of an ELF file in; OpenMP sites, a plan, patched bytes and their verification out. No I/O, nothing is run.
#![forbid(unsafe_code)]

pub mod model;
