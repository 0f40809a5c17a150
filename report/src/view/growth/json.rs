//! A run over time, for programs.

use crate::words;
use ompfuse_account::model::growth::GrowthReport;
use schemars::JsonSchema;
use serde::Serialize;

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
