//! What a run does beside its output: files that it changes, libraries that it has loaded, and its threads.

use chrono::{DateTime, Local};
use ompfuse_account::model::{ChangedFile, FileState};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Folders with more entries are not looked through.
pub(super) const MOST_ENTRIES: usize = 20_000;
/// Files that are named.
const NAMED: usize = 4;

/// The files of a folder and of those in it, by their paths from there.
#[derive(Debug, Clone, Default)]
pub(super) struct Listing {
    folder: PathBuf,
    files: BTreeMap<PathBuf, FileState>,
}

impl Listing {
    /// `without`: folders that are left out. `None`: there are too many files.
    pub(super) fn of(folder: &Path, without: &[&Path]) -> Option<Listing> {
        let mut found = Listing {
            folder: folder.to_owned(),
            files: BTreeMap::new(),
        };
        let mut folders = vec![PathBuf::new()];
        let mut entries = 0;
        while let Some(next) = folders.pop() {
            // What can't be read the program may still write.
            let listing = std::fs::read_dir(folder.join(&next)).into_iter().flatten();
            for entry in listing.flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    return None;
                }
                let path = next.join(entry.file_name());
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                let is_left_out = || without.iter().any(|w| *w == folder.join(&path));
                if metadata.is_dir() && !is_left_out() {
                    folders.push(path);
                } else if metadata.is_file() {
                    found.files.insert(path, state(&metadata));
                }
            }
        }
        Some(found)
    }

    /// Their paths.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// The sum of their sizes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|file| file.bytes).sum()
    }

    /// What is new, other, or no longer there.
    pub(super) fn changes(&self, after: &Listing) -> Vec<ChangedFile> {
        let is_new = |path: &&PathBuf| !self.files.contains_key(*path);
        let names = self.files.keys().chain(after.files.keys().filter(is_new));
        let states = names.map(|name| ChangedFile {
            path: name.to_string_lossy().into_owned(),
            before: self.files.get(name).copied(),
            after: after.files.get(name).copied(),
        });
        let mut changed: Vec<ChangedFile> = states.filter(|c| c.before != c.after).collect();
        let own = own_streams();
        changed.retain(|file| !own.contains(&self.folder.join(&file.path)));
        changed.sort_by(|a, b| a.path.cmp(&b.path));
        changed
    }
}

/// Files that this command's own output goes to, and so that of all that it starts.
fn own_streams() -> Vec<PathBuf> {
    let links = [1, 2].map(|number| std::fs::read_link(format!("/proc/self/fd/{number}")));
    links.into_iter().flatten().collect()
}

fn state(metadata: &std::fs::Metadata) -> FileState {
    let since = metadata.modified().ok();
    let since = since.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    FileState {
        bytes: metadata.len(),
        modified_s: since.map_or(0.0, |s| s.as_secs_f64()),
    }
}

/// What was seen of a process while it ran.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Files that it had open for writing, beside its standard streams.
    pub(super) written: BTreeSet<PathBuf>,
    /// Names of the files in its memory.
    pub(super) libraries: BTreeSet<String>,
    /// The most threads at once.
    pub(super) threads: u64,
}

impl Seen {
    /// Looks at a process. What it has no longer, or not yet, is not seen.
    pub(super) fn look(&mut self, process: u32) {
        self.written.extend(opened(process));
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default()
        };
        let maps = read("maps");
        let paths = maps.lines().filter_map(|line| line.split_once('/'));
        let names = paths.filter_map(|(_, path)| path.rsplit('/').next());
        for name in names {
            if !self.libraries.contains(name) {
                self.libraries.insert(name.to_owned());
            }
        }
        let status = read("status");
        let threads = status.lines().find_map(|l| l.strip_prefix("Threads:"));
        let threads = threads.and_then(|n| n.trim().parse().ok());
        self.threads = self.threads.max(threads.unwrap_or(0));
    }

    /// Adds the files that it had open in or below this folder, or elsewhere, to those that are known to be changed.
    pub(super) fn add_to(&self, changed: &mut Vec<ChangedFile>, folder: &Path) {
        let own = own_streams();
        for path in self.written.iter().filter(|path| !own.contains(path)) {
            let path = path.strip_prefix(folder).unwrap_or(path);
            let path = path.to_string_lossy();
            if changed.iter().all(|file| file.path != path) {
                changed.push(ChangedFile {
                    path: path.into_owned(),
                    before: None,
                    after: None,
                });
            }
        }
    }
}

/// Names files that runs change; `None`: there are none.
pub(super) fn told(changed: &[ChangedFile]) -> Option<String> {
    let named = changed.iter().take(NAMED).map(|file| {
        let how = match (file.before, file.after) {
            (None, Some(after)) => format!("new, {}", of(after)),
            (Some(before), Some(after)) => format!("{}, before {}", of(after), of(before)),
            (Some(_), None) => "removed".to_owned(),
            (None, None) => "open for writing".to_owned(),
        };
        format!("{} ({how})", file.path)
    });
    let named: Vec<String> = named.collect();
    let more = match changed.len().saturating_sub(NAMED) {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    (!changed.is_empty()).then(|| format!("{}{more}", named.join(", ")))
}

fn of(state: FileState) -> String {
    let at = DateTime::from_timestamp(state.modified_s as i64, 0);
    let at = at.map(|at| at.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S"));
    let at = at.map_or(String::new(), |at| format!(" of {at}"));
    match state.bytes {
        1 => format!("1 byte{at}"),
        n => format!("{n} bytes{at}"),
    }
}

/// Files that a process has open for writing now, beside its standard streams.
fn opened(process: u32) -> Vec<PathBuf> {
    let folder = PathBuf::from(format!("/proc/{process}/fd"));
    let listing = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let numbers = listing.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let for_writing = numbers.filter(|&number| {
        let info = format!("/proc/{process}/fdinfo/{number}");
        let info = std::fs::read_to_string(info).unwrap_or_default();
        let flags = info.lines().find_map(|l| l.strip_prefix("flags:"));
        let flags = flags.and_then(|f| u32::from_str_radix(f.trim(), 8).ok());
        number > 2 && flags.is_some_and(|flags| flags & 3 != 0)
    });
    let paths = for_writing.filter_map(|n| std::fs::read_link(folder.join(n.to_string())).ok());
    paths
        .filter(|path| path.is_file() && !path.starts_with("/dev"))
        .collect()
}
