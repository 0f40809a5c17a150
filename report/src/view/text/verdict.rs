//! The first lines: why the program doesn't scale.

use super::{Paint, TextOptions};
use crate::view::table::wrap;
use crate::words::verdict::{self, ToldLoss};
use ompfuse_account::model::Report;
use ompfuse_account::units::{percent, seconds};

/// The largest losses with their causes; `None`: the run's time isn't known.
pub(super) fn verdict(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let verdict = verdict::verdict(report)?;
    let mut text = wrap(&verdict.headline, options.width, "  ");
    if !verdict.losses.is_empty() {
        text = paint.bold(text.trim_end());
        text.push('\n');
    }
    for (loss, number) in verdict.losses.iter().zip(1..) {
        text += &one(loss, number, report.lost_is_least, options);
    }
    if let Some(line) = verdict.efficiencies {
        text += &wrap(&line, options.width, "  ");
    }
    let hints = verdict.hint.into_iter().chain(verdict.trying);
    let hints = hints.chain(verdict.samples);
    for line in verdict.prediction.into_iter().chain(hints) {
        text += &wrap(&line, options.width, "  ");
    }
    Some(text)
}

fn one(loss: &ToldLoss, number: usize, is_least: bool, options: TextOptions) -> String {
    let least = if is_least { "at least " } else { "" };
    let place = loss.place.as_ref();
    let place = place.map_or(String::new(), |p| format!(" in {p}"));
    let remedy = loss.remedy.as_ref();
    let remedy = remedy.map_or(String::new(), |r| format!("; try: {r}"));
    let line = format!(
        "{number}. {least}{} ({}){place}: {}{remedy}",
        percent(loss.share),
        seconds(loss.seconds),
        loss.cause,
    );
    wrap(&line, options.width, "   ")
}
