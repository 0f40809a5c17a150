//! Regions that only one side has.

use super::region;
use ompfuse_account::units::{count, percent, seconds};
use ompfuse_compare::Diff;
use ompfuse_compare::diff::Lone;

/// How much a region is on its side, and why it may have a partner all the same.
pub(crate) fn lone(lone: &Lone) -> String {
    let mut text = match (lone.key.construct.is_wait(), lone.executions) {
        (false, _) => seconds(lone.time_s),
        (true, Some(n)) => format!("executed {} times", count(n as u64)),
        (true, None) => "how often it is executed is not known, or varies".to_owned(),
    };
    if lone.may_be_unseen {
        text += "; the other side may have it without a probe or a record";
    } else if lone.may_be_other {
        text += "; the other side has another one without a partner, which it may be";
    }
    text
}

/// How many regions are on one side only, and how much of its time that is: no share of it, where all of them are waits.
pub(crate) fn only_in(side: &str, lone: &[Lone]) -> String {
    let regions = if lone.len() == 1 { "region" } else { "regions" };
    let count = format!("Only in {side}: {} {regions}", lone.len());
    match lone.iter().all(|l| l.key.construct.is_wait()) {
        true => count,
        false => {
            let share: f64 = lone.iter().map(|l| l.share).sum();
            format!("{count}, {} of its time", percent(share))
        }
    }
}

/// What is certain to be on one side only, in a sentence; `None` if nothing is.
pub(super) fn alone(diff: &Diff) -> Option<String> {
    let only_b = diff.only_b.iter().map(|l| ("B", l));
    let only_a = diff.only_a.iter().map(|l| ("A", l));
    let mut certain = only_b.chain(only_a).filter(|(_, l)| l.is_certain());
    let (side, first) = certain.next()?;
    let region = region(&first.key);
    Some(match certain.count() {
        0 => format!("Only {side} has {region}."),
        n => format!("Only {side} has {region}; {n} more are on one side only."),
    })
}
