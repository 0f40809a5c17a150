//! `ompfuse profile`.

use crate::attached::{self, Recorded};
use crate::launch::Stdout;
use crate::load::{self, PROFILE_NAME};
use crate::output::Usage;
use crate::recording::{Recording, RecordingArgs};
use crate::{atomic, memory, output, progress};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Run a program, record its OpenMP constructs, and report where the time went
///
/// ompfuse patches a copy of the program and runs it once for each set of events that can be counted together. Runs and profile stay
/// in the output folder; `ompfuse report` shows them again. The program's output and exit status stay as they are.
///
/// The report goes to the terminal, or to standard error if standard output is a file or a pipe. With --format json the JSON goes to
/// standard output, and the program's output to standard error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ompfuse profile -- ./solver input.dat
  ompfuse profile --events none -- ./solver             # times only, which costs least
  ompfuse profile --report report.txt -- ./solver > result
  ompfuse profile --threads 1,2,4,8 -- ./solver        # how it scales, and what limits it
  ompfuse profile --threads 1-8 --weak -- ./solver {threads}000")]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    memory: memory::Arg,
    /// With --threads: the work grows with the number of threads, so the time should stay the same
    #[arg(long, requires = "threads")]
    weak: bool,
    /// Write the report to this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    how: super::report::ReportArgs,
    #[command(flatten)]
    quiet: output::QuietArg,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    args.quiet.apply();
    if let Some((command, selection)) = args.recording.dry_run() {
        return super::patch::dry_run(command, selection, args.how.format()).map(|()| 0);
    }
    if args.recording.repeats_scaled() {
        bail!(
            "the runs of --rotate kernel can't be combined, their counts are scaled: leave --repeat out, or use record"
        );
    }
    if let Some([threads]) = args.recording.threads() {
        return Err(Usage(format!(
            "--threads {threads} is one number of threads, two are needed to compare; to record one: OMP_NUM_THREADS={threads}"
        ))
        .into());
    }
    args.how.page().check()?;
    if let Some(file) = &args.report {
        // Before the program runs.
        atomic::check_ahead(file)?;
    }
    let on_output = args.how.is_json() && args.report.is_none();
    let recording = match attached::record(&args.recording, Stdout::beside(on_output))? {
        Recorded::Records(recording) => recording,
        Recorded::Samples(run, status) => {
            let file = args.report.as_deref();
            let is_quiet = args.quiet.quiet && file.is_none() && !args.how.is_json();
            if !is_quiet || args.how.page().is_wanted() {
                super::report::hand_over_sampled(&run, &args.how, file, is_quiet)?;
            }
            output::remark(format_args!("samples are in {}", run.display()));
            return Ok(status);
        }
    };
    if recording.runs.is_empty() {
        return Ok(recording.status());
    }
    recording.status_after(match args.recording.threads() {
        Some(_) => compare(&recording, args),
        None => combine(&recording, args),
    })
}

/// Reports over the numbers of threads.
fn compare(recording: &Recording, args: &Args) -> Result<()> {
    let (folder, file) = (&recording.folder, args.report.as_deref());
    let is_quiet = args.quiet.quiet && file.is_none() && !args.how.is_json();
    if !is_quiet || args.how.page().is_wanted() {
        let (how, memory) = (&args.how, &args.memory);
        super::report::hand_over_series(folder, args.weak, memory, how, file, is_quiet)?;
    }
    output::remark(format_args!("runs are in {}", folder.display()));
    Ok(())
}

/// Combines the runs and gives the report.
fn combine(recording: &Recording, args: &Args) -> Result<()> {
    let runs: Vec<PathBuf> = recording.runs.iter().map(|r| r.path.clone()).collect();
    let path = recording.folder.join(PROFILE_NAME);
    let bar = progress::whole("combining");
    let progress = bar.progress();
    let written = match &runs[..] {
        [run] if args.recording.takes_turns() => super::combine::instances(run, &path, progress)?,
        _ => {
            let wanted = args.recording.strategy().plain();
            let memory = args.memory.bytes();
            super::combine::combine(load::inputs(&runs)?, wanted, memory, &path, progress)?
        }
    };
    drop(bar);
    if recording.leaves_summary() {
        load::job::leave(&recording.folder, Some(&written.summary));
    }
    let (how, file) = (&args.how, args.report.as_deref());
    let is_quiet = args.quiet.quiet && file.is_none() && !how.is_json();
    if !is_quiet || how.page().is_wanted() {
        super::report::hand_over(&written.summary, how, file, &recording.folder, is_quiet)?;
    }
    output::remark(format_args!(
        "runs and profile are in {}",
        recording.folder.display()
    ));
    Ok(())
}
