//! What a program did before it was killed, or left from within, in words.

use super::last::doing;
use ompfuse_account::model::Report;
use ompfuse_account::model::sampled::{EndedThread, SampledEnding};
use ompfuse_account::units::{seconds, several};

/// Shorter times without a record are no news.
const LEAST_S: f64 = 1.0;
/// Of the time on record.
const LEAST: f64 = 0.1;
/// Threads, or ranks, that are told.
const MOST: usize = 2;

/// What it did in a last stretch of time of which nothing is on record; `None`: there is no such, or nobody knows.
pub(crate) fn ending(report: &Report) -> Option<String> {
    let recorded_s = report.duration_s.unwrap_or(0.0);
    let is_long = |e: &&SampledEnding| e.silent_s >= LEAST_S.max(LEAST * recorded_s);
    let endings = report.sampled.iter().flat_map(|s| &s.endings);
    let endings: Vec<&SampledEnding> = endings.filter(is_long).collect();
    let most = |a: f64, e: &&SampledEnding| a.max(e.silent_s);
    let silent = seconds(endings.iter().fold(0.0, most));
    match &endings[..] {
        [] => None,
        [one] if one.rank.is_none() => Some(format!(
            "Nothing is on record of the last {silent} before its end; then {}",
            threads(&one.threads)
        )),
        several_ranks => {
            let of_rank = |e: &&SampledEnding| {
                let first = e.threads.first().map(|t| doing(&t.last));
                let first = first.unwrap_or_else(|| "did what isn't known".to_owned());
                format!("rank {} {first}", e.rank.unwrap_or(0))
            };
            let told: Vec<String> = several_ranks.iter().take(MOST).map(of_rank).collect();
            let more = several_ranks.len().saturating_sub(MOST);
            let more = match more {
                0 => String::new(),
                n => format!(
                    "; and {} did not end in an orderly way",
                    several(n as u64, "more rank")
                ),
            };
            Some(format!(
                "Nothing is on record of the last {silent} before ranks ended; then {}{more}",
                told.join("; ")
            ))
        }
    }
}

/// Those that had something to do.
fn threads(all: &[EndedThread]) -> String {
    let busy: Vec<&EndedThread> = all.iter().filter(|t| !t.last.is_idle).collect();
    let told = busy.iter().take(MOST).map(|thread| {
        let main = if thread.is_main { " (main)" } else { "" };
        format!("thread {}{main} {}", thread.tid, doing(&thread.last))
    });
    let told: Vec<String> = told.collect();
    match busy.len().saturating_sub(MOST) {
        _ if told.is_empty() => "no thread had anything to do".to_owned(),
        0 => told.join("; "),
        n => format!(
            "{}; see --lines for {}",
            told.join("; "),
            several(n as u64, "more thread")
        ),
    }
}
