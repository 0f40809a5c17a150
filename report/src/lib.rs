//! Reports: from the numbers of a run or profile to regions, overheads, tables. Pure: nothing is measured, read or
//! printed here.
//!
//! [`Report::new`] takes a [`Summary`](ompfuse_fuse::Summary), of one run (`Summary::of_run`) or of a profile
//! (`Profile::summary`). A [`Report`] serialises to the JSON that `ompfuse report --format json` prints (DESIGN.md
//! section 9: scripts rely on its names), and [`text::render`] makes the terminal's text of it.
#![forbid(unsafe_code)]

mod build;
pub mod compare;
pub mod filter;
mod model;
mod mutex;
mod overhead;
pub mod pictures;
pub mod probes;
pub mod ranks;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;
pub mod units;

pub use model::key::RegionKey;
pub use model::{
    Class, EventState, Grain, ModuleInfo, Overhead, OverheadPart, ParallelOverhead, ProbeTime,
    Region, RegionCount, RegionCounts, RegionThread, Report, RunInfo, Running, Serial, Spread,
    ThreadCheck, UnmatchedXus,
};
pub use mutex::Mutex;
pub use text::{By, TextOptions};
