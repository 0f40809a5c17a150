//! No processor with counters is needed to see what is made of its counts: `tests/sources/fakepmu.c` stands in for one.

use ompfuse_tests::{process, repository, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The stand-in, compiled into a folder.
pub(super) fn compiled(folder: &Path) -> Option<PathBuf> {
    if Command::new("gcc").arg("--version").output().is_err() {
        skip("gcc is not installed: nothing stands in for a PMU");
        return None;
    }
    let library = folder.join("fakepmu.so");
    let mut compile = Command::new("gcc");
    compile
        .args(["-O1", "-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(repository().join("tests/sources/fakepmu.c"));
    process::run(&mut compile).ok("compiling fakepmu.c");
    Some(library)
}

/// What is recorded.
pub(super) fn program() -> PathBuf {
    repository().join("fixtures/prebuilt/knapsack-gcc")
}
