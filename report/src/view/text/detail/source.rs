//! The source lines of a region, with the time of all regions that begin in them.

use super::super::{Paint, TextOptions, titled};
use crate::view::html::Sources;
use crate::view::html::source::lines_around;
use crate::view::table::front;
use ompfuse_account::model::Region;
use ompfuse_account::units::percent;

/// Blanks for a tab.
const TAB: &str = "    ";

/// The section; nothing without the file.
pub(super) fn source(
    region: &Region,
    all: &[Region],
    sources: &Sources,
    options: TextOptions,
) -> Option<String> {
    let paint = Paint { on: options.colour };
    let around = lines_around(region, all, sources)?;
    let at = region.source.as_ref()?;
    let explanation = match around.is_newer {
        true => "it was changed after the program ran: lines may be others",
        false => "share: own time of the regions that begin there",
    };
    let mut text = titled(&format!("{}:{}", at.file, at.line), explanation, options);
    for (line, code) in (around.first..).zip(&around.lines) {
        let share = around
            .sums
            .get(&line)
            .map_or_else(String::new, |s| percent(s.1));
        let code = code.replace('\t', TAB);
        let shown = front(&format!("{line:>5} {share:>6}  {code}"), options.width);
        match line == at.line {
            true => text.push_str(&paint.bold(shown.trim_end())),
            false => text.push_str(shown.trim_end()),
        }
        text.push('\n');
    }
    Some(text)
}
