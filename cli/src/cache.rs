//! Patched programs, kept between recordings.
//!
//! ```text
//! CACHE/ompfuse/<SHA-256 of the original>-<hash of everything else that matters>/
//!   NAME                      the patched program or library
//!   libompfuse_runtime.so     found through its $ORIGIN
//!   origin                    link to the original's folder, where that matters (see `Origin`)
//! ```
//! A folder is made under another name and renamed when it is complete, so any number of commands may run at once.

mod contents;
pub(crate) mod temporary;
mod trust;
pub(crate) mod used;

pub(crate) use contents::{Copy, Kind, list, remove};

use crate::output::note;
use crate::{atomic, binary, embedded, input};
use anyhow::{Context, Result, anyhow};
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::AUDIT_LIBRARY;
use sha2::{Digest, Sha256};
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Once;
use tempfile::TempDir;

/// A patched program in the cache.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its path, without symbolic links.
    pub(crate) program: PathBuf,
    /// Where there is no cache: removes the folder at the end.
    _temporary: Option<TempDir>,
    /// Keeps others from removing it.
    _lock: Option<used::Hold>,
}

impl Entry {
    /// Whether it stays when this command has ended.
    pub(crate) fn is_kept(&self) -> bool {
        self._temporary.is_none()
    }
}

/// What decides whether a cached program can be used.
pub(crate) struct Key<'a> {
    /// Name of the program's file.
    pub(crate) name: &'a OsStr,
    /// The original's bytes.
    pub(crate) original: &'a [u8],
    /// The options that it is patched with.
    pub(crate) options: &'a str,
    /// Where it looks for other libraries; for those that the auditing library redirects.
    pub(crate) origin: Option<Origin<'a>>,
    /// Tells the bytes of a copy from what else may be found in its place.
    pub(crate) is_whole: fn(&[u8]) -> bool,
}

/// [`Key::is_whole`] of patched files: what is cut off, or empty, has lost its description.
pub(crate) fn is_patched(bytes: &[u8]) -> bool {
    binary::description(Path::new(""), bytes).is_ok_and(|d| d.is_some())
}

/// Where a file looks for others. The loader looks beside the copy instead, and the auditing library leads it on to the
/// original's folder; but only folders that exist are looked into at all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin<'a> {
    /// The original's folder.
    pub(crate) folder: &'a Path,
    /// The folders that it searches, relative to that.
    pub(crate) searched: &'a [String],
}

impl Origin<'_> {
    /// How far up from its folder the file looks.
    fn depth(&self) -> usize {
        let up = |path: &String| {
            let mut depth = 0i32;
            let mut deepest = 0;
            for part in Path::new(path).components() {
                depth += match part {
                    Component::ParentDir => 1,
                    Component::Normal(_) => -1,
                    _ => 0,
                };
                deepest = deepest.max(depth);
            }
            deepest as usize
        };
        self.searched.iter().map(up).max().unwrap_or(0)
    }

    /// Makes the folders around the copy, and the link.
    fn lay_out(&self, entry: &Path, place: &Path) -> std::io::Result<()> {
        std::os::unix::fs::symlink(self.folder, entry.join("origin"))?;
        std::fs::create_dir_all(place)?;
        for path in self.searched {
            std::fs::create_dir_all(place.join(path))?;
        }
        Ok(())
    }
}

impl Key<'_> {
    /// Name of the entry's folder.
    fn folder(&self) -> String {
        let mut rest = Sha256::new();
        for part in [
            env!("CARGO_PKG_VERSION").as_bytes(),
            env!("OMPFUSE_REWRITER").as_bytes(),
            self.name.as_bytes(),
            self.options.as_bytes(),
        ] {
            rest.update((part.len() as u64).to_le_bytes());
            rest.update(part);
        }
        rest.update(embedded::RUNTIME);
        if let Some(origin) = &self.origin {
            rest.update(origin.folder.as_os_str().as_bytes());
        }
        format!(
            "{}-{}",
            &sha256(self.original)[..32],
            &hex(&rest.finalize())[..16]
        )
    }

    /// The file, from the entry's folder.
    fn file(&self) -> PathBuf {
        let depth = self.origin.map_or(0, |o| o.depth());
        let mut path: PathBuf = std::iter::repeat_n("o", depth).collect();
        path.push(self.name);
        path
    }

    /// What is in the cache, if it is not damaged.
    fn cached(&self, entry: &Path) -> Option<Entry> {
        let lock = used::hold(entry)?;
        let program = entry.join(self.file());
        let holds = |file: &Path, is_right: &dyn Fn(&[u8]) -> bool| {
            input::map(file).is_ok_and(|bytes| is_right(&bytes))
        };
        let runtime = entry.join(RUNTIME_LIBRARY);
        let is_whole = program.is_file()
            && holds(&program, &self.is_whole)
            && holds(&runtime, &|bytes| bytes == embedded::RUNTIME);
        is_whole.then_some(Entry {
            program,
            _temporary: None,
            _lock: Some(lock),
        })
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// The user's cache folder for ompfuse, if there is one that nobody else can change: what lies in it is executed. `sudo` may
/// leave HOME another user's, for one.
pub(crate) fn folder() -> Option<PathBuf> {
    static TOLD: Once = Once::new();
    let (base, folder) = named()?;
    match trust::trusted(&base, &folder) {
        Ok(()) => Some(folder),
        Err(why) => {
            TOLD.call_once(|| note(format_args!("patched copies are not kept: {why}; {REMEDY}")));
            None
        }
    }
}

/// The same; an error says why there is none.
pub(crate) fn place() -> Result<PathBuf> {
    let (base, folder) = named().ok_or_else(|| {
        anyhow!("cannot keep patched copies: neither XDG_CACHE_HOME nor HOME is an absolute path; {REMEDY}")
    })?;
    let cannot = |why| anyhow!("cannot use the cache {}: {why}; {REMEDY}", folder.display());
    trust::trusted(&base, &folder).map_err(cannot)?;
    Ok(folder)
}

/// What to do without a cache folder.
pub(crate) const REMEDY: &str = "set XDG_CACHE_HOME to a folder of your own";

/// The folder that the user's caches are in, and the one for ompfuse.
fn named() -> Option<(PathBuf, PathBuf)> {
    let absolute = |name| {
        let path = std::env::var_os(name).map(PathBuf::from);
        path.filter(|p| p.is_absolute())
    };
    let (base, inner) = match absolute("XDG_CACHE_HOME") {
        Some(base) => (base, "ompfuse"),
        None => (absolute("HOME")?, ".cache/ompfuse"),
    };
    let folder = base.join(inner);
    Some((base, folder))
}

/// The auditing library, and the runtime library beside it, at paths that LD_AUDIT and LD_PRELOAD can name.
pub(crate) fn own_libraries() -> Result<Entry> {
    let nameable =
        folder().filter(|f| !f.as_os_str().as_bytes().iter().any(|b| b" :$".contains(b)));
    let key = Key {
        name: OsStr::new(AUDIT_LIBRARY),
        original: embedded::AUDIT,
        options: "",
        origin: None,
        is_whole: |bytes| bytes == embedded::AUDIT,
    };
    get_or_make_in(nameable.as_deref(), &key, || Ok(bytes(embedded::AUDIT)))
}

/// Fills a file with bytes.
fn bytes(bytes: &[u8]) -> impl FnOnce(&mut File) -> Result<()> {
    |file| Ok(file.write_all(bytes)?)
}

/// The cached program, made by `make` if it isn't there: what that gives back fills the file.
pub(crate) fn get_or_make<F: FnOnce(&mut File) -> Result<()>>(
    key: &Key<'_>,
    make: impl FnOnce() -> Result<F>,
) -> Result<Entry> {
    get_or_make_in(folder().as_deref(), key, make)
}

/// The same in another cache folder.
pub(crate) fn get_or_make_in<F: FnOnce(&mut File) -> Result<()>>(
    cache: Option<&Path>,
    key: &Key<'_>,
    make: impl FnOnce() -> Result<F>,
) -> Result<Entry> {
    let private = |folder: &Path| {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)?;
        let folder = folder.canonicalize()?;
        let beside = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&folder)?;
        std::io::Result::Ok((folder, beside))
    };
    let found = cache.and_then(|c| key.cached(&c.canonicalize().ok()?.join(key.folder())));
    if let Some(found) = found {
        return Ok(found);
    }
    let fill = make()?;
    let hold = crate::interrupt::hold();
    // A read-only home folder is no reason to give up.
    let (cache, temporary) = match cache.map(private) {
        Some(Ok((folder, temporary))) => (Some(folder), temporary),
        _ => (
            None,
            temporary::folder().context("cannot make a folder for the patched program")?,
        ),
    };
    let program = temporary.path().join(key.file());
    if let Some(origin) = &key.origin {
        let place = atomic::parent(&program);
        let made = origin.lay_out(temporary.path(), place);
        made.with_context(|| format!("cannot make folders in {}", place.display()))?;
    }
    atomic::write_with(&program, 0o700, fill)?;
    embedded::place(temporary.path())?;
    hold.check()?;
    let Some(entry) = cache.map(|c| c.join(key.folder())) else {
        return Ok(Entry {
            program,
            _temporary: Some(temporary),
            _lock: None,
        });
    };
    let mut moved = std::fs::rename(temporary.path(), &entry);
    if moved.is_err() && key.cached(&entry).is_none() {
        // What is there is damaged. Whoever executes it keeps it.
        let aside = entry.with_extension(format!("damaged-{}", std::process::id()));
        if std::fs::rename(&entry, &aside).is_ok() {
            moved = std::fs::rename(temporary.path(), &entry);
            let _ = std::fs::remove_dir_all(aside);
        }
    }
    match moved {
        Ok(()) => {
            let _ = temporary.keep(); // it isn't there any more under that name
            let cached = key.cached(&entry);
            cached.with_context(|| format!("{} was removed meanwhile", entry.display()))
        }
        // Somebody else was faster, or the damaged one can't be replaced: then this command's own copy serves.
        Err(_) => Ok(key.cached(&entry).unwrap_or(Entry {
            program,
            _temporary: Some(temporary),
            _lock: None,
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn never() -> Result<fn(&mut File) -> Result<()>> {
        panic!("not needed")
    }

    fn key<'a>(name: &'a str, options: &'a str) -> Key<'a> {
        Key {
            name: OsStr::new(name),
            original: b"original",
            options,
            origin: None,
            is_whole: |bytes| !bytes.is_empty(),
        }
    }

    #[test]
    fn an_entry_is_made_once_and_keyed_by_everything() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("deep/ompfuse");
        let make = |k: &Key<'_>| get_or_make_in(Some(&cache), k, || Ok(bytes(b"patched"))).unwrap();
        let first = make(&key("a", ""));
        assert_eq!(std::fs::read(&first.program).unwrap(), b"patched");
        assert!(
            first
                .program
                .with_file_name("libompfuse_runtime.so")
                .is_file()
        );
        let again = get_or_make_in(Some(&cache), &key("a", ""), never).unwrap();
        assert_eq!(again.program, first.program);
        assert_ne!(
            make(&key("a", "x")).program.parent(),
            first.program.parent()
        );
        assert_ne!(make(&key("b", "")).program.parent(), first.program.parent());
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 3);
    }

    #[test]
    fn concurrent_makers_agree() {
        let dir = tempfile::tempdir().unwrap();
        let cache = dir.path().join("ompfuse");
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    let entry = get_or_make_in(Some(&cache), &key("a", ""), || {
                        barrier.wait();
                        Ok(bytes(b"patched"))
                    });
                    assert_eq!(std::fs::read(entry.unwrap().program).unwrap(), b"patched");
                });
            }
        });
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
    }

    #[test]
    fn what_is_damaged_is_made_again() {
        let dir = tempfile::tempdir().unwrap();
        let make =
            || get_or_make_in(Some(dir.path()), &key("a", ""), || Ok(bytes(b"patched"))).unwrap();
        let first = make().program;
        for damaged in [first.clone(), first.with_file_name(RUNTIME_LIBRARY)] {
            std::fs::write(&damaged, b"").unwrap();
            let again = make();
            assert!(again.is_kept() && again.program == first);
            assert_eq!(std::fs::read(&first).unwrap(), b"patched");
            assert_ne!(std::fs::read(&damaged).unwrap(), b"");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        }
    }

    #[test]
    fn folders_that_a_library_searches_exist_around_the_copy() {
        let dir = tempfile::tempdir().unwrap();
        let searched = ["../../x.libs".to_owned(), "sub".to_owned(), "..".to_owned()];
        let origin = Origin {
            folder: Path::new("/somewhere/else"),
            searched: &searched,
        };
        let mut key = key("a.so", "");
        let plain = key.folder();
        key.origin = Some(origin);
        assert_ne!(key.folder(), plain);
        let entry = get_or_make_in(Some(dir.path()), &key, || Ok(bytes(&[1]))).unwrap();
        let top = dir.path().canonicalize().unwrap().join(key.folder());
        assert_eq!(entry.program, top.join("o/o/a.so"));
        assert!(top.join("x.libs").is_dir() && top.join("o/o/sub").is_dir());
        assert_eq!(
            std::fs::read_link(top.join("origin")).unwrap(),
            origin.folder
        );
        let again = get_or_make_in(Some(dir.path()), &key, never).unwrap();
        assert_eq!(again.program, entry.program);
    }

    #[test]
    fn without_a_cache_the_program_lives_as_long_as_the_entry() {
        let entry = get_or_make_in(None, &key("a", ""), || Ok(bytes(&[1]))).unwrap();
        let path = entry.program.clone();
        assert!(path.is_file());
        drop(entry);
        assert!(!path.exists());
        let unwritable = get_or_make_in(Some(Path::new("/proc/ompfuse")), &key("a", ""), || {
            Ok(bytes(&[1]))
        });
        assert!(unwritable.unwrap().program.is_file());
        assert!(
            get_or_make_in(None, &key("a", ""), || match true {
                true => anyhow::bail!("no"),
                false => Ok(bytes(b"")),
            })
            .is_err()
        );
    }
}
