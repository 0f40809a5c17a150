//! `ompfuse record`.

use crate::attached::{self, Recorded};
use crate::launch::Stdout;
use crate::load;
use crate::output;
use crate::recording::{self, Recording, RecordingArgs, probes};
use anyhow::Result;
use ompfuse_report::words;
use std::path::Path;

/// Run a program once per event set and keep what was recorded
///
/// The program is patched first, unless it is patched already. The command ends with the program's exit status. The patched copy is
/// in a cache folder. A program that looks for files beside itself (/proc/self/exe, $ORIGIN) looks there: patch it with `ompfuse
/// patch`, and record that copy.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    recording: RecordingArgs,
    /// Record this command too, in turns with the other one: A B, B A, A B ... Folders `a` and `b` of the output are for `diff`
    ///
    /// Words are divided as a shell does it. A first run of each is not kept. It ends when it is decided whether the programs'
    /// own times differ, or after --turns. One decision in a hundred is wrong, however often it is looked at.
    #[arg(long, value_name = "CMD", conflicts_with_all = ["threads", "repeat", "dry_run", "control", "pid"])]
    against: Option<String>,
    /// With --against: the most turns
    #[arg(long, value_name = "N", default_value_t = 32, requires = "against", value_parser = clap::value_parser!(u32).range(4..=10_000))]
    turns: u32,
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
    if let Some(against) = &args.against {
        let is_json = args.output.is_json();
        let stdout = Stdout::beside(is_json);
        let turns = recording::in_turns(&args.recording, against, args.turns, &stdout)?;
        match is_json {
            true => output::print_json(&turns)?,
            false => turns.tell(),
        }
        return Ok(turns.status);
    }
    let stdout = Stdout::beside(args.output.is_json());
    let recording = match attached::record(&args.recording, stdout)? {
        Recorded::Records(recording) => recording,
        Recorded::Samples(run, status) => {
            output::remark(format_args!("samples are in {}", run.display()));
            return Ok(status);
        }
    };
    if recording.leaves_summary() {
        load::job::leave(&recording.folder, None);
    }
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
    if let Some(told) = last.and_then(|run| uncounted(&run.path)) {
        output::note(told);
    }
    Ok(())
}

/// What of a run's work is in code that isn't counted, if that is much.
fn uncounted(run: &Path) -> Option<String> {
    let work = load::uncounted(run).ok()??; // what can't be read is told by whoever reads it
    words::uncounted_share(&work).filter(|_| work.is_much())
}
