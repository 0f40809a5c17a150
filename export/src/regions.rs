//! The table of regions: a row for each thread of each region.

mod columns;

use crate::table::{Column, Table, Values};
use columns::{COLUMNS, Get};
use ompfuse_account::Report;
use ompfuse_account::model::{
    EventState, Grain, ParallelOverhead, PathCount, Region, RegionCounts, RegionThread,
};
use std::collections::BTreeMap;

/// Prefix of the columns with what was counted in a region and all that it encloses.
const INCLUSIVE: &str = "inclusive:";
/// Prefix of the columns with counts that belong to outermost parallel regions.
const REGION: &str = "region:";
/// Prefix of the columns that say how many parts such counts are of.
const PARTS: &str = "parts:";
/// Prefix of events that are called as another column is.
const EVENT: &str = "event:";

/// Version of the layout.
const VERSION: &str = "1";

/// A thread of a region.
struct Row<'a> {
    region: &'a Region,
    thread: &'a RegionThread,
    /// Of a parallel region.
    overhead: Option<&'a ParallelOverhead>,
    /// Of an outermost parallel region: what the thread executed of it.
    parts: Option<Parts>,
}

/// The sums of [`RegionCounts`] with the same thread, which can be several threads of teams.
#[derive(Debug, Clone, Default, PartialEq)]
struct Parts {
    executed: u64,
    covered: u64,
    covered_wall_s: f64,
    processor_s: Option<f64>,
    /// By event: count, and parts that it is of.
    events: BTreeMap<String, (u64, u64)>,
}

impl Parts {
    fn of(counts: &RegionCounts) -> Parts {
        let events = counts.events.iter();
        Parts {
            executed: counts.executed,
            covered: counts.covered,
            covered_wall_s: counts.covered_wall_s,
            processor_s: counts.processor_s,
            events: events
                .map(|(name, count)| (name.clone(), (count.count, count.covered)))
                .collect(),
        }
    }

    fn add(&mut self, counts: &RegionCounts) {
        let more = Parts::of(counts);
        self.executed += more.executed;
        self.covered += more.covered;
        self.covered_wall_s += more.covered_wall_s;
        // Parts of which nothing was read have no time either.
        self.processor_s = match (self.processor_s, more.processor_s) {
            (Some(a), Some(b)) => Some(a + b),
            (one, other) => one.or(other),
        };
        for (name, (count, covered)) in more.events {
            let sum = self.events.entry(name).or_default();
            *sum = (sum.0 + count, sum.1 + covered);
        }
    }
}

/// Counts that belong to no single thread: a member of the region's team was not always the same thread.
pub fn unplaced(report: &Report) -> usize {
    let counts = report.region_counts.iter();
    counts.filter(|c| c.thread.is_none()).count()
}

/// The threads of the regions that are wanted.
pub fn table(report: &Report, is_wanted: impl Fn(&Region) -> bool) -> Table {
    let rows = rows(report, is_wanted);
    let mut columns: Vec<Column> = COLUMNS.iter().map(|c| c.of(&rows)).collect();
    for event in report.events.iter().filter(|e| e.run.is_some()) {
        match event.grain {
            Grain::Unit => {
                let count = |get: fn(&PathCount) -> Option<u64>| {
                    let of_row = |row: &Row<'_>| get(row.thread.events.get(&event.name)?);
                    Values::Count(rows.iter().map(of_row).collect())
                };
                let name = of_event(&event.name);
                let (own, all) = (count(|c| c.exclusive), count(|c| c.inclusive));
                columns.push(event_column(report, event, name, OWN, own));
                let name = format!("{INCLUSIVE}{}", event.name);
                columns.push(event_column(report, event, name, ALL, all));
            }
            Grain::Region => {
                let part = |get: fn(&(u64, u64)) -> u64| {
                    let of_row =
                        |row: &Row<'_>| row.parts.as_ref()?.events.get(&event.name).map(get);
                    Values::Count(rows.iter().map(of_row).collect())
                };
                let name = format!("{REGION}{}", event.name);
                columns.push(event_column(report, event, name, IN_PARTS, part(|c| c.0)));
                let name = format!("{PARTS}{}", event.name);
                columns.push(event_column(report, event, name, COVERED, part(|c| c.1)));
            }
        }
    }
    Table {
        columns,
        facts: facts(report),
    }
}

const OWN: &str = "The event's count in the region itself. Null: not counted.";
const ALL: &str = "The event's count in the region and in all that it encloses. Null: not counted.";
const IN_PARTS: &str =
    "The event's count in the parts that were read, with all that they enclose. Null: not counted.";
const COVERED: &str = "The parts that this count is of.";

fn event_column(
    report: &Report,
    event: &EventState,
    name: String,
    meaning: &str,
    values: Values,
) -> Column {
    let run = event.run.and_then(|run| run.checked_sub(1));
    let run = run.and_then(|run| report.runs.get(usize::from(run)));
    Column {
        name,
        meaning: meaning.to_owned(),
        unit: Some("count"),
        origin: run.map(|run| run.name.clone()),
        values,
    }
}

/// Name of an event's column.
fn of_event(event: &str) -> String {
    let has_prefix = [INCLUSIVE, REGION, PARTS, EVENT].map(|prefix| event.starts_with(prefix));
    let is_taken = has_prefix.contains(&true) || COLUMNS.iter().any(|c| c.name == event);
    match is_taken {
        true => format!("{EVENT}{event}"),
        false => event.to_owned(),
    }
}

fn rows<'a>(report: &'a Report, is_wanted: impl Fn(&Region) -> bool) -> Vec<Row<'a>> {
    let mut parts: BTreeMap<(u32, Option<u32>, u32), Parts> = BTreeMap::new();
    for counts in &report.region_counts {
        let Some(thread) = counts.thread else {
            continue;
        };
        let place = (counts.region, counts.process, thread);
        match parts.get_mut(&place) {
            Some(sum) => sum.add(counts),
            None => drop(parts.insert(place, Parts::of(counts))),
        }
    }
    let overheads = report.overheads.iter().map(|o| (o.region, o));
    let overheads: BTreeMap<u32, &ParallelOverhead> = overheads.collect();
    let mut rows = Vec::new();
    for region in report.regions.iter().filter(|r| is_wanted(r)) {
        rows.extend(region.per_thread.iter().map(|thread| Row {
            region,
            thread,
            overhead: overheads.get(&region.id).copied(),
            parts: parts.remove(&(region.id, thread.process, thread.thread)),
        }));
    }
    rows
}

impl columns::Fixed {
    fn of(&self, rows: &[Row<'_>]) -> Column {
        Column {
            name: self.name.to_owned(),
            meaning: self.meaning.to_owned(),
            unit: self.unit(),
            origin: None,
            values: match self.get {
                Get::Text(get) => Values::Text(rows.iter().map(get).collect()),
                Get::Count(get) => Values::Count(rows.iter().map(get).collect()),
                Get::Seconds(get) => Values::Seconds(rows.iter().map(get).collect()),
            },
        }
    }
}

/// What is known of all of it.
fn facts(report: &Report) -> Vec<(&'static str, String)> {
    let json = |value: serde_json::Value| value.to_string();
    let runs = report.runs.iter();
    vec![
        ("ompfuse.table", "regions".to_owned()),
        ("ompfuse.regions.version", VERSION.to_owned()),
        ("ompfuse.program", report.program.clone()),
        ("ompfuse.host", report.host.clone()),
        (
            "ompfuse.runs",
            json(runs.map(|run| run.name.as_str()).collect()),
        ),
        ("ompfuse.events", json(serde_json::json!(report.events))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described_in_the_documents() {
        let documented = include_str!("../../docs/reference/columns.md");
        let (_, regions) = documented
            .split_once("\n## The table of regions\n")
            .unwrap();
        let regions = regions.split("\n## ").next().unwrap();
        let mut missing = vec![];
        for column in COLUMNS {
            let line = format!(
                "- `{}` ({}): {}\n",
                column.name,
                column.kind(),
                column.meaning
            );
            missing.extend((!regions.contains(&line)).then_some(line));
        }
        let list = missing.join("\n");
        assert!(
            missing.is_empty(),
            "docs/reference/columns.md lacks\n{list}"
        );
        let rows = regions.lines().filter(|l| l.starts_with("- `"));
        let fixed = rows.filter(|l| !l.contains("*event*"));
        assert_eq!(fixed.count(), COLUMNS.len());
    }

    #[test]
    fn events_have_names_of_their_own() {
        assert_eq!(of_event("cycles"), "cycles");
        assert_eq!(of_event("thread"), "event:thread");
        assert_eq!(of_event("parts:x"), "event:parts:x");
        assert_eq!(of_event("event:thread"), "event:event:thread");
    }
}
