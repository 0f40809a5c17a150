//! `ompfuse profile`.

use crate::load::{self, PROFILE_NAME};
use crate::recording::{self, Recording, RecordingArgs};
use crate::{memory, output, progress};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// Patch a program, record every event set, combine the runs and report
///
/// The runs and the profile stay in the output folder. The program's exit status is handed on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    memory: memory::Arg,
    #[command(flatten)]
    report: super::report::ReportArgs,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    if let Some((command, selection)) = args.recording.dry_run() {
        return super::patch::dry_run(command, selection, args.report.format()).map(|()| 0);
    }
    if args.recording.repeats_scaled() {
        bail!(
            "the runs of --multiplex can't be combined, their counts are scaled: leave --repeat out, or use record"
        );
    }
    let recording = recording::record(&args.recording, args.report.is_json())?;
    if recording.runs.is_empty() {
        return Ok(recording.status());
    }
    recording.status_after(combine(&recording, args))
}

/// Combines the runs and prints the report.
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
    super::report::print(&written.summary, &args.report)?;
    output::note(format_args!(
        "runs and profile are in {}",
        recording.folder.display()
    ));
    Ok(())
}
