//! What other numbers of threads would bring, and why that may not be so.

use super::count;
use super::places::{named, place};
use super::{percent, times};
use ompfuse_account::model::{Predicted, RegionScaling, Report, Scaling, Silent};
use ompfuse_fuse::span::LowerBound;

/// A program that more threads make less fast than so many times is told apart.
const NO_HELP: f64 = 1.2;

/// What is predicted for other numbers of threads, in a sentence; `None`: nothing.
pub fn prediction(report: &Report, scaling: &Scaling) -> Option<String> {
    if let Some(silent) = scaling.silent {
        return Some(format!(
            "No prediction for other numbers of threads: {}; --threads 1,2,4 measures it",
            why(silent)
        ));
    }
    if let Some(silent) = scaling.silent_above {
        return Some(format!(
            "No prediction for more than {}: {}; --threads 1,2,4 measures it",
            threads(scaling.threads),
            why(silent)
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
    let most = predicted.map(|p| p.speedup).fold(0.0, f64::max);
    if most < NO_HELP {
        return Some(format!(
            "More threads would not make it faster than {} times one thread: {what} limits it",
            times(most)
        ));
    }
    Some(format!(
        "With {} threads it would be at most {} times as fast as with 1{}, limited by {what}",
        next.threads,
        speedup(next),
        now.unwrap_or_default(),
    ))
}

fn threads(n: u64) -> String {
    match n {
        1 => "1 thread".to_owned(),
        n => format!("{n} threads"),
    }
}

/// A predicted speed-up, or the two that it is between, where they differ by what can be read.
fn speedup(p: &Predicted) -> String {
    let [least, most] = p.between_s;
    let of = |seconds: f64| times(p.speedup * p.seconds / seconds.max(1e-12));
    match of(most) == of(least) {
        true => times(p.speedup),
        false => format!("{} to {}", of(most), of(least)),
    }
}

/// Places of a critical path that are told.
const ON_PATH: usize = 3;
/// Shorter parts aren't.
const LEAST_ON_PATH: f64 = 0.05;

/// What the longest chain of a region consists of; `None`: of nothing on record.
pub fn path(report: &Report, region: &RegionScaling) -> Option<String> {
    let parts = region.path.iter().take(ON_PATH);
    let parts = parts.filter(|p| p.share >= LEAST_ON_PATH);
    let told: Vec<String> = parts
        .map(|p| {
            let stretches = match p.units > region.executions {
                true => format!(", {} stretches", count(p.units)),
                false => String::new(),
            };
            format!(
                "{} the {}{stretches}",
                percent(p.share),
                named(report, p.at)
            )
        })
        .collect();
    (!told.is_empty()).then(|| {
        format!(
            "critical path of #{}: {}; more threads don't shorten it",
            region.region,
            told.join("; ")
        )
    })
}

/// Why nothing is predicted.
pub fn why(silent: Silent) -> &'static str {
    match silent {
        Silent::TaskDependences => "how tasks or iterations depend on each other is not recorded",
        Silent::Exclusions => "tasks exclude each other (mutexinoutset), in any order",
        Silent::Detached => {
            "tasks end when an event is fulfilled (detach), by whom is not recorded"
        }
        Silent::LeftOut => "some units are not on record",
        Silent::EachThread => {
            "code that every thread executes may divide its work by the thread's number"
        }
        Silent::Uneven => {
            "a loop's ranges would be divided, whose iterations may take different times"
        }
        Silent::ByThreads => "how many ranges or tasks there are depends on the number of threads",
        Silent::Shape => {
            "regions are inside each other, threads come to different barriers, or one execution is too large to be played"
        }
        Silent::SmallUnits => {
            "tasks, ranges or loops are so short that handing them out counts, which depends on the threads"
        }
        Silent::Memory => {
            "its data may not fit the cache, and one run doesn't tell what memory's bandwidth allows"
        }
        Silent::NoProcessor => "threads were without a processor for a part of the time",
        Silent::OwnThreads => {
            "the program has threads of its own, and how much of their code runs at once is not on record"
        }
        Silent::Model => "the model doesn't explain the time of this run itself",
    }
}

/// Why a span is a lower bound.
pub fn lower_bound(because: LowerBound) -> &'static str {
    match because {
        LowerBound::TaskDependences => {
            "tasks or iterations depend on each other, in what order is not recorded"
        }
        LowerBound::Exclusions => "tasks exclude each other (mutexinoutset)",
        LowerBound::Detached => "tasks end when an event is fulfilled (detach)",
        LowerBound::Locks => "locks put their holders in an order",
        LowerBound::WholeRanges => "ranges of several iterations count as one unit each",
        LowerBound::LeftOut => "some units were not recorded",
    }
}
