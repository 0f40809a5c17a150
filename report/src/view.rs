//! How a report is shown: for people and for programs. Everything comes from the [`model`](ompfuse_account::model), the words from
//! [`words`](crate::words).

pub mod diff;
pub mod growth;
pub mod history;
pub mod html;
pub mod json;
mod lines;
mod merged_paths;
mod outside;
mod paint;
pub mod pictures;
pub mod sampled;
pub mod schema;
pub mod series;
pub mod table;
pub mod text;

pub(crate) use outside::outside;
