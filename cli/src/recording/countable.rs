//! Which of the wanted events can be counted here, and why not the others.

use crate::counters::{self, EventCheck};
use crate::output::note;
use anyhow::{Result, ensure};
use ompfuse_format::event::{self, Kind, is_hardware};
use std::collections::BTreeMap;

/// The wanted events that can be counted; without a wish all of them. A line on standard error per reason says what can't.
pub(crate) fn countable(wanted: Option<&str>) -> Result<Vec<&'static str>> {
    let names = wanted.map(counters::parse_list).transpose()?;
    if let Some(names) = names {
        let (kept, refusals) = tried(&names, |e| e.available);
        refusals.iter().for_each(note);
        return Ok(kept);
    }
    // Those of single caches would take many runs: they are counted where they are named.
    let of_cache = |e: &EventCheck| event::find(e.name).is_some_and(|e| e.kind == Kind::Cache);
    let mut available = counters::check_all();
    available.retain(|e| e.available && !of_cache(e));
    if !available.iter().any(|e| is_hardware(e.name)) {
        note(
            "no hardware event can be counted here, software events only (`ompfuse events` says why)",
        );
    }
    Ok(available.iter().map(|e| e.name).collect())
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
        let events = countable(Some("page-faults,task-clock")).unwrap();
        if events.len() == 2 {
            assert_eq!(events, ["page-faults", "task-clock"]);
        }
        assert!(countable(Some("nonsense")).is_err());
    }
}
