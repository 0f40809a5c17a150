//! The first lines: why the program doesn't scale.

use super::{Paint, TextOptions};
use crate::model::{Loss, LossKind, Report};
use crate::view::table::wrap;
use crate::words::{self, units::percent, units::seconds};

/// Losses that are told.
const MOST: usize = 3;
/// Smaller ones are none worth telling.
const LEAST: f64 = 0.02;

/// The largest losses with their causes; `None`: the run's time isn't known.
pub(super) fn verdict(report: &Report, options: TextOptions) -> Option<String> {
    let paint = Paint { on: options.colour };
    let available_s = report.losses_of_s?;
    let threads = report.overheads.iter().map(|o| o.team).max()?;
    let told: Vec<&Loss> = (report.losses.iter())
        .filter(|l| l.share >= LEAST)
        .take(MOST)
        .collect();
    let team = match threads {
        1 => "1 thread's".to_owned(),
        n => format!("{n} threads'"),
    };
    let mut text = String::new();
    if told.is_empty() {
        let line = format!("No loss of 2% or more of {team} {}", seconds(available_s));
        text += &wrap(&line, options.width, "  ");
    } else {
        // They have little in common: a thread without a processor lacks it for its work, not while it waits.
        let lost: f64 = report.losses.iter().map(|l| l.seconds).sum();
        let lost = lost.min(available_s);
        let title = format!(
            "{} of {team} time is lost ({} of {})",
            percent(lost / available_s),
            seconds(lost),
            seconds(available_s)
        );
        text += &paint.bold(wrap(&title, options.width, "  ").trim_end());
        text.push('\n');
    }
    let is_said = told.iter().any(|l| l.loss == LossKind::Starvation);
    for (number, loss) in told.iter().enumerate() {
        text += &one(report, loss, number + 1, is_said, options);
    }
    let scaling = report.scaling.as_ref();
    // Where threads lack processors, units' times say nothing of others.
    let is_starved = report.running.as_ref().is_some_and(|r| r.is_starved);
    if let Some(line) = scaling
        .filter(|_| !is_starved)
        .and_then(|s| words::prediction(report, s))
    {
        text += &wrap(&line, options.width, "  ");
    }
    Some(text)
}

/// `is_said`: that threads had no processors.
fn one(report: &Report, loss: &Loss, number: usize, is_said: bool, options: TextOptions) -> String {
    let place = words::loss_place(report, loss);
    let place = place.map_or(String::new(), |p| format!(" in {p}"));
    let remedy = words::remedy(loss).map_or(String::new(), |r| format!("; try: {r}"));
    let starved = match is_said {
        true => String::new(),
        false => loss.starved.map_or(String::new(), |share| {
            format!(
                " (its threads had no processor for {} of their work)",
                percent(share)
            )
        }),
    };
    let line = format!(
        "{number}. {} ({}){place}: {}{starved}{remedy}",
        percent(loss.share),
        seconds(loss.seconds),
        words::cause(report, loss),
    );
    wrap(&line, options.width, "   ")
}
