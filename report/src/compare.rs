//! Two sides compared, region by region: two runs, two builds, two compilers.
//!
//! ```text
//! Summary, units ──gather──> Measured (a run) ──Side::of──> Side ──by_callers, matching──> pairs ──statistics──> Diff ──view::diff──> text
//!                                                            ▲ the baseline file                  └──gate──> Outcome
//! ```

mod by_callers;
pub mod cause;
pub mod conditions;
pub mod diff;
pub mod gate;
pub mod gather;
pub mod matching;
mod repeated;
pub mod series;
pub mod side;
pub mod statistics;
pub mod units;

pub use by_callers::by_callers;
pub use diff::{
    Basis, Change, Condition, Confidence, Diff, Finding, Interval, Matched, Pair, SideInfo,
};
pub use repeated::{SideError, side as side_of};
pub use side::{Commit, Machine, Quantity, Sample, Side, SideRegion};

/// Compares two sides, as [`by_callers`] gives them. The pairs' slowest units are left open: baselines have none (see [`units::add_slowest`]).
pub fn compare(a: &Side, b: &Side) -> Diff {
    let found = matching::matched(a, b);
    let (total, mut pairs) = statistics::changes(a, b, &found.pairs);
    // What a side doesn't tell is no difference.
    for pair in &mut pairs {
        let told = |s: &[Option<String>; 2]| s.iter().all(Option::is_some);
        pair.schedules = pair.schedules.take().filter(told);
    }
    let info = |side: &Side| SideInfo {
        name: side.origin.name.clone(),
        program: side.origin.program.clone(),
        runs: side.origin.runs,
        threads: side.origin.threads,
    };
    let lone = |regions: &[&SideRegion], other: &Side| {
        let lone = |r: &&SideRegion| diff::Lone {
            key: r.key.clone(),
            share: r.share,
            time_s: r.values.get(&Quantity::Time).map_or(0.0, Sample::typical),
            may_be_unseen: other.origin.unseen.iter().any(|u| u.lost > 0),
        };
        regions.iter().map(lone).collect()
    };
    Diff {
        version: diff::DIFF_VERSION,
        a: info(a),
        b: info(b),
        conditions: conditions::conditions(a, b),
        matched: found.share(),
        total,
        pairs,
        only_a: lone(&found.only_a, b),
        only_b: lone(&found.only_b, a),
    }
}
