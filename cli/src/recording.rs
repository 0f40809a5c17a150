//! Recording a program: once per event set, each run into a folder of its own.

use crate::binary::Totals;
use crate::commands::combine::Strategy;
use crate::counters::EventCheck;
use crate::event_sets::SetArgs;
use crate::launch::{self, Ended, Launch};
use crate::output::note;
use crate::program::{self, Prepared};
use crate::run_dir::{self, Processes, Program};
use crate::running::Reload;
use crate::select::SelectArgs;
use crate::simulate::{self, SimulateArgs, Simulated, Simulator};
use crate::{counters, input, progress};
use anyhow::{Result, bail};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::run::{
    ENV_CONTROL, ENV_DIR, ENV_EVENTS, ENV_ROTATE, ENV_SAMPLE, ENV_THROTTLE, Exit, ModuleStatus,
    RunModule,
};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The options of every command that records.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// Events to count, separated by commas, or `all`, or `none` (labels and times only); without it everything that can be
    /// counted here
    #[arg(long, value_name = "LIST")]
    events: Option<String>,
    /// Record every event set this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    repeat: u32,
    /// Folder for the runs (default: ompfuse-out, or the next free ompfuse-out-N)
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    sets: SetArgs,
    /// Count all event sets in one run: each region goes on to the next set after every N of its instances on a thread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    rotate: Option<u32>,
    /// File that the program's SIGUSR1 reads again, as `ompfuse ctl --reload`; not where the program handles that signal itself
    #[arg(long, value_name = "FILE")]
    control: Option<PathBuf>,
    /// Record one in N tasks, ranges and waits (the same tasks and ranges in every run), and count the others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sample: Option<u32>,
    /// Record fewer instances of what is so short that its probes cost more than this percentage of its time, and count the
    /// others; which ones depends on times, so runs have fewer XUs in common
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u32).range(1..=100))]
    throttle: Option<u32>,
    #[command(flatten)]
    simulate: SimulateArgs,
    #[command(flatten)]
    selection: SelectArgs,
    /// Only tell what would be patched in the program, and what not and why: nothing is run or written
    #[arg(long)]
    dry_run: bool,
    /// The program and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD"
    )]
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

    /// Whether the event sets take turns in each run.
    pub(crate) fn takes_turns(&self) -> bool {
        self.rotate.is_some()
    }
}

/// A run that was recorded.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    /// Its folder.
    pub(crate) path: PathBuf,
    events: Vec<String>,
    duration_s: f64,
    exit: Exit,
    /// Records that could not be written.
    lost: u64,
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
}

impl Recording {
    /// The exit status to hand on: of the first run that failed, or of the signal that came.
    pub(crate) fn status(&self) -> u8 {
        match self.interrupted {
            Some(signal) if self.status == 0 => (128 + signal) as u8,
            _ => self.status,
        }
    }
}

/// Records a program. `quiet`: standard output is wanted for something else than the program's.
pub(crate) fn record(args: &RecordingArgs, quiet: bool) -> Result<Recording> {
    let (name, arguments) = args.command.split_first().expect("clap requires a command");
    let wanted = args.events.as_deref();
    let events = if args.simulate.is_wanted() {
        simulate::events(wanted)?
    } else {
        countable(wanted)?
    };
    let simulator = args.simulate.simulator()?;
    let prepared = {
        let _spinner = progress::spinner("patching");
        Prepared::new(name, &args.selection)?
    };
    if simulator.is_some() {
        simulate::check_program(&prepared.file, &input::map(&prepared.file)?)?;
    }
    let known = args.sets.known()?;
    // Sets that take turns in one run are combined by instance: they need not share events.
    let planned = match args.rotate {
        Some(_) => args.sets.plan(&events),
        None => args.sets.planned(&events, &known.correlations),
    };
    let (mut sets, left_out) = args.sets.limited(planned);
    if !left_out.is_empty() {
        note(format_args!(
            "not counted, as --max-runs is {}: {}",
            sets.len(),
            left_out.join(", ")
        ));
    }
    if sets.is_empty() {
        sets.push(Vec::new()); // times can always be recorded
    }
    if args.rotate.is_some() && sets.len() == 1 {
        note("one run counts all of these events at once: --rotate changes nothing");
    }
    let sets = args.rotate.map_or_else(
        || sets.iter().map(|set| vec![set.clone()]).collect(),
        |_| vec![sets.clone()],
    );
    for together in &sets {
        if together.len() > MAX_SETS {
            bail!(
                "{} event sets can't take turns in one run, {MAX_SETS} can; name fewer events",
                together.len()
            );
        }
    }
    let reload = args.control.as_deref().map(Reload::new).transpose()?;
    let mut recorder = Recorder {
        rotate: args.rotate,
        sample: [(ENV_SAMPLE, args.sample), (ENV_THROTTLE, args.throttle)],
        reload,
        program: Program {
            name,
            args: arguments,
            modules: prepared.module.iter().cloned().collect(),
        },
        prepared,
        simulator,
        quiet,
        told: BTreeSet::new(),
        recording: Recording {
            folder: run_dir::make_output(args.output.as_deref())?,
            runs: Vec::new(),
            status: 0,
            interrupted: None,
        },
    };
    let total = sets.len() * args.repeat as usize;
    if total > 1 {
        note(forecast(total, known.seconds));
    }
    let mut stdin = launch::Input::remember();
    for (at, set) in (0..args.repeat).flat_map(|_| &sets).enumerate() {
        stdin.rewind(at);
        let done: f64 = recorder.recording.runs.iter().map(|r| r.duration_s).sum();
        let left = (at > 0).then(|| done / at as f64 * (total - at) as f64);
        progress::announce(at + 1, total, &set.concat(), left);
        if recorder.run(set)? == Then::Stop && at + 1 < total {
            note(format_args!(
                "run {} of {total} was the last, the rest is left out",
                at + 1
            ));
            break;
        }
    }
    Ok(recorder.recording)
}

/// How many runs there will be and how long they will take, before they start. `mean_s`: length of runs like them.
pub(crate) fn forecast(runs: usize, mean_s: Option<f64>) -> String {
    match mean_s {
        Some(mean) => format!(
            "{runs} runs, about {:.1} s if each takes as long as those given by --from",
            mean * runs as f64
        ),
        None if runs > 1 => format!(
            "{runs} runs; the first shows how long they take, a run given by --from would say it before"
        ),
        None => format!("{runs} run"),
    }
}

/// Whether another run makes sense.
#[derive(Debug, PartialEq, Eq)]
enum Then {
    GoOn,
    Stop,
}

/// A recording in progress.
struct Recorder<'a> {
    rotate: Option<u32>,
    /// How much is left out, as variables of the environment.
    sample: [(&'static str, Option<u32>); 2],
    reload: Option<Reload>,
    program: Program<'a>,
    prepared: Prepared,
    simulator: Option<Simulator>,
    quiet: bool,
    /// What was said already.
    told: BTreeSet<String>,
    recording: Recording,
}

impl Recorder<'_> {
    /// One run.
    fn run(&mut self, sets: &[Vec<String>]) -> Result<Then> {
        let set = &sets.concat();
        let path = run_dir::make_run(&self.recording.folder)?;
        let ended = self.launch(&path, sets).inspect_err(|_| {
            let _ = std::fs::remove_dir(&path); // nothing is in it
        })?;
        let processes = run_dir::read_processes(&path);
        self.learn(processes.iter().flat_map(Processes::modules));
        run_dir::write_header(&path, &self.program, set, &ended)?;
        let failed = launch::status_of(ended.exit);
        if failed != 0 {
            let program = Path::new(self.program.name).display();
            note(format_args!(
                "{program} failed: {}",
                launch::describe(ended.exit)
            ));
            if self.recording.status == 0 {
                self.recording.status = failed;
            }
        }
        self.recording.interrupted = ended.interrupted;
        let processes = processes?;
        if processes.headers.is_empty() {
            return self.nothing(&path);
        }
        let lost = self.tell(&path, &processes);
        self.recording.runs.push(Run {
            lost,
            path,
            events: set.to_vec(),
            duration_s: ended.duration_s,
            exit: ended.exit,
        });
        let stop = ended.interrupted.is_some() || matches!(ended.exit, Exit::Signal(_));
        Ok(if stop { Then::Stop } else { Then::GoOn })
    }

    /// Takes in the patched files that processes have loaded, and says what they are.
    fn learn<'m>(&mut self, modules: impl Iterator<Item = &'m ModuleStatus>) {
        for status in modules {
            let known = |m: &RunModule| m.patched == status.path;
            if self.program.modules.iter().any(known) {
                continue;
            }
            let Some(module) = program::loaded(Path::new(&status.path)) else {
                continue; // whoever reads the run is told
            };
            let totals = Totals::count(&module.sites);
            note(format_args!(
                "patched {}: {} of {} sites",
                module.binary.path, totals.patched, totals.sites
            ));
            self.program.modules.push(module);
        }
        for reason in self.prepared.libraries.refusals() {
            if self.told.insert(reason.clone()) {
                note(reason);
            }
        }
    }

    /// Runs the program to its end.
    fn launch(&self, run: &Path, sets: &[Vec<String>]) -> Result<Ended> {
        let sets: Vec<String> = sets.iter().map(|set| set.join(",")).collect();
        let mut env = vec![
            (ENV_DIR, run.as_os_str().to_owned()),
            (ENV_EVENTS, sets.join(";").into()),
        ];
        env.extend(self.rotate.map(|n| (ENV_ROTATE, n.to_string().into())));
        let sample = self.sample.iter();
        env.extend(sample.filter_map(|(name, n)| Some((*name, n.as_ref()?.to_string().into()))));
        let control = self.reload.as_ref().map(|r| r.file.clone().into());
        env.extend(control.map(|file| (ENV_CONTROL, file)));
        let look = self.reload.as_ref().map(|r| || r.look(run));
        let meanwhile = look.as_ref().map(|look| look as &dyn Fn());
        env.extend_from_slice(&self.prepared.env);
        let (file, name, args) = (
            self.prepared.file.as_path(),
            self.program.name,
            self.program.args,
        );
        let simulated = match &self.simulator {
            Some(simulator) => Some(simulator.command(file, name, args, &env)?),
            None => None,
        };
        let launch = match &simulated {
            Some(Simulated {
                file, args, env, ..
            }) => Launch {
                file,
                name: file.as_os_str(),
                args,
                env: env.clone(),
                output_to_stderr: self.quiet,
                meanwhile,
            },
            None => Launch {
                file,
                name,
                args,
                env,
                output_to_stderr: self.quiet,
                meanwhile,
            },
        };
        launch::run(&launch)
    }

    /// After a run without any record: a program that failed has said why, otherwise it is this command that failed.
    fn nothing(&self, run: &Path) -> Result<Then> {
        if self.recording.status() == 0 {
            let run = run.display();
            match &self.prepared.module {
                Some(_) => bail!(
                    "nothing was recorded in {run}: the runtime library did not start in the program's process"
                ),
                None => bail!(
                    "nothing was recorded in {run}: neither {} nor a library or program that it has loaded or started \
                     calls an OpenMP runtime (GOMP_*, __kmpc_*); what is linked statically can't be seen",
                    Path::new(self.program.name).display()
                ),
            }
        }
        note(format_args!("nothing was recorded in {}", run.display()));
        Ok(Then::Stop)
    }

    /// Says, once each, what was not as wanted in a run. Returns the number of lost records.
    fn tell(&mut self, run: &Path, processes: &Processes) -> u64 {
        let reasons = processes
            .headers
            .iter()
            .flat_map(|h| &h.events)
            .filter_map(|e| e.reason.clone());
        let stopped = processes.ends.iter().filter_map(|e| e.stopped.clone());
        let lost = processes.ends.iter().map(|e| e.lost).sum();
        let losses =
            (lost > 0).then(|| format!("{lost} records could not be written in {}", run.display()));
        for message in reasons.chain(stopped).chain(losses) {
            if self.told.insert(message.clone()) {
                note(message);
            }
        }
        lost
    }
}

/// The wanted events that can be counted; without a wish all of them. A line on standard error per reason says what can't.
pub(crate) fn countable(wanted: Option<&str>) -> Result<Vec<&'static str>> {
    let names = wanted.map(counters::parse_list).transpose()?;
    let (mut available, missing): (Vec<_>, Vec<_>) = counters::check_all()
        .into_iter()
        .filter(|e| names.as_ref().is_none_or(|n| n.contains(&e.name)))
        .partition(|e| e.available);
    match names {
        Some(names) => {
            refusals(&missing).iter().for_each(note);
            available.sort_by_key(|e| names.iter().position(|n| *n == e.name));
        }
        None if !available.iter().any(|e| counters::is_hardware(e.name)) => {
            note(
                "no hardware event can be counted here, software events only (`ompfuse events` says why)",
            );
        }
        None => {}
    }
    Ok(available.iter().map(|e| e.name).collect())
}

/// One line per reason, with the events that it stands in the way of.
fn refusals(missing: &[EventCheck]) -> Vec<String> {
    let mut by_reason: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = BTreeMap::new();
    for event in missing {
        by_reason
            .entry((event.reason.as_deref(), event.remedy.as_deref()))
            .or_default()
            .push(event.name);
    }
    let line = |((reason, remedy), names): ((Option<&str>, Option<&str>), Vec<&str>)| {
        let remedy = remedy.map(|r| format!("; remedy: {r}")).unwrap_or_default();
        format!(
            "not counted: {} ({}{remedy})",
            names.join(", "),
            reason.unwrap_or("no reason is known")
        )
    };
    by_reason.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_with_one_reason_share_a_line() {
        let check = |name, reason: &str| EventCheck {
            name,
            kind: "hardware",
            available: false,
            includes_kernel: false,
            reason: Some(reason.to_owned()),
            remedy: (reason == "b").then(|| "pay".to_owned()),
        };
        let lines = refusals(&[check("x", "a"), check("y", "b"), check("z", "a")]);
        assert_eq!(
            lines,
            ["not counted: x, z (a)", "not counted: y (b; remedy: pay)"]
        );
    }

    #[test]
    fn wanted_events_keep_their_order() {
        let events = countable(Some("page-faults,task-clock")).unwrap();
        if events.len() == 2 {
            assert_eq!(events, ["page-faults", "task-clock"]);
        }
        assert!(countable(Some("nonsense")).is_err());
    }
}
