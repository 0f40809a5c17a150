//! What is shown, as cells and text.

use super::{Picture, Row};
use crate::output;
use ompfuse_report::units::{count, percent};
use std::collections::BTreeMap;

/// Heads of the columns that there always are: what tells a region stands in front, where every terminal has room for it.
const FIXED: [&str; 9] = [
    "share",
    "wait",
    "construct",
    "location",
    "per s",
    "entered",
    "XUs",
    "imbal.",
    "threads",
];

impl Picture {
    /// One line about the whole.
    pub(crate) fn title(&self) -> String {
        let processes: Vec<String> = self.processes.iter().map(|p| p.pid.to_string()).collect();
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(" · {lost} records lost"),
        };
        format!(
            "{} · {} threads · {:.1} s{lost}",
            processes.join(", "),
            self.threads,
            self.seconds
        )
    }

    /// The events that have been counted, and those of which all counts are 0.
    pub(crate) fn events(&self) -> (Vec<&str>, Vec<&str>) {
        let mut counted: BTreeMap<&str, bool> = BTreeMap::new();
        for (name, &count) in self.regions.iter().flat_map(|r| &r.events) {
            *counted.entry(name).or_default() |= count > 0;
        }
        let (some, never): (Vec<_>, Vec<_>) = counted.into_iter().partition(|event| event.1);
        let names = |events: Vec<(_, _)>| events.into_iter().map(|event| event.0).collect();
        (names(some), names(never))
    }

    /// Heads of the table's columns: what a region is and does, then its events.
    pub(crate) fn heads(events: &[&str]) -> Vec<String> {
        let heads = FIXED.iter().chain(events);
        heads.map(|&head| head.to_owned()).collect()
    }

    /// Cells of a region; `events` are those of all regions, which are looked through once, not for each row.
    pub(crate) fn cells(row: &Row, events: &[&str]) -> Vec<String> {
        let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        let fixed: [String; FIXED.len()] = [
            percent(row.share),
            percent(row.wait_share),
            row.construct.unwrap_or("unknown").to_owned(),
            row.location(),
            format!("{:.0}", row.rate_per_s),
            number(row.entered),
            number(row.xus),
            if row.threads > 1 {
                percent(row.imbalance)
            } else {
                String::new()
            },
            row.threads.to_string(),
        ];
        let of_event = |e: &&str| row.events.get(*e).map_or_else(String::new, |&n| count(n));
        let counts = events.iter().map(of_event);
        fixed.into_iter().chain(counts).collect()
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        let (events, never) = self.events();
        let heads = Picture::heads(&events);
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut table = output::table(&heads);
        for row in &self.regions {
            table.add_row(Picture::cells(row, &events));
        }
        let never = match never[..] {
            [] => String::new(),
            _ => format!("never: {}\n", never.join(", ")),
        };
        let damaged: String = self.damaged.iter().map(|d| format!("{d}\n")).collect();
        format!(
            "{}\n{}{never}{damaged}",
            self.title(),
            output::lines(&table)
        )
    }
}

impl Row {
    fn location(&self) -> String {
        match (&self.source, &self.function, self.address) {
            (Some(source), ..) => {
                let file = source.file.rsplit('/').next().unwrap_or(&source.file);
                format!("{file}:{}", source.line)
            }
            (None, Some(function), _) => function.clone(),
            (None, None, Some(address)) => address.to_string(),
            (None, None, None) => "?".to_owned(),
        }
    }
}
