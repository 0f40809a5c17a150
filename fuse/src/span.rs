//! Work, span, replays and what threads waited for: what a summary's sums can't tell, from single records.
//!
//! One pass of its own over the first records of a run, at most [`MOST_INTERVALS`]: its memory and time are bounded, however long
//! the run is. An execution of a parallel region is looked at if all of it is among them. [`Analysis`] says which share that is.
//!
//! Work T1 is the time of the program's own code. The span T∞ is the longest chain of code that must run one after the other (He,
//! Leiserson, Leiserson, "The Cilkview Scalability Analyzer", 2010). Both it and predicted times come of playing a graph of what orders
//! units (`graph.rs`).

mod drawn;
mod gather;
mod graph;
mod idle;
mod labelled;
mod loops;
mod merged;
mod outlook;
mod phases;
mod regions;
pub mod replay;
pub mod result;
#[cfg(test)]
mod tests;
mod turns;

pub use drawn::{Drawn, DrawnUnit, MOST_DRAWN, Order, Stretch, drawn};
pub use labelled::{Labelled, MOST_LABELLED, labelled};
pub use result::{
    Analysis, Candidate, Held, Idle, Largest, Longest, LoopAnalysis, LowerBound, NoTask, OnPath,
    RegionAnalysis, Turns, WaitedFor, Waiting,
};

use crate::run::RunFiles;
use crate::summary::Summary;

/// Intervals that are looked at, at most: some 220 MB. A fifth of these where a process has recorded more than 200 MB, so that
/// a report takes little longer.
pub const MOST_INTERVALS: usize = 1_000_000;

/// Numbers of threads that times are predicted for.
pub const TEAMS: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];

impl Analysis {
    /// Of a run's files. `summary`: of the same run or of a profile with it; places are positions in its sites.
    pub fn of_files(files: &RunFiles<'_>, summary: &Summary) -> Analysis {
        regions::analyse(files, summary, MOST_INTERVALS)
    }
}
