//! Where a loss is.

use crate::words::{in_sentence, kind, location};
use ompfuse_account::model::{Cause, Loss, Region, Report};
use ompfuse_fuse::names::readable;

/// The parallel region or other place that a loss is at.
pub(crate) fn loss_place(report: &Report, loss: &Loss) -> Option<String> {
    let id = loss.region?;
    let region = report.regions.iter().find(|r| r.id == id);
    match region {
        // Without a source line the cause's own place tells more.
        Some(region) if region.source.is_none() => match names_place(&loss.cause) {
            true => None,
            false => (region.function.as_deref()).map(|f| in_sentence(&readable(f))),
        },
        _ => Some(place(report, id)),
    }
}

/// `id` of the region that a cause names.
pub(crate) fn cause_place(cause: &Cause) -> Option<u32> {
    match cause {
        Cause::UnevenUnits { at, .. }
        | Cause::UnevenDistribution { at, .. }
        | Cause::FewUnits { at, .. }
        | Cause::OneThread { at }
        | Cause::Communication { at, .. }
        | Cause::LateSender { at, .. }
        | Cause::Call { at, .. }
        | Cause::FewTasks { at, .. }
        | Cause::SlowCreation { at, .. }
        | Cause::UnevenTasks { at, .. }
        | Cause::UntakenTasks { at, .. }
        | Cause::Nested { at }
        | Cause::Held { at, .. }
        | Cause::InOrder { at, .. }
        | Cause::Reduction { at, .. }
        | Cause::AtOnce { at, .. }
        | Cause::AwaitsEvent { at, .. }
        | Cause::Dependences { at, .. }
        | Cause::OneByOne { at, .. }
        | Cause::WaitsForTasks { at, .. }
        | Cause::CostlyTasks { at, .. }
        | Cause::CostlyRanges { at, .. } => Some(*at),
        Cause::ManyBarriers { at, .. } => *at,
        Cause::AtRank { cause, .. } => cause_place(cause),
        Cause::SerialPart { .. }
        | Cause::UnevenCode
        | Cause::Late
        | Cause::ShortRegions { .. }
        | Cause::NoProcessor { .. }
        | Cause::SmallerTeam { .. }
        | Cause::Unknown => None,
    }
}

/// Whether the words for a cause say where it is.
fn names_place(cause: &Cause) -> bool {
    if let Cause::AtRank { cause, .. } = cause {
        return names_place(cause);
    }
    !matches!(
        cause,
        Cause::ShortRegions { .. }
            | Cause::UnevenCode
            | Cause::Late
            | Cause::SmallerTeam { .. }
            | Cause::Unknown
    )
}

pub(super) fn place(report: &Report, id: u32) -> String {
    let region = report.regions.iter().find(|r| r.id == id);
    region.map_or_else(|| format!("#{id}"), |r| in_sentence(&location(r)))
}

pub(super) fn named(report: &Report, id: u32) -> String {
    let region = report.regions.iter().find(|r| r.id == id);
    let of = |r: &Region| format!("{} at {}", kind(r), in_sentence(&location(r)));
    region.map_or_else(|| format!("#{id}"), of)
}
