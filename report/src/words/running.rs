//! Whether threads had processors.

use super::units::percent;
use crate::model::Running;

/// What it means that threads had too few processors; `None` if they had enough.
pub fn told(running: &Running) -> Option<String> {
    running.is_starved.then(|| starved(running))
}

fn starved(running: &Running) -> String {
    let threads = running.threads as f64;
    let why = match running.processors {
        Some(processors) if threads > processors => format!(
            "{threads} threads share {} (affinity mask, quota of the control group)",
            said(processors)
        ),
        Some(processors) => format!(
            "{threads} threads may use {}, and other programs used them too",
            said(processors)
        ),
        None => format!("{threads} threads; how many processors there were is not known"),
    };
    format!(
        "threads had no processor for at least {} of the time that they worked in parallel regions: {why}; start-up, waits and \
             imbalance below include waiting for a processor",
        percent(running.without_share())
    )
}

fn said(processors: f64) -> String {
    match processors {
        1.0 => "1 processor".to_owned(),
        n => format!("{n} processors"),
    }
}
