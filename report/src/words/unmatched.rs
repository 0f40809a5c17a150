//! Why XUs could not be matched.

use ompfuse_account::model::{Unmatched, UnmatchedXus};
use ompfuse_format::Construct;

/// The reason, as a sentence.
pub fn reason(xus: &UnmatchedXus) -> String {
    match xus.because {
        Unmatched::Absent { run } if xus.kind == Some(Construct::Range) => {
            let schedule = (xus.detail.as_ref()).map_or(String::new(), |d| format!(" ({d})"));
            format!("run {run} has other ranges: the schedule depends on timing{schedule}")
        }
        Unmatched::Absent { run } => format!("run {run} has none with the same label"),
        Unmatched::Ambiguous { run } => {
            format!("run {run} has several with the same label (several root threads or processes)")
        }
        // Tables of other recorders know types, not constructs.
        Unmatched::Unlabelled if xus.kind.is_none() => "it has no label".to_owned(),
        Unmatched::Unlabelled => "the records of the constructs around it are missing".to_owned(),
        Unmatched::Surplus { run } => format!("run {run} has fewer of this type"),
        Unmatched::Uncounted => {
            "an event that matching needs, or that was wanted from it, was not counted".to_owned()
        }
        Unmatched::Other => "not matched".to_owned(),
    }
}
