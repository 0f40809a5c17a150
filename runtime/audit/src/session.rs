//! What the recording command has prepared in a folder:
//!
//! ```text
//! runtime           link to the runtime library: one file for all, or there would be two of it in a process
//! command           link to the command
//! cache             link to the folder of patched copies
//! calls             functions whose calls are recorded, a line each, ascending
//! beginnings        how their names begin, a line each
//! libraries         names of libraries with functions that are recorded, a glob each
//! <file's identity> link to the patched copy; or a file with the reason why there is none
//! ```
//! Copies are in `cache/<key>/`, perhaps in folders named `o` below that, with a link `cache/<key>/origin` to the folder of the
//! original: what a library looks for beside itself (`$ORIGIN`) is found there.

use crate::ask;
use crate::interest::Interest;
use core::ffi::CStr;
use core::fmt;
use ompfuse_format::abi::RUNTIME_LIBRARY;
use ompfuse_format::run::{ENV_LIBRARIES, library_key};
use std::ffi::{CString, OsStr};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

/// OpenMP runtimes and their parts, which are no users of OpenMP; and what is ours.
const NEVER: [&[u8]; 8] = [
    b"libgomp.so",
    b"libgomp-",
    b"libomp.so",
    b"libiomp5.so",
    b"libompd.so",
    b"libomptarget",
    b"libarcher.so",
    b"libompfuse_",
];

/// A recording.
pub(crate) struct Session {
    folder: PathBuf,
    runtime: CString,
    pub(crate) command: CString,
    cache: PathBuf,
    interest: Interest,
    /// Decisions of this process, by the file's identity. Strings are leaked: the loader may keep them.
    known: Mutex<Vec<(String, Option<&'static CStr>)>>,
}

/// The recording that the environment names, if there is one.
pub(crate) fn get() -> Option<&'static Session> {
    static SESSION: OnceLock<Option<Session>> = OnceLock::new();
    SESSION.get_or_init(Session::open).as_ref()
}

impl Session {
    fn open() -> Option<Session> {
        let folder = PathBuf::from(std::env::var_os(ENV_LIBRARIES)?);
        let link = |name: &str| std::fs::read_link(folder.join(name)).ok();
        let text = |path: PathBuf| CString::new(path.into_os_string().into_vec()).ok();
        let (runtime, command) = (text(link("runtime")?)?, text(link("command")?)?);
        let cache = link("cache")?;
        let interest = Interest::read(&folder);
        Some(Session {
            folder,
            runtime,
            command,
            cache,
            interest,
            known: Mutex::default(),
        })
    }

    /// The path that takes the place of a library's; `None`: it stays.
    pub(crate) fn replace(&self, name: &CStr) -> Option<&'static CStr> {
        let path = name.to_bytes();
        let file = &path[path.iter().rposition(|&b| b == b'/')? + 1..];
        if file == RUNTIME_LIBRARY.as_bytes() {
            return Some(leak(self.runtime.clone()));
        }
        let original = self.original(path);
        let decided = self.decide(original.as_deref().unwrap_or(name));
        decided.or_else(|| original.map(leak))
    }

    /// A path beside a patched copy, as it is beside the original; if there is such a file.
    fn original(&self, path: &[u8]) -> Option<CString> {
        let rest = path.strip_prefix(self.cache.as_os_str().as_bytes())?;
        let rest = rest.strip_prefix(b"/")?;
        let slash = rest.iter().position(|&b| b == b'/')?;
        let (key, mut rest) = rest.split_at(slash);
        while let Some(deeper) = rest.strip_prefix(b"/o").filter(|r| r.starts_with(b"/")) {
            rest = deeper;
        }
        let mut beside = self.cache.join(OsStr::from_bytes(key)).join("origin");
        beside.as_mut_os_string().push(OsStr::from_bytes(rest));
        if !beside.is_file() {
            return None;
        }
        let found = beside
            .parent()?
            .canonicalize()
            .ok()?
            .join(beside.file_name()?);
        CString::new(found.into_os_string().into_vec()).ok()
    }

    /// The patched copy of a file, if it is to be used.
    pub(crate) fn decide(&self, path: &CStr) -> Option<&'static CStr> {
        let (file, key) = identify(path)?;
        // Never waits: in the child of a fork, whoever holds the lock may be gone.
        if let Ok(known) = self.known.try_lock()
            && let Some((_, decision)) = known.iter().find(|(k, _)| *k == key)
        {
            return *decision;
        }
        let decision = if self.interest.has(file) {
            self.ask(path, &key)
        } else {
            None
        };
        if let Ok(mut known) = self.known.try_lock() {
            known.push((key, decision));
        }
        decision
    }

    /// The decision of this recording, made by the command if it is the first one to be asked for.
    fn ask(&self, path: &CStr, key: &str) -> Option<&'static CStr> {
        let place = self.folder.join(key);
        let patched = || std::fs::read_link(&place).ok();
        let patched = match patched() {
            Some(path) => path,
            None if place.exists() => return None,
            None => {
                let folder = CString::new(self.folder.as_os_str().as_bytes()).ok()?;
                let key = CString::new(key).ok()?;
                ask::patch(&self.command, &folder, &key, path);
                patched().or_else(|| self.note_silence(&place, path))?
            }
        };
        let text = CString::new(patched.into_os_string().into_vec()).ok();
        text.filter(|t| Path::new(OsStr::from_bytes(t.to_bytes())).is_file())
            .map(leak)
    }
}

impl Session {
    /// The command gave no answer: it tells so at the end, and nobody asks it again.
    fn note_silence(&self, place: &Path, path: &CStr) -> Option<PathBuf> {
        let (path, command) = (path.to_string_lossy(), self.command.to_string_lossy());
        note(
            place,
            &path,
            format_args!("{path} is not patched: {command} gave no answer"),
        );
        None
    }

    /// A file that is no patched copy was opened in another link namespace. The command tells so at the end if it would be patched; a
    /// decision about it, for who opens it otherwise, is another matter.
    pub(crate) fn note_apart(&self, path: &CStr) {
        let Some((file, key)) = identify(path) else {
            return;
        };
        let refused = self.folder.join(&key); // with a reason, which is told
        let place = self.folder.join(format!("{key}-apart"));
        let is_told = place.exists() || refused.exists() && refused.read_link().is_err();
        if !is_told && self.interest.has(file) {
            let path = path.to_string_lossy();
            note(
                &place,
                &path,
                format_args!(
                    "{path} was opened by its path in another link namespace (dlmopen): nothing is recorded of it there"
                ),
            );
        }
    }
}

impl Session {
    /// The processes of a program go on without this library. The command tells so at the end.
    pub(crate) fn note_aside(&self, program: &Path, why: fmt::Arguments) {
        let Ok(metadata) = program.metadata() else {
            return;
        };
        let (dev, ino, size) = (metadata.dev(), metadata.ino(), metadata.size());
        let key = library_key(dev, ino, size, metadata.mtime(), metadata.mtime_nsec());
        note(
            &self.folder.join(format!("{key}-aside")),
            &program.to_string_lossy(),
            format_args!("libraries of {} are not recorded: {why}", program.display()),
        );
    }
}

/// Writes what the command tells at the end, behind a line with the file that isn't recorded; whoever comes first has said it.
fn note(place: &Path, path: &str, text: fmt::Arguments) {
    let file = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(place);
    let text = format!("{}\n{text}", path.replace('\n', " "));
    if let Ok(mut file) = file
        && may_have(text.len() as u64)
    {
        let _ = file.write_all(text.as_bytes());
    }
}

/// Whether a file may have so many bytes: beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends the program.
fn may_have(len: u64) -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the limit is a local variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    known && (limit.rlim_cur == libc::RLIM_INFINITY || len <= limit.rlim_cur)
}

/// A file that may be patched, and what it is known by.
fn identify(path: &CStr) -> Option<(&Path, String)> {
    let file = Path::new(OsStr::from_bytes(path.to_bytes()));
    let name = file.file_name()?.as_bytes();
    if NEVER.iter().any(|n| name.starts_with(n)) {
        return None;
    }
    let metadata = std::fs::metadata(file).ok().filter(|m| m.is_file())?;
    let (dev, ino, size) = (metadata.dev(), metadata.ino(), metadata.size());
    let key = library_key(dev, ino, size, metadata.mtime(), metadata.mtime_nsec());
    Some((file, key))
}

fn leak(text: CString) -> &'static CStr {
    Box::leak(text.into_boxed_c_str())
}
