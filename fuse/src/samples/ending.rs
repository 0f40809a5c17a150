//! What a process did last that didn't come to its end: it was killed, or left from within.

use super::by_stack::{LastSeen, ThreadLines, last_seen};
use super::collected::Collected;
use crate::run::Problem;
use crate::run::places::SampledPlaces;
use crate::run::timeline::Timeline;
use crate::table::Site;
use serde::{Deserialize, Serialize};

/// How a process ended that didn't come to its end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ending {
    /// For so many seconds before that nothing of it is on record.
    pub silent_s: f64,
    /// The threads of which something is known, the first of the process first.
    pub threads: Vec<EndedThread>,
}

/// A thread of such a process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedThread {
    /// Kernel's thread number.
    pub tid: u32,
    /// It is its process's first.
    pub is_main: bool,
    /// The construct that it was in.
    pub construct: Option<Site>,
    /// What it did.
    pub last: LastSeen,
}

/// The processes of a run that didn't come to their end.
pub fn without_end(timeline: &Timeline<'_>) -> Vec<u32> {
    let problems = timeline.health().problems.iter();
    let found = problems.filter_map(|problem| match problem {
        Problem::Killed { pid } | Problem::Unfinished { pid } => Some(*pid),
        _ => None,
    });
    found.collect()
}

/// What threads of these did last.
pub fn last_of(pids: &[u32], collected: &Collected, places: &SampledPlaces) -> Vec<ThreadLines> {
    let mut threads = last_seen(collected, places);
    threads.retain(|thread| pids.contains(&thread.pid) && thread.last.is_some());
    threads
}

/// How the process of a run ended that didn't come to its end; of several the one that was silent for longest. `None`: all did, or no
/// samples tell.
pub(super) fn ending(
    timeline: &Timeline<'_>,
    collected: &Collected,
    places: &SampledPlaces,
) -> Option<Ending> {
    let pids = without_end(timeline);
    let threads = match &pids[..] {
        [] => return None,
        pids => last_of(pids, collected, places),
    };
    let endings = pids.iter().filter_map(|&pid| {
        let silent_s = silent_s(timeline, collected, pid)?;
        let of_process = threads.iter().filter(|t| t.pid == pid);
        let mut threads: Vec<EndedThread> = of_process
            .filter_map(|thread| {
                let last = thread.last.clone()?;
                let site = last.site.and_then(|at| places.sites.get(at as usize));
                Some(EndedThread {
                    tid: thread.tid,
                    is_main: thread.tid == thread.pid,
                    construct: site.cloned(),
                    last,
                })
            })
            .collect();
        threads.sort_by_key(|t| (!t.is_main, t.tid));
        (!threads.is_empty()).then_some(Ending { silent_s, threads })
    });
    endings.max_by(|a, b| a.silent_s.total_cmp(&b.silent_s))
}

/// Seconds from the last record of a process to when it was seen last.
fn silent_s(timeline: &Timeline<'_>, collected: &Collected, pid: u32) -> Option<f64> {
    let lanes = timeline.lanes().iter();
    let process = |process: u16| timeline.processes()[process as usize].pid;
    let lanes = lanes.filter(|lane| process(lane.process) == pid);
    let last = lanes.max_by_key(|lane| lane.end_ns)?;
    let seen = collected.files.iter().filter_map(|file| {
        let samples = file.threads.iter().filter(|((of, _), _)| *of == pid);
        let samples = samples.filter_map(|(_, all)| Some(all.last()?.raw_ns));
        let away = file.away.iter().filter(|((of, _), _)| *of == pid);
        let away = away.filter_map(|(_, all)| all.last().map(|a| a.raw_ns.saturating_add(a.ns)));
        let raw_ns = samples.chain(away).max()?;
        Some(timeline.at(last, file.tsc(raw_ns)?))
    });
    let silent_ns = seen.max()?.saturating_sub(last.end_ns);
    Some(silent_ns.max(0) as f64 * 1e-9)
}
