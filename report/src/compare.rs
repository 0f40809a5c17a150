//! Two sides compared, region by region: two runs, two builds, two compilers.
//!
//! ```text
//! Summary, units ──gather──> Measured (a run) ──Side::of──> Side ──matching──> pairs ──statistics──> Diff ──view::diff──> text
//!                                                            ▲ the baseline file                  └──gate──> Outcome
//! ```

pub mod diff;
pub mod gather;
pub mod matching;
mod repeated;
pub mod side;
pub mod statistics;

pub use diff::{
    Basis, Change, Condition, Confidence, Diff, Finding, Interval, Matched, Pair, SideInfo,
};
pub use repeated::{SideError, side as side_of};
pub use side::{Quantity, Sample, Side, SideRegion};
