//! Whether threads had processors.

use super::units::{percent, several};
use crate::model::Running;
use ompfuse_fuse::summary::ProcessorLimit;

/// From this share of the machine's time on, what the hypervisor takes is told.
const STOLEN: f64 = 0.05;

/// What it means that threads had too few processors, or slow ones; `None` if they had enough.
pub fn told(running: &Running) -> Option<String> {
    let stolen = running.stolen.filter(|&share| share >= STOLEN);
    let stolen = stolen.map(|share| {
        format!(
            "the hypervisor took {} of this machine's processor time meanwhile: all times are longer than on a machine of its own",
            percent(share)
        )
    });
    let starved = running.is_starved.then(|| starved(running));
    match (starved, stolen) {
        (Some(starved), Some(stolen)) => Some(format!("{starved}; {stolen}")),
        (starved, stolen) => starved.or(stolen),
    }
}

fn starved(running: &Running) -> String {
    let why = shared(running.threads, running.processors, running.limit);
    let why = why.unwrap_or_else(|| match running.processors {
        Some(n) => format!(
            "{} may use {}, and {}",
            several(running.threads, "thread"),
            said(n),
            taken(running.threads, n)
        ),
        None => format!(
            "{}; how many processors there were is not known",
            several(running.threads, "thread")
        ),
    });
    format!(
        "threads had no processor for at least {} of the time that they worked in parallel regions: {why}; start-up, waits and \
             imbalance below include waiting for a processor",
        percent(running.without_share())
    )
}

/// Who used processors of which there are enough. The kernel may also keep two threads on one for some milliseconds while another is idle.
fn taken(threads: u64, processors: f64) -> &'static str {
    match (threads, processors == 1.0) {
        (0..=1, true) => "other programs used it too",
        (0..=1, false) => "other programs used them too",
        _ => "other programs used them too, or some of its threads shared one",
    }
}

/// That there are more threads than processors, and why; `None`: there are not, or it isn't known.
pub(super) fn shared(
    threads: u64,
    processors: Option<f64>,
    limit: Option<ProcessorLimit>,
) -> Option<String> {
    let n = processors.filter(|&n| threads as f64 > n)?;
    let n = said(n);
    Some(match limit {
        Some(ProcessorLimit::Binding) => format!("{threads} threads are bound to {n}"),
        Some(ProcessorLimit::Quota) => {
            format!("{threads} threads share {n}, the quota of the control group")
        }
        Some(ProcessorLimit::Affinity) => {
            format!("{threads} threads share {n}, as the affinity mask says")
        }
        None => format!("{threads} threads share {n}"),
    })
}

fn said(processors: f64) -> String {
    match processors {
        1.0 => "1 processor".to_owned(),
        n => format!("{n} processors"),
    }
}
