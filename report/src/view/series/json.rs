//! A series for programs.

use crate::words;
use ompfuse_account::model::series::Series;
use schemars::JsonSchema;
use serde::Serialize;

/// What `ompfuse report RUN RUN... --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SeriesJson<'s> {
    /// The values.
    #[serde(flatten)]
    series: &'s Series,
    /// The verdict for people, in a few sentences.
    verdict: Vec<String>,
    /// `notes` as sentences.
    told: Vec<String>,
}

impl SeriesJson<'_> {
    /// A series with its sentences.
    pub fn new(series: &Series) -> SeriesJson<'_> {
        SeriesJson {
            series,
            verdict: words::series_verdict(series),
            told: words::series_notes(&series.notes),
        }
    }
}
