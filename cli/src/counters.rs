//! What can be counted here: every event is tried in this process.

mod countable;
mod switches;
mod together;

pub(crate) use countable::{Countable, countable, countable_elsewhere};
pub(crate) use switches::switch_cost_ns;
pub(crate) use together::{count_together, hardware_slots};

use ompfuse_account::similar::similar;
use ompfuse_format::event::{self, EVENTS, Event, Kind, exact};
use ompfuse_format::refused::{
    self, EACCES, EPERM, Guard, PARANOID_FILE, STATUS_FILE, lower_paranoid,
};
use ompfuse_fuse::names::quoted;
use perf_event::{Builder, Counter};
use serde::Serialize;
use std::io;

// errno values of perf_event_open(2).
const ENOENT: i32 = 2;
const ENODEV: i32 = 19;
const EINVAL: i32 = 22;
const EOPNOTSUPP: i32 = 95;

/// An event, and whether it can be counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct EventCheck {
    /// perf's name.
    pub(crate) name: &'static str,
    /// perf's other name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) alias: Option<&'static str>,
    /// What it counts.
    pub(crate) what: &'static str,
    /// `software`, `hardware`, `simulated` or `code`.
    pub(crate) kind: &'static str,
    /// Whether it can be counted.
    pub(crate) available: bool,
    /// Whether what the kernel does for the program is counted too.
    pub(crate) includes_kernel: bool,
    /// Whether it counted something while it was tried.
    #[serde(skip)]
    pub(crate) moves: bool,
    /// Whether it's this process that may not count it; another one may.
    #[serde(skip)]
    pub(crate) forbidden: bool,
    /// Why it can't be counted.
    pub(crate) reason: Option<String>,
    /// What can be done about it.
    pub(crate) remedy: Option<String>,
}

/// Tries every event that has a name.
pub(crate) fn check_all() -> Vec<EventCheck> {
    check_with([])
}

/// The events that patched code counts: they need nothing of the machine.
pub(crate) fn by_code() -> impl Iterator<Item = EventCheck> {
    exact::EVENTS.into_iter().map(|(name, what)| EventCheck {
        name,
        alias: None,
        what,
        kind: "code",
        available: true,
        includes_kernel: true, // which does nothing of it
        moves: false,
        forbidden: false,
        reason: None,
        remedy: None,
    })
}

/// Tries every event that has a name, and these.
pub(crate) fn check_with(others: impl IntoIterator<Item = &'static Event>) -> Vec<EventCheck> {
    let events: Vec<&Event> = EVENTS.iter().chain(others).collect();
    let mut all: Vec<EventCheck> = events.iter().map(|&e| check(e)).collect();
    // Where a counter that can't be 0 is, one that may be is not believed.
    let is_dead = |(e, event): (&EventCheck, &&Event)| {
        event.kind == Kind::Hardware && e.reason.as_deref() == Some(STAYS_0)
    };
    let is_partial = all.iter().zip(&events).any(is_dead);
    for (e, event) in all.iter_mut().zip(&events) {
        if event.kind.may_stay_0() && e.available && is_partial && !e.moves {
            (e.available, e.reason) = (false, Some(NOT_BELIEVED.to_owned()));
        }
    }
    all
}

/// Why an event is not counted that can be opened.
const STAYS_0: &str =
    "it opens but stays 0: the counter is in use, or this virtual machine does not emulate it";

/// Why an event is not counted that may be 0.
const NOT_BELIEVED: &str = "it was 0 in a short test, and events that can't be 0 were too: nothing tells whether it counts here";

/// What decides whether this process may count.
fn guard() -> Guard {
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let (paranoid, status) = (read(PARANOID_FILE), read(STATUS_FILE));
    Guard::parse(paranoid.as_deref(), status.as_deref())
}

/// The value of `kernel.perf_event_paranoid`.
pub(crate) fn paranoid() -> Option<i32> {
    guard().paranoid
}

/// Tries one event.
fn check(event: &Event) -> EventCheck {
    let is_hardware = event.kind.is_hardware();
    let mut result = EventCheck {
        name: event.name,
        alias: Some(event.alias).filter(|a| !a.is_empty()),
        what: event.what,
        kind: if is_hardware { "hardware" } else { "software" },
        available: false,
        includes_kernel: false,
        moves: false,
        forbidden: false,
        reason: None,
        remedy: None,
    };
    let outcome = open(event, true)
        .map(|c| (c, true))
        .or_else(|_| open(event, false).map(|c| (c, false)));
    match outcome {
        Err(error) => {
            let guard = guard();
            result.forbidden = matches!(error.raw_os_error(), Some(EACCES | EPERM));
            (result.reason, result.remedy) = explain(&error, is_hardware, &guard);
        }
        // The kernel switches and moves threads in kernel mode only: without it these stay 0.
        Ok((_, false)) if event.in_kernel => {
            result.forbidden = true;
            result.reason = Some(format!(
                "it happens in the kernel, which may not be counted ({})",
                guard().setting()
            ));
            result.remedy = Some(lower_paranoid(1));
        }
        Ok((counter, includes_kernel)) => match watch(counter) {
            Ok(counted) if counted || !must_move(event) => {
                (result.available, result.includes_kernel) = (true, includes_kernel);
                result.moves = counted;
            }
            Ok(_) => result.reason = Some(STAYS_0.to_owned()),
            Err(error) => result.reason = Some(format!("it opens but can't be read: {error}")),
        },
    }
    result
}

/// Whether an event can't be 0 after some work. A cache may rightly have nothing to do.
fn must_move(event: &Event) -> bool {
    event.kind == Kind::Hardware || event.name == "task-clock"
}

/// How an event is opened for this thread.
fn builder(event: &Event, with_kernel: bool) -> Builder<'static> {
    let mut builder = Builder::new();
    let attributes = builder.attrs_mut();
    attributes.type_ = event.kind as u32;
    attributes.config = event.config;
    builder.exclude_kernel(!with_kernel);
    builder
}

/// Opens a counter for this thread.
fn open(event: &Event, with_kernel: bool) -> io::Result<Counter> {
    builder(event, with_kernel).build()
}

/// Whether a counter moves while this thread works.
fn watch(mut counter: Counter) -> io::Result<bool> {
    counter.enable()?;
    event::exercise();
    counter.disable()?;
    Ok(counter.read()? > 0)
}

/// Reason and remedy for an error of `perf_event_open`.
fn explain(
    error: &io::Error,
    is_hardware: bool,
    guard: &Guard,
) -> (Option<String>, Option<String>) {
    let errno = error.raw_os_error();
    if let Some((reason, remedy)) = errno.and_then(|errno| refused::explain(errno, guard)) {
        return (Some(reason), remedy);
    }
    let (reason, remedy) = match errno {
        Some(ENOENT | ENODEV | EOPNOTSUPP) if is_hardware && !has_pmu() => (
            "no hardware counters (PMU) in this machine".to_owned(),
            Some("give the virtual machine a virtual PMU, or record on bare metal".to_owned()),
        ),
        // Of a cache that it doesn't have EINVAL is said.
        Some(ENOENT | ENODEV | EOPNOTSUPP | EINVAL) => {
            ("this processor or kernel does not have it".to_owned(), None)
        }
        _ => (error.to_string(), None),
    };
    (Some(reason), remedy)
}

/// Whether cycles or instructions can be counted at all.
fn has_pmu() -> bool {
    let opens = |name| event::find(name).is_some_and(|e| open(e, false).is_ok());
    opens("cycles") || opens("instructions")
}

/// Splits `--events LIST`; `all` is every event that has a name, `none` is no event. Unknown names are an error.
pub(crate) fn parse_list(list: &str) -> anyhow::Result<Vec<&'static str>> {
    if list.trim() == "none" {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for name in list.split(',').map(str::trim).filter(|n| !n.is_empty()) {
        if name == "all" {
            return Ok(event::names().collect());
        }
        let by_code = exact::number(name).map(|n| exact::EVENTS[n].0);
        let Some(known) = event::find(name).map(|e| e.name).or(by_code) else {
            anyhow::ensure!(
                ompfuse_format::simulated::position(name).is_none(),
                "{name} is an event of the simulated PMU: record with --simulate"
            );
            let by_code = exact::number(&format!("{name}:exact")).map(|n| exact::EVENTS[n].0);
            let name = quoted(name);
            match by_code
                .map(str::to_owned)
                .or_else(|| similar(&name, event::names()))
            {
                Some(meant) => anyhow::bail!(
                    "there is no event `{name}`; did you mean {meant}? `ompfuse events` lists all"
                ),
                None => anyhow::bail!(
                    "there is no event `{name}`; known events are {}, and the processor's own by number (r1c2)",
                    event::names().collect::<Vec<_>>().join(", ")
                ),
            }
        };
        if !names.contains(&known) {
            names.push(known);
        }
    }
    anyhow::ensure!(
        !names.is_empty(),
        "no event given; `ompfuse events` lists them"
    );
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unavailable_has_a_reason() {
        let all = check_all();
        assert_eq!(all.len(), EVENTS.len());
        for e in all {
            assert_eq!(e.available, e.reason.is_none(), "{e:?}");
        }
    }

    #[test]
    fn lists_are_checked() {
        assert_eq!(
            parse_list("cpu-cycles, faults,cycles").unwrap(),
            ["cycles", "page-faults"]
        );
        assert_eq!(parse_list("all").unwrap().len(), EVENTS.len());
        assert!(parse_list("").is_err());
        assert_eq!(parse_list("none").unwrap(), Vec::<&str>::new());
        assert!(
            format!("{}", parse_list("cycle").unwrap_err())
                .starts_with("there is no event `cycle`; did you mean cycles? ")
        );
        assert!(
            format!("{}", parse_list("loads").unwrap_err())
                .starts_with("there is no event `loads`; did you mean loads:exact? ")
        );
    }
}
