//! Two builds, recorded in turns: what slows a machine down for a while slows both of them down.

use super::{Recording, RecordingArgs, Run, record};
use crate::launch::{self, Input, Stdout};
use crate::load::sides;
use crate::output::{self, Usage, note, remark};
use crate::run_dir::{self, Output};
use anyhow::{Context, Result, bail, ensure};
use ompfuse_account::paired::{ERROR, Paired, is_look, paired};
use serde::Serialize;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Folders in the output.
const SIDES: [&str; 2] = ["a", "b"];

/// What came of it.
#[derive(Debug, Serialize)]
pub(crate) struct Turns {
    /// The folder of both sides, `a` and `b`.
    pub(crate) folder: PathBuf,
    /// Turns that were taken.
    pub(crate) turns: u32,
    /// The most that were wanted.
    pub(crate) most: u32,
    /// How the programs' own times differ.
    pub(crate) own_time: Option<Paired>,
    /// The runs of both, in the order of the turns.
    pub(crate) runs: [Vec<Run>; 2],
    /// Exit status of a program that failed, which ended it.
    #[serde(skip)]
    pub(crate) status: u8,
}

/// Records `args`' command and another one in turns, `most` times at most.
pub(crate) fn in_turns(
    args: &RecordingArgs,
    against: &str,
    most: u32,
    stdout: &Stdout,
) -> Result<Turns> {
    let turns = recorded(args, against, most, stdout);
    output::mute(false);
    if turns.as_ref().is_ok_and(|turns| turns.status != 0) {
        note("a program failed, so no further turn was taken");
    }
    turns
}

fn recorded(args: &RecordingArgs, against: &str, most: u32, stdout: &Stdout) -> Result<Turns> {
    let words = shlex::split(against).filter(|words| !words.is_empty());
    let words = words.ok_or_else(|| {
        Usage(format!(
            "--against: {against:?} is no command: a quote has no end, or it is empty"
        ))
    })?;
    let commands = [
        args.command.clone(),
        words.into_iter().map(OsString::from).collect(),
    ];
    for command in &commands {
        launch::find(&command[0])?; // before anything is recorded
    }
    let wanted = args.output.as_ref().map(|o| o.folder.as_path());
    let folder = run_dir::make_output(wanted)?;
    for side in SIDES {
        let side = folder.join(side);
        ensure!(
            !side.exists(),
            "{} exists; name another folder with -o",
            side.display()
        );
    }
    let mut stdin = Input::remember(&folder, 2)?;
    let mut once = |side: usize, into: &Path| -> Result<Recording> {
        if stdin.next(1)?.is_some() {
            bail!(
                "standard input is a pipe, which only one run could read; give it as a file: `< FILE`"
            );
        }
        let output = Output {
            folder: into.to_owned(),
            variables: vec![],
            has_pid: false,
            has_rank: false,
        };
        let args = RecordingArgs {
            command: commands[side].clone(),
            output: Some(output),
            ..args.clone()
        };
        let recording = record(&args, stdout.clone());
        output::mute(true); // what is noted of one run holds for all
        recording
    };
    let mut turns = Turns {
        folder: folder.clone(),
        turns: 0,
        most,
        own_time: None,
        runs: [vec![], vec![]],
        status: 0,
    };
    // Files are not in memory yet, and caches are cold: the first run of each is another one's.
    let warm_up = tempfile::tempdir_in(&folder).context("cannot make a folder")?;
    for side in [0, 1] {
        turns.status = once(side, &warm_up.path().join(SIDES[side]))?.status();
        if turns.status != 0 {
            return Ok(turns);
        }
    }
    drop(warm_up);
    let mut times = [vec![], vec![]];
    for turn in 1..=most {
        // A B, B A, A B ...
        for side in if turn % 2 == 1 { [0, 1] } else { [1, 0] } {
            let recording = once(side, &folder.join(SIDES[side]))?;
            turns.status = recording.status();
            for run in recording.runs {
                times[side].extend(sides::own_s(&run.path)?);
                turns.runs[side].push(run);
            }
            if turns.status != 0 {
                return Ok(turns);
            }
        }
        turns.turns = turn;
        turns.own_time = paired(&times[0], &times[1], most);
        if is_look(turn, most) && turns.own_time.is_some_and(|found| found.is_decided) {
            break;
        }
    }
    Ok(turns)
}

impl Turns {
    /// Says what was found, and what to do with it.
    pub(crate) fn tell(&self) {
        let folder = self.folder.display();
        if self.status != 0 {
            return;
        }
        remark(format_args!(
            "{} of at most {} turns in {folder}, after a run of each that was not kept",
            self.turns, self.most
        ));
        if let Some(found) = self.own_time {
            let percent = |share: f64| format!("{:+.1}%", 100.0 * share);
            let interval = format!(
                "{:.1}% interval {} to {}",
                100.0 * found.level,
                percent(found.low),
                percent(found.high)
            );
            let decided = match found.is_decided {
                true => format!("{:.0}% of such decisions are wrong", 100.0 * ERROR),
                false => "that is undecided: take more turns".to_owned(),
            };
            remark(format_args!(
                "B's own time: {} of A's ({interval}); {decided}",
                percent(found.change)
            ));
        }
        remark(format_args!(
            "compare them: ompfuse diff {folder}/a {folder}/b"
        ));
    }
}
