//! The samples of a region, summed up by line and function.

use super::asleep::{Asleep, Stops};
use super::functions::{FunctionSum, Functions};
use crate::run::places::SampledPlaces;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// In the place of a site: the runtime has called the code for a construct, and the stack doesn't tell for which.
pub const UNKNOWN: u32 = u32::MAX;

/// Samples at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineSum {
    /// Position in [`SampledPlaces::places`](super::SampledPlaces); `None`: code that nothing is known of.
    pub place: Option<u32>,
    /// Where this is the place of a call to a library: the function there, by a place in it.
    pub callee: Option<u32>,
    /// How many.
    pub samples: u64,
}

/// The samples of a region, or of what is outside of all.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RegionLines {
    /// Position in the run's sites; `None`: the code outside of constructs. [`UNKNOWN`]: in a construct that isn't known.
    pub site: Option<u32>,
    /// In the program's code and that of its libraries.
    pub work: u64,
    /// In the OpenMP runtime, or waiting: neither line nor function of the program.
    pub runtime: u64,
    /// In what records.
    pub recording: u64,
    /// So near to a begin or end that they may be of another region; they are in no other sum.
    pub uncertain: u64,
    /// Those of the work in code that doesn't count its instructions.
    pub uncounted: u64,
    /// Those of the work whose callers are known up to the region's begin.
    pub whole: u64,
    /// The work by place, the hottest first.
    pub lines: Vec<LineSum>,
    /// The work by function, with what each calls, the hottest first.
    pub functions: Vec<FunctionSum>,
    /// Where there are no records: time in which threads waited in the OpenMP runtime without processor, in nanoseconds.
    pub waits_ns: u64,
    /// Time without processor in its work; `None`: there was none.
    pub asleep: Option<Asleep>,
}

impl RegionLines {
    /// All samples.
    pub fn samples(&self) -> u64 {
        self.work + self.runtime + self.recording + self.uncertain
    }
}

/// A line, and the library's function that is called there.
pub(super) type Line = (Option<u32>, Option<u32>);

/// Where a sample of the work is.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) line: Line,
    /// The innermost function.
    pub(super) own: Option<u32>,
    /// All functions, each once.
    pub(super) functions: Vec<u32>,
    pub(super) is_counted: bool,
    pub(super) is_whole: bool,
}

/// A region's sums under construction.
#[derive(Default)]
pub(super) struct OfRegion {
    pub(super) sums: RegionLines,
    lines: FxHashMap<Line, u64>,
    /// By function: its own, and with what it calls.
    functions: FxHashMap<u32, [u64; 2]>,
    pub(super) stops: Stops,
}

impl OfRegion {
    pub(super) fn add(&mut self, work: &Work) {
        self.sums.work += 1;
        self.sums.whole += u64::from(work.is_whole);
        self.sums.uncounted += u64::from(!work.is_counted);
        *self.lines.entry(work.line).or_default() += 1;
        for &function in &work.functions {
            let sums = self.functions.entry(function).or_default();
            sums[0] += u64::from(work.own == Some(function));
            sums[1] += 1;
        }
    }

    pub(super) fn finish(
        self,
        site: Option<u32>,
        functions: &Functions<'_>,
        places: &SampledPlaces,
    ) -> RegionLines {
        let line = |((place, callee), samples)| LineSum {
            place,
            callee,
            samples,
        };
        let mut lines: Vec<LineSum> = self.lines.into_iter().map(line).collect();
        lines.sort_by_key(|l| (Reverse(l.samples), l.place, l.callee));
        let sums = self.functions.into_iter();
        let sums = sums.map(|(at, sums)| functions.sum(at, sums));
        let mut functions: Vec<FunctionSum> = sums.collect();
        functions.sort_by_key(|f| (Reverse(f.total), f.place, f.is_outer));
        RegionLines {
            site,
            lines,
            functions,
            asleep: self.stops.finish(places),
            ..self.sums
        }
    }
}
