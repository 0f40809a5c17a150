//! How a program over its commits is shown.

mod badge;
mod json;
mod text;

pub use badge::badge;
pub use json::HistoryJson;
pub use text::text;
