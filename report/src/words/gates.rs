//! What is said of `--fail-on` expressions.

use super::compare::{changed, kind_in_sentence, most, place, quantity, value};
use super::estimates::{MOST_RUNS, visible};
use super::uncounted::uncounted_work;
use ompfuse_account::model::key::RegionKey;
use ompfuse_account::similar::did_you_mean;
use ompfuse_compare::gate::{Doubt, Hit, NotCounted, Outcome, Problem, Verdict};
use ompfuse_compare::{Change, Diff, Finding, Quantity};

/// What became of an expression, in a sentence without a full stop.
pub fn outcome(outcome: &Outcome) -> String {
    match &outcome.verdict {
        Verdict::Passes => "nothing is beyond it".to_owned(),
        Verdict::Undecided { doubts } => {
            let first = doubts.first().map_or_else(String::new, doubt);
            match doubts.len() {
                0 | 1 => first,
                n => format!("{first}; so it is for {} more", n - 1),
            }
        }
        Verdict::Error { problem } => self::problem(problem),
        Verdict::Holds { hits } => {
            let first = hits.first().map_or_else(String::new, hit);
            match hits.len() {
                0 | 1 => first,
                n => format!("{first}; and {} more", n - 1),
            }
        }
    }
}

/// What became of an expression, in a word.
pub fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome.verdict {
        Verdict::Passes => "passed",
        Verdict::Undecided { .. } => "undecided",
        Verdict::Error { .. } => "error",
        Verdict::Holds { .. } => "failed",
    }
}

/// What can be seen in spite of noise, and what would help.
fn doubt(doubt: &Doubt) -> String {
    let (at, what) = (at_place(doubt.region.as_ref()), quantity(&doubt.quantity));
    if let Some(NotCounted { side, work }) = &doubt.uncounted {
        return format!(
            "{at}: {}, so how {what} changed there is not known; --count that code, too, or compare times",
            uncounted_work(&format!("the work in {side}"), work)
        );
    }
    let help = match doubt.runs_needed {
        Some(runs) if runs <= MOST_RUNS => format!("{runs} runs on each side would do"),
        Some(_) => format!("{MOST_RUNS} runs on each side would not do"),
        None => "record more runs".to_owned(),
    };
    let sign = if doubt.could_see < Some(0.0) {
        "-"
    } else {
        "+"
    };
    match visible(doubt.could_see.map(f64::abs), doubt.quantity.unit()) {
        Some(size) => format!(
            "{at}: {what} varies so much from run to run that only {sign}{size} or more would be seen; {help}"
        ),
        None => format!("{at}: a change of {what} can't be seen with this noise; {help}"),
    }
}

/// A region in a sentence, or the program.
fn at_place(region: Option<&RegionKey>) -> String {
    region.map_or_else(
        || "the program".to_owned(),
        |key| {
            format!(
                "the {} at {}",
                kind_in_sentence(key.construct.name()),
                place(key)
            )
        },
    )
}

/// What an expression warns of, with the region that makes most of it where that is the program's.
pub(crate) fn explained(found: &Hit, diff: &Diff) -> String {
    match (&found.region, &found.quantity, most(diff)) {
        (None, Some(_), Some(most)) => format!("{}. {most}", hit(found)),
        _ => hit(found),
    }
}

fn hit(hit: &Hit) -> String {
    let at = at_place(hit.region.as_ref());
    let Some(quantity) = &hit.quantity else {
        return match &hit.region {
            Some(_) => format!("{at} is new"),
            None => "no region is new".to_owned(),
        };
    };
    let side = |v: Option<f64>| v.map_or_else(|| "none".to_owned(), |v| value(quantity, v));
    let by = hit.change.map_or_else(String::new, |by| {
        let change = Change {
            quantity: quantity.clone(),
            a: hit.a,
            b: hit.b,
            change: Some(by),
            interval: None,
            p: None,
            finding: Finding::Changed,
            runs_needed: None,
            is_modelled: false,
        };
        format!("{} ", changed(&change))
    });
    if hit.a.is_none() && hit.change.is_none() {
        return format!("{at}: {} of {}", self::quantity(quantity), side(hit.b));
    }
    format!(
        "{at}: {by}{} ({} -> {})",
        self::quantity(quantity),
        side(hit.a),
        side(hit.b)
    )
}

/// What else there is than a name that nothing has: what it may have meant, or all.
fn meant(name: &str, events: &[String]) -> String {
    let mut all: Vec<&str> = Quantity::names().collect();
    all.extend(events.iter().map(String::as_str));
    let meant = did_you_mean(name, &all);
    if !meant.is_empty() {
        return meant;
    }
    match events {
        [] => format!(
            "; it has {}, and no events: record with --events or --simulate",
            all.join(", ")
        ),
        _ => format!("; it has {}", all.join(", ")),
    }
}

fn problem(problem: &Problem) -> String {
    match problem {
        Problem::Damaged { side, what } => {
            format!("{side} is damaged ({}); record it again", what.join("; "))
        }
        Problem::NoRegion { selector } => format!(
            "no region matches {selector:?}; `ompfuse diff` without --fail-on lists the regions"
        ),
        Problem::NoPartner {
            selector,
            side,
            region,
        } => format!(
            "{selector:?} matches the {} at {}, which only {side} has",
            kind_in_sentence(region.construct.name()),
            place(region)
        ),
        Problem::LostProbe { region, share } => format!(
            "the {} at {} had {:.1}% of A's time and has no partner in B, where some constructs have no probe; `ompfuse scan` says why",
            kind_in_sentence(region.construct.name()),
            place(region),
            100.0 * share
        ),
        Problem::MayBeOld {
            region,
            may_be_other,
        } => format!(
            "{} may not be new: {}",
            at_place(Some(region)),
            match may_be_other {
                true => "A has another one without a partner, which it may be",
                false =>
                    "A may have it without a probe or a record; `ompfuse scan` says which have no probe",
            }
        ),
        Problem::NotMeasured {
            side,
            quantity,
            region,
            events,
        } => {
            let at = region.as_ref().map_or_else(String::new, |key| {
                format!(
                    " of the {} at {}",
                    kind_in_sentence(key.construct.name()),
                    place(key)
                )
            });
            let known = match quantity {
                Quantity::Event(name) | Quantity::EventPerUnit(name) => meant(name, events),
                _ => String::new(),
            };
            format!("{side} has no {quantity}{at}{known}")
        }
        Problem::OneRun { side, quantity } if quantity.is_exact() => format!(
            "{} may vary with addresses and threads, and {side} has one run in which they weren't fixed; record with OMP_NUM_THREADS=1 \
             where personality(2) is allowed, or with --repeat 5",
            self::quantity(quantity)
        ),
        Problem::OneRun { side, quantity } => format!(
            "{} varies from run to run and {side} has one run; record with --repeat 5, or go by the estimate with --undecided estimate",
            self::quantity(quantity)
        ),
    }
}
