//! The options of every command that records.

use super::threads::{self, ThreadList};
use super::units::Units;
use super::window::WindowArgs;
use crate::debug::DebugArgs;
use crate::event_sets::SetArgs;
use crate::output::Usage;
use crate::rank::{self, Job};
use crate::run_dir::{self, Output, OutputParser};
use crate::sampling::Rate;
use crate::select::SelectArgs;
use crate::simulate::SimulateArgs;
use crate::strategy::Strategy;
use crate::{memory, output};
use clap::Args as _;
use ompfuse_format::record::context::MAX_DEPTH;
use ompfuse_format::run::ENV_CONTEXT_DEPTH;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// What samples alone can't answer.
const ONLY_RECORDS: [&str; 13] = [
    "events",
    "region_events",
    "threads",
    "rotate",
    "control",
    "units",
    "dry_run",
    "delay",
    "repeat",
    "select",
    "skip",
    "filter",
    "set",
];

/// How several event sets are counted in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rotation {
    /// The next one after so many instances of a region on a thread.
    Instances(u32),
    /// The kernel shares the counters.
    Kernel,
}

impl Rotation {
    /// For clap.
    fn parse(text: &str) -> Result<Rotation, String> {
        match text.parse() {
            _ if text == "kernel" => Ok(Rotation::Kernel),
            Ok(n @ 1..) => Ok(Rotation::Instances(n)),
            _ => Err("a number from 1 on is needed, or kernel".to_owned()),
        }
    }
}

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
    pub(super) events: Option<String>,
    /// Events to count per outermost parallel region and thread
    ///
    /// This costs next to nothing. Where regions are short, only some of their executions are counted.
    #[arg(long, value_name = "LIST", conflicts_with = "simulate")]
    pub(super) region_events: Option<String>,
    /// Record every event set this many times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repeat: u32,
    /// Record with each of these numbers of threads: 1,2,4,8 or 1-8
    ///
    /// OMP_NUM_THREADS is set for each run. In the program's arguments {threads} stands for the number. Without --events there is one
    /// run for each number.
    #[arg(long, value_name = "LIST", value_parser = threads::parse, conflicts_with_all = ["simulate", "control"])]
    pub(super) threads: Option<ThreadList>,
    /// Folder for the runs (default: ompfuse-out, or the next free ompfuse-out-N)
    ///
    /// In its name %q{VARIABLE} stands for a variable of the environment, %r for the MPI rank, %p for this process, %h for the host,
    /// and %% for a percent sign.
    #[arg(short, long, value_name = "DIR", value_parser = OutputParser)]
    pub(super) output: Option<Output>,
    #[command(flatten)]
    pub(super) sets: SetArgs,
    /// Count all event sets in one run: each region uses the next set after N of its instances on a thread; `kernel`: at any time
    ///
    /// With `kernel` the kernel shares the processor's counters among the events. For comparison only: counts are scaled, and a unit that
    /// ran while an event was not counted has none. Several runs give exact counts.
    #[arg(long, value_name = "N|kernel", value_parser = Rotation::parse)]
    pub(super) rotate: Option<Rotation>,
    /// File of settings, read again when the program receives SIGUSR1; its format is that of `ompfuse ctl --reload`
    ///
    /// Don't use it if the program handles that signal itself.
    #[arg(long, value_name = "FILE")]
    pub(super) control: Option<PathBuf>,
    /// Which units are recorded: `all`, `every=N`, `longer=TIME`, `cost=PERCENT`, or `sums` in place of units
    ///
    /// `every=100` records one in 100 tasks, ranges and waits, the same ones in every run. `longer=20us` records none that is shorter: only
    /// its own time counts. `cost=5` records fewer where probes cost more than 5 % of the time. With a comma two of them hold. What is left
    /// out is counted, and still timed, so probes of very short units may take more than `cost` allows: `record` and `report` say it then.
    /// Which units are recorded depends on times (but for `every`), so runs have fewer units in common. Events that need a system call are
    /// read for recorded units only; `longer` reads them at each begin, too.
    ///
    /// `sums`: histograms and sums of each region, in constant space, some hundred KB per thread. `export`, the slowest unit in `diff`, and
    /// combining by label need single units.
    #[arg(long, value_name = "WHICH", default_value = "all", value_parser = Units::parse)]
    pub(super) units: Units,
    /// End the recording when a run's records have this size (`500M`, `4G`); the program goes on
    ///
    /// Default: half of the free space of the output's file system.
    #[arg(long, value_name = "SIZE", value_parser = memory::size)]
    pub(super) max_size: Option<u64>,
    /// Record up to this many calls that led to each parallel region (at most 128), or `none`
    #[arg(long, value_name = "N|none", default_value = "32", value_parser = context_depth)]
    pub(super) context_depth: u32,
    /// Look where each thread is, this often in a second of its processor time, or `off`
    ///
    /// It tells lines and functions of regions, and of code outside of them (`ompfuse report --lines`). The kernel does it from
    /// outside. Where it would slow the program down it ends, and where the kernel forbids it there are no samples.
    #[arg(long, value_name = "RATE|off", default_value_t = Rate::default())]
    pub(super) sampling: Rate,
    #[command(flatten)]
    pub(super) window: WindowArgs,
    #[command(flatten)]
    pub(super) simulate: SimulateArgs,
    #[command(flatten)]
    pub(super) selection: SelectArgs,
    /// Only show what would be patched, and why the rest would not; run and write nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Look at processes that run already (`4711,4712`), until they end, --for is over, or Ctrl-C: by samples only
    ///
    /// They are not stopped, and nothing of them is changed. Regions are known from threads' stacks, so there are shares, and no
    /// executions or units.
    #[arg(short, long, value_name = "PID", value_delimiter = ',', conflicts_with_all = ONLY_RECORDS, conflicts_with = "command")]
    pub(super) pid: Vec<u32>,
    /// Look at the program by samples only: it runs as it is, unpatched
    ///
    /// As for a program that can't be patched. For units that are shorter than what recording them takes.
    #[arg(long, conflicts_with_all = ONLY_RECORDS, conflicts_with_all = ["pid", "length"])]
    pub(super) sampled: bool,
    /// The program and its arguments
    // No values with hyphens: an option with a typo would be the program. Behind the program's name they are its own.
    #[arg(
        required_unless_present = "pid",
        trailing_var_arg = true,
        value_name = "CMD"
    )]
    pub(super) command: Vec<OsString>,
}

/// Of processes that run already.
impl RecordingArgs {
    /// Their numbers, each once; empty: none is meant.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let mut pids = self.pid.clone();
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Whether the program is to be looked at by samples only.
    pub(crate) fn is_sampled_only(&self) -> bool {
        self.sampled
    }

    /// The program, and its arguments.
    pub(crate) fn command(&self) -> (&OsStr, &[OsString]) {
        let (name, arguments) = self.command.split_first().expect("clap requires a command");
        (name, arguments)
    }

    /// Whether nothing is asked for that only records can tell.
    pub(crate) fn is_plain(&self) -> bool {
        let wants = self.events.is_some() || self.threads.is_some() || self.repeat > 1;
        !wants && self.selection.is_empty() && !self.simulate.is_wanted() && self.job().is_none()
    }

    pub(crate) fn sampling(&self) -> Rate {
        self.sampling
    }

    /// How long it is looked at, in nanoseconds.
    pub(crate) fn length(&self) -> Option<u64> {
        self.window.length()
    }

    pub(crate) fn debug(&self) -> &DebugArgs {
        &self.selection.debug
    }

    /// The folder for the run, and whether it was made for that.
    ///
    /// # Errors
    /// If it can't be made.
    pub(crate) fn output_folder(&self) -> anyhow::Result<(PathBuf, bool)> {
        let wanted = self.output.as_ref().map(|o| o.folder.as_path());
        let is_new = wanted.is_none_or(|folder| !folder.exists());
        Ok((run_dir::make_output(wanted)?, is_new))
    }
}

impl RecordingArgs {
    /// The command and the selection of a dry run, if that is wanted.
    pub(crate) fn dry_run(&self) -> Option<(&OsStr, &SelectArgs)> {
        let name = self.command.first()?;
        self.dry_run.then_some((name, &self.selection))
    }
}

impl RecordingArgs {
    /// Asks about words behind the program that are this command's options, unless `--` before it says whose they are.
    pub(super) fn ask_about_options(&self) {
        let Some((program, words)) = self.command.split_first() else {
            return;
        };
        let mut given = std::env::args_os();
        if given.any(|word| word == "--") && given.next().as_ref() == Some(program) {
            return;
        }
        let own = RecordingArgs::augment_args(clap::Command::new("record"));
        let is_own = |word: &&OsString| {
            let word = word.to_string_lossy();
            let name = word.split('=').next().and_then(|w| w.strip_prefix("--"));
            name.is_some_and(|name| own.get_arguments().any(|arg| arg.get_long() == Some(name)))
        };
        if let Some(word) = words.iter().find(is_own) {
            let (program, word) = (program.to_string_lossy(), word.to_string_lossy());
            output::remark(format_args!(
                "is {word} meant for ompfuse? behind {program} it is the program's; ompfuse's options stand before the program, and `-- \
                 {program}` says that all behind is the program's"
            ));
        }
    }

    /// Refuses values that don't go together.
    ///
    /// # Errors
    /// A line for the user.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let why = match self.rotate {
            Some(_) if self.units.has_sums() => {
                "--units sums can't be used with --rotate: sums are of one set of events"
            }
            Some(Rotation::Kernel) if self.simulate.is_wanted() => {
                "--rotate kernel can't be used with --simulate: the kernel has no part in it"
            }
            Some(Rotation::Kernel) if self.sets.is_limited() => {
                "--rotate kernel can't be used with --from or --max-runs: there is one run"
            }
            _ => return Ok(()),
        };
        Err(Usage(why.to_owned()).into())
    }

    /// How the runs are to be combined.
    pub(crate) fn strategy(&self) -> Strategy {
        self.sets.strategy
    }

    /// What is recorded in part or not at all, as variables of the environment.
    pub(super) fn in_part(&self) -> Vec<(&'static str, String)> {
        let depth = [(ENV_CONTEXT_DEPTH, Some(self.context_depth.into()))];
        let all = self.units.variables().into_iter().chain(depth);
        all.filter_map(|(name, value)| Some((name, value?.to_string())))
            .collect()
    }

    /// The job that the program is a rank of, if the ranks record into one folder.
    pub(super) fn job(&self) -> Option<Job> {
        let own =
            |o: &Output| o.has_pid || o.has_rank || o.variables.iter().any(|v| rank::is_of_rank(v));
        Job::of_this().filter(|_| !self.output.as_ref().is_some_and(own))
    }

    /// The numbers of threads to record with, if several were named.
    pub(crate) fn threads(&self) -> Option<&[u32]> {
        self.threads.as_ref().map(|list| &list.0[..])
    }

    /// Whether one run counts all event sets.
    pub(super) fn is_in_one_run(&self) -> bool {
        self.rotate.is_some()
    }

    /// Whether the event sets take turns in each run.
    pub(crate) fn takes_turns(&self) -> bool {
        matches!(self.rotate, Some(Rotation::Instances(_)))
    }

    /// Whether the kernel shares the counters, so that counts are scaled.
    pub(super) fn is_multiplexed(&self) -> bool {
        self.rotate == Some(Rotation::Kernel)
    }

    /// Whether several runs are recorded whose counts are scaled: they can't be combined.
    pub(crate) fn repeats_scaled(&self) -> bool {
        self.is_multiplexed() && self.repeat > 1
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
