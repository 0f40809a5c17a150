//! The table of calls of MPI that hand over bytes.

use super::{TextOptions, laid_out, titled};
use crate::view::table::Column;
use crate::words::{kind, location, transfer};
use ompfuse_account::model::{Region, Report, Transfer};
use ompfuse_account::units::{count, seconds};

/// Regions that are listed.
const MOST: usize = 12;

/// The regions that handed over bytes, those with the most time first; empty if there are none.
pub(super) fn transfers(report: &Report, options: TextOptions) -> String {
    let all = report.regions.iter();
    let all: Vec<(&Region, &Transfer)> = all
        .filter_map(|r| Some((r, r.transfer.as_ref()?)))
        .collect();
    if all.is_empty() {
        return String::new();
    }
    let row = |(region, of): &(&Region, &Transfer)| {
        vec![
            region.id.to_string(),
            kind(region),
            location(region),
            count(of.calls),
            seconds(region.time_s),
            transfer::left(of),
            transfer::mean(of.mean_out),
            transfer::came(of),
            transfer::mean(of.mean_in),
            transfer::late_sender(of).unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = all.iter().take(MOST).map(row).collect();
    let has_late = rows.iter().any(|r| r.last().is_some_and(|t| !t.is_empty()));
    let rows = rows.into_iter().map(|mut row| {
        if !has_late {
            row.pop();
        }
        row
    });
    let mut columns = vec![
        Column::right("#"),
        Column::left("function"),
        Column::left("location").keeps_place(14),
        Column::right("calls"),
        Column::right("time"),
        Column::right("bytes out"),
        Column::right("mean").leaves(2),
        Column::right("bytes in"),
        Column::right("mean").leaves(3),
    ];
    if has_late {
        columns.push(Column::left("late sender").leaves(1));
    }
    let explanation = "≤: room of receives that don't tell; late sender: receives that began first";
    let mut text = titled("Bytes of MPI calls", explanation, options);
    text.push_str(&laid_out(&columns, rows.collect(), options));
    if let more @ 1.. = all.len().saturating_sub(MOST) {
        text.push_str(&format!("{more} more calls (--format json lists them)\n"));
    }
    text
}
