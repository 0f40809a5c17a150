//! What threads did when they were looked at last, in words.

use super::uneven::{place, stop};
use ompfuse_account::model::sampled::SampledLast;
use ompfuse_account::units::seconds;
use ompfuse_fuse::samples::StopPlace;

/// What a thread did, with a verb.
pub(crate) fn doing(last: &SampledLast) -> String {
    let SampledLast {
        construct,
        is_runtime,
        is_idle,
        entry,
        away_s,
        is_from_begin,
        through,
        at,
    } = last;
    let within = construct
        .as_ref()
        .map_or_else(String::new, |c| format!(" in {c}"));
    let since = away_s.map(|s| match is_from_begin {
        true => format!("for {} and longer", seconds(s)),
        false => format!("for {}", seconds(s)),
    });
    let entry = entry
        .as_ref()
        .map_or_else(String::new, |e| format!(" ({e})"));
    match (since, construct, is_runtime) {
        (Some(since), _, _) if *is_idle => {
            format!("has nothing to do in the OpenMP runtime {since}")
        }
        (None, _, _) if *is_idle => "is in the OpenMP runtime, with nothing to do".to_owned(),
        (Some(since), Some(construct), true) => {
            format!("waits in {construct} {since}: {}", stop(at))
        }
        (Some(since), None, true) => {
            format!(
                "waits in the OpenMP runtime{entry} {since}, called {}",
                caller(last)
            )
        }
        (Some(since), _, false) => match through {
            Some(through) => format!("waits{within} {since}: in {through}, called {}", place(at)),
            None => format!("waits{within} {since}: {}", stop(at)),
        },
        (None, Some(construct), true) => format!("is in {construct}, in the library behind it"),
        (None, None, true) => {
            format!("is in the OpenMP runtime{entry}, called {}", caller(last))
        }
        (None, _, false) => match through {
            Some(through) => format!("is in {through}{within}, called {}", place(at)),
            None => format!("computes{within} {}", running(at)),
        },
    }
}

/// Where the runtime was called. With a function of the runtime that is known, but no construct, a jump hides the place.
fn caller(last: &SampledLast) -> String {
    match (&last.entry, &last.at.object) {
        (None, None) => place(&last.at),
        _ => "at a place that isn't known".to_owned(),
    }
}

/// Where it computes, with a preposition.
fn running(at: &StopPlace) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    match (&at.file, at.line, &at.function, &at.object) {
        (Some(file), Some(line), Some(function), _) => {
            format!("at {}:{line} ({function})", base(file))
        }
        (Some(file), Some(line), None, _) => format!("at {}:{line}", base(file)),
        (_, _, Some(function), _) => format!("in {function}"),
        (_, _, _, Some(object)) => format!("in {}", base(object)),
        _ => "at a place that isn't known".to_owned(),
    }
}
