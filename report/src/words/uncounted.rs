//! Sentences about functions that can't count their instructions.

use ompfuse_account::model::{Report, UncountedCode, UncountedWork};
use ompfuse_account::units::{percent, several};

/// So many functions are named in a line.
const NAMED: usize = 4;

/// How much of some work isn't counted, with the functions that have most of it. `what`: the work.
pub(crate) fn uncounted_work(what: &str, work: &UncountedWork) -> String {
    let share = |n: u64| percent(n as f64 / work.work.max(1) as f64);
    let named = work.functions.iter().take(NAMED).map(|f| {
        let place = match (&f.function, &f.object) {
            (Some(function), Some(object)) => format!("{function} ({object})"),
            (None, Some(object)) => object.clone(),
            (Some(function), None) => function.clone(),
            (None, None) => "code without a name".to_owned(),
        };
        format!("{place} {}", share(f.samples))
    });
    let named: Vec<String> = named.collect();
    format!(
        "{} of {what} is in code that isn't counted, by {}: {}",
        share(work.uncounted),
        several(work.work, "sample"),
        named.join(", ")
    )
}

/// What of a run's counts is missing, if it is much or can't be told.
pub fn uncounted_share(work: &UncountedWork) -> Option<String> {
    if work.share().is_none() && !work.is_much() {
        return Some(format!(
            "how much of the work is in code that isn't counted is not known: {} are too few; record for longer, or with --sampling 1051",
            several(work.work, "sample")
        ));
    }
    (work.is_much()).then(|| uncounted_work("the regions' work", work))
}

/// A line for each function that is a region's own code, and one for the others.
pub(crate) fn uncounted(report: &Report) -> Vec<String> {
    let (own, others): (Vec<&UncountedCode>, Vec<&UncountedCode>) =
        report.uncounted.iter().partition(|f| f.share.is_some());
    let line = |f: &UncountedCode| {
        let share = percent(f.share.unwrap_or(0.0));
        let UncountedCode {
            function, reason, ..
        } = f;
        format!(
            "instructions in {function} are not counted ({reason}): {share} of the regions' work"
        )
    };
    let mut lines: Vec<String> = own.iter().take(NAMED).copied().map(line).collect();
    let rest: Vec<&UncountedCode> = own.into_iter().skip(NAMED).chain(others).collect();
    if !rest.is_empty() {
        let names: Vec<&str> = rest.iter().take(NAMED).map(|f| &*f.function).collect();
        let more = match rest.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more functions"),
        };
        lines.push(format!(
            "what is executed in {}{more} is not in the counts of instructions",
            names.join(", ")
        ));
    }
    let sampled = report.sampled.as_ref().and_then(|s| s.uncounted.as_ref());
    lines.extend(sampled.and_then(uncounted_share));
    lines
}
