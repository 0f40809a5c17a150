//! Critical sections, locks and the like: how long threads wait for them, and how long they have them.

use super::{Paint, TextOptions, laid_out, titled};
use crate::model::Mutex;
use crate::model::{Region, Report};
use crate::view::table::Column;
use crate::words::units::{count, seconds};
use crate::words::{kind, location};

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
            let known = |s: Option<f64>| s.map_or_else(|| "-".to_owned(), seconds);
            vec![
                region.id.to_string(),
                kind(region),
                region.detail.clone().unwrap_or_default(),
                location(region),
                count(mutex.entries),
                seconds(mutex.enter_s),
                known(mutex.held_s),
                known(mutex.exit_s),
            ]
        })
        .collect();
    if rows.is_empty() {
        return None;
    }
    let columns = [
        Column::right("#"),
        Column::left("construct"),
        Column::left("name").keeps_front(8),
        Column::left("location").keeps_end(14),
        Column::right("entries"),
        Column::right("enter"),
        Column::right("held"),
        Column::right("exit").leaves(1),
    ];
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
