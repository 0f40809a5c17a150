//! What other numbers of threads would bring, and why that may not be so.

use super::places::place;
use super::{percent, times};
use crate::model::{Predicted, Report, Scaling, Silent};
use ompfuse_fuse::span::LowerBound;

/// Predictions of a model that is off by more for the run itself are not told.
const MOST_ERROR: f64 = 0.3;

/// A program that more threads make less fast than so many times is told apart.
const NO_HELP: f64 = 1.2;

/// What is predicted for other numbers of threads, in a sentence; `None`: nothing.
pub fn prediction(report: &Report, scaling: &Scaling) -> Option<String> {
    if let Some(silent) = scaling.silent {
        let why = match silent {
            Silent::TaskDependences => "how tasks depend on each other is not recorded",
            Silent::Ordered => "iterations wait for each other",
            Silent::Locks => "locks put their holders in an order",
            Silent::LeftOut => "some units are not on record",
            Silent::EachThread => {
                "code that every thread executes may divide its work by the thread's number"
            }
        };
        return Some(format!(
            "No prediction for other numbers of threads: {why}; --threads 1,2,4 measures it"
        ));
    }
    if let Some(error) = scaling.model_error.filter(|e| (e - 1.0).abs() > MOST_ERROR) {
        return Some(format!(
            "No prediction for other numbers of threads: for the {} of this run the model is off by {}",
            scaling.threads,
            percent((error - 1.0).abs())
        ));
    }
    let more = |p: &&Predicted| u64::from(p.threads) > scaling.threads;
    let predicted = scaling.predicted.iter().filter(more);
    let next = predicted.clone().find(|p| p.threads >= 4)?;
    let what = match next.limited_by {
        Some(id) => place(report, id),
        None => "the serial part".to_owned(),
    };
    let now = (scaling.predicted.iter()).find(|p| u64::from(p.threads) == scaling.threads);
    let now = now
        .filter(|p| p.threads > 1)
        .map(|p| format!(" ({} with {})", times(p.speedup), p.threads));
    let error = scaling.model_error.map_or(String::new(), |e| {
        format!(
            "; at {} threads the model is off by {}",
            scaling.threads,
            percent((e - 1.0).abs())
        )
    });
    let most = predicted.map(|p| p.speedup).fold(0.0, f64::max);
    if most < NO_HELP {
        return Some(format!(
            "More threads would not make it faster than {} times one thread: {what} limits it{error}",
            times(most)
        ));
    }
    Some(format!(
        "With {} threads it would be about {} times as fast as with 1{}, limited by {what}{error}",
        next.threads,
        times(next.speedup),
        now.unwrap_or_default(),
    ))
}

/// Why a span is a lower bound.
pub fn lower_bound(because: LowerBound) -> &'static str {
    match because {
        LowerBound::TaskDependences => {
            "tasks depend on each other (depend), in what order is not recorded"
        }
        LowerBound::Ordered => "ordered blocks wait for each other",
        LowerBound::Locks => "locks put their holders in an order",
        LowerBound::WholeRanges => "ranges of several iterations count as one unit each",
        LowerBound::LeftOut => "some units were not recorded",
    }
}
