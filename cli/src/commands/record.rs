//! `ompfuse record`.

use crate::output;
use crate::recording::{self, Recording, RecordingArgs, probes};
use anyhow::Result;

/// Run a program once per event set and keep what was recorded
///
/// The program is patched first, unless it is patched already. The command ends with the program's exit status. The patched
/// copy is in a cache folder. A program that looks for files beside itself (/proc/self/exe, $ORIGIN) looks there. Patch
/// such a program with `ompfuse patch`: it writes a copy beside the original. Record that copy.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingArgs,
    #[command(flatten)]
    output: output::FormatArg,
    #[command(flatten)]
    quiet: output::QuietArg,
}

pub(super) fn run(args: &Args) -> Result<u8> {
    args.quiet.apply();
    if let Some((command, selection)) = args.recording.dry_run() {
        return super::patch::dry_run(command, selection, &args.output).map(|()| 0);
    }
    let recording = recording::record(&args.recording, args.output.is_json())?;
    recording.status_after(tell(&recording, args))
}

/// Says what was recorded.
fn tell(recording: &Recording, args: &Args) -> Result<()> {
    if recording.is_told_by_another {
        return Ok(());
    }
    if args.output.is_json() {
        return output::print_json(recording);
    }
    let runs = recording.runs.len();
    let word = if runs == 1 { "run" } else { "runs" };
    output::remark(format_args!(
        "{runs} {word} in {}",
        recording.folder.display()
    ));
    let last = recording.runs.last();
    if let Some(advice) = last.and_then(|run| probes::advice(&run.path, &args.recording)) {
        output::note(advice);
    }
    Ok(())
}
