//! Sentences about functions that can't count their instructions.

use super::units::percent;
use crate::model::{Report, UncountedCode};

/// So many functions are named in a line.
const NAMED: usize = 4;

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
    lines
}
