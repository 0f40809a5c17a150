//! What is said of single regions.

use super::{in_sentence, location};
use ompfuse_account::model::{Doubt, InPart, Region};
use ompfuse_account::units::{count, seconds};
use ompfuse_format::site::SHARED_CODE;

/// Why a region may be more than one.
pub fn doubt(doubt: Doubt) -> &'static str {
    match doubt {
        Doubt::SharedCode => SHARED_CODE,
    }
}

/// What follows from a doubt.
pub(crate) fn doubted(region: &Region, because: Doubt) -> String {
    format!(
        "#{}: {}; if so, time and imbalance are those of both together",
        region.id,
        doubt(because)
    )
}

/// What of a region is on record, with the exact numbers.
pub(crate) fn in_part(region: &Region, part: &InPart) -> String {
    let mut why = Vec::new();
    if let Some(least) = part.shorter_than_s {
        why.push(format!("none shorter than {}", seconds(least)));
    }
    if part.one_in > 1 {
        why.push(format!("one in {}", part.one_in));
    }
    if part.throttled {
        why.push("fewer where probes cost too much".to_owned());
    }
    format!(
        "{} {}: {} of {} recorded ({}); the others took {}",
        part.kind.name(),
        in_sentence(&location(region)),
        count(part.recorded),
        count(part.executed),
        why.join(", "),
        seconds(part.left_out_s),
    )
}
