//! What is shown, as cells and text.

use super::{Picture, Row};
use crate::output::{self, Stream};
use ompfuse_account::units::{count, percent, seconds, several};
use ompfuse_fuse::names::readable;
use ompfuse_report::view::table::{Column, wrap};
use ompfuse_report::words::place;
use std::collections::BTreeMap;

impl Picture {
    /// One line about the whole.
    pub(crate) fn title(&self) -> String {
        let processes: Vec<String> = self.processes.iter().map(|p| p.pid.to_string()).collect();
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(" · {lost} records lost"),
        };
        let base = (self.recorded_s).map_or_else(String::new, |s| {
            format!(" · shares of {} on record", seconds(s))
        });
        format!(
            "{} · {} · {}{base}{lost}",
            processes.join(", "),
            several(self.threads as u64, "thread"),
            seconds(self.seconds)
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

    /// The table's columns: what a region is and does, then its events, of which the last ones leave first where lines are short.
    pub(crate) fn columns<'a>(events: &[&'a str]) -> Vec<Column<'a>> {
        let fixed = [
            Column::right("share"),
            Column::right("wait").leaves(2),
            Column::right("runtime").leaves(3),
            Column::left("construct"),
            Column::left("location").keeps_place(14),
            Column::right("per s").leaves(4),
            Column::right("entered").leaves(5),
            Column::right("XUs").leaves(6),
            Column::right("imbal.").leaves(1),
            Column::right("threads").leaves(7),
        ];
        let event = |(rank, name)| Column::right(name).leaves(rank);
        let events = (8..=u8::MAX)
            .chain(std::iter::repeat(u8::MAX))
            .zip(events.iter().copied());
        fixed.into_iter().chain(events.map(event)).collect()
    }

    /// Cells of a region; `events` are those of all regions, which are looked through once, not for each row.
    pub(crate) fn cells(row: &Row, events: &[&str]) -> Vec<String> {
        let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        let fixed = [
            percent(row.share),
            percent(row.wait_share),
            percent(row.runtime_share),
            row.kind(),
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
        let rows = self.regions.iter().map(|row| Picture::cells(row, &events));
        let table = output::table(&Picture::columns(&events), rows.collect());
        let never = match never[..] {
            [] => String::new(),
            _ => format!("never: {}\n", never.join(", ")),
        };
        let damaged: String = self.damaged.iter().map(|d| format!("{d}\n")).collect();
        let title = match Stream::Output.width() {
            Some(width) => wrap(&self.title(), width, "  "),
            None => self.title() + "\n",
        };
        format!("{title}{table}{never}{damaged}")
    }
}

impl Row {
    /// The construct, and whether it is switched off.
    pub(super) fn kind(&self) -> String {
        let construct = self.construct.unwrap_or("unknown");
        match self.off {
            true => format!("{construct} (off)"),
            false => construct.to_owned(),
        }
    }

    pub(super) fn location(&self) -> String {
        let place = match (&self.source, &self.function, self.address) {
            (None, Some(function), None) => readable(function).into_owned(),
            (source, function, address) => {
                let address = address.map_or_else(|| "?".to_owned(), |a| a.to_string());
                place(source.as_ref(), function.as_deref(), &address)
            }
        };
        match &self.among {
            Some(process) => format!("{process}: {place}"),
            None => place,
        }
    }
}
