//! A run that goes on, in words.

use super::last::doing;
use ompfuse_account::model::Report;
use ompfuse_account::model::sampled::GoesOn;
use ompfuse_account::units::several;

/// Threads that are told.
const MOST: usize = 8;

/// That it goes on, and what its threads do; nothing of a run that has ended.
pub(crate) fn goes_on(report: &Report) -> Vec<String> {
    let name = |of: &GoesOn| match of.rank {
        Some(rank) => format!("rank {rank}"),
        None => of.pid.to_string(),
    };
    let names: Vec<String> = report.goes_on.iter().map(name).collect();
    let who = match &names[..] {
        [] => return vec![],
        [one] if report.goes_on[0].rank.is_none() => format!("process {one} is"),
        [one] => format!("{one} is"),
        all => format!("{} are", all.join(", ")),
    };
    let threads = || {
        let all = report.goes_on.iter().zip(&names);
        all.flat_map(|(of, name)| of.threads.iter().map(move |t| (of, name, t)))
    };
    let told = threads().take(MOST).map(|(of, name, thread)| {
        let rank = of.rank.map_or_else(String::new, |_| format!("{name}, "));
        let main = if thread.is_main { " (main)" } else { "" };
        format!("{rank}{}{main} {}", thread.tid, doing(&thread.last))
    });
    let mut lines = vec![format!(
        "It goes on: {who} still being recorded. This is of what was on record when it was read"
    )];
    lines.extend(told);
    match threads().count() {
        0 => {
            let refusal = report.goes_on.iter().find_map(|of| of.refusal.as_deref());
            let why = refusal.unwrap_or("none of them was met at work or at a stop");
            lines.push(format!("what its threads do now isn't known: {why}"));
        }
        n if n > MOST => lines.push(format!("and {}", several((n - MOST) as u64, "more thread"))),
        _ => {}
    }
    lines
}
