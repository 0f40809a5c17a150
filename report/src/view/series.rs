//! How a series over numbers of threads is shown.

mod bars;
mod json;
mod text;

pub use json::SeriesJson;
pub use text::text;
