//! The rewriter from outside: programs are compiled, scanned, patched, damaged and run.
//!
//! One binary, since every one more would be linked again.

mod hostile;
mod patch_damage;
mod patch_errors;
mod patch_islands;
mod patch_programs;
mod patch_runtime;
mod patch_scanned;
mod patch_support;
mod reproduce;
mod scan_calls;
mod scan_damage;
mod scan_errors;
mod scan_relays;
mod scan_shapes;
mod scan_support;
mod waiting;
