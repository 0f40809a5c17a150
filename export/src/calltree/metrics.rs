//! What is measured of each frame, and the values.

use ompfuse_account::Report;
use ompfuse_account::model::{CallPathThread, Class};
use std::collections::BTreeSet;

/// What is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    /// Its name: `time`, `imbalance`, an event's.
    pub name: String,
    /// The metric that it is a part of, by position.
    pub part_of: Option<usize>,
    /// What it is of.
    pub quantity: Quantity,
    /// What it tells, in a sentence.
    pub description: String,
}

/// What a value is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Time, in nanoseconds.
    Time,
    /// How often threads came to a place.
    Visits,
    /// An event's count.
    Event,
}

/// Positions of the metrics that are always there.
pub const TIME: usize = 0;
/// Classes follow, in the order of [`Class::ALL`].
const CLASSES: usize = 1;
const IDLE: usize = CLASSES + Class::ALL.len();
/// How often.
pub const VISITS: usize = IDLE + 1;
pub(super) const EVENTS: usize = VISITS + 1;

/// The events that are known of each path and thread, with whether they are estimates, and the names of the others.
pub(super) fn events(report: &Report) -> (Vec<(&str, bool)>, Vec<String>) {
    let all = || report.call_paths.iter().flat_map(|p| &p.per_thread);
    let names: BTreeSet<&str> = all()
        .flat_map(|t| t.events.keys().map(String::as_str))
        .collect();
    let is_known = |name: &&str| {
        all().all(|t| {
            t.exclusive_s == 0.0 || t.events.get(*name).is_some_and(|c| c.exclusive.is_some())
        })
    };
    let (known, others): (Vec<&str>, Vec<&str>) = names.into_iter().partition(is_known);
    let is_scaled = |name| report.events.iter().any(|e| e.name == name && e.scaled);
    let known = known.into_iter().map(|name| (name, is_scaled(name)));
    (
        known.collect(),
        others.into_iter().map(str::to_owned).collect(),
    )
}

pub(super) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

pub(super) fn values(thread: &CallPathThread, events: &[(&str, bool)]) -> Vec<u64> {
    let class = |class: Class| thread.classes.get(&class).copied().map_or(0, nanoseconds);
    let count = |name: &str| {
        thread
            .events
            .get(name)
            .and_then(|c| c.exclusive)
            .unwrap_or(0)
    };
    let mut values = vec![nanoseconds(thread.exclusive_s)];
    values.extend(Class::ALL.map(class));
    values.push(thread.idle_s.map_or(0, nanoseconds));
    values.push(thread.visits.unwrap_or(0));
    values.extend(events.iter().map(|(name, _)| count(name)));
    values
}

pub(super) fn metrics(events: &[(&str, bool)]) -> Vec<Metric> {
    let metric = |name: &str, part_of, quantity, description: &str| Metric {
        name: name.to_owned(),
        part_of,
        quantity,
        description: description.to_owned(),
    };
    let part = |name, description| metric(name, Some(TIME), Quantity::Time, description);
    let class = |class: Class| {
        let description = match class {
            Class::Synchronization => {
                "Barriers, taskwait, entering critical sections and locks, atomics, flush."
            }
            Class::Imbalance => {
                "Waiting at the end of parallel regions and work-sharing for slower threads."
            }
            Class::LimitedParallelism => "Waiting because there was not enough to do.",
            Class::Management => {
                "Starting and ending threads' parts, creating tasks, fetching ranges."
            }
        };
        part(class.name(), description)
    };
    let mut metrics = vec![metric(
        "time",
        None,
        Quantity::Time,
        "Time of all threads. What is in none of its parts is the program's code, or was not divided.",
    )];
    metrics.extend(Class::ALL.map(class));
    metrics.push(part("idle", "Worker threads outside of parallel regions."));
    metrics.push(metric(
        "visits",
        None,
        Quantity::Visits,
        "How often threads came to a region.",
    ));
    metrics.extend(events.iter().map(|(name, is_scaled)| {
        let description = match is_scaled {
            true => "Counts of an event that took turns with others: estimates.",
            false => "Counts of an event.",
        };
        metric(name, None, Quantity::Event, description)
    }));
    debug_assert_eq!(metrics.len(), EVENTS + events.len());
    metrics
}
