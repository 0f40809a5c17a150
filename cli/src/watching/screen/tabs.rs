//! The tables of the tabs: columns, what they are sorted by, cells.

use super::super::history::History;
use super::super::{Picture, Process, Row, ThreadRow};
use ompfuse_account::units::{count, percent};
use ompfuse_report::view::table::Column;
use ompfuse_report::view::text::columns as spark;
use std::cmp::Ordering;

/// A table that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Regions,
    Threads,
    Ranks,
    Events,
    CallPaths,
}

impl Tab {
    /// Those of a program that is being recorded, and of a finished run.
    pub(super) const LIVE: [Tab; 4] = [Tab::Regions, Tab::Threads, Tab::Ranks, Tab::Events];
    pub(super) const FINISHED: [Tab; 4] = [Tab::Regions, Tab::Threads, Tab::CallPaths, Tab::Events];

    pub(super) fn name(self) -> &'static str {
        match self {
            Tab::Regions => "Regions",
            Tab::Threads => "Threads",
            Tab::Ranks => "Ranks",
            Tab::Events => "Events",
            Tab::CallPaths => "Call paths",
        }
    }
}

/// What rows are sorted by.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Key {
    /// The largest first.
    Number(f64),
    /// In the order of letters.
    Text(String),
}

impl Key {
    pub(super) fn compare(&self, other: &Key) -> Ordering {
        match (self, other) {
            (Key::Number(a), Key::Number(b)) => b.total_cmp(a),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::Number(_), Key::Text(_)) => Ordering::Less,
            (Key::Text(_), Key::Number(_)) => Ordering::Greater,
        }
    }
}

/// Heading of the column with the last minute.
pub(super) const MINUTE: &str = "last minute";

/// An event, all regions together.
#[derive(Debug, Clone)]
pub(super) struct EventRow {
    pub(super) name: String,
    pub(super) count: u64,
    pub(super) per_s: f64,
    /// The region with the most of it, and its share.
    pub(super) mostly: String,
    pub(super) share: f64,
}

/// The events of a picture.
pub(super) fn events(picture: &Picture) -> Vec<EventRow> {
    let (counted, never) = picture.events();
    let names = counted.into_iter().chain(never);
    let row = |name: &str| {
        let of = |row: &Row| row.events.get(name).copied().unwrap_or(0);
        let count = picture.regions.iter().map(of).sum();
        let most = picture.regions.iter().max_by_key(|row| of(row));
        let most = most.filter(|row| of(row) > 0);
        EventRow {
            name: name.to_owned(),
            count,
            per_s: match picture.seconds > 0.0 {
                true => count as f64 / picture.seconds,
                false => 0.0,
            },
            mostly: most.map_or_else(String::new, place),
            share: most.map_or(0.0, |row| of(row) as f64 / count as f64),
        }
    };
    names.map(row).collect()
}

/// A region in a few words.
pub(super) fn place(row: &Row) -> String {
    format!("{} {}", row.kind(), row.location())
}

/// The columns of a tab.
pub(super) fn columns<'a>(tab: Tab, picture: &'a Picture) -> Vec<Column<'a>> {
    match tab {
        Tab::Regions => {
            let mut columns = Picture::columns(&picture.events().0);
            columns.insert(FIXED, Column::left(MINUTE).leaves(2));
            columns
        }
        Tab::Threads => vec![
            Column::left("thread"),
            Column::right("share"),
            Column::right("work"),
            Column::right("wait"),
            Column::right("runtime").leaves(2),
            Column::left(MINUTE).leaves(1),
            Column::left("mostly in").keeps_place(14),
        ],
        Tab::Ranks => vec![
            Column::right("rank"),
            Column::right("pid"),
            Column::right("threads"),
            Column::right("share"),
            Column::right("wait"),
            Column::right("runtime").leaves(2),
            Column::right("imbal."),
            Column::right("seconds").leaves(1),
            Column::left(MINUTE).leaves(2),
            Column::left("folder").keeps_end(12).leaves(3),
        ],
        Tab::Events => vec![
            Column::left("event"),
            Column::right("count"),
            Column::right("per s"),
            Column::left(MINUTE).leaves(1),
            Column::right("share"),
            Column::left("mostly in").keeps_place(14),
        ],
        Tab::CallPaths => Vec::new(), // a text
    }
}

/// Columns of the regions before that of the last minute.
const FIXED: usize = 10;

fn text(text: impl Into<String>) -> Key {
    Key::Text(text.into())
}

/// What a region is sorted by; `column` is one of [`columns`]. `events`: their names, in the order of the columns.
pub(super) fn key_of_region(row: &Row, column: usize, events: &[&str]) -> Key {
    Key::Number(match column {
        0 | FIXED => row.share,
        1 => row.wait_share,
        2 => row.runtime_share,
        3 => return text(row.kind()),
        4 => return text(row.location()),
        5 => row.rate_per_s,
        6 => row.entered as f64,
        7 => row.xus as f64,
        8 => row.imbalance,
        9 => row.threads as f64,
        other => {
            let event = events.get(other - FIXED - 1);
            event.and_then(|e| row.events.get(*e)).copied().unwrap_or(0) as f64
        }
    })
}

/// The same of a thread.
pub(super) fn key_of_thread(row: &ThreadRow, column: usize, mostly: &str) -> Key {
    Key::Number(match column {
        0 => {
            return Key::Text(format!(
                "{:010}{:010}{:010}",
                row.mpi_rank.unwrap_or(0),
                row.pid,
                row.thread
            ));
        }
        1 => row.share,
        2 | 5 => row.work_share,
        3 => row.wait_share,
        4 => row.runtime_share,
        _ => return text(mostly),
    })
}

/// The same of a process.
pub(super) fn key_of_process(row: &Process, column: usize) -> Key {
    Key::Number(match column {
        // Ranks and processes in their order.
        0 => -f64::from(row.mpi_rank.unwrap_or(0)),
        1 => -f64::from(row.pid),
        2 => row.threads as f64,
        3 | 8 => row.share,
        4 => row.wait_share,
        5 => row.runtime_share,
        6 => row.imbalance,
        7 => row.seconds.unwrap_or(0.0),
        _ => return text(row.folder.to_string_lossy()),
    })
}

/// The same of an event.
pub(super) fn key_of_event(row: &EventRow, column: usize) -> Key {
    Key::Number(match column {
        0 => return text(&row.name),
        1 => row.count as f64,
        2 | 3 => row.per_s,
        4 => row.share,
        _ => return text(&row.mostly),
    })
}

/// The cells of a region. `width`: of the column with the last minute.
pub(super) fn region(row: &Row, events: &[&str], history: &History, width: usize) -> Vec<String> {
    let mut cells = Picture::cells(row, events);
    cells.insert(FIXED, spark(&history.region(row.site), width));
    cells
}

/// The cells of a thread.
pub(super) fn thread(
    row: &ThreadRow,
    mostly: &str,
    history: &History,
    width: usize,
) -> Vec<String> {
    let process = match row.mpi_rank {
        Some(rank) => format!("rank {rank}"),
        None => row.pid.to_string(),
    };
    vec![
        format!("{process}:{}", row.thread),
        percent(row.share),
        percent(row.work_share),
        percent(row.wait_share),
        percent(row.runtime_share),
        spark(&history.thread(row.number), width),
        mostly.to_owned(),
    ]
}

/// The cells of a process. `threads`: the numbers of its threads.
pub(super) fn process(
    row: &Process,
    threads: &[u32],
    history: &History,
    width: usize,
) -> Vec<String> {
    vec![
        row.mpi_rank
            .map_or_else(|| "-".to_owned(), |r| r.to_string()),
        row.pid.to_string(),
        row.threads.to_string(),
        percent(row.share),
        percent(row.wait_share),
        percent(row.runtime_share),
        match row.threads {
            0 | 1 => String::new(),
            _ => percent(row.imbalance),
        },
        row.seconds.map_or_else(String::new, |s| format!("{s:.0}")),
        spark(&history.threads(threads), width),
        row.folder.to_string_lossy().into_owned(),
    ]
}

/// The cells of an event.
pub(super) fn event(row: &EventRow, history: &History, width: usize) -> Vec<String> {
    vec![
        row.name.clone(),
        count(row.count),
        count(row.per_s.round() as u64),
        spark(&history.event(&row.name), width),
        match row.count {
            0 => String::new(),
            _ => percent(row.share),
        },
        row.mostly.clone(),
    ]
}
