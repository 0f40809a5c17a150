//! What a rank leaves for its job's report.

use crate::gather::RankRows;
use ompfuse_account::Report;
use serde::Deserialize;
use serde_json::Value;

/// Most bytes of a rank's summary: ten thousand of them are read in seconds.
pub const MOST_BYTES: usize = 64 << 10;

/// A rank's report in so many bytes, as JSON that is read as any report is, and what is compared of it (see [`rows`]). If there is no room,
/// call paths are left out, and then the smallest regions, which is said. `None`: there is no room for what must be in it.
pub fn condensed(report: &Report, rows: &RankRows, most: usize) -> Option<String> {
    let mut keep = report.regions.len();
    let mut has_paths = true;
    loop {
        let text = text(&ompfuse_account::job::small(report, keep, has_paths), rows);
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
