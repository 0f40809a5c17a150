//! A comparison for programs.

use ompfuse_compare::Diff;
use ompfuse_compare::gate::Outcome;
use schemars::JsonSchema;
use serde::Serialize;

/// What `ompfuse diff --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Compared<'d> {
    /// The comparison.
    #[serde(flatten)]
    pub diff: &'d Diff,
    /// Result of each `--fail-on`.
    pub gates: Vec<Told<'d>>,
    /// The verdict for people, in one or two sentences.
    pub verdict: String,
}

/// Result of a condition.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Told<'d> {
    /// The values.
    #[serde(flatten)]
    pub outcome: &'d Outcome,
    /// The result as a sentence for people.
    pub told: String,
}

/// The JSON, with line breaks.
pub fn json(diff: &Diff, outcomes: &[Outcome]) -> String {
    let told = |outcome| Told {
        outcome,
        told: crate::words::outcome(outcome),
    };
    let compared = Compared {
        diff,
        gates: outcomes.iter().map(told).collect(),
        verdict: crate::words::verdict(diff),
    };
    serde_json::to_string_pretty(&compared).expect("a comparison has only string keys")
}
