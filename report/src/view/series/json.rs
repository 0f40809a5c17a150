//! A series for programs.

use crate::model::series::Series;
use crate::view::schema::of_type;
use crate::words;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// What `ompfuse report --over threads --format json` prints.
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

/// What [`SeriesJson`] prints, as a JSON Schema of draft 2020-12. Fields may be added to any object.
pub fn schema() -> Value {
    of_type::<SeriesJson<'_>>()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_committed_schema_is_current() {
        let committed = include_str!("../../../../docs/series.schema.json");
        let committed: serde_json::Value = serde_json::from_str(committed).unwrap();
        assert!(
            committed == super::schema(),
            "docs/series.schema.json should be what `ompfuse report --over threads --schema` prints"
        );
    }
}
