//! The report as text for a terminal.

mod events;
mod mutexes;
mod parts;
mod place;
mod probes;
mod ranks;
mod sections;
mod table;

use crate::model::Report;

/// How the text is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Regions to list; the others are summed up in one line.
    pub top: usize,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use escape codes for colour. Without it there are none.
    pub colour: bool,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            top: 20,
            width: 110,
            colour: false,
        }
    }
}

/// Lines narrower than this can't hold the tables.
const MIN_WIDTH: usize = 80;
/// Wider lines are no easier to read.
const MAX_WIDTH: usize = 140;

/// The report as text, lines ending in a line feed.
pub fn render(report: &Report, options: TextOptions) -> String {
    let options = TextOptions {
        width: options.width.clamp(MIN_WIDTH, MAX_WIDTH),
        ..options
    };
    let paint = Paint { on: options.colour };
    let mut sections = vec![sections::header(report, paint)];
    sections.extend(parts::starved(report, options));
    sections.extend(probes::probes(report, options));
    sections.extend(sections::in_part(report, paint));
    sections.extend(sections::regions(report, options));
    sections.extend(ranks::ranks(report, options));
    sections.extend(events::events(report, options));
    sections.extend(parts::parts(report, options));
    sections.extend(sections::overheads(report, options));
    sections.extend(mutexes::mutexes(report, options));
    sections.extend(sections::unmatched(report, options));
    sections.extend(sections::missing_events(report, options));
    sections.extend(sections::skipped(report, options));
    sections.extend(sections::notes(report, options));
    let mut text = sections.join("\n");
    debug_assert!(options.colour || !text.contains('\x1b'));
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Escape codes, or none.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    fn with(self, code: &str, text: &str) -> String {
        if self.on {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(self, text: &str) -> String {
        self.with("1", text)
    }

    fn dim(self, text: &str) -> String {
        self.with("2", text)
    }

    fn warn(self, text: &str) -> String {
        self.with("33", text)
    }

    /// Colours the bars in a line that is otherwise done (widths are fixed by then).
    fn bars(self, line: &str) -> String {
        if !self.on {
            return line.to_owned();
        }
        let mut out = String::new();
        let mut inside = false;
        for c in line.chars() {
            let bar = table::is_bar(c);
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
}
