//! Why the program doesn't scale, in a few sentences.

use super::units::{percent, seconds};
use crate::model::{Loss, LossKind, Report};
use crate::words;

/// Losses that are told.
const MOST: usize = 3;
/// Smaller ones are none worth telling.
const LEAST: f64 = 0.02;

/// The largest losses with their causes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    /// How much is lost.
    pub(crate) headline: String,
    /// The losses, largest first; empty: none is large.
    pub(crate) losses: Vec<ToldLoss>,
    /// What other numbers of threads would bring, if that can be told.
    pub(crate) prediction: Option<String>,
}

/// A loss in words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToldLoss {
    /// `id` of its parallel region.
    pub(crate) region: Option<u32>,
    /// Share of the available time, from 0 to 1.
    pub(crate) share: f64,
    /// Seconds, all threads together.
    pub(crate) seconds: f64,
    /// Where.
    pub(crate) place: Option<String>,
    /// Why.
    pub(crate) cause: String,
    /// That its threads had no processor, where that is so.
    pub(crate) starved: Option<String>,
    /// What usually helps.
    pub(crate) remedy: Option<String>,
}

/// The verdict; `None`: the run's time isn't known.
pub(crate) fn verdict(report: &Report) -> Option<Verdict> {
    let available_s = report.losses_of_s?;
    let threads = report.overheads.iter().map(|o| o.team).max()?;
    let large = report.losses.iter().filter(|l| l.share >= LEAST);
    let large: Vec<&Loss> = large.take(MOST).collect();
    let team = match threads {
        1 => "1 thread's".to_owned(),
        n => format!("{n} threads'"),
    };
    // Older reports tell the large ones only.
    let told_s = || {
        report
            .losses
            .iter()
            .map(|l| l.seconds)
            .sum::<f64>()
            .min(available_s)
    };
    let lost_s = report.lost_s.unwrap_or_else(told_s);
    let headline = match large.is_empty() {
        true if lost_s < LEAST * available_s => {
            format!("No loss of 2% or more of {team} {}", seconds(available_s))
        }
        is_spread => format!(
            "{} of {team} time is lost ({} of {}){}",
            percent(lost_s / available_s),
            seconds(lost_s),
            seconds(available_s),
            if is_spread {
                ", no single loss 2% or more"
            } else {
                ""
            }
        ),
    };
    // That threads had no processors is said once.
    let is_said = large.iter().any(|l| l.loss == LossKind::Starvation);
    // Where threads lack processors, units' times say nothing of others.
    let is_starved = report.running.as_ref().is_some_and(|r| r.is_starved);
    let scaling = report.scaling.as_ref().filter(|_| !is_starved);
    Some(Verdict {
        headline,
        losses: large.iter().map(|l| told(report, l, is_said)).collect(),
        prediction: scaling.and_then(|s| words::prediction(report, s)),
    })
}

fn told(report: &Report, loss: &Loss, is_said: bool) -> ToldLoss {
    let starved = loss.starved.filter(|_| !is_said);
    ToldLoss {
        region: loss.region,
        share: loss.share,
        seconds: loss.seconds,
        place: words::loss_place(report, loss),
        cause: words::cause(report, loss),
        starved: starved.map(|share| {
            format!(
                "its threads had no processor for {} of their work",
                percent(share)
            )
        }),
        remedy: words::remedy(loss),
    }
}
