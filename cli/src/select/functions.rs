//! `--functions`: which functions are regions of their own.

use super::pattern::{LIBRARY, file_name};
use ompfuse_fuse::names::{is_called, matches_glob};
use ompfuse_rewriter::scan::Wanted;
use std::str::FromStr;

/// The option, as several commands take it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct FunctionArgs {
    /// Record these functions of the program as regions, too (may be repeated)
    ///
    /// A name as in the source (`solve`, `mesh::step`), a glob (`solve_*`, `*`), or the address of a function without a name
    /// (`0x401136`). `lib:libfoo*:NAME` is about functions of a library. A program without OpenMP can be recorded so.
    #[arg(long, value_name = "NAME")]
    pub(crate) functions: Vec<FunctionPattern>,
}

/// One `--functions`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FunctionPattern {
    text: String,
    /// Name of a library's file, as a glob; `None`: the program itself.
    library: Option<String>,
    name: String,
}

impl FromStr for FunctionPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<FunctionPattern, String> {
        let (library, name) = match text.strip_prefix(LIBRARY).map(|rest| rest.split_once(':')) {
            None => (None, text),
            Some(Some((library, name))) => (Some(library), name),
            Some(None) => {
                return Err(
                    "no function behind lib:FILE; give one, as in lib:libfoo*:solve".to_owned(),
                );
            }
        };
        if name.is_empty() || library.is_some_and(str::is_empty) {
            return Err("empty; give a function's name, or lib:FILE:NAME".to_owned());
        }
        Ok(FunctionPattern {
            text: text.to_owned(),
            library: library.map(str::to_owned),
            name: name.to_owned(),
        })
    }
}

impl FunctionPattern {
    fn is_glob(&self) -> bool {
        self.name.contains(['*', '?'])
    }

    fn is_about(&self, module: &str, is_program: bool) -> bool {
        match &self.library {
            None => is_program,
            Some(glob) => matches_glob(glob, file_name(module)),
        }
    }
}

impl FunctionArgs {
    /// What is wanted of a file; `None`: nothing. `is_program`: it is the one that was named, not a library that it loads.
    pub(crate) fn of(&self, module: &str, is_program: bool) -> Option<FunctionArgs> {
        let all = self.functions.iter();
        let own = all.filter(|p| p.is_about(module, is_program));
        let functions: Vec<_> = own.cloned().collect();
        (!functions.is_empty()).then_some(FunctionArgs { functions })
    }

    /// Whether one of them wants a function of its file.
    pub(crate) fn wants(&self, name: &str) -> Wanted {
        let mut fitting = self.functions.iter().filter(|p| is_called(&p.name, name));
        match fitting.next() {
            None => Wanted::No,
            Some(first) if !first.is_glob() || fitting.any(|p| !p.is_glob()) => Wanted::ByName,
            Some(_) => Wanted::ByPattern,
        }
    }

    /// The option's values.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.functions.iter().map(|p| p.text.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(texts: &[&str]) -> FunctionArgs {
        let functions = texts.iter().map(|t| t.parse().unwrap()).collect();
        FunctionArgs { functions }
    }

    #[test]
    fn functions_of_the_program_and_of_libraries() {
        let all = args(&["solve", "mesh::*", "lib:libfoo*:step"]);
        let own = all.of("/bin/lu.x", true).unwrap();
        assert_eq!(own.wants("solve"), Wanted::ByName);
        assert_eq!(own.wants("_ZN4mesh4stepEv"), Wanted::ByPattern);
        assert_eq!(own.wants("step"), Wanted::No);
        let library = all.of("/lib/libfoo.so.1", false).unwrap();
        assert_eq!(library.wants("step"), Wanted::ByName);
        assert_eq!(library.wants("solve"), Wanted::No);
        assert!(all.of("/lib/libbar.so", false).is_none());
        assert_eq!(args(&["*", "f"]).wants("f"), Wanted::ByName);
        for wrong in ["", "lib:libfoo", "lib:libfoo:", "lib::f"] {
            assert!(wrong.parse::<FunctionPattern>().is_err(), "{wrong}");
        }
    }
}
