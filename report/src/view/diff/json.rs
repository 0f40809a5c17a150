//! A comparison for programs.

use crate::compare::Diff;
use crate::compare::gate::Outcome;
use crate::view::schema::of_type;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

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

/// What [`json`] prints, as a JSON Schema of draft 2020-12. Fields may be added to any object.
pub fn schema() -> Value {
    of_type::<Compared<'_>>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../../../docs/diff.schema.json");
        let committed: serde_json::Value = serde_json::from_str(committed).unwrap();
        assert!(
            committed == super::schema(),
            "docs/diff.schema.json should be what `ompfuse diff --schema` prints"
        );
    }
}
