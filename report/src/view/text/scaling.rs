//! Work, span, and predicted times per parallel region.

use super::{Paint, TextOptions, laid_out, titled};
use crate::view::table::{Column, wrap};
use crate::words::{self, location};
use ompfuse_account::model::Report;
use ompfuse_account::units::{percent, seconds};
use std::collections::BTreeMap;

/// Regions that are listed.
const MOST: usize = 8;
/// Numbers of threads that columns are for.
const TEAMS: [u32; 5] = [1, 2, 4, 8, 16];
/// Regions with a smaller share of the time in parallel regions are not listed.
const LEAST: f64 = 0.01;

/// `None`: nothing is known.
pub(super) fn scaling(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let scaling = report.scaling.as_ref()?;
    let all: f64 = scaling.regions.iter().map(|r| r.wall_s).sum();
    let place: BTreeMap<u32, String> = report.regions.iter().map(|r| (r.id, location(r))).collect();
    let listed: Vec<_> = (scaling.regions.iter())
        .filter(|r| r.wall_s >= LEAST * all)
        .take(MOST)
        .collect();
    let rows = listed
        .iter()
        .map(|r| {
            let is_bound = !r.lower_bound_because.is_empty();
            let mut row = vec![
                r.region.to_string(),
                place.get(&r.region).cloned().unwrap_or_default(),
                seconds(r.work_s),
                format!("{}{}", if is_bound { "≥" } else { "" }, seconds(r.span_s)),
                r.parallelism.map_or_else(String::new, words::times),
            ];
            let at = |threads: u32| r.predicted.iter().find(|p| p.threads == threads);
            row.extend(TEAMS.map(|t| at(t).map_or("-".to_owned(), |p| seconds(p.seconds))));
            row
        })
        .collect();
    let names = TEAMS.map(|t| {
        if t == 1 {
            "1 thread".to_owned()
        } else {
            t.to_string()
        }
    });
    let mut columns = vec![
        Column::right("#"),
        Column::left("parallel region").keeps_place(14),
        Column::right("work"),
        Column::right("span"),
        Column::right("par.").leaves(1),
    ];
    let ranks = [3, 4, 2, 1, 5];
    columns.extend(
        names
            .iter()
            .zip(ranks)
            .map(|(n, rank)| Column::right(n).leaves(rank)),
    );
    let mut text = titled(
        "Work and span",
        "par.: work / span; then predicted time on the clock, by threads",
        options,
    );
    text += &laid_out(&columns, rows, options);
    let mut because: Vec<_> = listed.iter().flat_map(|r| &r.lower_bound_because).collect();
    because.sort_unstable();
    because.dedup();
    let mut notes = vec![];
    if !because.is_empty() {
        let because: Vec<&str> = because
            .into_iter()
            .map(|&b| words::lower_bound(b))
            .collect();
        notes.push(format!("≥ at least: {}", because.join("; ")));
    }
    if scaling.seen < 0.995 {
        notes.push(format!(
            "from the first records: {} of the time in parallel regions",
            percent(scaling.seen)
        ));
    }
    notes.extend(listed.first().and_then(|r| words::path(report, r)));
    if let Some(silent) = scaling.silent {
        notes.push(format!("no predictions: {}", words::why(silent)));
    } else if let Some(silent) = scaling.silent_above {
        notes.push(format!("none for more threads: {}", words::why(silent)));
    } else if scaling.assumes_equal {
        notes.push("predicted as if iterations of one range took equally long".to_owned());
    }
    for note in notes {
        text += &paint.dim(wrap(&note, options.width, "  ").trim_end());
        text.push('\n');
    }
    Some(text)
}
