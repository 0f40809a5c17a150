//! Which of the wanted events can be counted, found out once by the first thread that needs to know.

use super::group::read;
use super::turns::Turns;
use super::{Counters, simulated};
use ompfuse_format::event::{self, Event, Kind, exact, exercise};
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_format::refused;
use ompfuse_format::run::{EventStatus, SharedCounter, TAKES_TURNS};
use perf_event::{Builder, Counter, Group};
use std::os::fd::AsRawFd;
use std::path::Path;

/// The event set, as this process counts it.
#[derive(Debug, Clone)]
pub(crate) struct EventSet {
    pub(super) events: Events,
    /// Behind these events come those that the program's code counts itself, by their numbers.
    pub(super) exact: Vec<u8>,
}

/// Who counts the others.
#[derive(Debug, Clone)]
pub(super) enum Events {
    /// By the kernel.
    Perf(Vec<Chosen>),
    /// By the kernel, in groups that take turns on the processor's counters.
    Turns(Turns),
    /// By the simulator that the process runs under, in its folder.
    Simulated(&'static Path, Vec<u8>),
}

impl EventSet {
    /// Nothing is counted.
    pub(crate) fn none() -> EventSet {
        EventSet {
            events: Events::Perf(vec![]),
            exact: vec![],
        }
    }

    /// Whether a simulator counts.
    pub(crate) fn is_simulated(&self) -> bool {
        matches!(self.events, Events::Simulated(..))
    }

    /// How many counters there are.
    fn len(&self) -> usize {
        self.exact.len()
            + match &self.events {
                Events::Perf(chosen) => chosen.len(),
                Events::Turns(turns) => turns.counters(),
                Events::Simulated(_, events) => events.len(),
            }
    }

    /// Whether it takes a system call to read it on the calling thread.
    pub(crate) fn needs_calls(&self) -> bool {
        let counters = Counters::open(self, None);
        let needs_calls = counters.needs_calls();
        counters.close();
        needs_calls
    }
}

/// One event of perf, as this process counts it.
#[derive(Debug, Clone)]
pub(crate) struct Chosen {
    event: &'static Event,
    with_kernel: bool,
}

impl Chosen {
    /// Opens it for the calling thread, as a member of a group.
    pub(super) fn open(&self, group: &mut Group) -> std::io::Result<Counter> {
        let mut builder = Builder::new().group(group);
        let attributes = builder.attrs_mut();
        attributes.type_ = self.event.kind as u32;
        attributes.config = self.event.config;
        builder.exclude_kernel(!self.with_kernel);
        builder.build()
    }
}

/// Finds out which of the wanted events can be counted; says why not for the others. `by_code`: what the code of some module counts, a set
/// of [`exact`]. `first`: the calling thread's counters of another set, if it has some.
pub(crate) fn choose(
    wanted: &str,
    by_code: u32,
    first: Option<&Counters>,
) -> (EventSet, Vec<EventStatus>) {
    let (events, mut status) = choose_others(&exact::without(wanted), first);
    let mut set = EventSet {
        events,
        exact: vec![],
    };
    for (number, name) in names(wanted).filter_map(|name| Some((exact::number(name)?, name))) {
        let column = match set.len() {
            MAX_COUNTERS => Err(format!("more than {MAX_COUNTERS} events in one set")),
            _ if by_code >> number & 1 == 0 => Err(format!(
                "{name} can't be counted: no module of process {} was patched to count it (--count)",
                std::process::id()
            )),
            len => Ok(len as u32),
        };
        if column.is_ok() {
            set.exact.push(number as u8);
        }
        status.push(EventStatus {
            name: name.to_owned(),
            column: column.as_ref().ok().copied(),
            reason: column.err(),
            shared: None,
        });
    }
    (set, status)
}

/// As [`choose`], of all events but those that the program's code counts itself.
fn choose_others(wanted: &str, first: Option<&Counters>) -> (Events, Vec<EventStatus>) {
    if let Some(folder) = simulated::folder() {
        let wanted = names(wanted);
        let can = match first.and_then(Counters::slot) {
            Some(_) => simulated::Can::yes(), // another claim would take the slot from the first set
            None => simulated::Can::find_out(folder),
        };
        let (events, status) = sort(wanted, |name| can.count(name));
        return (Events::Simulated(folder, events), status);
    }
    if wanted.contains(TAKES_TURNS) {
        let (turns, status) = choose_turns(wanted);
        return match turns.groups.is_empty() {
            // Nothing takes turns.
            true => (Events::Perf(turns.always), status),
            false => (Events::Turns(turns), status),
        };
    }
    let (chosen, status) = choose_group(names(wanted));
    (Events::Perf(chosen), status)
}

/// The names in an event set's text.
fn names(set: &str) -> impl Iterator<Item = &str> {
    set.split([',', TAKES_TURNS]).filter(|e| !e.is_empty())
}

/// As [`choose`], of groups that take turns: where their counters are is told by [`Turns`].
fn choose_turns(wanted: &str) -> (Turns, Vec<EventStatus>) {
    let is_software = |name: &&str| event::find(name).is_none_or(|e| e.kind == Kind::Software);
    let (always, mut status) = choose_group(names(wanted).filter(is_software));
    let mut turns = Turns {
        always,
        groups: vec![],
    };
    let enabled = turns.always.len() as u32;
    for group in wanted.split(TAKES_TURNS) {
        let is_new = |name: &&str| {
            let name = event::find(name).map_or(*name, |e| e.name);
            !status.iter().any(|s| s.name == name)
        };
        let (chosen, of_group) = choose_group(names(group).filter(is_new));
        let first = turns.counters();
        let fits = first + chosen.len() < MAX_COUNTERS;
        let running = (first + chosen.len()) as u32;
        status.extend(of_group.into_iter().map(|mut event| {
            let column = event.column.take();
            match column {
                Some(column) if fits => {
                    event.column = Some(first as u32 + column);
                    event.shared = Some(SharedCounter { running, enabled });
                }
                Some(_) => {
                    event.reason = Some(format!(
                        "more than {MAX_COUNTERS} counters in one set, with those of the times that each group is counted"
                    ));
                }
                None => {}
            }
            event
        }));
        if fits && !chosen.is_empty() {
            turns.groups.push(chosen);
        }
    }
    (turns, status)
}

/// Which of these can be counted together in a perf group.
fn choose_group<'a>(wanted: impl Iterator<Item = &'a str>) -> (Vec<Chosen>, Vec<EventStatus>) {
    let mut group = Group::new();
    let (opened, mut status) = sort(wanted, |name| {
        let event = event::find(name).ok_or_else(|| "unknown event".to_owned())?;
        match &mut group {
            Ok(group) => open(group, event),
            Err(e) => Err(refusal(name, e)),
        }
    });
    let is_dead = group.map_or_else(|_| vec![], |mut group| dead(&mut group, &opened));
    let mut chosen = Vec::new();
    for (at, (one, _)) in opened.into_iter().enumerate() {
        let column = (!is_dead.get(at).is_some_and(|&dead| dead)).then_some(chosen.len() as u32);
        if let Some(status) = status.iter_mut().find(|s| s.name == one.event.name) {
            status.column = column;
            status.reason = column.is_none().then(|| {
                format!(
                    "{} opens but stays 0 in process {}: this virtual machine does not emulate it, or not beside the others",
                    status.name,
                    std::process::id()
                )
            });
        }
        if column.is_some() {
            chosen.push(one);
        }
    }
    (chosen, status)
}

/// Tries the wanted events, each once; what can be counted gets the columns from 0 on.
fn sort<'a, T>(
    wanted: impl Iterator<Item = &'a str>,
    mut try_one: impl FnMut(&str) -> Result<T, String>,
) -> (Vec<T>, Vec<EventStatus>) {
    let mut chosen = Vec::new();
    let mut status: Vec<EventStatus> = Vec::new();
    for name in wanted {
        let name = event::find(name).map_or(name, |e| e.name);
        if status.iter().any(|s| s.name == name) {
            continue;
        }
        let result = match chosen.len() {
            MAX_COUNTERS => Err(format!("more than {MAX_COUNTERS} events in one set")),
            _ => try_one(name),
        };
        let (column, reason) = match result {
            Ok(one) => {
                chosen.push(one);
                (Some(chosen.len() as u32 - 1), None)
            }
            Err(reason) => (None, Some(reason)),
        };
        status.push(EventStatus {
            name: name.to_owned(),
            column,
            reason,
            shared: None,
        });
    }
    (chosen, status)
}

/// Opens an event for the calling thread: with what the kernel does, if that is allowed and without it else.
fn open(group: &mut Group, event: &'static Event) -> Result<(Chosen, Counter), String> {
    let with_kernel = |with_kernel| Chosen { event, with_kernel };
    let full = with_kernel(true);
    let error = match full.open(group) {
        Ok(counter) => return Ok((full, counter)),
        Err(error) => error,
    };
    let user = with_kernel(false);
    match user.open(group) {
        Ok(counter) if !event.in_kernel => Ok((user, counter)),
        _ => Err(refusal(event.name, &error)),
    }
}

fn refusal(name: &str, e: &std::io::Error) -> String {
    let errno = e.raw_os_error();
    let read = |file: &str| std::fs::read_to_string(file).ok();
    let explained = errno.and_then(|errno| {
        let (paranoid, status) = (read(refused::PARANOID_FILE), read(refused::STATUS_FILE));
        let guard = refused::Guard::parse(paranoid.as_deref(), status.as_deref());
        refused::explain(errno, &guard)
    });
    if let Some((reason, remedy)) = explained {
        let remedy = remedy.map_or(String::new(), |r| format!("; remedy: {r}"));
        return format!("{name} can't be counted: {reason}{remedy}");
    }
    match errno {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!(
                "this machine has no counter for {name} (no PMU, or none visible in a virtual machine)"
            )
        }
        _ => format!("cannot count {name}: {e}"),
    }
}

/// Which of a group's hardware events don't count although they are on the processor. Where others have its counters nothing
/// is known: then no count is shown as long as that lasts.
fn dead(group: &mut Group, opened: &[(Chosen, Counter)]) -> Vec<bool> {
    let is_generic = |one: &Chosen| one.event.kind == Kind::Hardware;
    if !opened.iter().any(|(one, _)| is_generic(one)) || group.enable().is_err() {
        return vec![];
    }
    exercise();
    // Not with the crate's own function: it counts members that could not be opened too, and panics.
    let mut counts = [0; MAX_COUNTERS];
    match read(group.as_raw_fd(), opened.len(), &mut counts) {
        Ok(times) if times.running > 0 => {
            let all = || opened.iter().map(|(one, _)| one).zip(counts);
            // A cache may rightly have nothing to do, unless others that can't be 0 are.
            let is_partial = all().any(|(one, count)| is_generic(one) && count == 0);
            let is_dead =
                |one: &Chosen| is_generic(one) || is_partial && one.event.kind.is_hardware();
            all()
                .map(|(one, count)| count == 0 && is_dead(one))
                .collect()
        }
        _ => vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_tried_once_and_those_that_count_get_columns() {
        let mut tried = Vec::new();
        let wanted = ["cs", "x", "context-switches", "faults", "x"];
        let (chosen, status) = sort(wanted.into_iter(), |name| {
            tried.push(name.to_owned());
            match name {
                "x" => Err("unknown".to_owned()),
                name => Ok(name.len()),
            }
        });
        assert_eq!(tried, ["context-switches", "x", "page-faults"]);
        assert_eq!(chosen, [16, 11]);
        let columns: Vec<_> = status.iter().map(|s| s.column).collect();
        assert_eq!(columns, [Some(0), None, Some(1)]);
        assert_eq!(status[1].reason.as_deref(), Some("unknown"));
        let many: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let (chosen, status) = sort(many.iter().map(String::as_str), |_| Ok(()));
        assert_eq!((chosen.len(), status.len()), (MAX_COUNTERS, 20));
        assert!(status[16].reason.is_some());
    }

    #[test]
    fn what_counts_is_not_called_dead() {
        let (set, status) = choose("task-clock,instructions,branch-misses", 0, None);
        let Events::Perf(chosen) = set.events else {
            panic!("no simulator runs this test");
        };
        assert_eq!(
            chosen.len(),
            status.iter().filter(|s| s.column.is_some()).count()
        );
        for (at, one) in chosen.iter().enumerate() {
            let named = status.iter().find(|s| s.name == one.event.name);
            assert_eq!(named.and_then(|s| s.column), Some(at as u32));
        }
        assert!(
            status
                .iter()
                .all(|s| s.column.is_some() != s.reason.is_some())
        );
    }
}
