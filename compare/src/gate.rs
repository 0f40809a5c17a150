//! What fails a pipeline: `--fail-on` expressions, judged.
//!
//! An expression *holds* if what it warns of is there. It is about:
//! - the regions that its selector names;
//! - without a selector about the whole program, where that has a value: times, classes of overhead, events, units, iterations. There
//!   `time` means wall time;
//! - without a selector for `executions`, `imbalance`, `max-unit`, `mean-unit` and events per unit about any matched region: where
//!   values vary, one with at least 1 % of the time on a side. `executions` is about regions that only one side has, too, if that is certain.
//!
//! What varies from run to run must be beyond the limit by its estimate, and be certain to have changed at all: by a test at the level
//! 0.01, corrected for the number of regions that the expression is about. `strict` leaves that test out. Constant counts are compared
//! as they are, and so are counts that don't depend on the processor (executions, units, iterations, the simulator's counts of
//! executed code) if there is one run. Values (`b.`) are compared as they are, too. An event is that of the simulator (`sim-`) where it
//! was counted on both sides and no model estimates it.
//!
//! What can't be told is never a pass. Where noise hides a change as large as the limit, and one beyond it may be there, the expression
//! is *undecided* ([`Doubt`]). So is one about counts of functions where functions that don't count do much of the work. All else is an
//! error ([`Problem`]).

mod judge;
mod outcome;
mod parse;
mod place;
mod select;
#[cfg(test)]
mod tests;

pub use outcome::{Doubt, Hit, NotCounted, Outcome, Problem, Verdict};
pub use parse::{GateError, parse};
pub(crate) use select::matches;

use super::diff::Diff;
use super::side::{Quantity, Side};
use judge::Judge;
use ompfuse_fuse::names::Selector;

/// A `--fail-on` expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    expression: String,
    selector: Option<Selector>,
    subject: Subject,
    comparison: Comparison,
    limit: f64,
}

impl Gate {
    /// As the user wrote it.
    pub fn expression(&self) -> &str {
        &self.expression
    }
}

/// What is compared with the limit.
#[derive(Debug, Clone, PartialEq)]
enum Subject {
    Change(Quantity),
    Value(Quantity),
    NewRegions,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
    Differs,
}

impl Comparison {
    /// A quotient that is the limit but for rounding is the limit.
    fn holds(self, value: f64, limit: f64) -> bool {
        let value = match (value - limit).abs() <= 1e-12 * limit.abs() {
            true => limit,
            false => value,
        };
        match self {
            Comparison::Above => value > limit,
            Comparison::AtLeast => value >= limit,
            Comparison::Below => value < limit,
            Comparison::AtMost => value <= limit,
            Comparison::Differs => value != limit,
        }
    }
}

/// Judges expressions. `diff` is the comparison of `a` and `b`. `strict`: what varies fails by its estimate alone.
pub fn judge(gates: &[Gate], diff: &Diff, a: &Side, b: &Side, strict: bool) -> Vec<Outcome> {
    let mut judge = Judge::new(diff, a, b, strict);
    let outcome = |gate: &Gate| Outcome {
        expression: gate.expression.clone(),
        verdict: (judge.verdict(gate)).unwrap_or_else(|problem| Verdict::Error { problem }),
    };
    gates.iter().map(outcome).collect()
}
