//! Which region a comparison is about.

use super::diff::{Change, Diff, Finding, Lone, Pair};
use super::side::Quantity;
use super::statistics::TESTED_SHARE;
use ompfuse_account::model::key::RegionKey;

/// Part of the whole difference from which on a region is most of it.
const MOST: f64 = 0.5;

/// The region that a comparison is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Main<'d> {
    /// Most of the program's change is in it.
    Most(&'d Pair),
    /// It changed most, whether the program did or not.
    Largest(&'d Pair),
    /// Most of the change is that B no longer has it.
    OnlyA(&'d Lone),
    /// Most of the change is that A did not have it.
    OnlyB(&'d Lone),
}

impl<'d> Main<'d> {
    /// The region, as B has it if it does.
    pub fn key(self) -> Option<&'d RegionKey> {
        match self {
            Main::Most(pair) | Main::Largest(pair) => pair.b.first().or(pair.a.first()),
            Main::OnlyA(lone) | Main::OnlyB(lone) => Some(&lone.key),
        }
    }
}

/// The region that makes most of the difference, else the one that changed most; `None` if none did.
pub fn main_change(diff: &Diff) -> Option<Main<'_>> {
    let is_program_told = diff.headline().is_some_and(is_told);
    // Where a simulator counted there are no times.
    let of_program = || diff.headline().and_then(Change::difference);
    let time = diff.get(&Quantity::Time).and_then(Change::difference);
    let whole = time.or_else(of_program).filter(|_| is_program_told);
    let is_most = |difference: f64| {
        whole.is_some_and(|w| difference * w > 0.0 && difference.abs() >= MOST * w.abs())
    };
    let is_timed = time.is_some();
    // What only one side has is a change only if the other one has nothing that it may be.
    let none = |lone: &[Lone]| lone.iter().map(|l| l.share).sum::<f64>() < TESTED_SHARE;
    let new = (diff.only_b.first()).filter(|_| is_timed && none(&diff.only_a));
    if let Some(new) = new.filter(|lone| is_most(lone.time_s)) {
        return Some(Main::OnlyB(new));
    }
    let gone = (diff.only_a.first()).filter(|_| is_timed && none(&diff.only_b));
    if let Some(gone) = gone.filter(|lone| is_most(-lone.time_s)) {
        return Some(Main::OnlyA(gone));
    }
    let is_unknown = |p: &&Pair| p.changes.iter().any(|c| c.finding == Finding::NoiseUnknown);
    let largest = diff.pairs.iter().find(|p| p.is_changed());
    let largest = largest.or_else(|| diff.pairs.iter().find(is_unknown))?;
    let of_pair = largest.headline().and_then(Change::difference);
    let difference = if is_timed {
        largest.time_change()
    } else {
        of_pair
    };
    Some(match difference {
        Some(difference) if is_most(difference) => Main::Most(largest),
        _ => Main::Largest(largest),
    })
}

/// Whether something changed, or may have where noise is unknown.
fn is_told(change: &Change) -> bool {
    matches!(change.finding, Finding::Changed | Finding::NoiseUnknown)
}
