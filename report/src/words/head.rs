//! What is said of a program first: the same on the terminal and on the page.

use ompfuse_account::model::Report;
use ompfuse_account::units::seconds;

/// The program's own time in seconds, without what recording took around it; the whole time where that isn't known.
pub(crate) fn own_s(report: &Report) -> Option<f64> {
    let own_s = report.lifetime_s.filter(|_| report.account.is_some());
    own_s.or(report.duration_s)
}

/// The most threads at once; of several processes all that recorded.
pub(crate) fn threads(report: &Report) -> u64 {
    match &report.account {
        Some(account) if account.processes.len() <= 1 => account.threads,
        _ => u64::from(report.threads),
    }
}

/// What recording took beside the own time. `None`: it isn't known, or of which run isn't.
pub(crate) fn recording(report: &Report) -> Option<String> {
    let account = report.account.as_ref().filter(|_| report.runs.len() == 1)?;
    let taken = seconds(account.recording_ns? as f64 * 1e-9);
    Some(match account.processes.len() {
        0 | 1 => format!("recording took {taken} around it"),
        n => format!("recording took {taken} around it in {n} processes together"),
    })
}
