//! What is known of a run's processes before their records are read: their order, their clocks, their events.

use super::clock::{Clock, RateSource, rate, rate_at_start};
use super::files::{ProcessFiles, RunFiles};
use super::processes::event_infos;
use super::{EventInfo, shared};
use std::collections::BTreeMap;

/// A run's processes, in the order of their begin.
pub(super) fn in_order<'f, 'a>(files: &'f RunFiles<'a>) -> Vec<&'f ProcessFiles<'a>> {
    let mut processes: Vec<&ProcessFiles<'a>> = files.processes.iter().collect();
    processes.sort_by_key(|p| (p.header.begin.ns, p.header.pid));
    processes
}

/// How their ticks become nanoseconds. `last`: the last tick of each that was seen; it counts only where nothing else tells the
/// rate ([`needs_last`]).
pub(super) fn clocks(
    processes: &[&ProcessFiles<'_>],
    last: &[u64],
    duration_s: f64,
) -> Vec<(Clock, RateSource)> {
    let run_begin = processes.first().map_or(0, |p| p.header.begin.ns);
    let any_rate = processes.iter().find_map(|p| rate_of(p));
    let started_rate = processes.iter().find_map(|p| started_rate_of(p));
    let clock = |(process, &last): (&&ProcessFiles<'_>, &u64)| {
        Clock::new(
            process.header.begin,
            run_begin,
            rate_of(process).or(any_rate),
            started_rate,
            last,
            duration_s,
        )
    };
    processes.iter().zip(last).map(clock).collect()
}

/// Whether [`clocks`] asks for the last ticks.
pub(super) fn needs_last(processes: &[&ProcessFiles<'_>]) -> bool {
    let is_known = |p: &&ProcessFiles<'_>| rate_of(p).is_some() || started_rate_of(p).is_some();
    !processes.iter().any(is_known)
}

fn rate_of(process: &ProcessFiles<'_>) -> Option<f64> {
    rate(process.header.begin, process.end.as_ref()?.end)
}

fn started_rate_of(process: &ProcessFiles<'_>) -> Option<f64> {
    rate_at_start(process.header.begin, process.costs.clock?)
}

/// The events of a run, those that have a column, and which of these took turns on the processor's counters.
pub(super) fn events(
    files: &RunFiles<'_>,
    processes: &[&ProcessFiles<'_>],
) -> (Vec<EventInfo>, Vec<String>, Vec<usize>) {
    let events = event_infos(&files.header.events, processes);
    let counted: Vec<String> = events
        .iter()
        .filter(|e| e.counted)
        .map(|e| e.name.clone())
        .collect();
    let is_scaled = |name: &String| events.iter().any(|e| e.scaled && e.name == *name);
    let shared: Vec<usize> = (0..counted.len())
        .filter(|&at| is_scaled(&counted[at]))
        .collect();
    (events, counted, shared)
}

/// By event set of a process: per column of the rows the counter in its records.
pub(super) fn counters(
    process: &ProcessFiles<'_>,
    counted: &[String],
    shared: &[usize],
) -> Counters {
    let counters_of = |set| shared::counters(counted, shared, set);
    let first = (0, counters_of(&process.header.events[..]));
    let further = process.header.sets.iter();
    further
        .filter_map(|s| Some((u8::try_from(s.set).ok()?, counters_of(&s.events[..]))))
        .chain([first])
        .collect()
}

/// See [`counters`].
pub(super) type Counters = BTreeMap<u8, Vec<Option<usize>>>;
