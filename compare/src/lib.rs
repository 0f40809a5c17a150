//! Two sides compared, region by region: two runs, two builds, two compilers.
//!
//! ```text
//! Summary, units ──gather──> Measured (a run) ──Side::of──> Side ──by_callers, matching──> pairs ──statistics──> Diff ──view::diff──> text
//!                                                            ▲ the baseline file                  └──gate──> Outcome
//! ```
#![forbid(unsafe_code)]

pub mod behaviour;
mod by_callers;
pub mod cause;
pub mod conditions;
pub mod diff;
pub mod functions;
pub mod gate;
pub mod gather;
pub mod history;
pub mod matching;
pub mod rank_summary;
mod repeated;
pub mod series;
pub mod side;
pub mod statistics;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
mod turns;
pub mod units;

pub use by_callers::by_callers;
pub use diff::{
    Basis, Change, Condition, Confidence, Diff, Finding, Interval, Matched, Pair, SideInfo,
};
pub use repeated::{SideError, side as side_of};
pub use side::{Commit, Machine, Pace, Quantity, Sample, Side, SideRegion};

use ompfuse_account::model::key::RegionKey;
use ompfuse_format::Construct;

/// Matched share of the regions' time below which neither names nor lines nor the structure tell that two sides are builds of one program.
pub const LEAST_MATCHED: f64 = 0.5;

/// Compares two sides, as [`by_callers`] gives them. The pairs' slowest units are left open: baselines have none (see [`units::add_slowest`]).
pub fn compare(a: &Side, b: &Side) -> Diff {
    let found = matching::matched(a, b);
    let (total, mut pairs) = statistics::changes(a, b, &found.pairs);
    // What a side doesn't tell is no difference.
    for pair in &mut pairs {
        let told = |s: &[Option<String>; 2]| s.iter().all(Option::is_some);
        pair.schedules = pair.schedules.take().filter(told);
    }
    // Each thread of a larger team comes to its barriers, too.
    if a.origin.team != b.origin.team {
        let is_barrier = |key: &RegionKey| key.construct == Construct::Barrier;
        pairs.retain(|pair| !pair.b.iter().any(is_barrier));
    }
    let info = |side: &Side| SideInfo {
        name: side.origin.name.clone(),
        program: side.origin.program.clone(),
        runs: side.origin.runs,
        threads: side.origin.threads,
    };
    let lone = |regions: &[&SideRegion], others: &[&SideRegion], other: &Side| {
        let origin = &other.origin;
        let is_in_part = origin.in_part || origin.unseen.iter().any(|u| u.lost > 0);
        let lone = |r: &&SideRegion| diff::Lone {
            key: r.key.clone(),
            share: r.share,
            time_s: r.values.get(&Quantity::Time).map_or(0.0, Sample::typical),
            may_be_unseen: is_in_part,
            may_be_other: others.iter().any(|o| may_be(&r.key, &o.key)),
            executions: r.constant(&Quantity::Executions),
        };
        regions.iter().map(lone).collect()
    };
    let mut conditions = conditions::conditions(a, b);
    let [share_a, share_b] = found.share();
    if share_a.min(share_b) < LEAST_MATCHED {
        conditions.insert(
            0,
            Condition::Unmatched {
                a: 1.0 - share_a,
                b: 1.0 - share_b,
            },
        );
    }
    Diff {
        version: diff::DIFF_VERSION,
        a: info(a),
        b: info(b),
        conditions,
        turns: turns::pairs(a, b),
        matched: found.share(),
        alike: behaviour::alike(a, b),
        total,
        pairs,
        only_a: lone(&found.only_a, &found.only_b, b),
        only_b: lone(&found.only_b, &found.only_a, a),
    }
}

/// Whether two regions without a partner may be one of the source: of one kind, and of one name where it has one. In one build their
/// addresses tell them apart.
fn may_be(a: &RegionKey, b: &RegionKey) -> bool {
    let is_one_build = !a.build.is_empty() && a.build == b.build;
    a.construct == b.construct && a.name == b.name && !is_one_build
}
