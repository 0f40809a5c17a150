//! What the processes of a run have written of themselves.

use crate::input;
use anyhow::{Context, Result};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::record::{HEADER_LEN, ThreadHeader};
use ompfuse_format::run::{
    EventSet, EventStatus, ModuleStatus, ProcessCosts, ProcessEnd, ProcessHeader, costs_file,
    events_file, events_file_process, module_file_process,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// What the runtime library left in a run's folder about the processes that it was in.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    /// Where recording began.
    pub(crate) headers: Vec<ProcessHeader>,
    /// Those that ended in an orderly way.
    pub(crate) ends: Vec<ProcessEnd>,
    /// Records that could not be written, by whatever process.
    pub(crate) lost: u64,
    /// Threads that could not be recorded at all, as far as that is known.
    pub(crate) threads_lost: u64,
    /// Who has told its end, as in the names of its files.
    ended: BTreeSet<String>,
    /// Event sets that processes came to later.
    pub(crate) sets: Vec<EventSet>,
    /// Modules that were loaded after the header of their process.
    late: Vec<ModuleStatus>,
}

impl Processes {
    /// Every patched module that was loaded.
    pub(crate) fn modules(&self) -> impl Iterator<Item = &ModuleStatus> {
        self.headers
            .iter()
            .flat_map(|h| &h.modules)
            .chain(&self.late)
    }
}

/// Reads the process headers of a run.
pub(crate) fn read_processes(folder: &Path) -> Result<Processes> {
    processes(folder, Err)
}

/// The same, without what is damaged.
pub(crate) fn readable_processes(folder: &Path) -> Processes {
    processes(folder, |_| Ok(())).unwrap_or_default()
}

fn processes(folder: &Path, damaged: impl Fn(anyhow::Error) -> Result<()>) -> Result<Processes> {
    let mut processes = Processes::default();
    let paths = |listing: std::fs::ReadDir| listing.map(|entry| Ok(entry?.path())).collect();
    let listing: std::io::Result<Vec<PathBuf>> = std::fs::read_dir(folder).and_then(paths);
    // The folder is closed again: where hardly any file may be open, one of them can.
    let listing = listing.with_context(|| format!("cannot list {}", folder.display()))?;
    for path in &listing {
        read_process_file(&mut processes, path).or_else(&damaged)?;
    }
    processes.lost = processes.ends.iter().map(|e| e.lost).sum();
    processes.threads_lost = processes.ends.iter().map(|e| e.threads_lost).sum();
    // Who was killed, or found no room even for its end, has not said what it lost: its threads' files do.
    let others = listing.iter().filter(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        let thread = name.strip_suffix(".rec").and_then(|n| n.rsplit_once('-'));
        thread.is_some_and(|(key, _)| !processes.ended.contains(key))
    });
    let lost = others.filter_map(|path| {
        let bytes = input::map(path).ok()?;
        let header = ThreadHeader::parse(bytes.get(..HEADER_LEN)?).ok()?;
        Some(header.lost)
    });
    processes.lost += lost.sum::<u64>();
    processes.headers.sort_by_key(|h| h.pid);
    Ok(processes)
}

/// Reads a file of a run's folder, if it is one that a process has written of itself.
fn read_process_file(processes: &mut Processes, path: &Path) -> Result<()> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if module_file_process(name).is_some() {
        processes.late.extend(read_json(path)?);
    } else if events_file_process(name).is_some() {
        processes.sets.extend(read_json(path)?);
    } else if name.starts_with("process-") {
        if let Some(key) = name.strip_suffix(".end.json") {
            let end: Option<ProcessEnd> = read_json(path)?;
            let key = end.is_some().then(|| key["process-".len()..].to_owned());
            processes.ended.extend(key);
            processes.ends.extend(end);
        } else if name.ends_with(".json") {
            processes.headers.extend(read_json(path)?);
        }
    }
    Ok(())
}

/// The patched modules that a process has loaded. `key`: the process, as in the names of its files.
pub(crate) fn modules_of(folder: &Path, key: &str) -> Result<Vec<ModuleStatus>> {
    let mut modules = process_of(folder, key)?.map_or_else(Vec::new, |h| h.modules);
    let listing =
        std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for path in listing.filter_map(|e| Some(e.ok()?.path())) {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if module_file_process(name) == Some(key) {
            modules.extend(read_json::<ModuleStatus>(&path)?);
        }
    }
    Ok(modules)
}

/// The header of a process; `None`: it is not written yet.
pub(crate) fn process_of(folder: &Path, key: &str) -> Result<Option<ProcessHeader>> {
    read_json(&folder.join(format!("process-{key}.json")))
}

/// What recording costs a process; `None`: it has not measured that yet.
pub(crate) fn costs_of(folder: &Path, key: &str) -> Result<Option<ProcessCosts>> {
    let path = folder.join(costs_file(key));
    if !path.is_file() {
        return Ok(None);
    }
    read_json(&path)
}

/// The event sets that a process knows by now, by number.
pub(crate) fn sets_of(folder: &Path, key: &str) -> Result<Vec<(u8, Vec<EventStatus>)>> {
    let mut sets = Vec::new();
    if let Some(header) = process_of(folder, key)? {
        sets.push((0, header.events));
        let further = header.sets.into_iter();
        sets.extend(further.filter_map(|s| Some((s.set.try_into().ok()?, s.events))));
    }
    for set in 1..MAX_SETS as u8 {
        let path = folder.join(events_file(key, u32::from(set)));
        if path.is_file()
            && let Some(further) = read_json::<EventSet>(&path)?
        {
            sets.push((set, further.events));
        }
    }
    Ok(sets)
}

/// A JSON file; `None` where the process was killed before the file had contents.
pub(super) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = input::map(path)?;
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text).with_context(|| {
        format!("{} is damaged", path.display())
    })?))
}
