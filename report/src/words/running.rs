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
            "teams have {threads} threads, and the program can use {} (affinity mask, control group's quota): set \
             OMP_NUM_THREADS={}, or give it more processors",
            said(processors),
            (processors.floor() as u64).max(1)
        ),
        Some(processors) => format!(
            "teams have {threads} threads and the program can use {}: other programs used them, or the program itself waited \
                 (files, sleep)",
            said(processors)
        ),
        None => {
            format!("teams have {threads} threads; how many processors there were is not known")
        }
    };
    format!(
        "threads were not running for at least {} of the time that they worked in parallel regions: {why}; start-up, waiting \
             and imbalance below include waiting for a processor",
        percent(running.not_running)
    )
}

fn said(processors: f64) -> String {
    match processors {
        1.0 => "1 processor".to_owned(),
        n => format!("{n} processors"),
    }
}
