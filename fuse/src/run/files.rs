//! The files of a run folder, sorted by process.

use super::contexts::{ContextNames, NAMES_FILE};
use super::health::Problem;
use ompfuse_format::record::{RecordError, ThreadFile, ThreadHeader, sums};
use ompfuse_format::run::{
    EventSet, ModuleStatus, ProcessCosts, ProcessEnd, ProcessHeader, RUN_FILE, RunHeader,
    costs_file_process, events_file_process, module_file_process,
};
use std::collections::BTreeMap;

/// A folder that holds no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// No header.
    #[error("no {RUN_FILE}: this is not a run folder")]
    NoHeader,
    /// A header that can't be read.
    #[error("{RUN_FILE} can't be read: {0}")]
    Header(#[source] serde_json::Error),
}

/// A thread's record file.
#[derive(Debug, Clone)]
pub struct ThreadBytes<'a> {
    /// Name in the run folder, for messages.
    pub name: String,
    /// Contents.
    pub bytes: &'a [u8],
}

/// What one process left.
#[derive(Debug, Clone)]
pub struct ProcessFiles<'a> {
    /// Written when recording began.
    pub header: ProcessHeader,
    /// What recording cost it, as far as that is known.
    pub costs: ProcessCosts,
    /// Written at an orderly exit.
    pub end: Option<ProcessEnd>,
    /// The record files of its threads.
    pub threads: Vec<ThreadBytes<'a>>,
}

/// The contents of a run folder.
#[derive(Debug, Clone)]
pub struct RunFiles<'a> {
    /// The run's header.
    pub header: RunHeader,
    /// Its processes.
    pub processes: Vec<ProcessFiles<'a>>,
    /// What was found out of the addresses of calling contexts.
    pub names: Option<ContextNames>,
    /// Files that could not be used.
    pub problems: Vec<Problem>,
}

impl<'a> RunFiles<'a> {
    /// Whether its threads have kept sums, and recorded nothing one by one.
    pub fn has_sums_only(&self) -> bool {
        let mut threads = self.processes.iter().flat_map(|p| &p.threads);
        threads.any(|thread| {
            ThreadHeader::parse(thread.bytes).is_ok_and(|header| header.sums == sums::INSTEAD)
        })
    }

    /// Sorts the files of a run folder, given as names and contents in any order. Files with other names than a run's
    /// are passed over.
    ///
    /// # Errors
    /// [`RunError`] without a readable run header.
    pub fn from_folder<N: AsRef<str>>(
        files: impl IntoIterator<Item = (N, &'a [u8])>,
    ) -> Result<RunFiles<'a>, RunError> {
        let mut files: Vec<(N, &'a [u8])> = files.into_iter().collect();
        files.sort_by(|a, b| a.0.as_ref().cmp(b.0.as_ref()));
        let (mut header, mut names) = (None, None);
        let mut problems = Vec::new();
        let (mut begins, mut ends, mut threads) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let mut late: Vec<(&str, ModuleStatus)> = Vec::new();
        let mut sets: Vec<(&str, EventSet)> = Vec::new();
        let mut costs: BTreeMap<&str, ProcessCosts> = BTreeMap::new();
        for (name, bytes) in &files {
            let name = name.as_ref();
            let mut broken = |error: serde_json::Error| {
                problems.push(Problem::Malformed {
                    file: name.to_owned(),
                    error: error.to_string(),
                });
            };
            if name == RUN_FILE {
                header =
                    Some(serde_json::from_slice::<RunHeader>(bytes).map_err(RunError::Header)?);
            } else if name == NAMES_FILE {
                match serde_json::from_slice::<ContextNames>(bytes) {
                    Ok(known) => names = Some(known),
                    Err(error) => broken(error),
                }
            } else if let Some(key) = key_in(name, ".end.json") {
                match serde_json::from_slice::<ProcessEnd>(bytes) {
                    Ok(end) => drop(ends.insert(key, end)),
                    Err(_) if bytes.is_empty() => {} // killed before it was written
                    Err(error) => broken(error),
                }
            } else if let Some(key) = key_in(name, ".json") {
                match serde_json::from_slice::<ProcessHeader>(bytes) {
                    Ok(begin) => drop(begins.insert(key, begin)),
                    Err(error) => broken(error),
                }
            } else if let Some(key) = module_file_process(name).filter(|k| is_key(k)) {
                match serde_json::from_slice::<ModuleStatus>(bytes) {
                    Ok(module) => late.push((key, module)),
                    Err(error) => broken(error),
                }
            } else if let Some(key) = events_file_process(name).filter(|k| is_key(k)) {
                match serde_json::from_slice::<EventSet>(bytes) {
                    Ok(set) => sets.push((key, set)),
                    Err(error) => broken(error),
                }
            } else if let Some(key) = costs_file_process(name).filter(|k| is_key(k)) {
                match serde_json::from_slice::<ProcessCosts>(bytes) {
                    Ok(known) => drop(costs.insert(key, known)),
                    Err(_) if bytes.is_empty() => {} // killed before it was written
                    Err(error) => broken(error),
                }
            } else if name.ends_with(".rec") && !ThreadHeader::is_missing(bytes) {
                threads.push((name, *bytes));
            }
        }
        let mut processes: BTreeMap<String, ProcessFiles<'a>> = begins
            .into_iter()
            .map(|(key, header)| {
                let end: Option<ProcessEnd> = ends.remove(key);
                let older = || end.as_ref().map(|e| e.costs.clone());
                (
                    key.to_owned(),
                    ProcessFiles {
                        header,
                        costs: costs.remove(key).or_else(older).unwrap_or_default(),
                        end,
                        threads: vec![],
                    },
                )
            })
            .collect();
        // A process that only says why it is not recorded.
        for (key, end) in ends {
            let pid = key.split('.').next().and_then(|pid| pid.parse().ok());
            if let (Some(pid), Some(reason)) = (pid, end.stopped) {
                problems.push(Problem::Stopped { pid, reason });
            }
        }
        for (key, module) in late {
            if let Some(process) = processes.get_mut(key) {
                process.header.modules.push(module);
            }
        }
        for (key, set) in sets {
            if let Some(process) = processes.get_mut(key) {
                process.header.sets.push(set);
            }
        }
        for (name, bytes) in threads {
            let key = match key_of(name, bytes) {
                Ok(key) => key,
                Err(error) => {
                    problems.push(Problem::Malformed {
                        file: name.to_owned(),
                        error: error.to_string(),
                    });
                    continue;
                }
            };
            match processes.get_mut(&key) {
                Some(process) => process.threads.push(ThreadBytes {
                    name: name.to_owned(),
                    bytes,
                }),
                None => problems.push(Problem::NoProcess {
                    file: name.to_owned(),
                    process: key,
                }),
            }
        }
        Ok(RunFiles {
            header: header.ok_or(RunError::NoHeader)?,
            processes: processes.into_values().collect(),
            names,
            problems,
        })
    }
}

/// What tells a process apart from the others in its folder: its number, and behind a dot how many had that number
/// before (a process that replaced its program, or one with a number that was used again).
fn key_in<'n>(name: &'n str, ending: &str) -> Option<&'n str> {
    let key = name.strip_prefix("process-")?.strip_suffix(ending)?;
    is_key(key).then_some(key)
}

fn is_key(key: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match key.split_once('.') {
        Some((pid, again)) => number(pid) && number(again),
        None => number(key),
    }
}

/// The process of a record file: by its name `<key>-<index>.rec`, or else by its header.
fn key_of(name: &str, bytes: &[u8]) -> Result<String, RecordError> {
    match name.split_once('-') {
        Some((key, _)) if is_key(key) => Ok(key.to_owned()),
        _ => ThreadFile::parse(bytes).map(|file| file.header.pid.to_string()),
    }
}
