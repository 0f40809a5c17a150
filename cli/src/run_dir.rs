//! Folders for runs, and the header that each gets.

mod links;
pub(crate) mod origin;
mod placeholders;
mod processes;
mod program;
pub(crate) mod ranks;

pub(crate) use placeholders::{Output, OutputParser};
use processes::read_json;
pub(crate) use processes::{
    Processes, costs_of, modules_of, process_of, read_processes, readable_processes, sets_of,
};
pub(crate) use program::check_program;

use crate::atomic;
use crate::launch::{self, Ended};
use crate::processors;
use anyhow::{Context, Result, bail};
use ompfuse_format::run::{BEGUN_FILE, Exit, RUN_FILE, RankEnd, RunHeader, RunModule, Unpatched};
use ompfuse_format::samples::Sampling;
use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
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
    pub(crate) unpatched: Vec<Unpatched>,
    pub(crate) sampling: Option<Sampling>,
    /// The number of threads that was set for it.
    pub(crate) threads: Option<u32>,
    /// The processes, if they ran already; empty: it was started, and there are no records.
    pub(crate) attached_to: Option<Vec<u32>>,
    /// What their files name is not to be opened.
    pub(crate) is_foreign: bool,
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
        environment: match about.attached_to.as_deref() {
            Some(&[pid, ..]) => openmp_environment(environment_of(pid).into_iter(), None),
            _ => openmp_environment(std::env::vars_os(), about.threads),
        },
        events: about.events.clone(),
        region_events: about.region_events.clone(),
        processors: processors::available(),
        quota: processors::quota_of_group(),
        stolen_s: ended.and_then(|e| e.used.stolen_s),
        others_s: ended.and_then(|e| e.used.others_s),
        throttled_s: ended.and_then(|e| e.used.throttled_s),
        pace_s: ended.map(|e| e.pace_s),
        started: ended.map_or_else(launch::now, |e| e.started),
        duration_s: ended.map_or(0.0, |e| e.duration_s),
        exit: ended.map_or(Exit::Unknown, |e| e.exit),
        switch_cost_ns: about.switch_cost_ns,
        recorded: about.recorded.clone(),
        ranks: about.ranks.clone(),
        ended_at_bytes: about.ended_at_bytes,
        fixed_addresses: ended.is_some_and(|e| e.is_steady),
        sampling: about.sampling.clone(),
        attached_to: about.attached_to.clone(),
        is_foreign: about.is_foreign,
        modules: program.modules.clone(),
        unpatched: about.unpatched.clone(),
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

/// The variables that a process began with, if it may be asked.
fn environment_of(pid: u32) -> Vec<(OsString, OsString)> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let text = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
    let variables = bytes.split(|b| *b == 0).filter_map(|variable| {
        let at = variable.iter().position(|b| *b == b'=')?;
        Some((text(&variable[..at]), text(&variable[at + 1..])))
    });
    variables.collect()
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
            is_steady: false,
            exit: Exit::Signal(9),
            started: 1.0,
            duration_s: 2.0,
            pace_s: [1e-3, 1e-3],
            used: processors::Used::default(),
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
            r#"{"end":{"tsc":1,"ns":2},"threads":3,"lost":4,"threads_lost":0,"sized_teams":true,"stopped":null}"#,
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
