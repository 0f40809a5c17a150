//! The files with code of processes that this command has not started.
//!
//! A process of another user, or one that sees other files (a container), decides what there is under the names of its files. So root
//! opens what is mapped itself, whatever its name stands for here (`/proc/PID/map_files`, proc_pid_map_files(5)). What such a file
//! names in its turn isn't opened: debug information beside it, sources.

use super::maps;
use crate::input::{self, Input};
use anyhow::{Result, bail};
use ompfuse_format::samples::Mapping;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Files by their paths, as their processes tell them.
#[derive(Clone, Default)]
pub(crate) struct Files {
    is_foreign: bool,
    /// What was mapped; `None`: files are opened by their names.
    mapped: Option<Arc<Mutex<Mapped>>>,
}

/// `None`: it could not be opened.
type Mapped = HashMap<String, Option<Arc<Input>>>;

/// What decides which file a name means: the mounts, and the root's device and inode.
type World = (PathBuf, u64, u64);

impl Files {
    /// Those of processes that run already.
    ///
    /// # Errors
    /// If a name means different files for them, or for them and this command, which may not open what they have mapped.
    pub(crate) fn of(pids: &[u32]) -> Result<Files> {
        let own = world("self");
        let mut files = Files::default();
        let Some((&first, others)) = pids.split_first() else {
            return Ok(files);
        };
        let its = world(&first.to_string());
        // Of one that has ended nothing is known.
        let differs =
            |pid: &&u32| its.is_some() && world(&pid.to_string()).is_some_and(|w| Some(w) != its);
        if let Some(other) = others.iter().find(differs) {
            bail!("processes {first} and {other} see different files; look at each alone");
        }
        let sees_other = its.is_some() && its != own;
        files.is_foreign = sees_other || !pids.iter().all(|&pid| is_of_this_user(pid));
        if !files.is_foreign {
            return Ok(files);
        }
        match pids.iter().all(|&pid| may_open_mapped(pid)) {
            true => files.mapped = Some(Arc::default()),
            false if sees_other => bail!(
                "process {first} sees other files (a container); look at it from inside of that, or as root outside of it"
            ),
            false => {}
        }
        for &pid in pids {
            let all = std::fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
            maps::code(&all, pid, 0).iter().for_each(|m| files.note(m));
        }
        Ok(files)
    }

    /// Whether somebody else decides what they are, and what they name.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Opens what a process maps, as long as it has it.
    pub(super) fn note(&self, mapping: &Mapping<'_>) {
        let Some(mapped) = &self.mapped else { return };
        if !mapping.path.starts_with(b"/") || mapping.path.starts_with(b"//") {
            return;
        }
        let path = String::from_utf8_lossy(mapping.path).into_owned();
        let mut all = mapped.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(path).or_insert_with(|| open_mapped(mapping));
    }

    /// A file's bytes; `None`: they can't be read.
    pub(super) fn open(&self, path: &str) -> Option<Arc<Input>> {
        match &self.mapped {
            None => input::map(Path::new(path)).ok().map(Arc::new),
            Some(mapped) => {
                let all = mapped.lock().unwrap_or_else(PoisonError::into_inner);
                all.get(path)?.clone()
            }
        }
    }
}

fn world(pid: &str) -> Option<World> {
    let mounts = std::fs::read_link(format!("/proc/{pid}/ns/mnt")).ok()?;
    let root = std::fs::metadata(format!("/proc/{pid}/root/")).ok()?;
    Some((mounts, root.dev(), root.ino()))
}

/// Whether a process acts as the user of this command.
fn is_of_this_user(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let users = status.lines().find_map(|l| l.strip_prefix("Uid:"));
    let effective = users.and_then(|l| l.split_ascii_whitespace().nth(1)?.parse().ok());
    effective == Some(rustix::process::geteuid().as_raw())
}

fn may_open_mapped(pid: u32) -> bool {
    let folder = std::fs::read_dir(format!("/proc/{pid}/map_files"));
    let first = folder.into_iter().flatten().flatten().next();
    first.is_some_and(|entry| std::fs::metadata(entry.path()).is_ok()) // by its link
}

fn open_mapped(mapping: &Mapping<'_>) -> Option<Arc<Input>> {
    let Mapping {
        pid, begin, size, ..
    } = mapping;
    let end = begin.checked_add(*size)?;
    let path = format!("/proc/{pid}/map_files/{begin:x}-{end:x}");
    input::map(Path::new(&path)).ok().map(Arc::new)
}
