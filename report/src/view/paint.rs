//! Colours and widths of what a terminal shows.

use super::table::wrap;
use super::text::bars;

/// Lines narrower than this can't hold the tables.
const MIN_WIDTH: usize = 40;
/// Wider lines are no easier to read.
const MAX_WIDTH: usize = 140;

/// The width to use, of one that was asked for.
pub(super) fn width(asked: usize) -> usize {
    asked.clamp(MIN_WIDTH, MAX_WIDTH)
}

/// Escape codes, or none.
#[derive(Debug, Clone, Copy)]
pub(super) struct Paint {
    pub(super) on: bool,
}

impl Paint {
    pub(super) fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    pub(super) fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    pub(super) fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    pub(super) fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Colours the bars in a line that is otherwise done (widths are fixed by then).
    pub(super) fn bars(self, line: &str) -> String {
        if !self.on {
            return line.to_owned();
        }
        let mut out = String::new();
        let mut inside = false;
        for c in line.chars() {
            let bar = bars::is_bar(c);
            if bar != inside {
                out.push_str(if bar { "\x1b[36m" } else { "\x1b[0m" });
                inside = bar;
            }
            out.push(c);
        }
        if inside {
            out.push_str("\x1b[0m");
        }
        out
    }

    /// A section's title, with an explanation beside it, or below where there is no room.
    pub(super) fn titled(self, title: &str, explanation: &str, width: usize) -> String {
        let both = title.chars().count() + 2 + explanation.chars().count();
        if both <= width {
            return format!("{}  {}\n", self.bold(title), self.dim(explanation));
        }
        let below = wrap(explanation, width, "");
        format!("{}\n{}\n", self.bold(title), self.dim(below.trim_end()))
    }
}
