//! Reports: from the numbers of a run or profile to regions, overheads, tables. Pure: nothing is measured, read or
//! printed here.
//!
//! [`Report::new`] takes a [`Summary`](ompfuse_fuse::Summary), of one run (`Summary::of_run`) or of a profile
//! (`Profile::summary`). A [`Report`] is what is true ([`model`]); it has no sentence in it. [`words`] has the sentences,
//! units and names, and [`view`] puts both together: [`view::text`] for a terminal, [`view::json`] for programs.
#![forbid(unsafe_code)]

mod causes;
mod clocks;
pub mod compare;
mod explained;
pub mod filter;
mod from_summary;
pub mod history;
pub mod job;
pub mod model;
pub mod paired;
mod phases;
pub mod sampled;
pub mod similar;
mod student;
#[cfg(test)]
mod tests;
pub mod trying;
pub mod units;
pub mod view;
pub mod words;

pub use from_summary::sampled::uncounted;
pub use from_summary::{growth, probes};
pub use model::key::RegionKey;
pub use model::{Class, Mutex, Region, Report};
pub use view::text::{By, Sort, TextOptions};
