//! What is to be changed in a running program: the options of `ompfuse ctl`, or the lines of a file.
//!
//! ```text
//! # only the tasks, with two event sets in turn
//! select task
//! events instructions,cycles
//! events cache-misses
//! rotate 100
//! events task-clock on lib:libsolve*
//! ```
//! Filter files (`select`, `skip`) are such files.

use super::changing::Changing;
use super::{Running, records};
use crate::input;
use crate::select::{self, Selector};
use crate::{counters, simulate};
use anyhow::{Context, Result, bail, ensure};
use ompfuse_format::control::MAX_SETS;
use ompfuse_format::record::USER_MODULE;
use ompfuse_format::run::{RunModule, TAKES_TURNS};
use ompfuse_format::simulated;
use ompfuse_fuse::names::quoted;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// The word for the event set that the recording began with, or for that of regions without one of their own.
const DEFAULT: &str = "default";

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// Regions are recorded, or not any more.
    Switch { what: Selector, on: bool },
    /// Regions get an event set of their own; without one: what all others have.
    OwnSet {
        names: Option<String>,
        what: Selector,
    },
}

impl Change {
    /// The regions that it is about.
    fn what(&self) -> &Selector {
        let (Change::Switch { what, .. } | Change::OwnSet { what, .. }) = self;
        what
    }

    /// Makes it in a module. `meant`: numbers of sites.
    fn make(&self, file: &mut Changing<'_>, module: u32, meant: &[u32]) -> Result<()> {
        match self {
            Change::Switch { on, .. } => file.switch(module, meant, *on),
            Change::OwnSet { names, .. } => {
                let set = names.as_deref().map(|n| file.set(n)).transpose()?;
                file.own_set(module, meant, set)
            }
        }
    }
}

/// Changes that belong together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Everything else is as it was when the recording began.
    pub(crate) reset: bool,
    /// Nothing is recorded but what `list` switches on.
    pub(crate) only: bool,
    pub(crate) list: Vec<Change>,
    /// The event sets of regions that have none of their own; `None` among them: the first.
    pub(crate) sets: Vec<Option<String>>,
    /// After how many instances the next of them comes.
    pub(crate) rotate: Option<u32>,
}

/// Whether an event is one of the simulated PMU.
fn is_simulated(name: &str) -> bool {
    simulated::position(name).is_some()
}

/// An event set's names as they are kept; `None` for `default`.
pub(crate) fn event_set(list: &str) -> Result<Option<String>> {
    if list == DEFAULT {
        return Ok(None);
    }
    // Which of the two a process can count is asked when it is known (`check_kinds`).
    let names = match list.split(',').any(|n| is_simulated(n.trim())) {
        true => simulate::events(Some(list))?,
        false => counters::parse_list(list)?,
    };
    Ok(Some(names.join(",")))
}

/// What of an event set can be counted on this machine; what can't is said.
fn countable(names: &str) -> Result<String> {
    let left = match names.is_empty() || names.split(',').any(is_simulated) {
        true => names.to_owned(),
        false => counters::countable_elsewhere(names)?.join(","),
    };
    let most = ompfuse_format::record::MAX_COUNTERS;
    ensure!(
        left.split(',').count() <= most,
        "{names}: more than {most} events in one set"
    );
    Ok(left)
}

impl Changes {
    /// Reads a file: it says all, what it doesn't mention is as it was when the recording began.
    pub(crate) fn read(path: &Path) -> Result<Changes> {
        let text =
            input::lasting_text(path).with_context(|| format!("cannot read {}", path.display()))?;
        Changes::parse(&path.display().to_string(), &text)
    }

    fn parse(path: &str, text: &str) -> Result<Changes> {
        let mut changes = Changes {
            reset: true,
            ..Changes::default()
        };
        let (mut selects, mut others) = (Vec::new(), Vec::new());
        for (number, line) in (1..).zip(text.lines()) {
            let origin = format!("{path}:{number}");
            let line = select::line(line);
            if line.is_empty() {
                continue;
            }
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let rest = rest.trim();
            let pattern = |text: &str| Selector::of_line(text, &origin).map_err(anyhow::Error::msg);
            let switch = |on| pattern(rest).map(|what| Change::Switch { what, on });
            match word {
                "select" => selects.push(switch(true)?),
                "enable" => others.push(switch(true)?),
                "skip" | "disable" => others.push(switch(false)?),
                "events" => match rest.split_once(" on ") {
                    Some((list, what)) => {
                        let names = event_set(list.trim()).context(origin.clone())?;
                        let what = pattern(what.trim())?;
                        others.push(Change::OwnSet { names, what });
                    }
                    None => changes.sets.push(event_set(rest).context(origin)?),
                },
                "rotate" => {
                    let number = rest.parse().ok();
                    changes.rotate =
                        Some(number.with_context(|| {
                            format!("{origin}: `{}` is no number", quoted(rest))
                        })?);
                }
                _ => bail!(
                    "{origin}: `{}` is not one of select, skip, enable, disable, events, rotate",
                    quoted(line)
                ),
            }
        }
        changes.only = !selects.is_empty();
        changes.list = selects;
        changes.list.extend(others);
        ensure!(
            changes.sets.len() < 2 || changes.rotate.is_some_and(|n| n > 0),
            "{path}: several event sets need a line `rotate N`"
        );
        Ok(changes)
    }

    /// Makes the changes in every process. Nothing is changed if something that is named isn't there in any. `patience`:
    /// as for [`super::ControlFile::change`].
    pub(crate) fn apply(&self, processes: &[Running], patience: Duration) -> Result<()> {
        let (mut modules, mut named) = (Vec::new(), Vec::new());
        let about_user = self.list.iter().any(|c| c.what().is_about_user());
        for process in processes {
            modules.push(process.modules()?);
            named.push(match about_user {
                true => records::user_regions(&process.folder, &process.key)?,
                false => BTreeMap::new(),
            });
        }
        // By process, module and change: the sites that are meant. Compared once, and before others have to wait.
        let sites: Vec<Vec<Vec<Vec<u32>>>> = (modules.iter())
            .map(|m| m.iter().map(|(_, module)| self.meant(module)).collect())
            .collect();
        for (at, change) in self.list.iter().enumerate() {
            let what = change.what();
            let is_named = named.iter().flat_map(BTreeMap::values);
            ensure!(
                sites.iter().flatten().any(|m| !m[at].is_empty())
                    || is_named.into_iter().any(|n| what.matches_user(n)),
                "nothing that is loaded matches {what}; `ompfuse scan` lists what there is{}",
                match what.is_about_user() {
                    true =>
                        ", but for regions that the program names: they are known once they have begun",
                    false => "",
                }
            );
        }
        self.check_kinds(processes)?;
        let changes = self.countable()?;
        changes.check_room(processes)?;
        let each = processes.iter().zip(&modules).zip(&sites).zip(&named);
        for (((process, modules), sites), named) in each {
            process.control.change(patience, |file| {
                changes.set_sets(file)?;
                if self.reset {
                    file.reset(USER_MODULE)?;
                }
                for change in &changes.list {
                    let is_meant = |name: &String| change.what().matches_user(name);
                    let regions = named.iter().filter(|(_, name)| is_meant(name));
                    let regions: Vec<u32> = regions.map(|(&at, _)| at).collect();
                    change.make(file, USER_MODULE, &regions)?;
                }
                for ((number, module), meant) in modules.iter().zip(sites) {
                    if self.reset {
                        file.reset(*number)?;
                    }
                    if self.only {
                        let all: Vec<u32> = (0..module.sites.len() as u32).collect();
                        file.switch(*number, &all, false)?;
                    }
                    for (change, meant) in changes.list.iter().zip(meant) {
                        change.make(file, *number, meant)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// By change: the sites of a module whose regions are meant.
    fn meant(&self, module: &RunModule) -> Vec<Vec<u32>> {
        let of = |change: &Change| {
            let meant = select::meant(change.what(), &module.binary.path, &module.sites);
            (0..)
                .zip(meant)
                .filter_map(|(site, meant)| meant.then_some(site))
                .collect()
        };
        self.list.iter().map(of).collect()
    }

    /// The same with event sets of what can be counted on this machine; each is asked for once.
    fn countable(&self) -> Result<Changes> {
        let mut known: BTreeMap<String, String> = BTreeMap::new();
        let mut changes = self.clone();
        let own = changes.list.iter_mut().filter_map(|change| match change {
            Change::OwnSet { names, .. } => names.as_mut(),
            Change::Switch { .. } => None,
        });
        for names in changes.sets.iter_mut().flatten().chain(own) {
            if !known.contains_key(names) {
                known.insert(names.clone(), countable(names)?);
            }
            names.clone_from(&known[names]);
        }
        Ok(changes)
    }

    /// The event sets that are named, `None` left out.
    fn named_sets(&self) -> impl Iterator<Item = &str> {
        let own = self.list.iter().filter_map(|change| match change {
            Change::OwnSet { names, .. } => names.as_deref(),
            Change::Switch { .. } => None,
        });
        self.sets.iter().flatten().map(String::as_str).chain(own)
    }

    /// Who finds no room half-way has changed something already, and filled the room.
    fn check_room(&self, processes: &[Running]) -> Result<()> {
        for process in processes {
            let state = process.control.state()?;
            let is_new = |names: &&str| !state.sets.iter().any(|s| s == names);
            let new: BTreeSet<&str> = self.named_sets().filter(is_new).collect();
            ensure!(
                state.sets.len() + new.len() <= MAX_SETS,
                "process {} can have {MAX_SETS} event sets; it has {}, and these would be {} more",
                process.pid,
                state.sets.len(),
                new.len()
            );
        }
        Ok(())
    }

    /// A process that runs under the simulator counts its events and no others.
    fn check_kinds(&self, processes: &[Running]) -> Result<()> {
        for process in processes {
            let state = process.control.state()?;
            ensure!(
                self.named_sets().next().is_none()
                    || !state.sets.iter().any(|s| s.contains(TAKES_TURNS)),
                "process {} is recorded with --rotate kernel: its events stay",
                process.pid
            );
            let simulates = state
                .sets
                .iter()
                .flat_map(|s| s.split(','))
                .any(is_simulated);
            let other = |n: &&str| !n.is_empty() && n.split(',').any(is_simulated) != simulates;
            if let Some(names) = self.named_sets().find(other) {
                let pid = process.pid;
                match simulates {
                    true => bail!(
                        "{names}: process {pid} is recorded with --simulate, which counts the simulator's events \
                         (sim-...) and no others"
                    ),
                    false => bail!(
                        "{names}: process {pid} does not run under the simulator; record it with --simulate"
                    ),
                }
            }
        }
        Ok(())
    }

    fn set_sets(&self, file: &mut Changing<'_>) -> Result<()> {
        let number = |names: &Option<String>| names.as_deref().map_or(Ok(0), |n| file.set(n));
        let sets: Vec<u32> = self.sets.iter().map(number).collect::<Result<_>>()?;
        if self.reset {
            file.common_set(0);
            file.rotate(0, &[]);
        }
        if let Some(&first) = sets.first() {
            file.common_set(first);
            file.rotate(0, &[]);
        }
        match self.rotate {
            None => Ok(()),
            Some(0) => {
                file.rotate(0, &[]);
                Ok(())
            }
            Some(instances) => {
                let all = || (0..file.state().map_or(0, |s| s.sets.len() as u32)).collect();
                let sets = if sets.is_empty() { all() } else { sets };
                ensure!(
                    sets.len() > 1,
                    "there is one event set only; add others with --events"
                );
                file.rotate(instances, &sets);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Changes> {
        Changes::parse("f", text)
    }

    #[test]
    fn lines() {
        let changes = parse(
            "# all\nskip task\nselect loop\nevents cycles, instructions\nevents default\nrotate 3\n\
             events page-faults on lib:x*\nenable 0x10\n",
        )
        .unwrap();
        assert!(changes.reset && changes.only);
        assert_eq!(changes.rotate, Some(3));
        assert_eq!(changes.sets, [Some("cycles,instructions".to_owned()), None]);
        let ons: Vec<_> = changes
            .list
            .iter()
            .map(|c| match c {
                Change::Switch { on, .. } => Some(*on),
                Change::OwnSet { .. } => None,
            })
            .collect();
        assert_eq!(ons, [Some(true), Some(false), None, Some(true)]);
        assert_eq!(parse("").unwrap().list, []);
    }

    #[test]
    fn errors_name_the_line() {
        for (text, message) in [
            ("task", "f:1: `task` is not one of"),
            ("\nrotate x", "f:2: `x` is no number"),
            ("skip 0xzz", "f:1: `0xzz`: no hexadecimal address"),
            ("events cycle", "f:1: there is no event `cycle`"),
            (
                "events cycles\nevents page-faults",
                "f: several event sets need",
            ),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.starts_with(message), "{error}");
        }
    }
}
