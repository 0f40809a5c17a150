//! Excerpts of the program's source files.

use super::detail::short;
use ompfuse_account::model::{Region, SampledLine};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Lines before and behind a region's first line.
const BEFORE: u32 = 6;
const BEHIND: u32 = 17;
/// Characters of a line; generated code has lines without end.
const WIDTH: usize = 300;

/// A source file as it is when the page is made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// What is in it.
    pub text: String,
    /// Whether it was written after the program ran: lines may not be those of the program.
    pub is_newer: bool,
}

/// Source files by the path that regions have.
pub type Sources = BTreeMap<String, SourceFile>;

/// Lines of a source file.
pub(in crate::view) struct Around {
    /// The number of the first of them.
    pub(in crate::view) first: u32,
    pub(in crate::view) lines: Vec<String>,
    /// By line: own time and share of the regions that begin in it.
    pub(in crate::view) sums: BTreeMap<u32, (f64, f64)>,
    /// As in [`SourceFile`].
    pub(in crate::view) is_newer: bool,
}

/// The lines around a region, and the own time of regions that begin in them; `None`: they aren't at hand.
pub(in crate::view) fn lines_around(
    region: &Region,
    all: &[Region],
    sources: &Sources,
) -> Option<Around> {
    let source = region.source.as_ref()?;
    let file = sources.get(&source.file)?;
    let line = source.line;
    let first = line.saturating_sub(BEFORE).max(1);
    let lines: Vec<String> = (file.text.lines())
        .skip(first as usize - 1)
        .take((line - first + BEHIND) as usize + 1)
        .map(|l| l.chars().take(WIDTH).collect())
        .collect();
    let last = first + lines.len() as u32;
    if line == 0 || line >= last {
        return None; // it is another file by now
    }
    let mut sums: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
    for region in all {
        if let Some(at) = &region.source
            && at.file == source.file
            && (first..last).contains(&at.line)
        {
            let sum = sums.entry(at.line).or_default();
            sum.0 += region.time_s;
            sum.1 += region.share;
        }
    }
    Some(Around {
        first,
        lines,
        sums,
        is_newer: file.is_newer,
    })
}

/// The text of a line with samples; `None`: it isn't at hand, or may have moved.
pub(super) fn line(at: &SampledLine, sources: &Sources) -> Option<String> {
    let file = sources.get(at.file.as_ref()?).filter(|f| !f.is_newer)?;
    let text = file.text.lines().nth((at.line? as usize).checked_sub(1)?)?;
    let text: String = text.trim().chars().take(WIDTH).collect();
    (!text.is_empty()).then_some(text)
}

/// The same for the scripts of a page.
pub(super) fn excerpt(region: &Region, all: &[Region], sources: &Sources) -> Option<Value> {
    let around = lines_around(region, all, sources)?;
    let time = |(line, (s, share)): (u32, (f64, f64))| (line.to_string(), json!([short(s), share]));
    let times: Map<String, Value> = around.sums.into_iter().map(time).collect();
    Some(json!({
        "first": around.first, "lines": around.lines, "times": times, "newer": around.is_newer
    }))
}
