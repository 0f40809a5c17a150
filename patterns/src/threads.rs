//! Libraries with threads of their own, and the variables that say how many.

use ompfuse_format::glob::matches_glob;
use serde::Deserialize;
use std::sync::LazyLock;

/// A library with threads of its own.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threaded {
    /// Its name.
    pub name: String,
    /// Names of its files, as globs.
    files: Vec<String>,
    /// The variable of the environment that says how many threads it has.
    pub variable: String,
    /// Its functions that give work to its threads and wait for them.
    #[serde(default)]
    pub regions: Vec<String>,
    /// Its functions in which a thread waits for work.
    #[serde(default)]
    pub waits: Vec<String>,
}

impl Threaded {
    /// Whether a file of this name belongs to it.
    pub fn has(&self, file: &str) -> bool {
        self.files.iter().any(|glob| matches_glob(glob, file))
    }
}

#[derive(Deserialize)]
struct Table {
    library: Vec<Threaded>,
}

static LIBRARIES: LazyLock<Vec<Threaded>> = LazyLock::new(|| {
    let table = toml::from_str::<Table>(include_str!("../data/threads.toml"));
    table.map_or(vec![], |table| table.library) // a test reads it
});

/// The libraries that these files belong to.
pub fn threaded<'f>(
    files: impl IntoIterator<Item = &'f str> + Clone,
) -> impl Iterator<Item = &'static Threaded> {
    LIBRARIES
        .iter()
        .filter(move |library| files.clone().into_iter().any(|file| library.has(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_tell_the_variable() {
        let of = |files: &[&'static str]| -> Vec<&str> {
            let found = threaded(files.iter().copied());
            found.map(|library| &*library.variable).collect()
        };
        assert_eq!(
            of(&["libm.so.6", "libopenblasp-r0.3.21.so"]),
            ["OPENBLAS_NUM_THREADS"]
        );
        assert_eq!(
            of(&["libscipy_openblas64_-ff651d7f.so"]),
            ["OPENBLAS_NUM_THREADS"]
        );
        assert_eq!(of(&["libmkl_gnu_thread.so.2"]), ["MKL_NUM_THREADS"]);
        assert!(of(&["libmkl_core.so.2", "libc.so.6"]).is_empty());
    }
}
