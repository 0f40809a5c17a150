//! The test kit of the workspace: it compiles programs, knows the matrix of compilers, runs processes with a time limit,
//! and decides what happens where a tool is missing. Every test that needs a compiler or another tool asks here.
//!
//! - A missing tool is said on standard error, past libtest's capture. With `CI=true` it fails the test and is named.
//! - A loop over programs goes through [`each`] or [`some`], which fail with `CI=true` if it ran none.
//!
//! Nothing of ompfuse's own crates is used here, so that tests of every crate can use the kit without building the command.
#![forbid(unsafe_code)]

pub mod compile;
pub mod matrix;
pub mod process;
pub mod tools;

pub use compile::{Program, compile};
pub use tools::{each, few, has, in_ci, is_whole, skip, some};

use std::path::{Path, PathBuf};

/// The repository's folder.
pub fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the kit's folder is in the tests' folder of the repository")
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
