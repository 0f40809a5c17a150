//! What a rank leaves for its job's report.

use super::paths::Paths;
use crate::compare::gather::RankRows;
use crate::model::{Note, Report};
use serde::Deserialize;
use serde_json::Value;

/// Most bytes of a rank's summary: ten thousand of them are read in seconds.
pub const MOST_BYTES: usize = 64 << 10;

/// Most bytes of a program's arguments that are kept.
const ARGS: usize = 4 << 10;
/// Most kinds of units that could not be matched, and most losses.
const ENTRIES: usize = 16;

/// A rank's report in so many bytes, as JSON that [`read`](crate::view::json::read) takes, and what is compared of it (see [`rows`]). If
/// there is no room, call paths are left out, and then the smallest regions, which is said. `None`: there is no room for what must be in it.
pub fn condensed(report: &Report, rows: &RankRows, most: usize) -> Option<String> {
    let mut keep = report.regions.len();
    let mut has_paths = true;
    loop {
        let text = text(&cut(report, keep, has_paths), rows);
        if text.len() <= most {
            return Some(text);
        }
        if keep == 0 {
            return None;
        }
        if !std::mem::take(&mut has_paths) {
            keep = (keep * most / text.len() * 9 / 10).min(keep - 1);
        }
    }
}

/// What is compared of the rank whose summary this is.
///
/// # Errors
/// It can't be read.
pub fn rows(text: &str) -> Result<RankRows, serde_json::Error> {
    #[derive(Deserialize)]
    struct Summary {
        compared: RankRows,
    }
    Ok(serde_json::from_str::<Summary>(text)?.compared)
}

/// Without what grows, and with so many regions.
fn cut(report: &Report, keep: usize, has_paths: bool) -> Report {
    let mut left = ARGS;
    let args = report.args.iter().take_while(|arg| {
        left = left.saturating_sub(arg.len() + 1);
        left > 0
    });
    let mut small = Report {
        args: args.cloned().collect(),
        regions: report.regions.iter().take(keep).cloned().collect(),
        ..report.clone()
    };
    small.call_paths.clear();
    if has_paths {
        let mut paths = Paths::default();
        paths.add(&report.call_paths, Some);
        small.call_paths = paths.finish(Some);
    }
    super::without_details(&mut small);
    small.unmatched.truncate(ENTRIES);
    small.losses.truncate(ENTRIES);
    for region in &mut small.regions {
        region.per_thread.clear();
        region.distribution = None;
    }
    if let Some(sampled) = &mut small.sampled {
        sampled.regions.clear(); // no job tells them
        sampled.held.clear();
    }
    if let Some(mpi) = &mut small.mpi {
        mpi.missing.clear(); // all ranks but its own
    }
    if let Some(account) = &mut small.account {
        for state in &mut account.states {
            state.parts.truncate(keep);
        }
    }
    let out = &report.regions[small.regions.len()..];
    if !out.is_empty() {
        small.shortcomings.push(Note::RegionsLeftOut {
            regions: out.len() as u32,
            seconds: out.iter().map(|r| r.time_s).sum(),
        });
    }
    small
}

/// Fields that are null are left out: whoever reads takes what is absent for null.
fn text(report: &Report, rows: &RankRows) -> String {
    let mut value = serde_json::to_value(report).expect("a report has only string keys");
    without_nulls(&mut value);
    // A count that is not known is a null among others.
    let rows = serde_json::to_value(rows.cut(&report.regions));
    value["compared"] = rows.expect("rows have only string keys");
    value.to_string()
}

fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
