//! Patterns for names, as users write them.

use super::{origin, readable, without_arguments};

pub use ompfuse_format::glob::matches_glob;

/// Whether a glob is a function's name: its linkage name, or that of the source, with or without template arguments. A part of
/// a function (`solve._omp_fn.0`) has the function's name too.
#[must_use]
pub fn is_called(glob: &str, function: &str) -> bool {
    let readable = readable(function);
    let brief = without_arguments(&readable);
    let names = [function, &*readable, &*brief];
    names
        .iter()
        .any(|name| matches_glob(glob, name) || matches_glob(glob, origin(name)))
}

/// Whether a path ends with another one, which may be a glob: whole components only.
#[must_use]
pub fn is_path_end(glob: &str, path: &str) -> bool {
    let ends = path.match_indices('/').map(|(at, _)| &path[at + 1..]);
    matches_glob(glob, path) || ends.into_iter().any(|end| matches_glob(glob, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        for (glob, path) in [
            ("lu.c", "/src/lu.c"),
            ("src/*.c", "/src/lu.c"),
            ("/src/lu.c", "/src/lu.c"),
        ] {
            assert!(is_path_end(glob, path), "{glob} {path}");
        }
        for (glob, path) in [
            ("u.c", "/src/lu.c"),
            ("src/lu", "/src/lu.c"),
            ("/lu.c", "/src/lu.c"),
        ] {
            assert!(!is_path_end(glob, path), "{glob} {path}");
        }
    }
}
