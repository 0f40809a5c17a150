//! A run's sums over time: how own times and waits grow, interval by interval, in memory that doesn't grow with the run.
//!
//! There are at most [`MOST`] intervals. With more, two neighbours each become one, which then stands for twice as much time (or
//! twice as many executions of a region). What lies in several intervals is divided by time: an interval's own time is where
//! nothing else that is on record of its thread was executed meanwhile, and evenly spread over that.

mod grower;
mod stretches;
mod tables;
#[cfg(test)]
mod tests;

pub(super) use grower::{Around, Grower};
pub(super) use tables::of_run;

use ompfuse_format::Construct;
use ompfuse_format::site::SiteInfo;

/// Intervals at most.
pub const MOST: usize = 240;

/// Where an interval ends.
#[derive(Clone, Copy)]
pub enum GrowthBy<'a> {
    /// After so many nanoseconds.
    Time(u64),
    /// With each execution of the parallel regions that this is true of: path of their module, and their site.
    Instances(&'a dyn Fn(&str, &SiteInfo) -> bool),
}

/// Why there are no sums over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GrowthError {
    /// Executions of a region can't be an order of several processes' time.
    #[error(
        "it has several processes, whose executions of a region overlap; name a length of time instead"
    )]
    Processes,
    /// There is no execution of such a parallel region.
    #[error("no parallel region of this name was executed; `ompfuse report` lists those that were")]
    NoInstance,
    /// Threads have kept sums only.
    #[error(
        "it was recorded with --units sums and has only sums of the whole run; record without it"
    )]
    SumsOnly,
}

/// A run's sums over time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Growth {
    /// Begin of the first interval, then the end of each, in nanoseconds since the run's begin.
    pub edges: Vec<i64>,
    /// Length of an interval in nanoseconds, or executions in it.
    pub each: u64,
    /// How often neighbours became one.
    pub folded: u32,
    /// Own times.
    pub own: Vec<OwnGrowth>,
    /// What parallel regions' threads do around their parts.
    pub around: Vec<AroundGrowth>,
}

/// Own time of a kind at a place, by interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnGrowth {
    /// Position in [`Summary::sites`](super::Summary::sites); `None` for the program and for unknown places.
    pub site: Option<u32>,
    /// Kind of interval.
    pub construct: Construct,
    /// Of the program: the thread's position in [`Summary::accounts`](super::Summary::accounts).
    pub account: Option<u32>,
    /// Nanoseconds; intervals at the end that have nothing may be missing.
    pub ns: Vec<u64>,
}

/// Time around the parts of a parallel region's threads, by interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AroundGrowth {
    /// Position of the region in the sites; `None`: unknown.
    pub site: Option<u32>,
    /// What they do.
    pub kind: AroundKind,
    /// As [`OwnGrowth::ns`].
    pub ns: Vec<u64>,
}

/// What a parallel region's threads do around their parts; see [`ParallelStat`](super::ParallelStat).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AroundKind {
    /// Fork to begin.
    Startup,
    /// They wait at the region's end.
    Imbalance,
    /// The same of threads that had nothing to do.
    Limited,
    /// The team's last work to join.
    Shutdown,
    /// What workers wait from fork to join: part of their program's own time.
    Workers,
}
