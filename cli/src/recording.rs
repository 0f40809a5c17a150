//! Recording a program: once per event set, each run into a folder of its own.

mod meeting;
mod options;
pub(crate) mod probes;
mod runs;
mod sets;
mod strays;
mod threads;
mod turns;
mod units;
mod volume;
mod window;

pub(crate) use options::RecordingArgs;
pub(crate) use window::nanoseconds;

use crate::counters::{Countable, countable};
use crate::launch::{self, Stdout};
use crate::output::{self, note, remark};
use crate::program::Prepared;
use crate::rank::Job;
use crate::run_dir::{self, Program};
use crate::running::Reload;
use crate::{cache, input, processors, progress, simulate};
use anyhow::{Context, Result, bail};
use meeting::{Meeting, Role};
use ompfuse_format::event::{exact, is_hardware};
use ompfuse_format::run::Exit;
pub(crate) use runs::Nothing;
use runs::{Recorder, Then};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
pub(crate) use turns::in_turns;

/// A run that was recorded.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    /// Its folder.
    pub(crate) path: PathBuf,
    /// The number of threads, where `--threads` has set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    events: Vec<String>,
    /// Those that were counted per parallel region and thread.
    region_events: Vec<String>,
    duration_s: f64,
    exit: Exit,
    /// Records that could not be written.
    lost: u64,
    /// Threads that could not be recorded at all.
    threads_lost: u64,
}

/// What came of a recording.
#[derive(Debug, Serialize)]
pub(crate) struct Recording {
    /// The folder of the runs.
    pub(crate) folder: PathBuf,
    /// The runs.
    pub(crate) runs: Vec<Run>,
    /// Exit status of the first run that failed.
    #[serde(skip)]
    status: u8,
    /// The signal that ended the recording early.
    #[serde(skip)]
    interrupted: Option<i32>,
    /// This command is one of several ranks, another of which tells what was recorded.
    #[serde(skip)]
    pub(crate) is_told_by_another: bool,
    /// This command is one of several ranks, each with a folder of its own.
    #[serde(skip)]
    is_rank: bool,
}

impl Recording {
    /// The exit status to hand on: of the first run that failed, or of the signal that came.
    pub(crate) fn status(&self) -> u8 {
        match self.interrupted {
            Some(signal) if self.status == 0 => (128 + signal) as u8,
            _ => self.status,
        }
    }

    /// Whether it is a rank that recorded into a folder of its own. Who has failed may not keep its launcher waiting.
    pub(crate) fn leaves_summary(&self) -> bool {
        self.is_rank && self.status() == 0
    }

    /// The signal that asked this command to end meanwhile.
    pub(crate) fn interrupted(&self) -> Option<i32> {
        self.interrupted
    }

    /// [`Self::status`] once something was done with the runs. Where that failed, a program that failed has its status handed on all the
    /// same.
    pub(crate) fn status_after(&self, done: Result<()>) -> Result<u8> {
        match done {
            Err(error) if self.status() != 0 => drop(crate::status_of(&error)), // says why
            done => done?,
        }
        Ok(self.status())
    }
}

/// Records a program, whose standard output goes there.
pub(crate) fn record(args: &RecordingArgs, stdout: Stdout) -> Result<Recording> {
    args.check()?;
    args.ask_about_options();
    let (name, arguments) = args.command();
    let numbers: Vec<Numbered<'_>> = match args.threads() {
        None => vec![(None, arguments.into())],
        Some(list) => (list.iter())
            .map(|&n| (Some(n), threads::with_threads(arguments, n).into()))
            .collect(),
    };
    let job = args.job();
    if job.as_ref().is_some_and(|job| job.rank > 0) {
        output::mute(true);
    }
    let (selection, wanted) = &sets::counting(args);
    let [wanted, wanted_of_regions] = wanted.each_ref().map(Option::as_deref);
    let counted = selection.functions.counted();
    let is_simulated = args.simulate.is_wanted();
    let simulated = is_simulated.then(|| simulate::events(wanted)).transpose()?;
    let simulator = args.simulate.simulator()?;
    cache::temporary::spare(args.output.as_ref().map(|o| o.folder.as_path()));
    let mut prepared = {
        let bar = progress::whole("patching");
        Prepared::new(name, selection, bar.progress())?
    };
    if simulator.is_some() {
        prepared.make_room();
        simulate::check_program(&prepared.file, &input::map(&prepared.file)?)?;
    }
    let known = args.sets.known()?;
    // After all that can refuse: what can't be counted here is said of a recording that takes place.
    let Countable {
        units: mut events,
        regions: mut of_regions,
    } = match simulated {
        Some(units) => Countable {
            units,
            regions: vec![],
        },
        None => countable(wanted, wanted_of_regions)?,
    };
    events.extend(exact::names(counted));
    if args.is_multiplexed() && wanted.is_none() {
        sets::sharing_counters(args, &mut events, &mut of_regions);
    }
    let mut sets = sets::planned(args, &events, &known, wanted.is_none())?;
    if let Some(job) = &job {
        check_once(job, args, numbers.len(), &mut sets)?;
    }
    let reload = args.control.as_deref().map(Reload::new).transpose()?;
    let output = args.output.as_ref().map(|o| o.folder.as_path());
    if let Some(folder) = output {
        run_dir::check_program(folder, &name.to_string_lossy(), prepared.module.as_ref())?;
    }
    let (folder, meeting) = match job {
        None => (run_dir::make_output(output)?, None),
        Some(job) => meet(job, output)?,
    };
    tell_processors(args.threads().unwrap_or_default());
    let mut recorder = Recorder {
        threads: None,
        rotation: args.rotate,
        of_regions: of_regions.iter().map(|&e| e.to_owned()).collect(),
        is_cheap: wanted.is_none() && !args.is_in_one_run() && !is_simulated,
        debug: &args.selection.debug,
        in_part: args.in_part(),
        window: &args.window,
        reload,
        max_size: args.max_size,
        sampling: args.sampling,
        program: Program {
            name,
            args: &numbers[0].1,
            modules: prepared.module.iter().cloned().collect(),
        },
        prepared,
        simulator,
        stdout,
        told: BTreeSet::new(),
        recording: Recording {
            folder,
            runs: Vec::new(),
            status: 0,
            interrupted: None,
            is_told_by_another: meeting.as_ref().is_some_and(|m| !m.is_leader()),
            is_rank: meeting.is_none() && Job::of_this().is_some(),
        },
        meeting,
    };
    let total = sets.len() * args.repeat as usize * numbers.len();
    if total > 1 {
        remark(forecast(total, known.seconds));
    }
    record_all(&mut recorder, &numbers, &sets, args.repeat)?;
    if args.units.is_by_length() && !is_simulated {
        tell_calls(&events);
    }
    if !recorder.recording.runs.is_empty() {
        recorder.tell_unmatched(&args.selection);
    }
    Ok(recorder.recording)
}

/// A number of threads, `None` if the environment has it, and the program's arguments with it.
type Numbered<'a> = (Option<u32>, Cow<'a, [OsString]>);

/// Records all runs.
fn record_all<'a>(
    recorder: &mut Recorder<'a>,
    numbers: &'a [Numbered<'_>],
    sets: &[Vec<Vec<String>>],
    repeat: u32,
) -> Result<()> {
    let total = sets.len() * repeat as usize * numbers.len();
    let mut stdin = launch::Input::remember(&recorder.recording.folder, total)?;
    // All numbers of threads take turns: what slows a machine down for a while slows all of them down.
    let once = || {
        numbers
            .iter()
            .flat_map(|n| sets.iter().map(move |set| (n, set)))
    };
    let all = (0..repeat).flat_map(|_| once());
    for (at, ((threads, arguments), set)) in all.enumerate() {
        (recorder.threads, recorder.program.args) = (*threads, arguments);
        let mut feed = match stdin.next(at) {
            // Earlier runs are there.
            Err(error) => {
                note(format_args!("no further run: {}", crate::one_line(&error)));
                break;
            }
            feed => feed?,
        };
        let done: f64 = recorder.recording.runs.iter().map(|r| r.duration_s).sum();
        let left = (at > 0).then(|| done / at as f64 * (total - at) as f64);
        progress::announce(at + 1, total, &set.concat(), left);
        let then = recorder.run(set, feed.as_mut());
        stdin.take_back(feed)?;
        if then? == Then::Stop && at + 1 < total {
            note(format_args!(
                "run {} of {total} was the last, the rest is left out",
                at + 1
            ));
            break;
        }
    }
    Ok(())
}

/// Ranks of a job can't start their program again: MPI_Init needs all of them at the same time, once. What one run counts is
/// recorded, unless more was asked for.
fn check_once(
    job: &Job,
    args: &RecordingArgs,
    numbers: usize,
    sets: &mut Vec<Vec<Vec<String>>>,
) -> Result<()> {
    check_runs(job, args, sets)?;
    if numbers > 1 {
        bail!(
            "cannot record {} numbers of threads in one launch of {} ranks, because MPI_Init works once; start the \
                     launcher for each number: `ompfuse record --threads LIST -- mpirun ...`",
            numbers,
            job.size
        );
    }
    Ok(())
}

/// The same of event sets and repetitions.
fn check_runs(job: &Job, args: &RecordingArgs, sets: &mut Vec<Vec<Vec<String>>>) -> Result<()> {
    let runs = sets.len() * args.repeat as usize;
    if runs < 2 {
        return Ok(());
    }
    let instead = job.instead(&args.command);
    if args.events.is_some() || args.repeat > 1 {
        // All ranks find it out at the same time; one says it.
        let voice = job.voice();
        if voice.is_some() {
            output::say(format_args!(
                "cannot record {runs} runs in one launch of {} ranks, because MPI_Init works once; start the launcher for each \
                     run: `{instead}`",
                job.size
            ));
        }
        std::thread::sleep(RANKS_APART);
        return Err(output::SaidAlready.into());
    }
    let left_out: Vec<String> = sets.drain(1..).flatten().flatten().collect();
    note(format_args!(
        "not counted, because one launch is one run: {} (`{instead}` counts all)",
        left_out.join(", ")
    ));
    Ok(())
}

/// Says that `--units longer=` doesn't spare the calls that these events take.
fn tell_calls(events: &[&str]) {
    let is_by_call = |e: &&str| !is_hardware(e) && !exact::is(e);
    let by_call: Vec<&str> = events.iter().copied().filter(is_by_call).collect();
    if !by_call.is_empty() {
        note(format_args!(
            "--units longer=TIME knows a unit's length only at its end: {} took a system call at each unit's beginning, half as \
                 many calls as without the option; every=N and cost=PERCENT spare the calls of units that they leave \
                 out",
            by_call.join(", ")
        ));
    }
}

/// Says that more threads than processors are no test of how a program scales.
fn tell_processors(threads: &[u32]) {
    let most = threads.iter().copied().max().unwrap_or(0);
    if let Some(processors) = processors::available().filter(|&p| f64::from(most) > p) {
        note(format_args!(
            "{most} threads on {processors} processors: threads that compute take turns there, and get nothing done faster"
        ));
    }
}

/// As long one rank speaks for the others.
const RANKS_APART: std::time::Duration = std::time::Duration::from_secs(1);

/// The folder of the runs of a job's ranks, once they know of each other.
fn meet(job: Job, wanted: Option<&Path>) -> Result<(PathBuf, Option<Meeting>)> {
    let shared = match wanted {
        Some(_) => run_dir::make_output(wanted)?,
        None => std::env::current_dir().context("cannot find the current folder")?,
    };
    let meeting = Meeting::join(job, &shared)
        .context("cannot record here (name another folder with --output)")?;
    output::mute(!meeting.is_leader());
    let folder = match &meeting.role {
        Role::Leader => run_dir::make_output(wanted)?,
        Role::Member(run) => run.parent().unwrap_or(run).to_owned(),
    };
    Ok((folder, Some(meeting)))
}

/// How many runs there will be and how long they will take, before they start. `mean_s`: length of runs like them.
pub(crate) fn forecast(runs: usize, mean_s: Option<f64>) -> String {
    match mean_s {
        Some(mean) => format!(
            "{runs} {}, about {:.1} s if each takes as long as those given by --from",
            if runs == 1 { "run" } else { "runs" },
            mean * runs as f64
        ),
        None if runs > 1 => format!(
            "{runs} runs; how long they take is known after the first one, or now with --from RUN"
        ),
        None => format!("{runs} run"),
    }
}
