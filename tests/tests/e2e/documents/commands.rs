//! The reference of the commands is what the command prints.

use ompfuse_tests::{command, repository};

#[test]
fn the_reference_of_commands_is_current() {
    let printed = command::ok(["man", "--markdown"]).text();
    let file = repository().join("docs/reference/commands.md");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        committed == printed,
        "docs/reference/commands.md should be what this prints: ompfuse man --markdown"
    );
}
