//! Processes that are being recorded at the moment, and what can be changed in them.

mod changes;
mod file;
pub(crate) mod records;
mod reload;

pub(crate) use changes::{Change, Changes, event_set};
pub(crate) use file::{ControlFile, State};
pub(crate) use reload::Reload;

use crate::program;
use crate::run_dir;
use anyhow::{Context, Result, bail};
use ompfuse_format::control::ENDING;
use ompfuse_format::run::{ENV_DIR, ModuleStatus, RunModule};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A process that is being recorded.
pub(crate) struct Running {
    /// Its run's folder.
    pub(crate) folder: PathBuf,
    /// The process, as in the names of its files.
    pub(crate) key: String,
    /// Its number.
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
pub(crate) fn find(target: &Path) -> Result<Vec<Running>> {
    let number = target.to_str().and_then(|t| t.parse::<u32>().ok());
    let (folders, pid) = match number.filter(|_| !target.exists()) {
        Some(pid) => (vec![folder_of(pid)?], Some(pid)),
        None => (folders(target)?, None),
    };
    let mut found = Vec::new();
    for folder in folders {
        found.extend(in_folder(&folder)?);
    }
    found.retain(|r| pid.is_none_or(|pid| r.pid == pid));
    if found.is_empty() {
        bail!(
            "nothing is being recorded in {}; start it with `ompfuse record`",
            target.display()
        );
    }
    Ok(found)
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

/// The processes that are being recorded into a run's folder.
pub(crate) fn in_folder(folder: &Path) -> Result<Vec<Running>> {
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let mut found = Vec::new();
    for path in listing.filter_map(|e| Some(e.ok()?.path())) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let Some(key) = name.strip_suffix(ENDING) else {
            continue;
        };
        // The process may be about to make it, or to remove it.
        let Ok(Some(control)) = ControlFile::open(&path) else {
            continue;
        };
        let pid = control.pid();
        if is_mapped(pid, &path) {
            found.push(Running {
                folder: folder.to_owned(),
                key: key.to_owned(),
                pid,
                control,
            });
        }
    }
    found.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(found)
}

/// Whether a process has the file mapped: one that was killed, or goes on as another program, has left it behind.
fn is_mapped(pid: u32, path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else {
        return false;
    };
    match std::fs::read_to_string(format!("/proc/{pid}/maps")) {
        Ok(maps) => path
            .to_str()
            .is_some_and(|path| maps.lines().any(|l| l.ends_with(path))),
        // One that changed its user is there, but doesn't show its memory.
        Err(e) => e.kind() == std::io::ErrorKind::PermissionDenied,
    }
}
