//! Which part of a run's time was recorded.

use crate::units::seconds;
use ompfuse_fuse::summary::RunSummary;

/// What is said where that was not all of it, by wish.
pub(super) fn note(run: &RunSummary) -> Option<String> {
    let spans = run.recorded.as_ref()?;
    let of = run
        .duration_s
        .map_or_else(String::new, |d| format!(" of {}", seconds(d)));
    if spans.is_empty() {
        return Some(format!(
            "the recording was held at every time{of}: no region is on record, only the code outside of them"
        ));
    }
    let from_to = |[from, to]: &[f64; 2]| format!("from {} to {}", seconds(*from), seconds(*to));
    let spans: Vec<String> = spans.iter().map(from_to).collect();
    Some(format!(
        "recorded {}{of}: regions that began at other times are not on record, code outside of regions is told of the whole run",
        spans.join(" and ")
    ))
}
