//! What the end-to-end tests and the benchmark share: the `ompfuse` command, fixtures, processes, and an independent
//! reader of machine code. Nothing of ompfuse's own crates is used here: only its command line, as its users see it.
//!
//! Paths: fixtures are compiled into `<target>/fixtures`, keyed by source, flags and compiler version, so that a
//! second run of the suite compiles nothing.
#![forbid(unsafe_code)]

pub mod command;
pub mod dialogue;
pub mod fixture;
pub mod hostile;
pub mod matrix;
pub mod objdump;
pub mod process;
pub mod scan;
pub mod soak;
pub mod table;

use std::path::{Path, PathBuf};

/// The repository's folder.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the tests' folder is in the repository")
}

/// Cargo's target directory and the profile that this test was built with, from the place of the test itself.
pub fn target() -> (PathBuf, String) {
    let exe = std::env::current_exe().expect("a test has a path");
    let profile = exe
        .parent()
        .and_then(Path::parent)
        .expect("cargo puts tests into TARGET/PROFILE/deps");
    let name = profile
        .file_name()
        .expect("a profile has a name")
        .to_string_lossy()
        .into_owned();
    (
        profile
            .parent()
            .expect("a profile's folder is in the target directory")
            .to_owned(),
        name,
    )
}

/// Whether missing tools are failures.
pub fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|v| v == "true" || v == "1")
}

/// Says that something could not be tested, past libtest's capture.
///
/// # Panics
/// With `CI=true`: there, everything has to be tested.
pub fn skip(what: &str) {
    use std::io::Write;
    assert!(!in_ci(), "{what}; with CI=true that is a failure");
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}
