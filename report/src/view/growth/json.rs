//! A run over time, for programs.

use crate::model::growth::GrowthReport;
use crate::view::schema::of_type;
use crate::words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What `ompfuse report --interval LENGTH --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GrowthJson<'r> {
    /// The values.
    #[serde(flatten)]
    report: &'r GrowthReport,
    /// The phases for people, in one or two sentences.
    verdict: String,
}

impl GrowthJson<'_> {
    /// A run over time with its sentences.
    pub fn new(report: &GrowthReport) -> GrowthJson<'_> {
        GrowthJson {
            report,
            verdict: words::growth_verdict(report),
        }
    }
}

/// What [`GrowthJson`] prints, as a JSON Schema of draft 2020-12. Fields may be added to any object.
pub fn schema() -> Value {
    of_type::<GrowthJson<'_>>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../../../docs/intervals.schema.json");
        let committed: serde_json::Value = serde_json::from_str(committed).unwrap();
        assert!(
            committed == super::schema(),
            "docs/intervals.schema.json should be what `ompfuse report --interval 1s --schema` prints"
        );
    }
}
