//! Which of the wanted events can be counted here, and why not the others.

use crate::counters::{self, EventCheck};
use crate::output::note;
use anyhow::{Result, bail, ensure};
use ompfuse_format::event::{self, Kind, is_hardware};
use ompfuse_format::record::MAX_COUNTERS;
use std::collections::BTreeMap;

/// What is counted, and where the counts belong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Countable {
    /// Per execution unit: what can be read without a system call, and what was named.
    pub(crate) units: Vec<&'static str>,
    /// Per outermost parallel region and thread.
    pub(crate) regions: Vec<&'static str>,
}

/// The wanted events that can be counted, per execution unit those that are named. Without a wish all of them: those that need a
/// system call at each reading per parallel region and thread. `of_regions`: events that are named for that. A line on standard
/// error per reason says what can't be counted.
pub(crate) fn countable(wanted: Option<&str>, of_regions: Option<&str>) -> Result<Countable> {
    let named = |list| -> Result<Vec<&'static str>> {
        let (kept, refusals) = tried(&counters::parse_list(list)?, |e| e.available);
        refusals.iter().for_each(note);
        Ok(kept)
    };
    let mut countable = match wanted {
        Some(list) => Countable {
            units: named(list)?,
            regions: vec![],
        },
        None => by_default(),
    };
    if let Some(list) = of_regions {
        countable.regions = named(list)?;
        let is_named = |e: &&str| countable.regions.contains(e);
        match wanted {
            Some(_) => countable.regions.retain(|e| !countable.units.contains(e)),
            None => countable.units.retain(|e| !is_named(e)),
        }
    }
    if countable.regions.len() > MAX_COUNTERS {
        bail!(
            "cannot count {} events per region in one run: the limit is {MAX_COUNTERS}; name fewer in --region-events",
            countable.regions.len()
        );
    }
    Ok(countable)
}

/// What is counted where no event is named.
fn by_default() -> Countable {
    // Those of single caches would take many runs: they are counted where they are named.
    let of_cache = |e: &EventCheck| event::find(e.name).is_some_and(|e| e.kind == Kind::Cache);
    let all = counters::check_all();
    let available = all.iter().filter(|e| e.available && !of_cache(e));
    let names: Vec<&'static str> = available.map(|e| e.name).collect();
    let has_hardware = names.iter().any(|name| is_hardware(name));
    let (units, regions): (Vec<_>, Vec<_>) = names
        .into_iter()
        .partition(|name| is_hardware(name) && can_be_read_directly());
    if !has_hardware {
        let cycles = all.iter().find(|e| e.name == "cycles");
        note(unavailable(cycles, !regions.is_empty()));
    }
    Countable { units, regions }
}

/// Whether the kernel lets programs read the processor's counters themselves (`rdpmc`).
fn can_be_read_directly() -> bool {
    let settings = ["cpu", "cpu_core"].map(|pmu| {
        std::fs::read_to_string(format!("/sys/bus/event_source/devices/{pmu}/rdpmc")).ok()
    });
    // Where nothing is said, the recorded process finds out.
    settings.iter().flatten().all(|s| s.trim() != "0")
}

/// A line that says what can't be counted here, with the reason that `cycles` can't, and what can.
fn unavailable(cycles: Option<&EventCheck>, with_software: bool) -> String {
    let why = cycles.and_then(|e| Some((e.reason.as_deref()?, e.remedy.as_deref())));
    let (reason, remedy) = why.unwrap_or(("no reason is known", None));
    match (with_software, remedy) {
        (true, _) => format!(
            "no hardware event can be counted here: {reason}; software events are counted per parallel region and thread \
             (`ompfuse events` says more)"
        ),
        (false, Some(remedy)) => {
            format!("no event can be counted here, times only: {reason}; remedy: {remedy}")
        }
        (false, None) => format!("no event can be counted here, times only: {reason}"),
    }
}

/// The wanted events that another process may be able to count. A line on standard error per reason says which can't be
/// counted by any on this machine; what only this process may not count is left to that one, whose record says so.
///
/// # Errors
/// If an event is unknown, or if none of them can be counted.
pub(crate) fn countable_elsewhere(wanted: &str) -> Result<Vec<&'static str>> {
    let names = counters::parse_list(wanted)?;
    let (kept, refusals) = tried(&names, |e| e.available || e.forbidden);
    ensure!(
        names.is_empty() || !kept.is_empty(),
        "none of these events can be counted: {}",
        refusals.join("; ")
    );
    refusals.iter().for_each(note);
    Ok(kept)
}

/// Tries the events with these names: those to be kept, in their order, and a line per reason that says what is left out.
fn tried(
    names: &[&'static str],
    keep: fn(&EventCheck) -> bool,
) -> (Vec<&'static str>, Vec<String>) {
    // Those with numbers instead of names exist where they are asked for.
    let of_numbers = names.iter().filter_map(|n| event::find(n));
    let of_numbers = of_numbers.filter(|e| e.kind == Kind::Raw);
    let (mut kept, missing): (Vec<_>, Vec<_>) = counters::check_with(of_numbers)
        .into_iter()
        .chain(counters::by_code())
        .filter(|e| names.contains(&e.name))
        .partition(keep);
    kept.sort_by_key(|e| names.iter().position(|n| *n == e.name));
    (kept.iter().map(|e| e.name).collect(), refusals(&missing))
}

/// One line per reason, with the events that it stands in the way of.
fn refusals(missing: &[EventCheck]) -> Vec<String> {
    let mut by_reason: BTreeMap<(Option<&str>, Option<&str>), Vec<&str>> = BTreeMap::new();
    for event in missing {
        by_reason
            .entry((event.reason.as_deref(), event.remedy.as_deref()))
            .or_default()
            .push(event.name);
    }
    let line = |((reason, remedy), names): ((Option<&str>, Option<&str>), Vec<&str>)| {
        let remedy = remedy.map(|r| format!("; remedy: {r}")).unwrap_or_default();
        format!(
            "not counted: {} ({}{remedy})",
            names.join(", "),
            reason.unwrap_or("no reason is known")
        )
    };
    by_reason.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_with_one_reason_share_a_line() {
        let check = |name, reason: &str| EventCheck {
            name,
            alias: None,
            what: "",
            kind: "hardware",
            available: false,
            includes_kernel: false,
            moves: false,
            forbidden: false,
            reason: Some(reason.to_owned()),
            remedy: (reason == "b").then(|| "pay".to_owned()),
        };
        let lines = refusals(&[check("x", "a"), check("y", "b"), check("z", "a")]);
        assert_eq!(
            lines,
            ["not counted: x, z (a)", "not counted: y (b; remedy: pay)"]
        );
    }

    #[test]
    fn wanted_events_keep_their_order() {
        let events = countable(Some("page-faults,task-clock"), None).unwrap();
        if events.units.len() == 2 {
            assert_eq!(events.units, ["page-faults", "task-clock"]);
        }
        assert!(countable(Some("nonsense"), None).is_err());
        assert!(countable(None, Some("nonsense")).is_err());
    }

    #[test]
    fn software_events_are_counted_per_unit_only_if_they_are_named() {
        let unnamed = countable(None, None).unwrap();
        assert!(
            unnamed.units.iter().all(|e| is_hardware(e)),
            "{:?}",
            unnamed.units
        );
        let named = countable(Some("task-clock"), Some("page-faults,task-clock")).unwrap();
        assert!(!named.regions.contains(&"task-clock"));
        let none = countable(Some("none"), None).unwrap();
        assert_eq!(none, Countable::default());
    }
}
