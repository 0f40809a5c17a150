//! Bytes of an ELF file in; OpenMP sites, a plan, patched bytes and their verification out. No I/O, nothing is run.
#![forbid(unsafe_code)]

pub mod addresses;
mod assemble;
pub mod callers;
mod count;
mod cutoff;
pub mod debug;
mod describe;
mod draft;
mod dynamic;
mod image;
pub mod layout;
mod members;
pub mod model;
pub mod patch;
pub mod patch_error;
mod place;
pub mod plan;
mod relay;
pub mod reproduce;
pub mod scan;
mod sections;
pub mod settings;
mod shadow_stack;
pub mod stubs;
mod thunk;
pub mod trampoline;
mod unwind;
pub mod verify;
pub mod write;

pub use count::Increment;
pub use scan::{ScanError, scan, scan_scarce, self_description};
