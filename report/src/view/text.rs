//! The report as text for a terminal.

pub(super) mod bars;
mod callers;
pub mod detail;
mod distribution;
mod events;
mod legend;
mod loops;
mod missing;
mod mutexes;
mod parts;
mod paths;
mod per_thread;
mod probes;
mod properties;
mod ranks;
mod scaling;
mod sections;
mod show;
mod sort;
mod transfers;
mod verdict;

pub use bars::columns;
pub use show::{Section, Sections};
pub use sort::Sort;

use crate::view::lines;
use crate::view::paint::{self, Paint};
use crate::view::table::{self, Column};
use crate::words;
use ompfuse_account::model::Report;

/// How the text is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextOptions {
    /// Regions to list; the others are summed up in one line.
    pub top: usize,
    /// Columns of the terminal.
    pub width: usize,
    /// Whether to use escape codes for colour. Without it there are none.
    pub colour: bool,
    /// What a row stands for.
    pub by: By,
    /// What the regions are sorted by.
    pub sort: Sort,
    /// Sections beside the first ones.
    pub show: Sections,
}

/// What a row of the report stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The construct of a source line, however often the compiler has copied it. Instances of a template are rows of their own.
    Line,
    /// A place in machine code.
    Site,
}

impl Default for TextOptions {
    fn default() -> TextOptions {
        TextOptions {
            top: 8,
            width: 110,
            colour: false,
            by: By::Line,
            sort: Sort::Time,
            show: Sections::default(),
        }
    }
}

/// Most lines of the text where nothing is asked for beyond the first sections, and lines are of a usual width.
pub const SCREEN: usize = 40;
/// Columns of a usual width.
const USUAL: usize = 80;
/// Regions that are listed in any case.
const LEAST_ROWS: usize = 2;

/// The report as text, lines ending in a line feed. At most [`SCREEN`] lines where nothing more was asked for: then there are fewer
/// regions, and at last fewer sections. What was lost is told in any case.
pub fn render(report: &Report, options: TextOptions) -> String {
    let usual = TextOptions::default();
    let is_usual = options.show == usual.show && options.top == usual.top && options.width >= USUAL;
    let options = TextOptions {
        width: paint::width(options.width),
        ..options
    };
    let last = last(report, options);
    let with_rows = |top| {
        let sections = sections(report, TextOptions { top, ..options });
        joined(&[sections, last.clone()])
    };
    let text = with_rows(options.top);
    let fits = |text: &String| text.lines().count() <= SCREEN;
    if !is_usual || fits(&text) {
        return text;
    }
    let shorter = (LEAST_ROWS..options.top).rev().map(with_rows).find(fits);
    shorter.unwrap_or_else(|| {
        let top = LEAST_ROWS;
        let sections = sections(report, TextOptions { top, ..options });
        let room = SCREEN.saturating_sub(last.lines().count() + 1);
        let sections = cut(&sections, room.max(SCREEN / 2), options);
        cut(&joined(&[sections, last.clone()]), SCREEN, options)
    })
}

/// The tree of call paths, lines ending in a line feed. `None`: there are none.
pub fn call_paths(report: &Report, options: TextOptions) -> Option<String> {
    let width = paint::width(options.width);
    let merged = lines::merged(report);
    paths::paths(&merged.report, TextOptions { width, ..options })
}

/// What ends the text: losses and other shortcomings, and the legend.
fn last(report: &Report, options: TextOptions) -> String {
    let shows_legend = options.show.has(Section::Legend);
    let legend = shows_legend.then(|| legend::legend(options));
    let all: Vec<String> = missing::notes(report, options)
        .into_iter()
        .chain(legend)
        .collect();
    all.join("\n")
}

/// Parts with an empty line between them, the last line complete.
fn joined(parts: &[String]) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|p| !p.is_empty())
        .collect();
    let mut text = parts.join("\n");
    if !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// As many of the first lines, and how many more there are.
fn cut(text: &str, lines: usize, options: TextOptions) -> String {
    let more = text.lines().count().saturating_sub(lines - 1);
    if more <= 1 {
        return text.to_owned(); // one more line tells no more than the line itself
    }
    let first = text.lines().take(lines - 1);
    let mut first: String = first.flat_map(|line| [line, "\n"]).collect();
    let line = format!("{more} more lines: --show all");
    first += &Paint { on: options.colour }.dim(&line);
    first + "\n"
}

/// The text but for its end, however long it is.
fn sections(report: &Report, options: TextOptions) -> String {
    // Their places are named by the numbers that the report has.
    let verdict = verdict::verdict(report, options);
    let scaling = scaling::scaling(report, options);
    let merged = match options.by {
        By::Line => Some(lines::merged(report)),
        By::Site => None,
    };
    let (report, several) = match &merged {
        Some(merged) => (&merged.report, &merged.several[..]),
        None => (report, &[][..]),
    };
    let sorted = (options.sort != Sort::Time).then(|| {
        let mut sorted = report.clone();
        options.sort.apply(&mut sorted.regions);
        sorted
    });
    let report = sorted.as_ref().unwrap_or(report);
    let tried = report.tried.as_ref();
    let tried =
        tried.map(|t| table::wrap(&format!("tried: {}", words::tried(t)), options.width, "  "));
    let mut sections: Vec<String> = goes_on(report, options).into_iter().collect();
    sections.extend(tried.into_iter().chain(verdict));
    sections.push(sections::header(report, options));
    sections.extend(parts::starved(report, options));
    sections.extend(probes::probes(report, options));
    sections.extend(sections::in_part(report, options));
    sections.extend(sections::regions(report, several, options));
    let shows = |section: Section| options.show.has(section);
    let on_request = |section: Section, found: &dyn Fn() -> Option<String>| match shows(section) {
        true => found().or_else(|| nothing(section, options)),
        false => None,
    };
    sections.extend(on_request(Section::Properties, &|| {
        properties::properties(report, options)
    }));
    sections.extend(on_request(Section::CallPaths, &|| {
        paths::paths(report, options)
    }));
    sections.extend(loops::loops(report, options));
    sections.extend(on_request(Section::Callers, &|| {
        callers::callers(report, options)
    }));
    sections.extend(on_request(Section::Units, &|| {
        distribution::distribution(report, options)
    }));
    sections.extend(ranks::ranks(report, options));
    sections.extend(events::events(report, options));
    sections.extend(on_request(Section::RegionEvents, &|| {
        parts::parts(report, options)
    }));
    if shows(Section::Overheads) || shows(Section::PerThread) {
        sections.extend(sections::overheads(report, options));
        sections.extend(sections::of_program(report, options));
    }
    sections.extend(on_request(Section::Locks, &|| {
        let both = [
            mutexes::mutexes(report, options),
            mutexes::locks(report, options),
        ];
        let both: Vec<String> = both.into_iter().flatten().collect();
        (!both.is_empty()).then(|| both.join("\n"))
    }));
    sections.extend(on_request(Section::Scaling, &|| scaling.clone()));
    sections.extend(on_request(Section::PerThread, &|| {
        let tables = per_thread::per_thread(report, options);
        (!tables.is_empty()).then(|| tables.join("\n"))
    }));
    sections.extend(missing::unmatched(report, options));
    sections.extend(missing::missing_events(report, options));
    sections.extend(on_request(Section::Skipped, &|| {
        missing::skipped(report, options)
    }));
    sections.join("\n")
}

/// That processes go on, and what their threads do.
fn goes_on(report: &Report, options: TextOptions) -> Option<String> {
    let mut lines = words::goes_on(report).into_iter();
    let paint = Paint { on: options.colour };
    let first = table::wrap(&lines.next()?, options.width, "  ");
    let lines = lines.map(|line| table::wrap(&format!("  {line}"), options.width, "      "));
    Some(paint.bold(first.trim_end()) + "\n" + &lines.collect::<String>())
}

/// Of a section that was asked for by its name and has nothing to show.
fn nothing(section: Section, options: TextOptions) -> Option<String> {
    let is_asked = options.show != Sections::ALL;
    let (name, _) = Section::ALL.into_iter().find(|(_, s)| *s == section)?;
    let why = match section {
        Section::Units => "lengths of units are in recordings with --units sums, and on the page",
        _ => "there is nothing of that on record",
    };
    let line = format!("{name}: {why}\n");
    is_asked.then(|| Paint { on: options.colour }.dim(&line))
}

/// A table in the report's lines, and below it what had no room.
fn laid_out(columns: &[Column<'_>], rows: Vec<Vec<String>>, options: TextOptions) -> String {
    let paint = Paint { on: options.colour };
    let bars = |_: usize, cell: &str| paint.bars(cell);
    let head = |line: &str| paint.dim(line);
    let fitted = table::fitted(columns, rows, Some(options.width), &bars, &head);
    let missing = fitted.missing("wider lines, or --format json");
    let missing = missing.map(|line| table::wrap(&line, options.width, "  "));
    fitted.text + &missing.map_or(String::new(), |line| paint.dim(line.trim_end()) + "\n")
}

/// A section's title, with an explanation beside it, or below where there is no room.
fn titled(title: &str, explanation: &str, options: TextOptions) -> String {
    Paint { on: options.colour }.titled(title, explanation, options.width)
}
