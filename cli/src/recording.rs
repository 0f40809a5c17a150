//! Recording a program: once per event set, each run into a folder of its own.

mod countable;
mod job;
mod meeting;
pub(crate) mod probes;
mod runs;
mod strays;
mod threads;
mod turns;
mod volume;
mod window;

pub(crate) use countable::{Countable, countable, countable_elsewhere};
pub(crate) use job::rank_of_this;
pub(crate) use meeting::ranks_in;

use crate::event_sets::SetArgs;
use crate::launch::{self, Stdout};
use crate::output::{self, note, remark};
use crate::program::Prepared;
use crate::run_dir::{self, Output, OutputParser, Program};
use crate::running::Reload;
use crate::select::SelectArgs;
use crate::simulate::{self, SimulateArgs};
use crate::strategy::Strategy;
use crate::{cache, input, memory, processors, progress};
use anyhow::{Context, Result, bail};
use job::Job;
use meeting::{Meeting, Role};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::event::{exact, is_hardware};
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_format::record::context::MAX_DEPTH;
use ompfuse_format::record::sums;
use ompfuse_format::run::{
    ENV_CONTEXT_DEPTH, ENV_MIN_DURATION, ENV_SAMPLE, ENV_SUMS, ENV_THROTTLE, Exit,
};
use runs::{Recorder, Then};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
pub(crate) use threads::ThreadList;
pub(crate) use turns::in_turns;
use window::WindowArgs;

/// The options of every command that records.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordingArgs {
    /// Events to count per execution unit: a list with commas, `all`, or `none`
    ///
    /// `none` records labels and times only. Without this option, hardware events that need no system call are counted per
    /// unit. All others, except events of single caches, are counted per parallel region and thread. Each software event in
    /// the list costs a system call at the begin and end of each unit. `rNNN` is the processor's own event with this
    /// hexadecimal number, as in perf.
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Events to count per outermost parallel region and thread
    ///
    /// This costs next to nothing. Where regions are short, only some of their executions are counted.
    #[arg(long, value_name = "LIST", conflicts_with = "simulate")]
    region_events: Option<String>,
    /// Record every event set this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Record with each of these numbers of threads: 1,2,4,8 or 1-8
    ///
    /// OMP_NUM_THREADS is set for each run. In the program's arguments {threads} stands for the number. Without --events there is one
    /// run for each number.
    #[arg(long, value_name = "LIST", value_parser = threads::parse, conflicts_with_all = ["simulate", "control"])]
    threads: Option<ThreadList>,
    /// Folder for the runs (default: ompfuse-out, or the next free ompfuse-out-N)
    ///
    /// In its name %q{VARIABLE} stands for a variable of the environment, %r for the MPI rank, %p for this process, %h for the host,
    /// and %% for a percent sign.
    #[arg(short, long, value_name = "DIR", value_parser = OutputParser)]
    output: Option<Output>,
    #[command(flatten)]
    sets: SetArgs,
    /// Count all event sets in one run: each region uses the next set after N of its instances on a thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rotate: Option<u32>,
    /// Count all events in one run: the kernel shares the processor's counters among them
    ///
    /// For comparison only: counts are scaled, and a unit that ran while an event was not counted has none. Several runs give exact
    /// counts.
    #[arg(long, conflicts_with_all = ["rotate", "simulate", "from", "max_runs"])]
    multiplex: bool,
    /// File of settings, read again when the program receives SIGUSR1; its format is that of `ompfuse ctl --reload`
    ///
    /// Don't use it if the program handles that signal itself.
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Record one in N tasks, ranges and waits, and count the others
    ///
    /// The same tasks and ranges are recorded in every run. Events that need a system call are read for recorded ones only, as with
    /// --throttle and --min-duration.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample: Option<u32>,
    /// Record fewer instances where probes cost more than this percentage of the time, and count the others
    ///
    /// Which instances are left out depends on times, so runs have fewer units in common.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    throttle: Option<u32>,
    /// Record no task, range or wait that is shorter than this (`500ns`, `20us`, `1ms`), and count them
    ///
    /// The unit's own time counts. Which units are recorded depends on times, so runs have fewer units in common. Events that need a
    /// system call are still read when a unit begins: --sample and --throttle save more.
    #[arg(long, value_name = "TIME", value_parser = nanoseconds)]
    min_duration: Option<u64>,
    /// Record sums and histograms instead of single units
    ///
    /// The space stays the same however long the program runs: some hundred KB per thread. `export`, the slowest unit in `diff`, and
    /// combining by label need single units.
    #[arg(long, conflicts_with_all = ["sample", "throttle", "min_duration", "rotate", "multiplex"])]
    summary: bool,
    /// Keep these sums beside the records, to compare the two
    #[arg(long, hide = true, conflicts_with_all = ["summary", "sample", "throttle", "min_duration", "rotate", "multiplex"])]
    summary_beside: bool,
    /// End the recording when a run's records have this size (`500M`, `4G`); the program goes on
    ///
    /// Default: half of the free space of the output's file system.
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    max_size: Option<u64>,
    /// Record up to this many calls that led to each parallel region (at most 128), or `none`
    #[arg(long, value_name = "N|none", default_value = "32", value_parser = context_depth)]
    context_depth: u32,
    #[command(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    simulate: SimulateArgs,
    #[command(flatten)]
    selection: SelectArgs,
    /// Only show what would be patched, and why the rest would not; run and write nothing
    #[arg(long)]
    dry_run: bool,
    /// The program and its arguments
    // No values with hyphens: an option with a typo would be the program. Behind the program's name they are its own.
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

impl RecordingArgs {
    /// The command and the selection of a dry run, if that is wanted.
    pub(crate) fn dry_run(&self) -> Option<(&OsStr, &SelectArgs)> {
        let name = self.command.first()?;
        self.dry_run.then_some((name, &self.selection))
    }
}

impl RecordingArgs {
    /// How the runs are to be combined.
    pub(crate) fn strategy(&self) -> Strategy {
        self.sets.strategy
    }

    /// What is recorded in part or not at all, as variables of the environment.
    fn in_part(&self) -> Vec<(&'static str, String)> {
        let all = [
            (ENV_SAMPLE, self.sample.map(u64::from)),
            (ENV_THROTTLE, self.throttle.map(u64::from)),
            (ENV_MIN_DURATION, self.min_duration),
            (ENV_CONTEXT_DEPTH, Some(self.context_depth.into())),
            (ENV_SUMS, self.sums()),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value?.to_string())))
            .collect()
    }

    /// Whether sums are kept, as [`ENV_SUMS`] says it.
    fn sums(&self) -> Option<u64> {
        match (self.summary, self.summary_beside) {
            (true, _) => Some(sums::INSTEAD),
            (_, true) => Some(sums::BESIDE),
            _ => None,
        }
    }

    /// The job that the program is a rank of, if the ranks record into one folder.
    fn job(&self) -> Option<Job> {
        let own =
            |o: &Output| o.has_pid || o.has_rank || o.variables.iter().any(|v| job::is_of_rank(v));
        Job::of_this().filter(|_| !self.output.as_ref().is_some_and(own))
    }

    /// The numbers of threads to record with, if several were named.
    pub(crate) fn threads(&self) -> Option<&[u32]> {
        self.threads.as_ref().map(|list| &list.0[..])
    }

    /// Whether the event sets take turns in each run.
    pub(crate) fn takes_turns(&self) -> bool {
        self.rotate.is_some()
    }

    /// Whether several runs are recorded whose counts are scaled: they can't be combined.
    pub(crate) fn repeats_scaled(&self) -> bool {
        self.multiplex && self.repeat > 1
    }
}

/// A length of time in nanoseconds, from a number and a unit.
pub(crate) fn nanoseconds(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[number.len()..] {
        "ns" => Some(1.0),
        "us" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        "min" => Some(60e9),
        "h" => Some(3600e9),
        _ => None,
    };
    let length = unit.zip(number.parse::<f64>().ok());
    match length.map(|(unit, number)| (unit * number).round()) {
        Some(ns) if (1.0..1e18).contains(&ns) => Ok(ns as u64),
        _ => Err("a number with a unit is needed: 500ns, 20us, 1ms, 1s, 5min, 2h".to_owned()),
    }
}

/// How many calls of a context are recorded.
fn context_depth(text: &str) -> Result<u32, String> {
    match text.parse() {
        _ if text == "none" => Ok(0),
        Ok(depth) if (1..=MAX_DEPTH as u32).contains(&depth) => Ok(depth),
        _ => Err(format!("a number from 1 to {MAX_DEPTH} is needed, or none")),
    }
}

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
    pub(crate) is_rank: bool,
}

impl Recording {
    /// The exit status to hand on: of the first run that failed, or of the signal that came.
    pub(crate) fn status(&self) -> u8 {
        match self.interrupted {
            Some(signal) if self.status == 0 => (128 + signal) as u8,
            _ => self.status,
        }
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

/// What is patched, where events that patched code counts ask for that, and the other events that are named: of units, and of regions.
/// Those cost nothing to read, so units always have them.
fn counting(args: &RecordingArgs) -> (SelectArgs, [Option<String>; 2]) {
    let mut selection = args.selection.clone();
    let lists = [&args.events, &args.region_events];
    let names = lists.into_iter().flatten().flat_map(|l| l.split(','));
    for event in names.filter_map(|name| exact::number(name.trim())) {
        selection.functions.count_event(event);
    }
    let others = |list: &String| {
        let others = list.split(',').filter(|name| !exact::is(name.trim()));
        let others: Vec<&str> = others.collect();
        match others.is_empty() {
            true => "none".to_owned(),
            false => others.join(","),
        }
    };
    (selection, lists.map(|list| list.as_ref().map(others)))
}

/// Records a program, whose standard output goes there.
pub(crate) fn record(args: &RecordingArgs, stdout: Stdout) -> Result<Recording> {
    let (name, arguments) = args.command.split_first().expect("clap requires a command");
    // `None`: as the environment has it.
    let numbers: Vec<(Option<u32>, Cow<'_, [OsString]>)> = match args.threads() {
        None => vec![(None, arguments.into())],
        Some(list) => (list.iter())
            .map(|&n| (Some(n), threads::with_threads(arguments, n).into()))
            .collect(),
    };
    let job = args.job();
    if job.as_ref().is_some_and(|job| job.rank > 0) {
        output::mute(true);
    }
    let (selection, wanted) = &counting(args);
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
    if args.multiplex && wanted.is_none() && args.region_events.is_none() {
        // Counters that are shared are read by the kernel in any case.
        events.append(&mut of_regions);
    }
    if args.multiplex && wanted.is_none() && events.iter().any(|e| is_hardware(e)) {
        // What shares counters, and the clock beside it: there is not room for everything.
        let is_kept = |e: &&str| is_hardware(e) || exact::is(e) || *e == "task-clock";
        let left_out: Vec<&str> = events.iter().copied().filter(|e| !is_kept(e)).collect();
        events.retain(is_kept);
        if !left_out.is_empty() {
            note(format_args!(
                "not counted, because one run has no room for all events: {} (--events names those to count)",
                left_out.join(", ")
            ));
        }
    }
    // Sets that take turns in one run are combined by instance: they need not share events.
    let in_one_run = args.rotate.is_some() || args.multiplex;
    let planned = match in_one_run {
        true => args.sets.plan(&events),
        false => args.sets.planned(&events, &known.correlations),
    };
    let (mut sets, left_out) = args.sets.limited(planned, &events);
    if !left_out.is_empty() {
        note(format_args!(
            "not counted, {}: {}",
            args.sets.why_left_out(sets.len()),
            left_out.join(", ")
        ));
    }
    if sets.is_empty() {
        sets.push(Vec::new()); // times can always be recorded
    }
    if args.threads.is_some() && wanted.is_none() && !in_one_run {
        sets.truncate(1); // a series is about times
    }
    if in_one_run && sets.len() == 1 {
        let option = if args.multiplex {
            "--multiplex"
        } else {
            "--rotate"
        };
        remark(format_args!(
            "one run counts all of these events at once: {option} changes nothing"
        ));
    }
    if args.multiplex {
        check_times(&sets)?;
    } else if in_one_run && sets.len() > MAX_SETS {
        bail!(
            "cannot rotate {} event sets in one run: the limit is {MAX_SETS}; name fewer events",
            sets.len()
        );
    }
    let mut sets: Vec<Vec<Vec<String>>> = match in_one_run {
        true => vec![sets],
        false => sets.into_iter().map(|set| vec![set]).collect(),
    };
    if let Some(job) = &job {
        check_once(job, args, &mut sets)?;
        if numbers.len() > 1 {
            bail!(
                "cannot record {} numbers of threads in one launch of {} ranks, because MPI_Init works once; start the \
                     launcher for each number: `ompfuse record --threads LIST -- mpirun ...`",
                numbers.len(),
                job.size
            );
        }
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
        rotate: args.rotate,
        is_multiplexed: args.multiplex,
        of_regions: of_regions.iter().map(|&e| e.to_owned()).collect(),
        is_cheap: wanted.is_none() && !in_one_run && !is_simulated,
        debug: &args.selection.debug,
        in_part: args.in_part(),
        window: &args.window,
        reload,
        max_size: args.max_size,
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
    let mut stdin = launch::Input::remember(&recorder.recording.folder, total)?;
    // All numbers of threads take turns: what slows a machine down for a while slows all of them down.
    let once = || {
        numbers
            .iter()
            .flat_map(|n| sets.iter().map(move |set| (n, set)))
    };
    let all = (0..args.repeat).flat_map(|_| once());
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
    let is_by_call = |e: &&str| !is_hardware(e) && !exact::is(e);
    let by_call: Vec<&str> = events.iter().copied().filter(is_by_call).collect();
    if args.min_duration.is_some() && !is_simulated && !by_call.is_empty() {
        note(format_args!(
            "--min-duration knows a unit's length only at its end: {} took a system call at each unit's beginning, half as \
                 many calls as without the option; --sample N and --throttle PERCENT spare the calls of units that they leave \
                 out",
            by_call.join(", ")
        ));
    }
    if !recorder.recording.runs.is_empty() {
        recorder.tell_unmatched(&args.selection);
    }
    Ok(recorder.recording)
}

/// Ranks of a job can't start their program again: MPI_Init needs all of them at the same time, once. What one run counts is
/// recorded, unless more was asked for.
fn check_once(job: &Job, args: &RecordingArgs, sets: &mut Vec<Vec<Vec<String>>>) -> Result<()> {
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

/// Says that more threads than processors are no test of how a program scales.
fn tell_processors(threads: &[u32]) {
    let most = threads.iter().copied().max().unwrap_or(0);
    if let Some(processors) = processors::available().filter(|&p| f64::from(most) > p) {
        note(format_args!(
            "{most} threads on {processors} processors: with more threads than processors they take turns, and nothing gets faster"
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

/// Whether the counts of groups that share the processor's counters fit into a record, with the time that each group was counted
/// and the time of all.
fn check_times(groups: &[Vec<String>]) -> Result<()> {
    let of_hardware = groups.iter().filter(|g| g.iter().any(|e| is_hardware(e)));
    let times = of_hardware.count() + 1;
    let events = groups.iter().map(Vec::len).sum::<usize>();
    if groups.len() > 1 && events + times > MAX_COUNTERS {
        bail!(
            "cannot multiplex {events} events and the {times} times that scale their counts in one run: the limit is \
                 {MAX_COUNTERS} numbers; name fewer events"
        );
    }
    Ok(())
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
            "{runs} runs; the first shows how long they take, a run given by --from would say it before"
        ),
        None => format!("{runs} run"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let good = [
            ("500ns", 500),
            ("20us", 20_000),
            ("1.5ms", 1_500_000),
            ("1s", 1_000_000_000),
            ("1.5min", 90_000_000_000),
            ("2h", 7_200_000_000_000),
        ];
        for (text, ns) in good {
            assert_eq!(nanoseconds(text), Ok(ns), "{text}");
        }
        for wrong in ["", "5", "us", "-1us", "0ns", "1m", "1e400s", "µs"] {
            assert!(nanoseconds(wrong).is_err(), "{wrong}");
        }
    }
}
