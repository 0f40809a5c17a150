//! What a rank leaves for its job's report.

use crate::model::{Note, Report};
use serde_json::Value;

/// Most bytes of a rank's summary: ten thousand of them are read in seconds.
pub const MOST_BYTES: usize = 64 << 10;

/// Most bytes of a program's arguments that are kept.
const ARGS: usize = 4 << 10;
/// Most kinds of units that could not be matched, and most losses.
const ENTRIES: usize = 16;

/// A rank's report in so many bytes, as JSON that [`read`](crate::view::json::read) takes. The smallest regions are left out if there is
/// no room, which is said. `None`: there is no room for what must be in it.
pub fn condensed(report: &Report, most: usize) -> Option<String> {
    let mut keep = report.regions.len();
    loop {
        let text = text(&cut(report, keep));
        if text.len() <= most {
            return Some(text);
        }
        if keep == 0 {
            return None;
        }
        keep = (keep * most / text.len() * 9 / 10).min(keep - 1);
    }
}

/// Without what grows, and with so many regions.
fn cut(report: &Report, keep: usize) -> Report {
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
    small.contexts.clear();
    small.locks.clear();
    small.region_counts.clear();
    small.overheads.clear();
    small.properties.clear();
    small.accounting.clear();
    small.scaling = None;
    small.unmatched.truncate(ENTRIES);
    small.losses.truncate(ENTRIES);
    for region in &mut small.regions {
        region.per_thread.clear();
        region.distribution = None;
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
fn text(report: &Report) -> String {
    let mut value = serde_json::to_value(report).expect("a report has only string keys");
    without_nulls(&mut value);
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
