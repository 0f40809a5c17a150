//! Folders for runs, and the header that each gets.

mod links;
mod placeholders;
mod program;

pub(crate) use placeholders::{Output, OutputParser};
pub(crate) use program::check_program;

use crate::atomic;
use crate::input;
use crate::launch::{self, Ended};
use crate::processors;
use anyhow::{Context, Result, bail};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::record::{HEADER_LEN, ThreadHeader};
use ompfuse_format::run::{
    BEGUN_FILE, EventSet, EventStatus, Exit, ModuleStatus, ProcessCosts, ProcessEnd, ProcessHeader,
    RUN_FILE, RankEnd, RunHeader, RunModule, costs_file, events_file, events_file_process,
    module_file_process,
};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the folder that is made where the user names none.
pub(crate) const DEFAULT_NAME: &str = "ompfuse-out";

/// The folder of the runs, made if it isn't there; absolute. Without a name it is always a new one.
pub(crate) fn make_output(wanted: Option<&Path>) -> Result<PathBuf> {
    make_output_in(Path::new(""), wanted)
}

fn make_output_in(base: &Path, wanted: Option<&Path>) -> Result<PathBuf> {
    let made = match wanted {
        Some(folder) => {
            links::refuse(folder)?;
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
            folder.to_owned()
        }
        None => make_numbered(|n| {
            base.join(if n == 1 {
                DEFAULT_NAME.into()
            } else {
                format!("{DEFAULT_NAME}-{n}")
            })
        })
        .context("cannot record here (name another folder with --output)")?,
    };
    let absolute = made
        .canonicalize()
        .with_context(|| format!("cannot find {}", made.display()))?;
    // It goes through an environment variable that the runtime library reads as text.
    if absolute.to_str().is_none() {
        bail!(
            "the path {} is not UTF-8; name another folder with -o",
            absolute.display()
        );
    }
    Ok(absolute)
}

/// Makes the next free `run-0001`, ...
pub(crate) fn make_run(output: &Path) -> Result<PathBuf> {
    make_numbered(|n| output.join(format!("run-{n:04}")))
}

/// What the name of a folder begins with that holds the runs with one number of threads.
const OF_THREADS: &str = "threads-";

/// The folder in an output folder for the runs with this number of threads, made if it isn't there.
pub(crate) fn make_of_threads(output: &Path, threads: u32) -> Result<PathBuf> {
    let folder = output.join(format!("{OF_THREADS}{threads}"));
    let made = DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder);
    made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
    Ok(folder)
}

/// The folders in an output folder that hold the runs with one number of threads each, in the order of the numbers.
pub(crate) fn of_threads(output: &Path) -> Vec<PathBuf> {
    let listing = std::fs::read_dir(output).into_iter().flatten();
    let found = listing.filter_map(|entry| {
        let entry = entry.ok()?;
        let name = entry.file_name().into_string().ok()?;
        let threads: u32 = name.strip_prefix(OF_THREADS)?.parse().ok()?;
        entry.path().is_dir().then(|| (threads, entry.path()))
    });
    let mut found: Vec<(u32, PathBuf)> = found.collect();
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Makes the first of these folders that doesn't exist.
fn make_numbered(name: impl Fn(u32) -> PathBuf) -> Result<PathBuf> {
    for n in 1.. {
        let folder = name(n);
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => {
                return Err(e)
                    .with_context(|| format!("cannot make the folder {}", folder.display()));
            }
        }
    }
    bail!("no number is left for another folder")
}

/// What is the same in all runs of a program.
pub(crate) struct Program<'a> {
    /// As the user named it.
    pub(crate) name: &'a OsStr,
    /// Its arguments.
    pub(crate) args: &'a [OsString],
    /// The patched modules.
    pub(crate) modules: Vec<RunModule>,
}

/// What is to be said of one run; see [`RunHeader`].
#[derive(Debug, Default)]
pub(crate) struct About {
    pub(crate) events: Vec<String>,
    pub(crate) region_events: Vec<String>,
    pub(crate) switch_cost_ns: Option<u64>,
    pub(crate) recorded: Option<Vec<[f64; 2]>>,
    pub(crate) ranks: Vec<RankEnd>,
    pub(crate) ended_at_bytes: Option<u64>,
    /// The number of threads that was set for it.
    pub(crate) threads: Option<u32>,
}

/// Writes `run.json`, or, as long as the program has not ended, `begun.json`.
pub(crate) fn write_header(
    folder: &Path,
    program: &Program<'_>,
    about: &About,
    ended: Option<&Ended>,
) -> Result<()> {
    let uname = rustix::system::uname();
    let header = RunHeader {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program: program.name.to_string_lossy().into_owned(),
        args: program
            .args
            .iter()
            .map(|a| a.to_string_lossy().into_owned())
            .collect(),
        host: uname.nodename().to_string_lossy().into_owned(),
        cpus: cpus(),
        kernel: uname.release().to_string_lossy().into_owned(),
        processor: processors::model(),
        cache_bytes: processors::cache_bytes(),
        environment: openmp_environment(std::env::vars_os(), about.threads),
        events: about.events.clone(),
        region_events: about.region_events.clone(),
        processors: processors::available(),
        quota: processors::quota_of_group(),
        stolen_s: ended.and_then(|e| e.stolen_s),
        started: ended.map_or_else(launch::now, |e| e.started),
        duration_s: ended.map_or(0.0, |e| e.duration_s),
        exit: ended.map_or(Exit::Unknown, |e| e.exit),
        switch_cost_ns: about.switch_cost_ns,
        recorded: about.recorded.clone(),
        ranks: about.ranks.clone(),
        ended_at_bytes: about.ended_at_bytes,
        modules: program.modules.clone(),
    };
    let json = serde_json::to_vec(&header).context("cannot encode the run's header")?;
    let begun = folder.join(BEGUN_FILE);
    if ended.is_none() {
        return atomic::write(&begun, &json, 0o600);
    }
    let file = folder.join(RUN_FILE);
    let written = atomic::write(&file, &json, 0o600);
    let _ = std::fs::remove_file(begun); // whoever finds both goes by the other
    // On a full disk there is room for one of them.
    written.or_else(|_| atomic::write(&file, &json, 0o600))
}

/// Logical processors that are online.
fn cpus() -> u32 {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let available = || std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
    online
        .and_then(|list| processors::count_list(list.trim()))
        .unwrap_or_else(available)
}

/// Variable with the number of threads of a parallel region.
pub(crate) const NUM_THREADS: &str = "OMP_NUM_THREADS";

/// The variables that decide how OpenMP behaves. `threads`: what is set for the program instead of what is in the environment.
fn openmp_environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    threads: Option<u32>,
) -> Vec<(String, String)> {
    let text = |s: OsString| s.to_string_lossy().into_owned();
    let is_openmp = |name: &str| {
        ["OMP_", "KMP_", "GOMP_"]
            .iter()
            .any(|p| name.starts_with(p))
    };
    let mut found: Vec<_> = all
        .map(|(k, v)| (text(k), text(v)))
        .filter(|(k, _)| is_openmp(k) && (threads.is_none() || k != NUM_THREADS))
        .chain(threads.map(|n| (NUM_THREADS.to_owned(), n.to_string())))
        .collect();
    found.sort();
    found
}

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
fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = input::map(path)?;
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text).with_context(|| {
        format!("{} is damaged", path.display())
    })?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ompfuse_format::run::Exit;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn folders_are_numbered_and_private() {
        let base = tempfile::tempdir().unwrap();
        let named = |p: &Path| p.file_name().unwrap().to_str().unwrap().to_owned();
        let first = make_output_in(base.path(), None).unwrap();
        assert_eq!(named(&first), "ompfuse-out");
        assert_eq!(first.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(
            named(&make_output_in(base.path(), None).unwrap()),
            "ompfuse-out-2"
        );
        let wanted = base.path().join("a/b");
        let output = make_output_in(base.path(), Some(&wanted)).unwrap();
        assert_eq!(make_output_in(base.path(), Some(&wanted)).unwrap(), output);
        assert_eq!(named(&make_run(&output).unwrap()), "run-0001");
        assert_eq!(named(&make_run(&output).unwrap()), "run-0002");
        assert!(make_run(&base.path().join("none")).is_err());
    }

    #[test]
    fn headers_and_process_files_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            name: OsStr::new("./a.out"),
            args: &["-n".into()],
            modules: Vec::new(),
        };
        let ended = Ended {
            exit: Exit::Signal(9),
            started: 1.0,
            duration_s: 2.0,
            stolen_s: None,
            interrupted: None,
        };
        write_header(
            folder.path(),
            &program,
            &About {
                events: vec!["cycles".to_owned()],
                switch_cost_ns: Some(7),
                ..About::default()
            },
            Some(&ended),
        )
        .unwrap();
        let header: RunHeader = read_json(&folder.path().join(RUN_FILE)).unwrap().unwrap();
        assert_eq!(
            (header.program.as_str(), header.events[0].as_str()),
            ("./a.out", "cycles")
        );
        assert!(header.cpus > 0 && header.exit == Exit::Signal(9));
        std::fs::write(folder.path().join("process-7.json"), "").unwrap();
        std::fs::write(
            folder.path().join("process-7.end.json"),
            r#"{"end":{"tsc":1,"ns":2},"threads":3,"lost":4,"stopped":null}"#,
        )
        .unwrap();
        let processes = read_processes(folder.path()).unwrap();
        assert_eq!((processes.headers.len(), processes.lost), (0, 4));
        std::fs::write(folder.path().join("process-8.json"), "{").unwrap();
        assert!(
            format!("{:#}", read_processes(folder.path()).unwrap_err())
                .contains("process-8.json is damaged")
        );
    }

    #[test]
    fn variables_of_openmp_are_found() {
        let variables = [
            ("OMP_NUM_THREADS", "2"),
            ("HOME", "/"),
            ("GOMP_SPINCOUNT", "0"),
        ];
        let all = || variables.into_iter().map(|(k, v)| (k.into(), v.into()));
        let found = openmp_environment(all(), None);
        assert_eq!(
            found,
            [
                ("GOMP_SPINCOUNT".into(), "0".into()),
                ("OMP_NUM_THREADS".to_owned(), "2".to_owned())
            ]
        );
        let set = openmp_environment(all(), Some(8));
        assert_eq!(set[1], (NUM_THREADS.to_owned(), "8".to_owned()));
    }
}
