//! The table of counts per parallel region and thread.

use super::{Paint, TextOptions, laid_out, titled};
use crate::view::table::{Column, wrap};
use crate::words::{self, location};
use ompfuse_account::model::{Grain, RegionCounts, Report};
use ompfuse_account::units::{count, seconds};

/// Rows of the table; the JSON has all.
const ROWS: usize = 16;

/// Whether threads had no processors: then this comes before all numbers.
pub(super) fn starved(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let told = words::told(report.running.as_ref()?)?;
    let told = wrap(&told, options.width, "");
    Some(paint.warn(told.trim_end()) + "\n")
}

/// Counts of events that no execution unit has a share of, if any were counted.
pub(super) fn parts(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let names: Vec<&str> = report
        .events
        .iter()
        .filter(|e| e.grain == Grain::Region && e.run.is_some())
        .map(|e| e.name.as_str())
        .collect();
    if names.is_empty() || report.region_counts.is_empty() {
        return None;
    }
    let mut listed: Vec<&RegionCounts> = report.region_counts.iter().collect();
    listed.sort_by(|a, b| b.wall_s.total_cmp(&a.wall_s));
    let more = listed.len().saturating_sub(ROWS);
    listed.truncate(ROWS);
    let order = |c: &RegionCounts| (c.region, c.process, c.team_thread);
    listed.sort_by_key(|c| order(c));
    let all = |name: &str| {
        let counts = report.region_counts.iter();
        counts
            .map(|c| c.events.get(name).map(|e| e.count))
            .collect()
    };
    let happened = |name: &&str| {
        let counts: Vec<Option<u64>> = all(name);
        counts.iter().any(|c| *c != Some(0))
    };
    let (names, never): (Vec<&str>, Vec<&str>) = names.into_iter().partition(happened);
    let mut text = titled(
        "Events per parallel region and thread",
        "of whole regions with all that they call, not of execution units",
        options,
    );
    let mut columns = vec![
        Column::right("#"),
        Column::left("location").keeps_place(12),
        Column::right("thread"),
        Column::right("counted").leaves(1),
        Column::right("processor"),
    ];
    let ranks = (2..=u8::MAX).chain(std::iter::repeat(u8::MAX));
    columns.extend(
        ranks
            .zip(&names)
            .map(|(rank, n)| Column::right(n).leaves(rank)),
    );
    let rows = listed.iter().map(|c| row(report, c, &names)).collect();
    text.push_str(&laid_out(&columns, rows, options));
    if more > 0 {
        text.push_str(&paint.dim(&format!("{more} more in --format json\n")));
    }
    if report.region_counts.iter().any(|c| c.covered < c.executed) {
        let line = "counted: executions that were read; regions are short there, so only some are, and counts and processor \
                    time are those of these";
        text.push_str(&wrap(line, options.width, "  "));
    }
    if !never.is_empty() {
        let line = format!("never: {}", never.join(", "));
        text.push_str(&wrap(&line, options.width, "  "));
    }
    Some(text)
}

fn row(report: &Report, counts: &RegionCounts, names: &[&str]) -> Vec<String> {
    let region = report.regions.iter().find(|r| r.id == counts.region);
    let covered = match counts.covered == counts.executed {
        true => count(counts.covered),
        false => format!("{} of {}", count(counts.covered), count(counts.executed)),
    };
    let mut row = vec![
        counts.region.to_string(),
        region.map(location).unwrap_or_default(),
        counts.team_thread.to_string(),
        covered,
        counts.processor_s.map_or_else(|| "-".to_owned(), seconds),
    ];
    row.extend(names.iter().map(|name| match counts.events.get(*name) {
        Some(event) => count(event.count),
        None => "-".to_owned(),
    }));
    row
}
