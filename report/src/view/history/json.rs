//! A program over its commits, for programs.

use crate::words;
use ompfuse_compare::history::History;
use schemars::JsonSchema;
use serde::Serialize;

/// What `ompfuse history --format json` prints.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HistoryJson<'h> {
    /// The values.
    #[serde(flatten)]
    history: &'h History,
    /// For people: a line for each of the first series.
    verdict: Vec<String>,
    /// For people: what makes it less certain.
    notes: Vec<String>,
}

impl HistoryJson<'_> {
    /// A history with its sentences.
    pub fn new(history: &History) -> HistoryJson<'_> {
        HistoryJson {
            history,
            verdict: words::history_verdict(history),
            notes: words::history_notes(history),
        }
    }
}
