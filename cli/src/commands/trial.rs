//! `ompfuse try`.

mod candidates;
mod folder;
mod outputs;
mod regions;
mod turns;
mod view;

use crate::atomic;
use crate::interrupt::{self, Interrupted};
use crate::launch::{self, Input, Stdout};
use crate::output::{self, note};
use crate::recording::{self, Recording, RecordingArgs};
use crate::run_dir::{Output, OutputParser};
use crate::select::Pattern;
use crate::select::set::Set;
use anyhow::{Context, Result, bail};
use clap::{Args as _, FromArgMatches};
use folder::Folder;
use ompfuse_report::Report;
use ompfuse_report::compare::statistics::paired::Paired;
use outputs::{Judge, Judged};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use turns::{Program, Trial};

/// Try other chunks, team sizes and grain sizes on the binary, and measure whether they help
///
/// The program is recorded once. What its report makes worth trying, or each --set, is a variant: a patched copy. Original and variants
/// are run in turns, without recording, until it is decided which of them are faster. A variant whose output differs is never
/// recommended. What helps is measured together at the end. Only what the program's own file hands over can be tried.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse try -- ./solver input.dat
  ompfuse try --set 'solve.c:31: chunk=64' --set 'solve.c:31: chunk=256' -- ./solver input.dat
  ompfuse try --check './is-right' --patch solver.tuned -- ./solver input.dat")]
pub(crate) struct Args {
    /// A variant: regions and what is set for them, as for `record --set` (may be repeated). Default: what the report suggests
    #[arg(long, value_name = "S: VALUES")]
    set: Vec<Set>,
    /// Look for the best chunk of these regions: powers of four first, then twice and half of the best (may be repeated)
    #[arg(long, value_name = "S", conflicts_with = "set")]
    search: Vec<Pattern>,
    /// Decides whether a variant's output is right: gets it as standard input, and exits with 0 if it is
    ///
    /// Default: the output must be that of the original, but for numbers that differ between its own runs, too.
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Begin no further turn after this time (`30s`, `2min`)
    #[arg(long, value_name = "TIME", default_value = "2min", value_parser = recording::nanoseconds)]
    budget: u64,
    /// The most turns
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    turns: u32,
    /// Write the program with what helps most to this file; it needs no runtime library
    #[arg(long, value_name = "OUT")]
    patch: Option<PathBuf>,
    /// Folder for the recorded run (default: ompfuse-out, or the next free ompfuse-out-N)
    #[arg(short, long, value_name = "DIR", value_parser = OutputParser)]
    output: Option<Output>,
    #[command(flatten)]
    format: output::FormatArg,
    #[command(flatten)]
    quiet: output::QuietArg,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// The file with a line on what came of it, beside the recorded run.
pub(super) const TRIED: &str = "tried.txt";

/// The file with the recorded run's output.
const RECORDED: &str = "recorded";

/// Chunks that a search begins with: 1, 4, 16 ...
const SEARCHED: u32 = 7;

/// What came of it.
#[derive(Debug, Serialize)]
struct Answer {
    folder: PathBuf,
    /// Median time of the original, in seconds.
    original_s: Option<f64>,
    variants: Vec<Variant>,
    /// Position in `variants` of the one that helps most; null: none is known to help.
    best: Option<usize>,
    /// The file with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    patched: Option<PathBuf>,
}

/// A variant.
#[derive(Debug, Serialize)]
struct Variant {
    set: Vec<String>,
    /// Pairs of runs.
    turns: u32,
    time: Option<Paired>,
    output: Option<Judged>,
    /// The share of the time that the original's report says is lost in the parallel regions around.
    lost: Option<f64>,
    /// The change of the time of these regions, of a variant that helps: recorded in turns.
    region_time: Option<Paired>,
    /// Why that isn't measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    region_reason: Option<String>,
    /// Why it was not tried, or not to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip)]
    sets: Vec<Set>,
    /// Nothing more has to be recorded.
    #[serde(skip)]
    is_done: bool,
}

impl Variant {
    fn new(sets: Vec<Set>) -> Variant {
        Variant {
            set: sets.iter().map(|s| s.text.clone()).collect(),
            turns: 0,
            time: None,
            output: None,
            lost: None,
            region_time: None,
            region_reason: None,
            reason: None,
            sets,
            is_done: false,
        }
    }

    fn give_up(&mut self, reason: String) {
        self.reason.get_or_insert(reason);
        self.is_done = true;
    }

    /// It is known to be faster, and does the same.
    fn helps(&self) -> Option<f64> {
        let is_good = self.output.is_some_and(Judged::is_good) && self.reason.is_none();
        let found = self.time.filter(|t| t.is_decided && t.high < 0.0)?;
        is_good.then_some(found.change)
    }
}

pub(super) fn run(args: &Args) -> Result<u8> {
    args.quiet.apply();
    if let Some(out) = &args.patch {
        atomic::check_ahead(out)?;
        let program = launch::find(&args.command[0])?;
        if out.canonicalize().ok() == program.canonicalize().ok() {
            bail!(
                "the patched copy would replace {}; name another file with --patch",
                program.display()
            );
        }
    }
    let tried = tried(args);
    output::mute(false);
    let (mut answer, status) = tried?;
    if status != 0 {
        note("the program failed, so nothing was tried");
        return Ok(status);
    }
    if let (Some(out), Some(best)) = (&args.patch, answer.best) {
        let program = launch::find(&args.command[0])?;
        super::patch::tuned(&program, out, answer.variants[best].sets.clone())?;
        answer.patched = Some(out.clone());
    }
    match args.format.is_json() {
        true => output::print_json(&answer)?,
        false => output::print(&view::text(&answer))?,
    }
    if !answer.variants.is_empty() {
        let line = format!("tried: {}\n", view::verdict(&answer));
        atomic::write(&answer.folder.join(TRIED), line.as_bytes(), 0o600)?;
    }
    Ok(0)
}

/// Records a command once, with these options of `record` beside. `stdout`: where its output goes.
fn recorded(
    command: &[OsString],
    options: &[String],
    folder: &Path,
    stdout: &Path,
) -> Result<Recording> {
    let parser = RecordingArgs::augment_args(clap::Command::new("try").no_binary_name(true));
    let folder = folder.to_string_lossy().replace('%', "%%");
    let fixed = ["--events=none", "--context-depth=none", "-o", &folder];
    let options = options.iter().map(String::as_str);
    let all = fixed.into_iter().chain(options).chain(["--"]);
    let all = all.map(OsString::from).chain(command.iter().cloned());
    let recording = RecordingArgs::from_arg_matches(&parser.try_get_matches_from(all)?)?;
    let recording = recording::record(&recording, Stdout::File(stdout.to_owned()))?;
    match recording.interrupted() {
        Some(signal) => Err(Interrupted(signal).into()),
        None => Ok(recording),
    }
}

fn tried(args: &Args) -> Result<(Answer, u8)> {
    let file = launch::find(&args.command[0])?;
    let folder = tempfile::tempdir().context("cannot make a folder")?;
    let stdin = Input::remember(folder.path(), 2)?;
    if matches!(stdin, Input::Pipe(_)) {
        bail!(
            "standard input is a pipe, which only one run could read; give it as a file: `< FILE`, or `< /dev/null`"
        );
    }
    let mut trial = Trial {
        command: &args.command,
        programs: vec![Program {
            file,
            times: vec![],
        }],
        variants: vec![],
        folder,
        stdin,
        hold: interrupt::hold(),
        judge: Judge {
            check: args.check.as_deref(),
            own: outputs::Difference::More,
        },
        longest: 0.0,
        ends: Instant::now() + Duration::from_nanos(args.budget),
        most: args.turns,
    };
    // What can't be set is said before anything is run.
    let mut sets: Vec<Vec<Set>> = args.set.iter().map(|set| vec![set.clone()]).collect();
    sets.extend(args.search.iter().flat_map(|regions| {
        let chunks = (0..SEARCHED).map(|n| 4u32.pow(n));
        chunks.map(|chunk| vec![Set::chunk(regions, chunk)])
    }));
    for set in &sets {
        trial.patch("checked", set)?;
    }
    let wanted = args.output.as_ref().map(|output| output.folder.as_path());
    let folder = Folder::new(wanted)?;
    let recording = recorded(&args.command, &[], &folder.path, &trial.file(RECORDED))?;
    output::mute(true); // the patched copy is told of once
    let mut status = recording.status();
    if status == 0 {
        status = trial.begin()?;
    }
    if let (0, Some(run)) = (status, recording.runs.first()) {
        let report = regions::report(&run.path)?;
        if sets.is_empty() {
            sets = suggested(&report, &trial.programs[0].file)?;
        }
        for sets in sets {
            trial.add(sets)?;
        }
        trial.go_on(0)?;
        trial.refine(&args.search)?;
        trial.together()?;
        trial.compare_regions(&report)?;
        for variant in &mut trial.variants {
            variant.lost = regions::lost(&report, &variant.sets);
        }
    }
    let mut times = trial.programs[0].times.clone();
    times.sort_by(f64::total_cmp);
    let all = trial.variants.iter().enumerate();
    let helping = all.filter_map(|(at, v)| Some((at, v.helps()?)));
    let best = helping.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at);
    let answer = Answer {
        folder: match status {
            0 => folder.keep(),
            _ => folder.path.clone(),
        },
        original_s: times.get(times.len() / 2).copied(),
        best,
        variants: trial.variants,
        patched: None,
    };
    Ok((answer, status))
}

/// What the report of the original makes worth trying.
fn suggested(report: &Report, program: &Path) -> Result<Vec<Vec<Set>>> {
    let is_program = |path: &str| {
        let (file, program) = (Path::new(path).canonicalize(), program.canonicalize());
        file.ok() == program.ok()
    };
    let own = report.modules.iter().filter(|m| is_program(&m.path));
    let own: Vec<&str> = own
        .map(|m| m.build_id.as_deref().unwrap_or(&m.path))
        .collect();
    let found = candidates::candidates(report, &own);
    let parsed = found.iter().map(|text| text.parse::<Set>());
    let parsed: Result<Vec<Set>, String> = parsed.collect();
    let sets = parsed.map_err(anyhow::Error::msg)?;
    Ok(sets.into_iter().map(|set| vec![set]).collect())
}
