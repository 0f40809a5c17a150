//! The files of a run folder, sorted by process.

use super::contexts::{ContextNames, NAMES_FILE};
use super::health::Problem;
use super::places::{PLACES_FILE, SampledPlaces};
use ompfuse_format::record::{RecordError, ThreadFile, ThreadHeader, sums};
use ompfuse_format::run::{
    EventSet, ModuleStatus, ProcessCosts, ProcessEnd, ProcessHeader, RUN_FILE, RunHeader,
    costs_file_process, events_file_process, module_file_process,
};
use ompfuse_format::samples::ENDING;
use serde::de::DeserializeOwned;
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
    /// Another version has recorded it.
    #[error(transparent)]
    Version(RecordError),
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
    /// Files of samples, if they are wanted.
    pub samples: Vec<ThreadBytes<'a>>,
    /// What was found out of the addresses of samples.
    pub places: Option<SampledPlaces>,
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

    /// Bytes of records, all threads together.
    pub fn bytes(&self) -> usize {
        let threads = self.processes.iter().flat_map(|p| &p.threads);
        threads.map(|thread| thread.bytes.len()).sum()
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
        let mut sorted = Sorted::default();
        for (name, bytes) in &files {
            sorted.add(name.as_ref(), bytes)?;
        }
        sorted.into_files()
    }
}

/// The files of a run folder by kind; those of one process by its key ([`key_in`]).
#[derive(Default)]
struct Sorted<'n, 'a> {
    header: Option<RunHeader>,
    names: Option<ContextNames>,
    samples: Vec<ThreadBytes<'a>>,
    places: Option<SampledPlaces>,
    begins: BTreeMap<&'n str, ProcessHeader>,
    ends: BTreeMap<&'n str, ProcessEnd>,
    costs: BTreeMap<&'n str, ProcessCosts>,
    /// Modules that were loaded after recording had begun.
    modules: Vec<(&'n str, ModuleStatus)>,
    /// Event sets that were chosen after recording had begun.
    sets: Vec<(&'n str, EventSet)>,
    threads: Vec<(&'n str, &'a [u8])>,
    problems: Vec<Problem>,
}

impl<'n, 'a> Sorted<'n, 'a> {
    fn add(&mut self, name: &'n str, bytes: &'a [u8]) -> Result<(), RunError> {
        if name == RUN_FILE {
            self.header = Some(serde_json::from_slice(bytes).map_err(RunError::Header)?);
        } else if name == NAMES_FILE {
            self.names = self.read(name, bytes).or(self.names.take());
        } else if name == PLACES_FILE {
            self.places = self.read(name, bytes).or(self.places.take());
        } else if name.ends_with(ENDING) {
            self.samples.push(ThreadBytes {
                name: name.to_owned(),
                bytes,
            });
        } else if let Some(key) = key_in(name, ".end.json") {
            let end = self.read_last(name, bytes);
            self.ends.extend(end.map(|end| (key, end)));
        } else if let Some(key) = key_in(name, ".json") {
            let begin = self.read(name, bytes);
            self.begins.extend(begin.map(|begin| (key, begin)));
        } else if let Some(key) = module_file_process(name).filter(|k| is_key(k)) {
            let module = self.read(name, bytes);
            self.modules.extend(module.map(|module| (key, module)));
        } else if let Some(key) = events_file_process(name).filter(|k| is_key(k)) {
            let set = self.read(name, bytes);
            self.sets.extend(set.map(|set| (key, set)));
        } else if let Some(key) = costs_file_process(name).filter(|k| is_key(k)) {
            let costs = self.read_last(name, bytes);
            self.costs.extend(costs.map(|costs| (key, costs)));
        } else if name.ends_with(".rec") && !ThreadHeader::is_missing(bytes) {
            self.threads.push((name, bytes));
        }
        Ok(())
    }

    fn read<T: DeserializeOwned>(&mut self, name: &str, bytes: &[u8]) -> Option<T> {
        let read = serde_json::from_slice(bytes);
        read.map_err(|error| self.broken(name, &error)).ok()
    }

    /// As [`Sorted::read`], of what a process writes at its end. It is empty if the process was killed before.
    fn read_last<T: DeserializeOwned>(&mut self, name: &str, bytes: &[u8]) -> Option<T> {
        if bytes.is_empty() {
            return None;
        }
        self.read(name, bytes)
    }

    fn broken(&mut self, name: &str, error: &impl ToString) {
        self.problems.push(Problem::Malformed {
            file: name.to_owned(),
            error: error.to_string(),
        });
    }

    /// Whether another version has recorded all of it. A single such file is damaged.
    fn check_version(&self) -> Result<(), RunError> {
        let mut others = vec![];
        for (_, bytes) in &self.threads {
            match ThreadHeader::parse(bytes) {
                Err(error @ RecordError::Version(_)) => others.push(error),
                _ => return Ok(()),
            }
        }
        others.pop().map_or(Ok(()), |e| Err(RunError::Version(e)))
    }

    fn into_files(mut self) -> Result<RunFiles<'a>, RunError> {
        self.check_version()?;
        let mut processes = BTreeMap::new();
        for (key, header) in std::mem::take(&mut self.begins) {
            let end = self.ends.remove(key);
            let files = ProcessFiles {
                header,
                costs: self.costs.remove(key).unwrap_or_default(),
                end,
                threads: vec![],
            };
            processes.insert(key.to_owned(), files);
        }
        // A process that only says why it is not recorded.
        for (key, end) in std::mem::take(&mut self.ends) {
            let pid = key.split('.').next().and_then(|pid| pid.parse().ok());
            if let (Some(pid), Some(reason)) = (pid, end.stopped) {
                self.problems.push(Problem::Stopped { pid, reason });
            }
        }
        for (key, module) in std::mem::take(&mut self.modules) {
            if let Some(process) = processes.get_mut(key) {
                process.header.modules.push(module);
            }
        }
        for (key, set) in std::mem::take(&mut self.sets) {
            if let Some(process) = processes.get_mut(key) {
                process.header.sets.push(set);
            }
        }
        self.add_threads(&mut processes);
        Ok(RunFiles {
            header: self.header.ok_or(RunError::NoHeader)?,
            processes: processes.into_values().collect(),
            names: self.names,
            samples: self.samples,
            places: self.places,
            problems: self.problems,
        })
    }

    /// Gives each process its threads' records.
    fn add_threads(&mut self, processes: &mut BTreeMap<String, ProcessFiles<'a>>) {
        for (name, bytes) in std::mem::take(&mut self.threads) {
            let key = match key_of(name, bytes) {
                Ok(key) => key,
                Err(error) => {
                    self.broken(name, &error);
                    continue;
                }
            };
            match processes.get_mut(&key) {
                Some(process) => process.threads.push(ThreadBytes {
                    name: name.to_owned(),
                    bytes,
                }),
                None => self.problems.push(Problem::NoProcess {
                    file: name.to_owned(),
                    process: key,
                }),
            }
        }
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
