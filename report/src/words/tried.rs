//! What `ompfuse try` has found, in words.

use ompfuse_account::model::{Judged, Tried, TriedVariant};
use ompfuse_account::paired::Paired;
use ompfuse_account::units::percent;

/// How an output is.
pub fn judged(judged: Judged) -> &'static str {
    match judged {
        Judged::Equal => "equal",
        Judged::EqualButDigits => "equal but for digits",
        Judged::Checked => "accepted by --check",
        Judged::Differs => "differs",
        Judged::DigitsDiffer => "other digits",
        Judged::Failed => "another exit status",
        Judged::Unknown => "unknown: see --check",
    }
}

/// A change, as a share.
pub fn change(share: f64) -> String {
    format!("{:+.1}%", 100.0 * share)
}

/// What helps most, in a line.
pub fn tried(tried: &Tried) -> String {
    let best = tried.best();
    let Some((best, found, output)) = best.and_then(|v| Some((v, v.time?, v.output?))) else {
        return "none of them is known to be faster".to_owned();
    };
    let predicted = best.predicted.map_or(String::new(), |share| {
        format!("; {} was predicted", change(share))
    });
    let line = format!(
        "{} takes {:.1}% less time{} ({:.1} to {:.1}, {} {}turns, output {}){predicted}{}",
        best.name(),
        -100.0 * found.change,
        on(tried),
        -100.0 * found.high,
        -100.0 * found.low,
        best.turns,
        if best.is_fresh { "fresh " } else { "" },
        judged(output),
        of_region(best)
    );
    // It may come from a file.
    line.chars().filter(|c| !c.is_control()).collect()
}

/// Other programs that took less of the processors are not told.
const LEAST_TAKEN: f64 = 0.1;

/// Where it was measured.
fn on(tried: &Tried) -> String {
    let taken = tried.taken.filter(|&share| share >= LEAST_TAKEN);
    let taken = taken.map_or(String::new(), |share| {
        format!(", of which other programs had {}", percent(share))
    });
    match tried.processors {
        None => String::new(),
        Some(1.0) => format!(" on this processor{taken}"),
        Some(n) => format!(" on these {n} processors{taken}"),
    }
}

/// What is known of the time of a variant's parallel regions.
fn of_region(variant: &TriedVariant) -> String {
    match (&variant.region_reason, variant.region_time) {
        (Some(reason), _) => format!("; its region's time isn't measured: {reason}"),
        (
            None,
            Some(Paired {
                is_decided: false, ..
            }),
        ) => "; whether its region's time changed is undecided".to_owned(),
        (None, Some(found)) => format!(
            "; its region's time, recorded: {} ({} to {})",
            change(found.change),
            change(found.low),
            change(found.high)
        ),
        (None, None) => String::new(),
    }
}
