//! `ompfuse ctl`.

use crate::output;
use crate::running::{self, Access, Change, Changes, PATIENCE, Running, event_set, held};
use crate::select::Selector;
use anyhow::{Context, Result, ensure};
use ompfuse_format::control::OFF;
use ompfuse_format::record::USER_MODULE;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Change what is recorded of a program while it runs
///
/// Each thread applies a change at its next execution unit. Labels don't change if regions are off. Without an option this shows the
/// current settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run's folder, the folder of `ompfuse record -o`, or a process's number
    #[arg(value_name = "DIR|PID")]
    target: PathBuf,
    /// Pause recording, or go on: in all present and later processes of the folder, or in one process
    #[arg(value_enum, value_name = "pause|resume")]
    hold: Option<Hold>,
    /// Stop recording these regions (may be repeated)
    ///
    /// Selectors as for `patch --select`. `user:NAME` is a region that the program has named through ompfuse.h.
    #[arg(long, value_name = "S")]
    disable: Vec<Selector>,
    /// Record these regions again (applied after --disable)
    #[arg(long, value_name = "S")]
    enable: Vec<Selector>,
    /// Count these events from now on; `default`: the events at the recording's begin
    ///
    /// Given several times, with --rotate: these sets in turn.
    #[arg(long, value_name = "LIST")]
    events: Vec<String>,
    /// Count the events of --events in these regions only
    #[arg(long, value_name = "S", requires = "events")]
    select: Vec<Selector>,
    /// Take the next event set after every N instances of a region on a thread; 0 stops this
    #[arg(long, value_name = "N")]
    rotate: Option<u32>,
    /// Take all settings from a file
    ///
    /// Its lines are `disable S`, `enable S`, `events LIST`, `events LIST on S`, `rotate N`, or those of a
    /// filter file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["disable", "enable", "events", "select", "rotate"])]
    reload: Option<PathBuf>,
    #[command(flatten)]
    format: output::FormatArg,
}

/// What becomes of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Hold {
    /// Nothing is recorded until it is resumed
    Pause,
    /// It goes on after a pause, or begins after `record --delay resume`
    Resume,
}

pub(super) fn run(args: &Args) -> Result<()> {
    let changes = match &args.reload {
        Some(file) => Some(Changes::read(file)?),
        None => args.changes()?,
    };
    if let Some(hold) = args.hold
        && !held::hold(&args.target, hold == Hold::Pause)?
    {
        output::note(format_args!(
            "no process is being recorded in {} yet; those that start will know",
            args.target.display()
        ));
        if changes.is_none() {
            return match args.format.is_json() {
                true => output::print_json(&Answer { processes: vec![] }),
                false => Ok(()),
            };
        }
    }
    let access = match changes {
        Some(_) => Access::Change,
        None => Access::Look,
    };
    let processes = whole(running::find(&args.target, access)?)?;
    if let Some(changes) = changes {
        changes.apply(&processes, PATIENCE)?;
    }
    if let Some(file) = &args.reload {
        let file = std::path::absolute(file).context("cannot find the current folder")?;
        for process in &processes {
            process.control.change(PATIENCE, |c| c.reload_file(&file))?;
        }
    }
    let states = processes
        .iter()
        .map(State::of)
        .collect::<Result<Vec<_>>>()?;
    if args.format.is_json() {
        return output::print_json(&Answer { processes: states });
    }
    output::print(&states.iter().map(State::line).collect::<String>())
}

/// Those whose files can be read; what is wrong with others is said, if there are any.
fn whole(processes: Vec<Running>) -> Result<Vec<Running>> {
    let (mut whole, mut damaged) = (Vec::new(), Vec::new());
    for process in processes {
        match process.modules() {
            Ok(_) => whole.push(process),
            Err(error) => damaged.push(error),
        }
    }
    if whole.is_empty()
        && let Some(error) = damaged.pop()
    {
        return Err(error);
    }
    for error in damaged {
        output::note(format_args!("{error:#}"));
    }
    Ok(whole)
}

impl Args {
    fn changes(&self) -> Result<Option<Changes>> {
        let events = self.events.iter().map(|list| event_set(list));
        let events = events.collect::<Result<Vec<_>>>()?;
        let switch = |on| {
            move |what: &Selector| Change::Switch {
                what: what.clone(),
                on,
            }
        };
        let off = self.disable.iter().map(switch(false));
        let mut list: Vec<Change> = off.chain(self.enable.iter().map(switch(true))).collect();
        let sets = if self.select.is_empty() {
            let turns = self.rotate.is_some_and(|n| n > 0);
            ensure!(
                events.len() < 2 || turns,
                "several event sets need --rotate N"
            );
            events
        } else {
            ensure!(events.len() == 1, "--select takes one --events");
            list.extend(self.select.iter().map(|what| Change::OwnSet {
                names: events[0].clone(),
                what: what.clone(),
            }));
            Vec::new()
        };
        let is_nothing = list.is_empty() && sets.is_empty() && self.rotate.is_none();
        Ok((!is_nothing).then(|| Changes {
            list,
            sets,
            rotate: self.rotate,
            ..Changes::default()
        }))
    }
}

#[derive(Debug, Serialize)]
struct Answer {
    processes: Vec<State>,
}

/// What holds in a process.
#[derive(Debug, Serialize)]
struct State {
    pid: u32,
    folder: PathBuf,
    /// Regions, and those that are off.
    regions: usize,
    regions_off: usize,
    /// Regions that the program itself has named, and that are off.
    user_regions_off: usize,
    #[serde(flatten)]
    control: crate::running::State,
}

impl State {
    fn of(process: &Running) -> Result<State> {
        let (mut regions, mut regions_off) = (0, 0);
        for (number, module) in process.modules()? {
            let Some((_, table)) = process.control.table(number)? else {
                continue;
            };
            let begins = module.sites.iter().filter(|s| s.region == s.id);
            for site in begins {
                regions += 1;
                let byte = table.get(site.id as usize).copied().unwrap_or(0);
                regions_off += usize::from(byte & OFF != 0);
            }
        }
        let named = process.control.table(USER_MODULE)?.unwrap_or_default().1;
        Ok(State {
            user_regions_off: named.iter().filter(|&&byte| byte & OFF != 0).count(),
            pid: process.pid,
            folder: process.folder.clone(),
            regions,
            regions_off,
            control: process.control.state()?,
        })
    }

    fn line(&self) -> String {
        let name = |set: u32| match self.control.sets.get(set as usize) {
            Some(names) if !names.is_empty() => names.clone(),
            _ => "times only".to_owned(),
        };
        let sets = if self.control.rotate > 0 {
            let sets: Vec<_> = self.control.rotating.iter().map(|&s| name(s)).collect();
            format!(
                "{} in turn, each for {} instances of a region",
                sets.join(" and "),
                self.control.rotate
            )
        } else {
            name(self.control.set)
        };
        let off = match self.regions_off {
            0 => String::new(),
            off => format!(", {off} of {} regions off", self.regions),
        };
        let named_off = match self.user_regions_off {
            0 => String::new(),
            off => format!(", {off} of the program's own regions off"),
        };
        let paused = match (self.control.held, self.control.paused) {
            (true, _) => ", nothing is recorded until --resume",
            (false, true) => ", paused by the program",
            (false, false) => "",
        };
        let folder: &Path = &self.folder;
        format!(
            "{} in {}: {sets}{off}{named_off}{paused}\n",
            self.pid,
            folder.display()
        )
    }
}
