//! What is shown, as cells and text.

use super::{Picture, Row};
use crate::output;

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

    /// The events that any region has.
    pub(crate) fn events(&self) -> Vec<&str> {
        let mut events: Vec<&str> = Vec::new();
        for name in self.regions.iter().flat_map(|r| r.events.keys()) {
            if !events.contains(&name.as_str()) {
                events.push(name);
            }
        }
        events
    }

    /// Heads of the table's columns. `events`: as [`Picture::events`] has them.
    pub(crate) fn heads(&self, events: &[&str]) -> Vec<String> {
        let fixed = [
            "share", "wait", "per s", "entered", "XUs", "imbal.", "threads",
        ];
        let fixed = fixed.into_iter().map(str::to_owned);
        let events = events.iter().map(|&e| e.to_owned());
        let place = ["construct", "location"].map(str::to_owned);
        fixed.chain(events).chain(place).collect()
    }

    /// Cells of a region; `events` are those of all regions, which are looked through once, not for each row.
    pub(crate) fn cells(&self, row: &Row, events: &[&str]) -> Vec<String> {
        let percent = |x: f64| format!("{:.1}%", 100.0 * x);
        let number = |n: u64| if n == 0 { String::new() } else { n.to_string() };
        let mut cells = vec![
            percent(row.share),
            percent(row.wait_share),
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
        let count = |e: &str| row.events.get(e).map_or_else(String::new, u64::to_string);
        cells.extend(events.iter().copied().map(count));
        cells.push(row.construct.unwrap_or("unknown").to_owned());
        cells.push(row.location());
        cells
    }

    /// As text.
    pub(crate) fn text(&self) -> String {
        let events = self.events();
        let heads = self.heads(&events);
        let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
        let mut table = output::table(&heads);
        for row in &self.regions {
            table.add_row(self.cells(row, &events));
        }
        let damaged: String = self.damaged.iter().map(|d| format!("{d}\n")).collect();
        format!("{}\n{}{damaged}", self.title(), output::lines(&table))
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
