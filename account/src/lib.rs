//! Where the time of a run or profile goes and why, as values: regions, their classes of time, efficiencies, losses and causes. Pure: nothing
//! is measured, read or printed here, and nothing has a sentence in it.
//!
//! [`Report::new`] takes a [`Summary`](ompfuse_fuse::Summary), of one run (`Summary::of_run`) or of a profile (`Profile::summary`), and
//! makes a [`Report`] ([`model`]). [`job`] merges those of a job's ranks, and [`trying`] says which settings are worth trying.
#![forbid(unsafe_code)]

pub mod causes;
mod clocks;
pub mod damage;
mod explained;
pub mod from_summary;
pub mod job;
pub mod model;
pub mod paired;
mod phases;
pub mod sampled;
pub mod similar;
pub mod student;
pub mod trying;
pub mod units;

pub use from_summary::sampled::uncounted;
pub use from_summary::{growth, probes};
pub use model::key::RegionKey;
pub use model::{Class, Mutex, Region, Report};
