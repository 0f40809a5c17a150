//! Samples without records: of processes that run already, and of a program that can't be patched. Nothing of it is stopped, written or
//! changed.

use crate::debug::DebugArgs;
use crate::interrupt::{self, Hold};
use crate::launch::{self, Ended, Launch, Stdout};
use crate::loader::OtherLibrary;
use crate::privileges::Privileged;
use crate::recording::{self, Recording, RecordingArgs};
use crate::run_dir::{self, About, Program};
use crate::sampling::places::{self, Names};
use crate::sampling::{self, Files, Rate, Sampler};
use crate::{lines, load, output, processors};
use anyhow::{Context, Result, bail};
use ompfuse_account::sampled::SampledReport;
use ompfuse_format::run::Exit;
use ompfuse_format::samples::{ENDING, Sampling};
use ompfuse_progress::Progress;
use ompfuse_rewriter::scan::ScanError;
use ompfuse_rewriter::verify::VerifyError;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// So often it is asked whether it is time to end.
const EVERY: Duration = Duration::from_millis(20);

/// What there is of a program.
pub(crate) enum Recorded {
    /// Records, and samples beside them.
    Records(Recording),
    /// Samples only: the run's folder, and the status to hand on.
    Samples(PathBuf, u8),
}

/// Records a program; or looks at a process that runs already, or at a program that can't be patched, which is said.
///
/// # Errors
/// As [`recording::record`]. What is known of where the program was is shown.
pub(crate) fn record(args: &RecordingArgs, stdout: Stdout) -> Result<Recorded> {
    let pids = args.pids();
    if !pids.is_empty() {
        return look(&pids, args).map(|run| Recorded::Samples(run, 0));
    }
    if args.is_sampled_only() {
        let cannot = "cannot sample the program";
        may_sample(args).context(cannot)?;
        let (run, status) = run(args, &stdout)?;
        return Ok(Recorded::Samples(run, status));
    }
    match recording::record(args, stdout.clone()) {
        Err(error) if is_meant(&error, args) => {
            let error = crate::one_line(&error);
            output::note(format_args!("{error}; so it is sampled only"));
            let (run, status) = run(args, &stdout)?;
            Ok(Recorded::Samples(run, status))
        }
        recorded => Ok(Recorded::Records(
            recorded.inspect_err(lines::show_instead)?,
        )),
    }
}

/// Whether samples are wanted, and the kernel allows them.
fn may_sample(args: &RecordingArgs) -> Result<Rate> {
    if let Some(refusal) = sampling::refusal() {
        bail!("{}", refusal.reason);
    }
    let rate = args.sampling();
    if rate.per_second().is_none() {
        bail!("it needs samples, which --sampling off excludes");
    }
    Ok(rate)
}

/// The program of a process that may be looked at.
///
/// # Errors
/// If there is none, or if it is another user's.
pub(crate) fn program_of(pid: u32) -> Result<PathBuf> {
    let exe = match std::fs::read_link(format!("/proc/{pid}/exe")) {
        Ok(exe) => exe,
        Err(e) if e.kind() == ErrorKind::NotFound => bail!("there is no process {pid}"),
        Err(e) if e.kind() == ErrorKind::PermissionDenied && is_root() => {
            bail!(
                "process {pid} may not be looked at: the kernel refuses it to this command (CAP_SYS_PTRACE)"
            )
        }
        Err(e) if e.kind() == ErrorKind::PermissionDenied => {
            bail!("process {pid} is another user's; that user and root may look at it")
        }
        Err(e) => return Err(e).with_context(|| format!("process {pid} tells nothing")),
    };
    Ok(exe)
}

/// Looks at processes until they end, the time is over, or this command is to end. Returns the run's folder.
fn look(pids: &[u32], args: &RecordingArgs) -> Result<PathBuf> {
    let cannot = "cannot look at it";
    let programs = pids.iter().map(|&pid| program_of(pid));
    let programs: Vec<PathBuf> = programs.collect::<Result<_>>()?;
    let files = Files::of(pids)?;
    let rate = args.sampling().per_second();
    let rate = rate.context("it needs samples, which --sampling off excludes");
    let rate = rate.context(cannot)?;
    let line = std::fs::read(format!("/proc/{}/cmdline", pids[0])).unwrap_or_default();
    let words = line.split(|b| *b == 0).filter(|word| !word.is_empty());
    let words: Vec<OsString> = words.map(|w| OsStr::from_bytes(w).to_owned()).collect();
    let hold = interrupt::hold();
    let (folder, is_new) = args.output_folder()?;
    let run = run_dir::make_run(&folder)?;
    let samplers = pids.iter().map(|&pid| {
        let sampler = Sampler::of_running(rate, &run, pid, &files);
        sampler.with_context(|| format!("cannot look at process {pid}"))
    });
    let samplers = samplers
        .collect::<Result<Vec<Sampler>>>()
        .inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&run);
            if is_new {
                let _ = std::fs::remove_dir(&folder);
            }
        })?;
    let (started, begun) = (launch::now(), Instant::now());
    let length = args.length().map(Duration::from_nanos);
    let is_over = || length.is_some_and(|length| begun.elapsed() >= length);
    let are_there = || pids.iter().any(|&pid| is_there(pid));
    while !is_over() && hold.pending().is_none() && are_there() {
        std::thread::sleep(EVERY);
    }
    // Whoever interrupts it wants to see what it has.
    let _ = hold.take();
    let ended = ended(started, begun);
    let name = match words.first() {
        Some(word) if programs.iter().all(|exe| *exe == programs[0]) => word.clone(),
        None if programs.len() == 1 => programs[0].clone().into_os_string(),
        _ => names_of(&programs).into(),
    };
    let program = Program {
        name: &name,
        args: words.get(1..).unwrap_or_default(),
        modules: vec![],
    };
    let sampling = samplers.into_iter().map(Sampler::end);
    let sampling = sampling.reduce(Sampling::and);
    let of = Of {
        pids,
        programs: &programs,
        files,
    };
    end(&run, &program, sampling, of, &ended, args.debug())?;
    Ok(run)
}

/// What processes do now: by the samples in a run's folder, or by looking at them for so long.
///
/// # Errors
/// If there are no samples, and none can be had.
pub(crate) fn now(
    pids: &[u32],
    run: Option<&Path>,
    length: Duration,
    hold: &Hold,
) -> Result<SampledReport> {
    let programs = pids.iter().map(|&pid| program_of(pid));
    let programs: Vec<PathBuf> = programs.collect::<Result<_>>()?;
    let files = Files::of(pids)?;
    let folder = TempDir::with_prefix("ompfuse-")?;
    let folder = folder.path();
    let mut sampling = None;
    for file in run.map_or_else(|| Ok(vec![]), load::listed)? {
        let name = file.file_name().unwrap_or_default();
        if name.to_string_lossy().ends_with(ENDING) {
            std::fs::copy(&file, folder.join(name))?;
            sampling = Some(Sampling::default());
        }
    }
    let begun = Instant::now();
    if sampling.is_none() {
        let rate = Rate::default().per_second().unwrap_or_default();
        let looked = pids
            .iter()
            .map(|&pid| Sampler::of_running(rate, folder, pid, &files));
        let looked: Vec<Sampler> = looked.collect::<Result<_>>()?;
        let are_there = || pids.iter().any(|&pid| is_there(pid));
        while begun.elapsed() < length && hold.pending().is_none() && are_there() {
            std::thread::sleep(EVERY);
        }
        sampling = looked.into_iter().map(Sampler::end).reduce(Sampling::and);
    }
    let name: OsString = names_of(&programs).into();
    let program = Program {
        name: &name,
        args: &[],
        modules: vec![],
    };
    let ended = ended(launch::now(), begun);
    let debug = DebugArgs::default();
    let of = Of {
        pids,
        programs: &programs,
        files,
    };
    end(folder, &program, sampling, of, &ended, &debug)?;
    lines::sampled(folder, None, Progress::default())
}

/// The end of looking at processes, which go on.
fn ended(started: f64, begun: Instant) -> Ended {
    Ended {
        exit: Exit::Unknown,
        started,
        duration_s: begun.elapsed().as_secs_f64(),
        is_steady: false,
        used: processors::Used::default(),
        pace_s: [0.0; 2],
        interrupted: None,
    }
}

/// The names of programs, each once.
fn names_of(programs: &[PathBuf]) -> String {
    let names = programs.iter().filter_map(|exe| exe.file_name());
    let names: BTreeSet<String> = names.map(|n| n.to_string_lossy().into_owned()).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether an error says that a program can't be patched, and could be looked at.
fn is_meant(error: &anyhow::Error, args: &RecordingArgs) -> bool {
    let by_scan = |e: &ScanError| {
        use ScanError::{IncompleteRuntime, NamelessRuntime, Static};
        matches!(
            e,
            Static { .. } | NamelessRuntime { .. } | IncompleteRuntime { .. }
        )
    };
    // Of a program with other privileges the kernel lets only root take samples.
    let is_unpatchable = error.chain().any(|e| {
        e.is::<VerifyError>()
            || e.is::<OtherLibrary>()
            || e.is::<Privileged>() && is_root()
            || e.downcast_ref::<ScanError>().is_some_and(by_scan)
    });
    is_unpatchable && args.is_plain() && may_sample(args).is_ok()
}

/// Runs a program as it is, and looks at it by samples only. Returns the run's folder, and the status to hand on.
fn run(args: &RecordingArgs, stdout: &Stdout) -> Result<(PathBuf, u8)> {
    let (name, arguments) = args.command();
    let file = launch::find(name)?;
    let (folder, _) = args.output_folder()?;
    let run = run_dir::make_run(&folder)?;
    let mut sampler = Sampler::new(args.sampling(), &run);
    let ended = launch::run(Launch {
        file: &file,
        name,
        args: arguments,
        env: vec![],
        folder: None,
        is_steady: false,
        stdout,
        stdin: None,
        meanwhile: None,
        sampler: sampler.as_mut(),
    })?;
    let program = Program {
        name,
        args: arguments,
        modules: vec![],
    };
    let exe = file.canonicalize().unwrap_or(file);
    let of = Of {
        pids: &[],
        programs: &[exe],
        files: Files::default(),
    };
    let sampling = sampler.map(Sampler::end);
    end(&run, &program, sampling, of, &ended, args.debug())?;
    Ok((run, launch::status_of(ended.exit)))
}

/// What was looked at.
struct Of<'a> {
    /// Empty: a program that was started.
    pids: &'a [u32],
    programs: &'a [PathBuf],
    files: Files,
}

/// Writes what was found.
fn end(
    run: &Path,
    program: &Program<'_>,
    sampling: Option<Sampling>,
    of: Of<'_>,
    ended: &Ended,
    debug: &DebugArgs,
) -> Result<()> {
    let about = About {
        sampling,
        attached_to: Some(of.pids.to_vec()),
        is_foreign: of.files.is_foreign(),
        ..About::default()
    };
    run_dir::write_header(run, program, &about, Some(ended))?;
    let programs = of
        .programs
        .iter()
        .map(|exe| exe.to_string_lossy().into_owned());
    let programs: Vec<String> = programs.collect();
    let names = Names {
        modules: &[],
        debug,
        programs: &programs,
        files: &of.files,
    };
    if let Err(error) = places::name(run, names) {
        let error = crate::one_line(&error);
        output::note(format_args!("samples have no names: {error}"));
    }
    Ok(())
}

/// Whether it has not ended: whoever has started it may not have asked for its end yet.
pub(crate) fn is_there(pid: u32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let state = |stat: &String| Some(stat.rsplit_once(") ")?.1.chars().next()? != 'Z');
    stat.ok().as_ref().and_then(state).unwrap_or(false)
}
