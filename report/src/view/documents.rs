//! What describes printed JSON: JSON Schemas of draft 2020-12. `schema` makes them.

/// Of `ompfuse report --format json`.
pub const REPORT: &str = include_str!("../../../docs/report.schema.json");

/// Of `ompfuse report RUN RUN... --format json`.
pub const SERIES: &str = include_str!("../../../docs/series.schema.json");

/// Of `ompfuse report --interval LENGTH --format json`.
pub const INTERVALS: &str = include_str!("../../../docs/intervals.schema.json");

/// Of `ompfuse report --lines --format json`.
pub const LINES: &str = include_str!("../../../docs/lines.schema.json");

/// Of `ompfuse diff --format json`.
pub const DIFF: &str = include_str!("../../../docs/diff.schema.json");

/// Of `ompfuse history --format json`.
pub const HISTORY: &str = include_str!("../../../docs/history.schema.json");
