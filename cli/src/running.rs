//! Processes that are being recorded at the moment, and what can be changed in them.

mod changes;
mod changing;
mod file;
pub(crate) mod held;
mod lock;
pub(crate) mod records;
mod reload;

pub(crate) use changes::{Change, Changes, event_set};
pub(crate) use file::{Access, ControlFile, State};
pub(crate) use lock::PATIENCE;
pub(crate) use reload::Reload;

use crate::process::{own_number, started_after};
use crate::program;
use crate::run_dir;
use anyhow::{Context, Result};
use ompfuse_format::control::ENDING;
use ompfuse_format::run::{BEGUN_FILE, ENV_DIR, ModuleStatus, RUN_FILE, RunModule};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A process that is being recorded.
pub(crate) struct Running {
    /// Its run's folder.
    pub(crate) folder: PathBuf,
    /// The process, as in the names of its files.
    pub(crate) key: String,
    /// Its number as it is seen from here; in a namespace of its own (a container's) it has another one.
    pub(crate) pid: u32,
    pub(crate) control: ControlFile,
}

impl Running {
    /// The file through which it is told what changes.
    pub(crate) fn control_file(&self) -> PathBuf {
        self.folder.join(format!("{}{ENDING}", self.key))
    }

    /// The patched modules that it has loaded by now, by their numbers.
    pub(crate) fn modules(&self) -> Result<Vec<(u32, RunModule)>> {
        let statuses = run_dir::modules_of(&self.folder, &self.key)?;
        let module = |s: &ModuleStatus| Some((s.module, program::loaded(Path::new(&s.path))?));
        Ok(statuses.iter().filter_map(module).collect())
    }
}

/// What a user means by a folder or the number of a process: all processes that are being recorded there.
pub(crate) fn find(target: &Path, access: Access) -> Result<Vec<Running>> {
    let (folders, pid) = match number(target) {
        Some(pid) => (vec![folder_of(pid)?], Some(pid)),
        None => (folders(target)?, None),
    };
    let (mut found, mut hindrance) = (Vec::new(), None);
    for folder in folders {
        match in_folder(&folder, access) {
            Ok(there) => {
                found.extend(there.running);
                hindrance = hindrance.or(there.hindrance);
            }
            // Other runs may be in others.
            Err(error) => hindrance = hindrance.or(Some(error)),
        }
    }
    found.retain(|r| pid.is_none_or(|pid| r.pid == pid));
    match (found.is_empty(), hindrance) {
        (false, _) => Ok(found),
        (true, Some(error)) => Err(error),
        (true, None) => Err(Nothing(target.to_owned()).into()),
    }
}

/// Nobody is being recorded in a folder.
#[derive(Debug, thiserror::Error)]
#[error("nothing is being recorded in {}; start it with `ompfuse record`", .0.display())]
pub(crate) struct Nothing(PathBuf);

/// Whether a folder may be that of a recording which has yet to begin: it isn't there, or it is empty, or a run in it has no process
/// so far.
pub(crate) fn may_begin(target: &Path) -> bool {
    if number(target).is_some() || (target.exists() && !target.is_dir()) {
        return false;
    }
    let list = |folder: &Path| -> Vec<PathBuf> {
        let listing = std::fs::read_dir(folder).into_iter().flatten();
        listing.filter_map(|e| Some(e.ok()?.path())).collect()
    };
    let names_process = |path: &PathBuf| {
        let name = path.file_name().and_then(OsStr::to_str);
        name.is_some_and(|n| n.starts_with("process-"))
    };
    let is_fresh = |run: &PathBuf| {
        let has = |file: &str| run.join(file).exists();
        has(BEGUN_FILE) && !has(RUN_FILE) && !list(run).iter().any(names_process)
    };
    let inside = list(target);
    inside.is_empty() || is_fresh(&target.to_owned()) || inside.iter().any(is_fresh)
}

/// The number of a process that is meant, not a folder.
pub(crate) fn number(target: &Path) -> Option<u32> {
    let number = target.to_str().and_then(|t| t.parse().ok());
    number.filter(|_| !target.exists())
}

/// The run folder of a process.
fn folder_of(pid: u32) -> Result<PathBuf> {
    let environment = std::fs::read(format!("/proc/{pid}/environ"))
        .with_context(|| format!("cannot look at process {pid}"))?;
    let start = format!("{ENV_DIR}=");
    let value = environment
        .split(|&b| b == 0)
        .find_map(|v| v.strip_prefix(start.as_bytes()));
    let folder = value.and_then(|v| std::str::from_utf8(v).ok());
    folder.map(PathBuf::from).with_context(|| {
        format!("process {pid} is not being recorded; start it with `ompfuse record`")
    })
}

/// A run's folder, or those in a folder of runs.
fn folders(target: &Path) -> Result<Vec<PathBuf>> {
    let listing =
        std::fs::read_dir(target).with_context(|| format!("cannot list {}", target.display()))?;
    let mut folders: Vec<PathBuf> = listing
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.is_dir())
        .collect();
    folders.push(target.to_owned());
    folders.sort();
    Ok(folders)
}

/// What was found in a folder.
pub(crate) struct Found {
    pub(crate) running: Vec<Running>,
    /// Why a process that may be being recorded can't be told anything.
    pub(crate) hindrance: Option<anyhow::Error>,
}

/// The processes that are being recorded into a run's folder.
pub(crate) fn in_folder(folder: &Path, access: Access) -> Result<Found> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let (mut running, mut hindrance) = (Vec::new(), None);
    for path in listing.filter_map(|e| Some(e.ok()?.path())) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some(key) = name.strip_suffix(ENDING) else {
            continue;
        };
        let control = match ControlFile::open(&path, access) {
            Ok(Some(control)) => control,
            Ok(None) => continue, // the process is about to make it
            Err(error) => {
                // Or has just removed it.
                if path.exists() {
                    hindrance = hindrance.or(Some(error));
                }
                continue;
            }
        };
        let begin = || Some(run_dir::process_of(folder, key).ok()??.begin.ns);
        if let Some(pid) = process_with(control.pid(), &path, begin) {
            running.push(Running {
                folder: folder.to_owned(),
                key: key.to_owned(),
                pid,
                control,
            });
        }
    }
    running.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(Found { running, hindrance })
}

/// The process that has a control file mapped, by the number that it has for itself; `None`: it is no more. `begin`: when its
/// recording began, if that is known.
fn process_with(own: u32, path: &Path, begin: impl Fn() -> Option<u64>) -> Option<u32> {
    let here = is_mapped(own, path);
    if here == Some(true) {
        return Some(own);
    }
    let listing = std::fs::read_dir("/proc").ok()?;
    let numbers = listing.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let mut others = numbers.filter(|&pid: &u32| own_number(pid) == Some(own));
    let other = others.find(|&pid| is_mapped(pid, path) == Some(true));
    // One that doesn't show its memory may be it, having changed its user; or another one that has got the number since.
    let is_later = || started_after(own, begin()?);
    other.or_else(|| (here.is_none() && is_later() != Some(true)).then_some(own))
}

/// Whether a process has the file mapped: one that was killed, or goes on as another program, has left it behind. `None`: it
/// doesn't show its memory.
fn is_mapped(pid: u32, path: &Path) -> Option<bool> {
    let (Ok(path), Ok(it)) = (path.canonicalize(), path.metadata()) else {
        return Some(false);
    };
    // A newline in a path is written like this there.
    let shown: Vec<u8> = (b" ".iter().chain(path.as_os_str().as_bytes()))
        .flat_map(|byte| match byte {
            b'\n' => &b"\\012"[..],
            other => std::slice::from_ref(other),
        })
        .copied()
        .collect();
    // In a folder that is mounted elsewhere too it has another name; on some file systems the device is another one.
    let (device, inode) = (it.dev(), it.ino());
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let number = format!(" {major:02x}:{minor:02x} {inode} ");
    match std::fs::read(format!("/proc/{pid}/maps")) {
        Ok(maps) => {
            let mut lines = maps.split(|&b| b == b'\n');
            Some(lines.any(|line| {
                line.ends_with(&shown) || String::from_utf8_lossy(line).contains(&number)
            }))
        }
        Err(e) => (e.kind() != std::io::ErrorKind::PermissionDenied).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_found_under_any_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let me = std::process::id();
        for name in ["plain", "two words", "two\nlines", "tr\u{e4}ge"] {
            let path = folder.path().join(name);
            std::fs::write(&path, "something").expect("there is room");
            assert_eq!(is_mapped(me, &path), Some(false), "{name:?}");
            let map = crate::input::map(&path).expect("it can be read");
            assert_eq!(is_mapped(me, &path), Some(true), "{name:?}");
            drop(map);
            let other = folder.path().join("other");
            std::fs::hard_link(&path, &other).expect("there is room");
            let map = crate::input::map(&other).expect("it can be read");
            let mapped = is_mapped(me, &path);
            assert_eq!(mapped, Some(true), "{name:?} under another name");
            drop(map);
            std::fs::remove_file(&other).expect("it is there");
        }
    }
}
