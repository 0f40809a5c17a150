//! Two runs compared by shares, as text and JSON.

use super::super::diff::Options;
use super::super::paint::{self, Paint};
use super::super::table::{self, Column, wrap};
use super::{Named, named};
use ompfuse_account::sampled::LEAST;
use ompfuse_account::sampled::compare::{ShareOf, SharePair, ShareSide, SharesDiff, SharesOf};
use ompfuse_account::units::{percent, several};
use schemars::JsonSchema;
use serde::Serialize;

/// From this share on it is told what isn't known.
const TOLD: f64 = 0.005;
/// From this share on hardly anything else is left.
const MOSTLY: f64 = 0.9;
/// Of a text so many characters stay.
const KEPT: usize = 30;

/// What `ompfuse diff --format json` prints where a side has samples only.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SharesJson<'d> {
    /// The comparison.
    #[serde(flatten)]
    pub diff: &'d SharesDiff,
    /// What it comes to, in a sentence for people.
    pub verdict: String,
}

impl SharesJson<'_> {
    /// With its sentence.
    pub fn new(diff: &SharesDiff) -> SharesJson<'_> {
        let verdict = verdict(diff);
        SharesJson { diff, verdict }
    }
}

/// The comparison as text, lines ending in a line feed.
pub fn text(diff: &SharesDiff, options: &Options) -> String {
    let (width, paint) = (paint::width(options.width), Paint { on: options.colour });
    let mut text = paint.bold(wrap(&verdict(diff), width, "").trim_end()) + "\n";
    for (side, about) in [("A", &diff.a), ("B", &diff.b)] {
        let ShareSide {
            name,
            program,
            samples,
            unknown: _,
        } = about;
        let samples = match samples {
            Some(n) => several(*n, "sample"),
            None => "recorded".to_owned(),
        };
        let line = format!("{side}  {name} · {program} · {samples}");
        text += &(paint.dim(table::front(&line, width).trim_end()) + "\n");
    }
    text += "\n";
    text += &wrap(about(diff.shares_of), width, "  ");
    if diff.unknown() >= TOLD {
        let unknown = format!(
            "{} of A and {} of B are in constructs that aren't known: each share may be larger by so much.",
            percent(diff.a.unknown),
            percent(diff.b.unknown)
        );
        text += &wrap(&unknown, width, "  ");
    }
    let columns = [
        Column::right("change (points)"),
        Column::right("A"),
        Column::right("B"),
        Column::right("±"),
        Column::left("what").leaves(1),
        Column::left("region").keeps_place(KEPT),
    ];
    let row = |pair: &SharePair| {
        let change = match pair.is_changed {
            true => points(pair.b - pair.a),
            false => String::new(),
        };
        let what = what(pair).to_owned();
        let [a, b, error] = [pair.a, pair.b, pair.error].map(percent);
        vec![change, a, b, error, what, place(pair)]
    };
    let rows: Vec<Vec<String>> = diff.regions.iter().take(options.top).map(row).collect();
    let plain = |_: usize, cell: &str| cell.to_owned();
    let head = |line: &str| paint.dim(line);
    if !rows.is_empty() {
        text += &table::fitted(&columns, rows, Some(width), &plain, &head).text;
    }
    if let more @ 1.. = diff.regions.len().saturating_sub(options.top) {
        text += &wrap(&format!("{more} more; --top lists them"), width, "  ");
    }
    text
}

/// What shares are, and aren't.
fn about(of: SharesOf) -> &'static str {
    match of {
        SharesOf::Samples => {
            "Shares of processor time, by samples: they don't tell how long anything took. ± is the standard error of a difference; \
             what differs by less than three of them is no change."
        }
        SharesOf::Work => {
            "Shares of the work in parallel regions and tasks, and nothing else. Recorded work is time by the clock: where threads sleep or \
             have no processor, it differs from samples. ± is the standard error of the samples."
        }
    }
}

/// What it comes to.
fn verdict(diff: &SharesDiff) -> String {
    let changed = diff.regions.iter().filter(|p| p.is_changed).count();
    let sides = [("A", &diff.a), ("B", &diff.b)];
    let is_few = |(_, side): &(&str, &ShareSide)| side.samples.is_some_and(|n| n < LEAST);
    if let Some((side, about)) = sides.into_iter().find(is_few) {
        let samples = several(about.samples.unwrap_or(0), "sample");
        return format!("There is nothing to compare: {side} has {samples} of processor time");
    }
    match diff.regions.first() {
        None if diff.unknown() >= MOSTLY => {
            "There is nothing to compare: nearly all samples are in constructs that aren't known".to_owned()
        }
        None => "There are too few samples to compare".to_owned(),
        Some(_) if diff.shares_of == SharesOf::Work => {
            "One side is recorded, the other has samples only: their shares of work stand side by side".to_owned()
        }
        Some(_) if changed == 0 => "No share differs by more than chance explains".to_owned(),
        Some(pair) => {
            let more = match changed - 1 {
                0 => String::new(),
                n => format!("; {} changed, too", several(n as u64, "other share")),
            };
            let (a, b) = (percent(pair.a), percent(pair.b));
            let (what, place) = (what(pair), place(pair));
            let place = match pair.construct {
                Some(_) => format!("in {place}"),
                None => place,
            };
            format!("The {what} {place} is {b} of all processor time in B, {a} in A{more}")
        }
    }
}

fn what(pair: &SharePair) -> &'static str {
    match (pair.what, pair.called.is_some()) {
        (ShareOf::Work, _) => "work",
        (ShareOf::Runtime, true) => "call",
        (ShareOf::Runtime, false) => "runtime",
    }
}

fn place(pair: &SharePair) -> String {
    named(&Named {
        construct: pair.construct,
        called: pair.called.as_deref(),
        source: pair.file.as_deref().zip(pair.line),
        site: pair.site.as_deref(),
        function: pair.function.as_deref(),
    })
}

/// A difference of shares in percentage points.
fn points(difference: f64) -> String {
    format!("{:+.1}", 100.0 * difference)
}
