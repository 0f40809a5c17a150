//! `ompfuse try`.

mod copies;
mod files;
mod folder;
mod outputs;
mod predicted;
mod regions;
mod runs;
mod suggested;
mod turns;
mod view;

use crate::binary::{self, Besides};
use crate::debug::DebugArgs;
use crate::interrupt::{self, Interrupted};
use crate::launch::{self, Input, Stdout};
use crate::output::{self, note};
use crate::recording::{self, Recording, RecordingArgs};
use crate::run_dir::{Output, OutputParser};
use crate::select::set::Set;
use crate::select::{CallArgs, Selector};
use crate::{atomic, input, load, processors};
use anyhow::{Context, Result, bail};
use clap::{Args as _, FromArgMatches};
use copies::Copies;
use files::{Listing, Seen};
use folder::Folder;
use ompfuse_account::model::{Running, Tried, TriedVariant};
use ompfuse_account::trying::{self, Variable};
use ompfuse_format::site::Parameter;
use ompfuse_progress::Progress;
use ompfuse_report::words;
use outputs::Judge;
use runs::{Load, Program};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use suggested::{of_libraries, suggested};
use turns::Trial;

/// Try other chunks, team sizes, grain sizes, cutoffs and variables of the environment, and measure whether they help
///
/// The program is recorded once. What its report makes worth trying, or each --set, is a variant: a patched copy, or a variable. Original and variants
/// are run in turns, without recording, until it is decided which of them are faster. A variant whose output differs is never
/// recommended. What helps is measured together at the end.
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
    search: Vec<Selector>,
    /// Decides whether a variant's output is right: gets it as standard input, and exits with 0 if it is
    ///
    /// Default: the output must be that of the original, but for numbers that differ between its own runs, too.
    #[arg(long, value_name = "CMD")]
    check: Option<String>,
    /// Compare files that the program writes, too: NAME or path in this folder, also with `*` and `?` (may be repeated). Each run has a copy of the folder
    #[arg(long, value_name = "NAME")]
    compare_files: Vec<String>,
    /// Begin no further turn after this time (`30s`, `2min`)
    #[arg(long = "for", value_name = "TIME", default_value = "2min", value_parser = recording::nanoseconds)]
    budget: u64,
    /// The most turns
    #[arg(long, value_name = "N", default_value_t = 24, value_parser = clap::value_parser!(u32).range(4..=10_000))]
    turns: u32,
    /// Write the program with what helps most to this file; it needs no runtime library. Libraries keep their values then
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

/// The file with what came of it, beside the recorded run.
const TRIED: &str = "tried.json";

/// The file with the recorded run's output.
const RECORDED: &str = "recorded";

/// Chunks that a search begins with: 1, 4, 16 ...
const SEARCHED: u32 = 7;

/// What came of it.
#[derive(Debug, Serialize)]
struct Answer {
    folder: PathBuf,
    #[serde(flatten)]
    tried: Tried,
    /// The file with the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    patched: Option<PathBuf>,
    /// Settings of the best one in the program's own file, and whether these are all.
    #[serde(skip)]
    own: (Vec<Set>, bool),
    /// The file that was to be written.
    #[serde(skip)]
    wanted: Option<PathBuf>,
    /// That threads lacked processors in the recorded run, in words.
    #[serde(skip)]
    starved: Option<String>,
    /// The program and its arguments.
    #[serde(skip)]
    command: Vec<OsString>,
}

/// A variant.
#[derive(Debug)]
struct Variant {
    told: TriedVariant,
    sets: Vec<Set>,
    env: Vec<Variable>,
    /// Nothing more has to be recorded.
    is_done: bool,
}

impl Variant {
    fn new(sets: Vec<Set>, env: Vec<Variable>) -> Variant {
        Variant {
            told: TriedVariant {
                set: sets.iter().map(|s| s.text.clone()).collect(),
                env: env
                    .iter()
                    .map(|v| trying::text(std::slice::from_ref(v)))
                    .collect(),
                ..TriedVariant::default()
            },
            sets,
            env,
            is_done: false,
        }
    }

    fn give_up(&mut self, reason: String) {
        self.told.reason.get_or_insert(reason);
        self.is_done = true;
    }
}

/// What was tried beside a run.
pub(super) fn read(input: &Path) -> Option<Tried> {
    let folder = match load::is_run(input) {
        true => input.parent()?,
        false => input,
    };
    let text = std::fs::read_to_string(folder.join(TRIED)).ok()?;
    serde_json::from_str(&text).ok()
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
    if let Some(out) = args.patch.as_ref().filter(|_| !answer.own.0.is_empty()) {
        let program = launch::find(&args.command[0])?;
        super::patch::tuned(&program, out, answer.own.0.clone())?;
        answer.patched = Some(out.clone());
    }
    match args.format.is_json() {
        true => output::print_json(&answer)?,
        false => output::print(&view::text(&answer))?,
    }
    if !answer.tried.variants.is_empty() {
        let text = serde_json::to_string_pretty(&answer.tried)? + "\n";
        atomic::write(&answer.folder.join(TRIED), text.as_bytes(), 0o600)?;
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
        modules: vec![],
        has_own: has_own(&file)?,
        programs: vec![Program::new(file)],
        variants: vec![],
        folder,
        stdin,
        hold: interrupt::hold(),
        judge: Judge {
            check: args.check.as_deref(),
            own: outputs::Difference::More,
            own_files: outputs::Difference::More,
        },
        copies: None,
        seen: None,
        found: Seen::default(),
        changed: vec![],
        load: Load::default(),
        longest: 0.0,
        ends: Instant::now() + Duration::from_nanos(args.budget),
        most: args.turns,
    };
    let sets = asked_for(args, &mut trial)?;
    let mut best = None;
    let mut running = None;
    let wanted = args.output.as_ref().map(|output| output.folder.as_path());
    let folder = Folder::new(wanted)?;
    let here = std::env::current_dir().context("cannot read this folder's name")?;
    if !args.compare_files.is_empty() {
        let within = trial.folder.path();
        trial.copies = Some(Copies::new(&args.compare_files, within, &folder.path)?);
    }
    let before = Listing::of(&here, &[&folder.path]);
    let recording = recorded(&args.command, &[], &folder.path, &trial.file(RECORDED))?;
    let after = Listing::of(&here, &[&folder.path]);
    let both = before.zip(after);
    trial.changed = both.map_or(vec![], |(before, after)| before.changes(&after));
    output::mute(true); // the patched copy is told of once
    let mut status = recording.status();
    if status == 0 {
        status = trial.begin()?;
    }
    if let (0, Some(run)) = (status, recording.runs.first()) {
        (best, running) = search(args, &mut trial, &run.path, sets)?;
    }
    let sets = best.map_or(&[][..], |at| &trial.variants[at].sets);
    let own: Vec<Set> = sets.iter().filter(|s| trial.is_own(s)).cloned().collect();
    let is_all = own.len() == sets.len();
    let processors = processors::available();
    let answer = Answer {
        starved: (running.as_ref().filter(|r| r.is_starved)).map(words::lacked),
        command: args.command.clone(),
        folder: match status {
            0 => folder.keep(),
            _ => folder.path.clone(),
        },
        own: (own, is_all),
        wanted: args.patch.clone(),
        tried: Tried {
            original_s: trial.original_s(),
            best,
            processors,
            taken: processors.and_then(|n| trial.load.share(n)),
            is_starved: running.is_some_and(|r| r.is_starved),
            changed_files: std::mem::take(&mut trial.changed),
            compared_files: args.compare_files.clone(),
            variants: trial.variants.into_iter().map(|v| v.told).collect(),
        },
        patched: None,
    };
    Ok((answer, status))
}

/// Tries what the options say, or what the recorded run suggests. Returns the best variant, and whether threads had processors in that run.
fn search(
    args: &Args,
    trial: &mut Trial<'_>,
    run: &Path,
    mut sets: Vec<Vec<Set>>,
) -> Result<(Option<usize>, Option<Running>)> {
    let recorded = regions::read(run)?;
    let mut variables = vec![];
    if sets.is_empty() {
        (sets, variables) = suggested(
            &recorded.proposals,
            &trial.programs[0].file,
            args.patch.is_none(),
        )?;
        variables.extend(of_libraries(&trial.found, &recorded.report));
        // The report doesn't tell which tasks can have a cutoff.
        let is_doubtful = |set: &Set| set.values.contains_key(&Parameter::Cutoff);
        let fails = |sets: &Vec<Set>| {
            sets.iter().any(is_doubtful)
                && trial.is_own(&sets[0])
                && trial.patch("checked", sets).is_err()
        };
        sets.retain(|sets| !fails(sets));
    }
    if sets.iter().flatten().any(|set| !trial.is_own(set)) {
        let modules = recorded.report.modules.iter();
        trial.with_libraries(modules.map(|m| PathBuf::from(&m.path)).collect())?;
    }
    // By turns, so that a short budget leaves out the last of both.
    let mut of_sets = sets.into_iter().map(|sets| (sets, vec![]));
    let mut of_variables = variables.into_iter().map(|env| (vec![], env));
    let both = std::iter::from_fn(|| match (of_sets.next(), of_variables.next()) {
        (None, None) => None,
        (set, variable) => Some(set.into_iter().chain(variable)),
    });
    let mut all: Vec<_> = both.flatten().collect();
    trial.check_budget(&mut all)?;
    for (sets, env) in all {
        trial.add(sets, env)?;
    }
    trial.go_on(0)?;
    trial.refine(&args.search)?;
    trial.together()?;
    let best = trial.confirmed()?;
    trial.compare_regions(&recorded.report)?;
    let variants = trial.variants.iter_mut().filter(|v| !v.sets.is_empty());
    for Variant { told, sets, .. } in variants {
        told.lost = regions::lost(&recorded.report, sets);
        told.predicted = recorded.change(sets);
    }
    Ok((best, recorded.report.running))
}

/// What the options ask for. What can't be set is said before anything is run.
fn asked_for(args: &Args, trial: &mut Trial<'_>) -> Result<Vec<Vec<Set>>> {
    let mut sets: Vec<Vec<Set>> = args.set.iter().map(|set| vec![set.clone()]).collect();
    sets.extend(args.search.iter().flat_map(|regions| {
        let chunks = (0..SEARCHED).map(|n| 4u32.pow(n));
        chunks.map(|chunk| vec![Set::chunk(regions, chunk)])
    }));
    for set in &sets {
        match trial.is_own(&set[0]) {
            true => drop(trial.patch("checked", set)?),
            false if args.patch.is_some() => bail!(
                "--patch writes the program's own file, and {} is about another one; `ompfuse patch LIBRARY --dormant --set ...` writes that",
                set[0].text
            ),
            false => {}
        }
    }
    Ok(sets)
}

/// Whether a program's own file has calls of an OpenMP runtime.
fn has_own(file: &Path) -> Result<bool> {
    let bytes = input::map(file)?;
    if bytes.starts_with(b"#!") {
        return Ok(false);
    }
    let debug = DebugArgs::default().find(file, &bytes);
    let besides = Besides {
        functions: None,
        calls: CallArgs::default(),
    };
    let scan = binary::scan(file, &bytes, &debug, besides, false, Progress::default());
    // What else is wrong with it is told where it is patched.
    Ok(!scan.is_err_and(|error| binary::has_nothing(&error)))
}
