//! The panel about the selected region.

use super::super::history::History;
use super::super::{Part, Row};
use ompfuse_account::units::{count, percent};
use ompfuse_report::view::table::{Column, fitted, front};
use ompfuse_report::view::text::columns as spark;
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;

/// Width of a bar.
const BAR: usize = 20;
/// Lines without those of threads: the region, its place, the last minute, the table's heads.
const HEADS: usize = 4;

/// Lines that the panel wants.
pub(super) fn height(parts: &[Part]) -> usize {
    HEADS + parts.len().max(1)
}

/// The lines: the region, its last minute, its time by thread.
pub(super) fn lines(
    row: &Row,
    parts: &[Part],
    history: &History,
    width: usize,
) -> Vec<Line<'static>> {
    let title = format!(
        "{} {}: {} of all time, {} of it waiting, {} runtime library",
        row.kind(),
        row.location(),
        percent(row.share),
        percent(row.wait_share),
        percent(row.runtime_share)
    );
    let mut place = vec![];
    place.extend(row.function.clone().map(|f| format!("function {f}")));
    place.extend(
        row.source
            .as_ref()
            .map(|s| format!("{}:{}", s.file, s.line)),
    );
    place.extend(row.address.map(|a| a.to_string()));
    let events = row.events.iter().filter(|(_, n)| **n > 0);
    place.extend(events.map(|(name, n)| format!("{name} {}", count(*n))));
    let minute = history.region(row.site);
    let most = minute.iter().copied().fold(0.0, f64::max);
    let room = width.saturating_sub(34).min(60);
    let minute = format!(
        "last minute {} (█ is {})",
        spark(&minute, room),
        percent(most)
    );
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let mut lines = vec![
        Line::styled(front(&title, width), bold),
        Line::from(front(&place.join(" · "), width)),
        Line::from(front(&minute, width)),
    ];
    let longest = parts.iter().map(Part::all).fold(0.0, f64::max);
    let row = |part: &Part| {
        vec![
            part.thread.clone(),
            percent(part.work),
            percent(part.wait),
            percent(part.runtime),
            bar(part, longest),
        ]
    };
    let columns = [
        Column::left("thread"),
        Column::right("work"),
        Column::right("wait"),
        Column::right("runtime"),
        Column::left("█ work ░ other").leaves(1),
    ];
    let plain = |_: usize, cell: &str| cell.to_owned();
    let rows = parts.iter().map(row).collect();
    let table = fitted(&columns, rows, Some(width), &plain, &|head| head.to_owned());
    lines.extend(table.text.lines().map(|line| Line::from(line.to_owned())));
    lines
}

/// Work, and behind it waiting and runtime library.
fn bar(part: &Part, longest: f64) -> String {
    let cells = |share: f64| match longest > 0.0 {
        true => (share / longest * BAR as f64).round() as usize,
        false => 0,
    };
    let (work, all) = (cells(part.work), cells(part.all()));
    "█".repeat(work) + &"░".repeat(all.saturating_sub(work))
}
