//! What the end-to-end tests and the benchmark share beyond the kit: the `ompfuse` command, fixtures, and an independent
//! reader of machine code. Nothing of ompfuse's own crates is used here: only its command line, as its users see it.
//!
//! Paths: fixtures are compiled into `<target>/fixtures`, keyed by source, flags and compiler version, so that a
//! second run of the suite compiles nothing.
#![forbid(unsafe_code)]

pub mod account;
pub mod command;
pub mod counted;
pub mod dialogue;
pub mod fixture;
pub mod generated;
pub mod hostile;
pub mod objdump;
pub mod planted;
pub mod recommended;
pub mod recorded;
pub mod scan;
pub mod schema;
pub mod soak;
pub mod table;
pub mod tmux;

pub use ompfuse_kit::{
    compile, each, few, has, in_ci, is_whole, matrix, process, repository, skip, some, target,
    tools,
};
