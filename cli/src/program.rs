//! The program that is to be recorded, patched.

use crate::cache::{self, Entry, Key};
use crate::select::SelectArgs;
use crate::{binary, input, launch, loader};
use anyhow::{Context, Result, bail};
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::RunModule;
use ompfuse_format::site::SelfDescription;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Variable with libraries that the loader loads before all others.
const PRELOAD: &str = "LD_PRELOAD";
/// Variable with folders where the loader looks for libraries.
const LIBRARY_PATH: &str = "LD_LIBRARY_PATH";

/// A program, ready to record.
pub(crate) struct Prepared {
    /// The patched file.
    pub(crate) file: PathBuf,
    /// Its sites.
    pub(crate) module: RunModule,
    /// Variables that the patched file needs to run as the original does.
    pub(crate) env: Vec<(&'static str, OsString)>,
    /// Keeps what was made for it, where that is temporary.
    _made: Option<Entry>,
}

impl Prepared {
    /// Finds a command and patches it, unless it is patched already.
    pub(crate) fn new(command: &OsStr, selection: &SelectArgs) -> Result<Prepared> {
        let found = launch::find(command)?;
        let file = found
            .canonicalize()
            .with_context(|| format!("cannot find {}", found.display()))?;
        let bytes = input::map(&file)?;
        if bytes.starts_with(b"#!") {
            bail!(
                "{} is a script; give the compiled program that it starts",
                found.display()
            );
        }
        match binary::description(&file, &bytes)? {
            None => Prepared::patch(&file, &bytes, selection),
            Some(_) if !selection.is_empty() => {
                bail!(
                    "{} is patched already: --select and --skip need the original",
                    found.display()
                )
            }
            Some(description) => Prepared::as_is(file, &bytes, description),
        }
    }

    /// The patched copy in the cache, made if it isn't there.
    fn patch(file: &Path, bytes: &[u8], selection: &SelectArgs) -> Result<Prepared> {
        let name = file.file_name().context("a program's file has a name")?;
        let options = selection.fingerprint();
        let entry = cache::get_or_make(
            &Key {
                name,
                original: bytes,
                options: &options,
            },
            || {
                let scan = binary::scan(file, bytes)?;
                binary::patch(bytes, &scan, selection, false).map(|p| p.bytes)
            },
        )?;
        let patched = entry.program.clone();
        let Some(mut description) = binary::description(&patched, &input::map(&patched)?)? else {
            bail!("{} is damaged; remove its folder", patched.display());
        };
        description.binary.path = path_text(file); // the entry may come from another file with the same contents
        let user = std::env::var_os(LIBRARY_PATH);
        let path = loader::library_path(file, bytes, user).map(|path| (LIBRARY_PATH, path));
        Ok(Prepared {
            module: module(&patched, description),
            file: patched,
            env: path.into_iter().collect(),
            _made: Some(entry),
        })
    }

    /// A file that the user patched.
    fn as_is(file: PathBuf, bytes: &[u8], description: SelfDescription) -> Result<Prepared> {
        let module = module(&file, description);
        if !loader::loads_runtime(bytes)? {
            let entry = cache::runtime_library()?;
            let value = preload(&entry.program, std::env::var_os(PRELOAD));
            return Ok(Prepared {
                file,
                module,
                env: vec![(PRELOAD, value)],
                _made: Some(entry),
            });
        }
        let library = file.with_file_name(RUNTIME_LIBRARY);
        if !library.is_file() {
            bail!(
                "{} needs {} beside it; patch the original again",
                file.display(),
                library.display()
            );
        }
        Ok(Prepared {
            file,
            module,
            env: Vec::new(),
            _made: None,
        })
    }
}

fn module(patched: &Path, description: SelfDescription) -> RunModule {
    RunModule {
        patched: path_text(patched),
        binary: description.binary,
        sites: description.sites,
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Our library before the user's own.
fn preload(library: &Path, others: Option<OsString>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in others.iter().filter(|o| !o.is_empty()) {
        value.push(":");
        value.push(other);
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preloads_come_first() {
        assert_eq!(preload(Path::new("/a"), None), "/a");
        assert_eq!(preload(Path::new("/a"), Some("/b /c".into())), "/a:/b /c");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("s");
        crate::atomic::write(&script, b"#!/bin/sh\n", 0o755).unwrap();
        let error = Prepared::new(script.as_os_str(), &SelectArgs::default())
            .err()
            .unwrap();
        assert!(
            format!("{error:#}").ends_with("is a script; give the compiled program that it starts")
        );
    }
}
