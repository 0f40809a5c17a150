//! Which files are patched: those that use OpenMP, import a function whose calls are recorded, or may have a function that is recorded.

use crate::elf::Dynamic;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::glob::matches_glob;
use ompfuse_format::run::{INTEREST_BEGINNINGS, INTEREST_CALLS, INTEREST_LIBRARIES};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Beginnings of the names that compilers emit calls of.
const PREFIXES: [&[u8]; 2] = [b"\0GOMP_", b"\0__kmpc_"];

/// What a recording wants besides OpenMP.
#[derive(Debug, Default)]
pub(crate) struct Interest {
    /// How functions' names begin whose calls are recorded.
    beginnings: Vec<String>,
    /// File with these functions, and what is in it once it was needed: lines, ascending.
    file: PathBuf,
    calls: OnceLock<Vec<u8>>,
    /// Names of libraries with functions that are recorded: globs.
    libraries: Vec<String>,
}

impl Interest {
    /// As the recording's folder says.
    pub(crate) fn read(folder: &Path) -> Interest {
        let lines = |name: &str| -> Vec<String> {
            let text = std::fs::read_to_string(folder.join(name));
            let text = text.unwrap_or_default();
            text.lines().map(str::to_owned).collect()
        };
        Interest {
            beginnings: lines(INTEREST_BEGINNINGS),
            file: folder.join(INTEREST_CALLS),
            calls: OnceLock::new(),
            libraries: lines(INTEREST_LIBRARIES),
        }
    }

    /// Whether a file is patched if that can be, and is no patched one. What can't be read isn't.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let Some(dynamic) = Dynamic::read(path) else {
            return false;
        };
        let uses_openmp = || PREFIXES.iter().any(|p| dynamic.has(p));
        let begins = |rest: &[u8]| {
            self.beginnings
                .iter()
                .any(|b| rest.starts_with(b.as_bytes()))
        };
        let imports = || dynamic.imports(begins, |name| self.is_call(name));
        let calls = || !self.beginnings.is_empty() && imports();
        (uses_openmp() || self.is_named(path) || calls())
            && !dynamic.has(RUNTIME_LIBRARY.as_bytes())
    }

    /// Whether functions of the file are asked for, by its name.
    fn is_named(&self, path: &Path) -> bool {
        let name = path.file_name().unwrap_or_default().as_bytes();
        let name = String::from_utf8_lossy(name);
        self.libraries.iter().any(|glob| matches_glob(glob, &name))
    }

    /// Whether calls of this function are recorded: a search among lines.
    fn is_call(&self, name: &[u8]) -> bool {
        let read = || std::fs::read(&self.file).unwrap_or_default();
        let mut rest = &self.calls.get_or_init(read)[..];
        while !rest.is_empty() {
            let middle = rest.len() / 2;
            let start = rest[..middle].iter().rposition(|&b| b == b'\n');
            let start = start.map_or(0, |at| at + 1);
            let end = rest[start..].iter().position(|&b| b == b'\n');
            let end = end.map_or(rest.len(), |len| start + len);
            match name.cmp(&rest[start..end]) {
                core::cmp::Ordering::Equal => return true,
                core::cmp::Ordering::Less => rest = &rest[..start],
                core::cmp::Ordering::Greater => rest = rest.get(end + 1..).unwrap_or_default(),
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::run::beginning;

    fn interest(calls: &str, libraries: &[&str]) -> Interest {
        let all = OnceLock::new();
        all.set(calls.into()).unwrap();
        Interest {
            beginnings: calls.lines().map(|c| beginning(c).to_owned()).collect(),
            file: PathBuf::new(),
            calls: all,
            libraries: libraries.iter().map(|&l| l.to_owned()).collect(),
        }
    }

    #[test]
    fn lines_are_found() {
        for calls in ["a\nab\nb\nread\nwrite\n", "a\nab\nb\nread\nwrite", "read"] {
            let all = interest(calls, &[]);
            for name in calls.lines() {
                assert!(all.is_call(name.as_bytes()), "{name} in {calls:?}");
            }
            for name in ["", "aa", "rea", "reads", "writev", "0"] {
                assert!(!all.is_call(name.as_bytes()), "{name} in {calls:?}");
            }
        }
        assert!(!interest("", &[]).is_call(b""));
    }

    #[test]
    fn files_are_of_interest_by_what_they_import_or_are_called() {
        let own = Path::new("/proc/self/exe");
        assert!(!interest("", &[]).has(own) && !interest("mpi_send_\n", &[]).has(own));
        assert!(interest("open\nread\n", &[]).has(own) && interest("", &["ex*"]).has(own));
        assert!(!interest("", &["*"]).has(Path::new("/dev/null")));
    }
}
