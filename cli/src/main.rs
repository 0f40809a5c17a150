//! The `ompfuse` command.
fn main() {}
