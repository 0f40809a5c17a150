//! No processor with counters is needed to see what is made of its counts: `tests/sources/fakepmu.c` stands in for one.

use ompfuse_tests::{compile, repository};
use std::path::{Path, PathBuf};

/// The stand-in, compiled into a folder.
pub(super) fn compiled(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("fakepmu.so");
    let source = repository().join("tests/sources/fakepmu.c");
    compile::files(&[source], &library, "gcc -O1 -shared -fPIC").then_some(library)
}

/// What is recorded.
pub(super) fn program() -> PathBuf {
    repository().join("fixtures/prebuilt/knapsack-gcc")
}
