//! What the dynamic loader reads in a program.

use anyhow::{Context, Result};
use goblin::elf::Elf;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Whether a patched file loads the runtime library by itself.
pub(crate) fn loads_runtime(file: &[u8]) -> Result<bool> {
    let elf = Elf::parse(file).context("cannot read the program's headers")?;
    let name = format!("$ORIGIN/{RUNTIME_LIBRARY}");
    Ok(elf.libraries.contains(&name.as_str()))
}

/// Whether a program is linked dynamically, so that it can load libraries.
pub(crate) fn is_dynamic(file: &[u8]) -> bool {
    Elf::parse(file).is_ok_and(|elf| elf.interpreter.is_some())
}

/// A program for another C library than the one that recording needs.
#[derive(Debug, thiserror::Error)]
#[error("{0}: its C library is musl, and recording needs glibc; link it with that")]
pub(crate) struct OtherLibrary(String);

/// Refuses a program that can't load the runtime library.
pub(crate) fn refuse_musl(path: &Path, file: &[u8]) -> Result<(), OtherLibrary> {
    let elf = Elf::parse(file).ok();
    let loader = elf.and_then(|elf| elf.interpreter).unwrap_or_default();
    match loader.contains("/ld-musl-") {
        true => Err(OtherLibrary(path.display().to_string())),
        false => Ok(()),
    }
}

/// A value for LD_LIBRARY_PATH with which a copy elsewhere finds the libraries that the original finds beside itself.
/// `None`: it looks for none there.
pub(crate) fn library_path(
    original: &Path,
    file: &[u8],
    user: Option<OsString>,
) -> Option<OsString> {
    let elf = Elf::parse(file).ok()?;
    let folder = original.parent()?.to_str()?;
    let (before, after) = (expand(&elf.rpaths, folder), expand(&elf.runpaths, folder));
    if before.is_empty() && after.is_empty() {
        return None;
    }
    // The loader's order: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH.
    let user = user.filter(|u| !u.is_empty());
    let all = before
        .iter()
        .map(OsString::from)
        .chain(user)
        .chain(after.iter().map(OsString::from));
    Some(all.collect::<Vec<_>>().join(OsStr::new(":")))
}

/// The folders that a file searches for libraries, relative to its own.
pub(crate) fn searched(file: &[u8]) -> Vec<String> {
    let Ok(elf) = Elf::parse(file) else {
        return Vec::new();
    };
    let paths = elf.rpaths.iter().chain(&elf.runpaths);
    let relative = |p: &str| {
        let rest = p
            .strip_prefix("$ORIGIN")
            .or_else(|| p.strip_prefix("${ORIGIN}"))?;
        let rest = rest.trim_start_matches('/');
        (!rest.contains('$')).then(|| rest.to_owned())
    };
    paths
        .flat_map(|p| p.split(':'))
        .filter_map(relative)
        .collect()
}

/// The folders in search paths that are relative to the program's own.
fn expand(paths: &[&str], folder: &str) -> Vec<String> {
    if folder.contains([':', ';']) {
        return Vec::new(); // no search path can name it
    }
    let is_relative = |p: &&str| p.contains("$ORIGIN") || p.contains("${ORIGIN}");
    let absolute = |p: &str| p.replace("${ORIGIN}", folder).replace("$ORIGIN", folder);
    paths
        .iter()
        .flat_map(|p| p.split(':'))
        .filter(is_relative)
        .map(absolute)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_folder_is_put_in() {
        let paths = ["$ORIGIN/../lib:/opt/lib", "${ORIGIN}/$LIB"];
        assert_eq!(
            expand(&paths, "/opt/x/bin"),
            ["/opt/x/bin/../lib", "/opt/x/bin/$LIB"]
        );
        assert!(expand(&paths, "/a:b").is_empty());
        assert!(loads_runtime(b"no ELF").is_err() && !is_dynamic(b"no ELF"));
        assert!(searched(b"no ELF").is_empty());
        assert_eq!(library_path(Path::new("/opt/x"), b"no ELF", None), None);
    }
}
