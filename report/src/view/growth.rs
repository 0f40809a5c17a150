//! How a run over time is shown.

mod json;
mod text;

pub use json::GrowthJson;
pub use text::text;
