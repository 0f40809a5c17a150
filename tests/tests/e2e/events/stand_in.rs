//! No processor with counters is needed to see what is made of its counts: `tests/sources/fakepmu.c` stands in for one.

use ompfuse_tests::{compile, repository};
use std::path::{Path, PathBuf};

/// The stand-in, compiled into a folder.
pub(super) fn compiled(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("fakepmu.so");
    let sources = repository().join("tests/sources");
    let versions = sources.join("fakepmu.map");
    let command = format!(
        "gcc -O1 -shared -fPIC -Wl,--version-script={}",
        versions.display()
    );
    compile::files(&[sources.join("fakepmu.c")], &library, &command).then_some(library)
}

/// What is recorded.
pub(super) fn program() -> PathBuf {
    repository().join("fixtures/prebuilt/knapsack-gcc")
}
