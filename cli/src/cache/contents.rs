//! What is in the cache, and how it is removed.

use super::used;
use crate::{binary, input};
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::AUDIT_LIBRARY;
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Beginning of the name of a folder that is being removed.
const GONE: &str = ".gone-";

/// What a folder of the cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A patched program or library.
    Patched,
    /// The libraries that recorded programs load.
    Own,
    /// Something that a command has not finished, or has left behind.
    Unfinished,
}

/// A folder of the cache.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Copy {
    /// Its path.
    pub(crate) folder: PathBuf,
    pub(crate) kind: Kind,
    /// Name of the file that it is for.
    pub(crate) file: Option<String>,
    /// Where the original was when it was patched; another file with the same bytes has the same copy.
    pub(crate) original: Option<String>,
    /// All files together.
    pub(crate) bytes: u64,
    /// Seconds since a command used it.
    pub(crate) unused_s: u64,
    /// A command or a recorded program uses it.
    pub(crate) in_use: bool,
}

/// The folders of the cache, the one that was used last first. A cache that isn't there has none.
pub(crate) fn list(cache: &Path) -> io::Result<Vec<Copy>> {
    let folders = match std::fs::read_dir(cache) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listing => listing?.filter_map(|entry| Some(entry.ok()?.path())),
    };
    let cache = cache.canonicalize()?;
    let folders: Vec<PathBuf> = folders.filter(|f| !f.is_symlink() && f.is_dir()).collect();
    let mut used = mapped(&cache);
    for folder in folders.iter().filter(|f| is_hidden(f)) {
        // A recording's decisions about libraries: links to their copies.
        if used::take(folder).is_ok_and(|lock| lock.is_none()) {
            used.extend(links(folder, &cache));
        }
    }
    let mut copies: Vec<Copy> = folders.into_iter().map(|f| look_at(f, &used)).collect();
    copies.sort_by(|a, b| (a.unused_s, &a.folder).cmp(&(b.unused_s, &b.folder)));
    Ok(copies)
}

/// Removes a folder that [`list`] has told; false: somebody has begun to use it.
pub(crate) fn remove(copy: &Copy) -> io::Result<bool> {
    let lock = match used::take(&copy.folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(true), // another command was faster
        lock => lock?,
    };
    if lock.is_none() {
        return Ok(false);
    }
    // Nobody finds a half of it.
    let name = copy.folder.file_name().unwrap_or_default();
    let mut gone = std::ffi::OsString::from(format!("{GONE}{}-", std::process::id()));
    gone.push(name);
    let gone = copy.folder.with_file_name(gone);
    std::fs::rename(&copy.folder, &gone)?;
    std::fs::remove_dir_all(gone)?;
    Ok(true)
}

fn is_hidden(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default();
    name.as_bytes().starts_with(b".")
}

fn look_at(folder: PathBuf, used: &BTreeSet<PathBuf>) -> Copy {
    let name = folder.file_name().unwrap_or_default();
    let is_left = is_hidden(&folder) || folder.extension().is_some();
    let mut files = Vec::new();
    let bytes = walk(&folder, &mut files);
    let file = files.into_iter().find(|path| {
        let name = path.file_name();
        name.is_some_and(|n| n != RUNTIME_LIBRARY)
    });
    let file_name = |path: &PathBuf| path.file_name().map(OsStr::to_owned);
    let own = file.as_ref().and_then(file_name);
    let kind = match own {
        _ if is_left => Kind::Unfinished,
        Some(ref name) if name == AUDIT_LIBRARY => Kind::Own,
        Some(_) => Kind::Patched,
        None => Kind::Unfinished,
    };
    let original = file.as_ref().filter(|_| kind == Kind::Patched);
    let original = original.and_then(|path| {
        let bytes = input::map(path).ok()?;
        Some(binary::description(path, &bytes).ok()??.binary.path)
    });
    let modified = folder.metadata().and_then(|m| m.modified());
    let age = modified.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
    let is_held = used::take(&folder).is_ok_and(|lock| lock.is_none());
    Copy {
        kind,
        file: own
            .filter(|_| kind != Kind::Unfinished)
            .map(|name| name.to_string_lossy().into_owned()),
        original,
        bytes,
        unused_s: age.unwrap_or(Duration::ZERO).as_secs(),
        in_use: is_held || used.contains(Path::new(name)),
        folder,
    }
}

/// The regular files below a folder, links not followed, and their bytes.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> u64 {
    let mut bytes = 0;
    let listing = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in listing {
        let Ok(kind) = entry.file_type() else {
            continue;
        };
        if kind.is_dir() {
            bytes += walk(&entry.path(), files);
        } else if kind.is_file() {
            bytes += entry.metadata().map_or(0, |m| m.len());
            files.push(entry.path());
        }
    }
    bytes
}

/// Names of the cache's folders that links in a folder lead to.
fn links(folder: &Path, cache: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let targets = listing.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter_map(|target| below(&target, cache)).collect()
}

/// Name of the folder of the cache that a file is in.
fn below(file: &Path, cache: &Path) -> Option<PathBuf> {
    let first = file.strip_prefix(cache).ok()?.components().next()?;
    Some(PathBuf::from(first.as_os_str()))
}

/// Names of the cache's folders from which some process has a file mapped, as far as processes show that.
fn mapped(cache: &Path) -> BTreeSet<PathBuf> {
    let mut used = BTreeSet::new();
    let listing = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for process in listing {
        let Ok(maps) = std::fs::read(process.path().join("maps")) else {
            continue;
        };
        for line in maps.split(|&byte| byte == b'\n') {
            if let Some(at) = memchr::memchr(b'/', line) {
                used.extend(below(Path::new(OsStr::from_bytes(&line[at..])), cache));
            }
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().canonicalize().unwrap().join("cache");
        assert_eq!(list(&cache).unwrap().len(), 0);
        for name in ["held", "mapped", "linked", "free", ".new-1", ".libraries-1"] {
            std::fs::create_dir_all(cache.join(name).join("o")).unwrap();
            std::fs::write(cache.join(name).join("o/a.so"), "12345").unwrap();
        }
        let held = [
            used::hold(&cache.join("held")),
            used::hold(&cache.join(".libraries-1")),
        ];
        let map = input::map(&cache.join("mapped/o/a.so")).unwrap();
        let link = cache.join(".libraries-1/1-2");
        std::os::unix::fs::symlink(cache.join("linked/o/a.so"), link).unwrap();
        let copies = list(&cache).unwrap();
        let of = |in_use| -> BTreeSet<String> {
            let some = copies.iter().filter(|c| c.in_use == in_use);
            some.map(|c| c.folder.file_name().unwrap().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(
            of(false).into_iter().collect::<Vec<_>>(),
            [".new-1", "free"]
        );
        assert_eq!(of(true).len(), 4);
        let free = copies.iter().find(|c| c.folder.ends_with("free")).unwrap();
        assert_eq!((free.kind, free.bytes), (Kind::Patched, 5));
        assert!(remove(free).unwrap() && !free.folder.exists());
        let other = copies.iter().find(|c| c.folder.ends_with("held")).unwrap();
        assert!(!remove(other).unwrap() && other.folder.exists());
        drop((held, map));
    }
}
