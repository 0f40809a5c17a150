//! Critical sections, locks and the like: how long threads wait for them, and how long they have them.

use super::{Paint, TextOptions, laid_out, titled};
use crate::view::table::Column;
use crate::words::{kind, location, locks};
use ompfuse_account::model::{Lock, Mutex, Region, Report};
use ompfuse_account::units::{count, seconds};

/// The section; nothing without such constructs.
pub(super) fn mutexes(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let regions = report.regions.iter();
    let mut all: Vec<(&Region, &Mutex)> = regions
        .filter_map(|r| Some((r, r.mutex.as_ref()?)))
        .collect();
    let busy = |m: &Mutex| m.enter_s + m.held_s.unwrap_or(0.0);
    all.sort_by(|a, b| busy(b.1).total_cmp(&busy(a.1)));
    let rows: Vec<Vec<String>> = all
        .iter()
        .take(options.top)
        .map(|(region, mutex)| {
            vec![
                region.id.to_string(),
                kind(region),
                region.detail.clone().unwrap_or_default(),
                location(region),
            ]
            .into_iter()
            .chain(times(mutex))
            .collect()
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        Column::right("#"),
        Column::left("construct"),
        Column::left("name").keeps_front(8),
        Column::left("location").keeps_place(14),
    ];
    let columns: Vec<Column> = columns.into_iter().chain(time_columns()).collect();
    let explanation =
        "all threads; enter: waiting for it, held: executing in it, exit: releasing it";
    let mut text = titled("One thread at a time", explanation, options);
    text.push_str(&laid_out(&columns, rows, options));
    if all.len() > options.top {
        text.push_str(&paint.dim(&format!("{} more", all.len() - options.top)));
        text.push('\n');
    }
    Some(text)
}

/// Cells of the columns of [`time_columns`].
fn times(mutex: &Mutex) -> [String; 4] {
    let known = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), seconds);
    [
        count(mutex.entries),
        seconds(mutex.enter_s),
        known(mutex.held_s),
        known(mutex.exit_s),
    ]
}

fn time_columns() -> [Column<'static>; 4] {
    [
        Column::right("entries"),
        Column::right("enter"),
        Column::right("held"),
        Column::right("exit").leaves(1),
    ]
}

/// The locks by address; nothing where each region has a lock of its own, so that they would say the same again.
pub(super) fn locks(report: &Report, options: TextOptions) -> Option<String> {
    let mut of_regions: Vec<u32> = (report.locks.iter())
        .flat_map(|l| l.regions.iter().copied())
        .collect();
    let all = of_regions.len();
    of_regions.sort_unstable();
    of_regions.dedup();
    if all == report.locks.len() && all == of_regions.len() {
        return None;
    }
    let listed: Vec<&Lock> = report.locks.iter().collect();
    let mut text = titled("Locks", "by address, all threads together", options);
    text.push_str(&table(&listed, options.top, options));
    Some(text)
}

/// Locks, `most` at most.
pub(super) fn table(all: &[&Lock], most: usize, options: TextOptions) -> String {
    let row = |lock: &&Lock| -> Vec<String> {
        let regions: Vec<String> = lock.regions.iter().map(|id| format!("#{id}")).collect();
        let first = [
            locks::lock(lock),
            regions.join(" "),
            count(u64::from(lock.threads)),
        ];
        first.into_iter().chain(times(&lock.times)).collect()
    };
    let columns = [
        Column::left("lock").keeps_end(14),
        Column::left("taken in").keeps_front(6),
        Column::right("threads").leaves(2),
    ];
    let columns: Vec<Column> = columns.into_iter().chain(time_columns()).collect();
    let rows = all.iter().take(most).map(row).collect();
    let mut text = laid_out(&columns, rows, options);
    if all.len() > most {
        let paint = Paint { on: options.colour };
        text.push_str(&paint.dim(&format!("{} more", all.len() - most)));
        text.push('\n');
    }
    text
}
