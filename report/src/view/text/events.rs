//! The tables of events.

use super::{TextOptions, laid_out, titled};
use crate::view::table::{Column, wrap};
use crate::words::{kind, location, uncounted};
use ompfuse_account::model::{EventState, Grain, Region, Report};
use ompfuse_account::units::count;
use ompfuse_format::event::exact;
use std::collections::BTreeMap;

/// Regions in the tables of events; the JSON has all.
const EVENT_ROWS: usize = 10;

/// Totals of events per region, as many per table as fit; events that never happened are only named,
/// and those whose sum is not known of any region.
pub(super) fn events(report: &Report, options: TextOptions) -> Option<String> {
    let serial = &report.serial.events;
    let total = |name: &str| -> u64 {
        let counts = report.regions.iter().map(|r| &r.events).chain([serial]);
        counts.filter_map(|events| events.get(name)).sum()
    };
    let is_told = |name: &str| {
        let mut of_regions = report.regions.iter().map(|r| &r.events).chain([serial]);
        of_regions.any(|events| events.contains_key(name))
    };
    let of_units = report.events.iter().filter(|e| e.grain == Grain::Unit);
    let counted = of_units.filter(|e| e.run.is_some());
    let (counted, partly): (Vec<&str>, Vec<&str>) =
        counted.map(|e| e.name.as_str()).partition(|n| is_told(n));
    // What is not known of a region may have happened there.
    let is_unknown = |name: &str| {
        let of_regions = report.regions.iter().map(|r| &r.events).chain([serial]);
        let mut told = of_regions.filter(|events| !events.is_empty());
        told.any(|events| !events.contains_key(name))
    };
    let (names, never): (Vec<&str>, Vec<&str>) = counted
        .into_iter()
        .partition(|name| total(name) > 0 || is_unknown(name));
    if names.is_empty() && never.is_empty() && partly.is_empty() {
        return None;
    }
    let mut columns: Vec<EventColumn<'_>> =
        names.iter().map(|&name| EventColumn::Count(name)).collect();
    columns.extend(per_cycle(report));
    columns.extend(by_code(report));
    let mut text = titled("Events", "own counts, all threads", options);
    text.push_str(&tables(report, &columns, options));
    let notes = notes(report, &names, &partly, &never);
    for line in notes.into_iter().chain(uncounted(report)) {
        text.push_str(&wrap(&line, options.width, "  "));
    }
    Some(text)
}

/// The counts of each region, as many columns in a table as fit.
fn tables(report: &Report, columns: &[EventColumn<'_>], options: TextOptions) -> String {
    let with_counts = report.regions.iter().filter(|r| !r.events.is_empty());
    let listed = options.top.min(EVENT_ROWS);
    let regions: Vec<&Region> = with_counts.take(listed).collect();
    let serial = &report.serial.events;
    let mut text = String::new();
    let mut rest = columns;
    while !rest.is_empty() {
        // Beside number, construct and place.
        let mut room = options.width.saturating_sub(46);
        let widths = rest.iter().map(|c| c.name().chars().count().max(6) + 2);
        let fits = widths
            .take_while(|&w| (room >= w).then(|| room -= w).is_some())
            .count()
            .max(1);
        let (now, later) = rest.split_at(fits);
        rest = later;
        let mut header = vec![
            Column::right("#"),
            Column::left("construct"),
            Column::left("location").keeps_place(12),
        ];
        header.extend(now.iter().map(|c| Column::right(c.name())));
        let counts = |events: &BTreeMap<String, u64>, time: Option<f64>| {
            now.iter().map(|c| c.text(events, time)).collect::<Vec<_>>()
        };
        let of_region = |r: &&Region| {
            let place = vec![r.id.to_string(), kind(r), location(r)];
            [place, counts(&r.events, Some(r.work_s))].concat()
        };
        let mut rows: Vec<Vec<String>> = regions.iter().map(of_region).collect();
        if !serial.is_empty() {
            let place = ["", "serial, idle", "outside constructs"];
            let place = place.map(str::to_owned).to_vec();
            rows.push([place, counts(serial, None)].concat());
        }
        text.push_str(&laid_out(&header, rows, options));
    }
    text
}

/// How far the counts can be relied on. `names`: events in the tables; `partly`: those without a sum; `never`: those that didn't happen.
fn notes(report: &Report, names: &[&str], partly: &[&str], never: &[&str]) -> Vec<String> {
    let mut notes = vec![];
    let inside = |e: &&EventState| names.contains(&e.name.as_str()) && e.probe_inside > Some(0);
    let probe = |e: &EventState| {
        let number = |n: Option<u64>| count(n.unwrap_or(0));
        let (own, around) = (number(e.probe_inside), number(e.probe_around));
        format!("{own} (and {around} around it) {}", e.name)
    };
    let probes: Vec<String> = report.events.iter().filter(inside).map(probe).collect();
    if !probes.is_empty() {
        notes.push(format!(
            "each execution unit's counts include those of its probes: {}; this was measured with an empty task when the run \
             began, and differs for other constructs",
            probes.join(", ")
        ));
    }
    let scaled = report.events.iter().filter(|e| e.scaled);
    let scaled: Vec<&str> = scaled.map(|e| e.name.as_str()).collect();
    if !scaled.is_empty() {
        notes.push(format!(
            "scaled, not counted all the time: {} took turns on the processor's counters (hardware multiplexing)",
            scaled.join(", ")
        ));
    }
    if !partly.is_empty() {
        notes.push(format!(
            "counted in a part of each region only, so no sum is known: {} (event sets changed or took turns, or recording \
             stopped early; `ompfuse export` tells the execution units)",
            partly.join(", ")
        ));
    }
    if !never.is_empty() {
        notes.push(format!("never: {}", never.join(", ")));
    }
    notes
}

/// A column of the table of events.
#[derive(Debug, Clone, Copy)]
enum EventColumn<'a> {
    /// The counts of this event.
    Count(&'a str),
    /// Instructions per cycle.
    PerCycle,
    /// Instructions that the code counted itself, per second of that code.
    PerSecond,
    /// Floating-point operations per load and store, as the code counted them.
    Intensity,
}

impl EventColumn<'_> {
    fn name(&self) -> &str {
        match self {
            EventColumn::Count(name) => name,
            EventColumn::PerCycle => "instr/cycle",
            EventColumn::PerSecond => "instr/s",
            EventColumn::Intensity => "flops/access",
        }
    }

    /// `time`: of the code, in seconds.
    fn text(&self, events: &BTreeMap<String, u64>, time: Option<f64>) -> String {
        let get = |event: Exact| events.get(exact::EVENTS[event as usize].0).copied();
        let text = match self {
            EventColumn::Count(name) => events.get(*name).map(|&c| count(c)),
            EventColumn::PerCycle => events
                .get("instructions")
                .zip(events.get("cycles"))
                .and_then(|(&i, &c)| (c > 0).then(|| format!("{:.2}", i as f64 / c as f64))),
            EventColumn::PerSecond => get(Exact::Instructions)
                .zip(time.filter(|&s| s > 0.0))
                .map(|(n, s)| count((n as f64 / s) as u64)),
            EventColumn::Intensity => (|| {
                let accesses = get(Exact::Loads)? + get(Exact::Stores)?;
                let flops = get(Exact::Flops)?;
                (accesses > 0).then(|| format!("{:.2}", flops as f64 / accesses as f64))
            })(),
        };
        text.unwrap_or_else(|| "-".to_owned())
    }
}

/// Events by their numbers.
#[derive(Debug, Clone, Copy)]
enum Exact {
    Instructions = 0,
    Loads = 1,
    Stores = 2,
    Flops = 4,
}

/// The ratios of what the code counted itself, if the first run has it: that run's times are told.
fn by_code(report: &Report) -> impl Iterator<Item = EventColumn<'_>> {
    let is_first = |event: &Exact| {
        let name = exact::EVENTS[*event as usize].0;
        let mut events = report.events.iter();
        events.any(|e| e.name == name && e.run == Some(1))
    };
    let rate = is_first(&Exact::Instructions).then_some(EventColumn::PerSecond);
    let all = [Exact::Loads, Exact::Stores, Exact::Flops];
    let intensity = all.iter().all(is_first).then_some(EventColumn::Intensity);
    rate.into_iter().chain(intensity)
}

/// The ratio, if both events are of one run: of two runs it would mix two executions.
fn per_cycle(report: &Report) -> Option<EventColumn<'static>> {
    let run = |name: &str| {
        report
            .events
            .iter()
            .find(|e| e.name == name)
            .and_then(|e| e.run)
    };
    (run("instructions").is_some() && run("instructions") == run("cycles"))
        .then_some(EventColumn::PerCycle)
}
