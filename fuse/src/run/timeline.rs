//! What each thread did, in the order of time: what the page's timeline draws, and what trace formats are written from.
//!
//! A thread's records come in the order of their ends, so an enclosing interval comes after what is inside it. A first pass notes
//! every [`CHUNK`](index::CHUNK) intervals where the reader stands, and which intervals begin there and end later. With that each
//! piece can be sorted by itself: memory is one piece, plus the depth of nesting at each piece's end.
//!
//! Three things differ from the records:
//! * A critical section, lock, `ordered` block, atomic or reduction is two spans, entering and leaving. What is executed in
//!   between belongs to what is around it, and may overlap others that are held.
//! * What a thread does in a parallel region before and after its part is in no record. It follows from the fork, the join and the last
//!   end: [`Kind::Startup`], [`Kind::End`], [`Kind::Shutdown`].
//! * Spans are nested. One that would end after what it began in is cut there ([`Span::is_cut`]).

mod index;
mod labels;
mod nodes;
mod steps;
mod tasks;
mod teams;
#[cfg(test)]
mod tests;

pub use labels::{LabelPattern, PatternKey};
pub use steps::Steps;
pub use tasks::TaskName;
pub use teams::Team;

use super::files::RunFiles;
use super::health::Health;
use super::read::RunReader;
use super::rows::is_root;
use super::{EventInfo, ProcessInfo, shared};
use crate::table::Site;
use index::{Fork, LaneIndex, Partial};
use ompfuse_format::Construct;
use ompfuse_format::construct::OverheadClass;
use ompfuse_format::record::{Interval, MAX_COUNTERS, NOT_COUNTED};
use ompfuse_format::run::RunHeader;
use ompfuse_progress::Progress;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::sync::OnceLock;
use tasks::Tasks;
use teams::Teams;

/// Why there is no timeline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimelineError {
    /// The run was recorded with `--units sums`.
    #[error("it has sums only, and no times; record it without --units sums")]
    SumsOnly,
}

/// A run, to be read thread by thread in the order of time.
#[derive(Debug)]
pub struct Timeline<'a> {
    reader: RunReader<'a>,
    lanes: Vec<Lane>,
    index: Vec<LaneIndex<'a>>,
    /// By process and node: executions of parallel regions that are on record.
    forks: Vec<FxHashMap<u64, Fork>>,
    teams: Teams,
    names: Vec<String>,
    /// Once somebody has asked ([`Timeline::read_tasks`]).
    tasks: OnceLock<Tasks>,
}

/// A thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lane {
    /// Position of its process in [`Timeline::processes`].
    pub process: u16,
    /// Its number in the process, by the order of first records.
    pub thread: u32,
    /// The kernel's number.
    pub tid: u32,
    /// Its name, where that tells it from the first thread of its process.
    pub name: Option<String>,
    /// Whether its code outside of parallel regions is the program's own; a worker only waits there.
    pub is_root: bool,
    /// When its recording began, in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// When it ended, or the last that is known of its process.
    pub end_ns: i64,
    /// Whether it ended in an orderly way.
    pub has_ended: bool,
    /// Records that it could not write.
    pub lost: u64,
    /// Time in what was switched off or left out, in nanoseconds: it is in no span.
    pub unrecorded_ns: u64,
    /// Intervals on record.
    pub intervals: u64,
    /// Where the thread is among those of its process.
    pub position: usize,
}

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An interval on record, all of it.
    Interval,
    /// Waiting to enter a critical section or the like. At its end the thread is in.
    Enter,
    /// Leaving it. At its begin the thread is out.
    Exit,
    /// From a region's fork to the begin of the thread's part.
    Startup,
    /// From the end of the thread's part to the end of the team's last work.
    End,
    /// From there to the region's join.
    Shutdown,
}

/// A stretch of a thread's time. What is nested in it is in its length, and not in its own time.
#[derive(Debug, Clone, Copy)]
pub struct Span<'a> {
    /// What it is.
    pub kind: Kind,
    /// The construct on record; of what is around a thread's part, that of the region.
    pub construct: Construct,
    /// Position in [`Timeline::sites`]; `None`: the program, or a site that is not known.
    pub site: Option<u32>,
    /// Begin in nanoseconds since the run's begin.
    pub begin_ns: i64,
    /// End, likewise. [`Step::Leave`] says when it was left: before, if something else had to begin outside of it.
    pub end_ns: i64,
    /// Exclusive time in nanoseconds, as it was recorded. `None`: the span is in no record.
    pub own_ns: Option<u64>,
    /// Its node, unique in its process: a unit's parts share it. 0: it has none.
    pub node: u64,
    /// The node that it happened in. Of a part of a region, the region's.
    pub parent: u64,
    /// As [`IntervalTable::extent`](super::IntervalTable), times of entering excepted: those are [`Kind::Enter`].
    pub extent: u64,
    /// The logical processor at the end, if known.
    pub cpu: Option<u16>,
    /// It is inside a parallel region.
    pub in_parallel: bool,
    /// It was longer than what it began in, and is cut there.
    pub is_cut: bool,
    /// Of a task's creation the node of the task, where it is known for sure ([`Timeline::read_tasks`]); 0: it isn't.
    pub created: u64,
    /// Only a piece of it is looked at ([`Span::cut_to`]).
    piece: Option<Piece>,
    record: Option<Interval<'a>>,
}

/// What of a span is looked at.
#[derive(Debug, Clone, Copy)]
struct Piece {
    has_end: bool,
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Doing {
    /// The program's code in parallel regions.
    Work,
    /// The program's code outside of them.
    Serial,
    /// Nothing, outside of them.
    Idle,
    /// It waits, or is in the runtime.
    Lost(OverheadClass),
}

impl Span<'_> {
    /// What of it is between two times, in nanoseconds since the run's begin. Own time and counts are on record as one sum for all of it: a
    /// piece has none.
    #[must_use]
    pub fn cut_to(mut self, begin_ns: i64, end_ns: i64) -> Self {
        if self.begin_ns >= begin_ns && self.end_ns <= end_ns {
            return self;
        }
        self.piece = Some(Piece {
            has_end: self.end_ns <= end_ns,
        });
        self.begin_ns = self.begin_ns.max(begin_ns);
        self.end_ns = self.end_ns.min(end_ns);
        self.own_ns = None;
        self.is_cut = true;
        self
    }

    /// Whether it is all of the span.
    pub fn is_whole(&self) -> bool {
        self.piece.is_none()
    }

    fn has_end(&self) -> bool {
        self.piece.is_none_or(|piece| piece.has_end)
    }

    /// The number of the lock that a critical section or a lock call is about, in its process; `None`: it isn't known.
    pub fn lock(&self) -> Option<u32> {
        let is_lock = self.construct.is_mutex();
        let record = self.record.filter(|_| is_lock)?;
        u32::try_from(record.index)
            .ok()
            .filter(|&number| number != 0)
    }

    /// Of an execution unit its first iteration, a section's number or a task's rank, as [`XuTable::first`](crate::XuTable::first); 0 of
    /// what is in no record.
    pub fn first(&self) -> i64 {
        self.record.map_or(0, |record| record.index)
    }

    /// Whether it is an execution unit, or a part of one.
    pub fn is_unit(&self) -> bool {
        self.kind == Kind::Interval && self.construct.is_xu()
    }

    /// What the thread does in the span's own time. `is_root`: as in [`Lane`]. Classes are those of the construct alone: whom a
    /// thread waits for is known only when all threads are looked at.
    pub fn doing(&self, is_root: bool) -> Doing {
        let class = match self.kind {
            Kind::Startup | Kind::Shutdown => Some(OverheadClass::Management),
            Kind::End => Some(OverheadClass::Imbalance),
            Kind::Exit => Some(Construct::AFTER_ENTRY),
            Kind::Enter | Kind::Interval => self.construct.overhead_class(),
        };
        match class {
            Some(class) => Doing::Lost(class),
            None if self.in_parallel => Doing::Work,
            None if is_root || self.construct != Construct::Program => Doing::Serial,
            None => Doing::Idle,
        }
    }
}

/// What happens next on a thread. Each enter has its leave; times never decrease.
#[derive(Debug, Clone, Copy)]
pub enum Step<'a> {
    /// A span begins, at its begin.
    Enter(Span<'a>),
    /// The innermost span ends, at a time in nanoseconds since the run's begin.
    Leave(Span<'a>, i64),
}

impl<'a> Timeline<'a> {
    /// Reads what is needed to read each thread in order.
    ///
    /// # Errors
    /// [`TimelineError`] where nothing was recorded one by one.
    pub fn new(
        files: &RunFiles<'a>,
        progress: Progress<'_>,
    ) -> Result<Timeline<'a>, TimelineError> {
        if files.has_sums_only() {
            return Err(TimelineError::SumsOnly);
        }
        let reader = RunReader::for_pieces(files, progress);
        let (mut lanes, mut index) = (vec![], vec![]);
        let (mut forks, mut teams) = (vec![], Teams::default());
        for (number, process) in (0u16..).zip(&reader.processes) {
            let read: Vec<(LaneIndex<'a>, Partial)> = (process.threads.par_iter())
                .map(|thread| index::read(thread, process, &reader.nodes, progress))
                .collect();
            let mut of_process: FxHashMap<u64, Fork> = FxHashMap::default();
            let last = process.threads.iter().map(|t| t.last_tsc).max();
            let headers = process.threads.iter().map(|t| &t.file.header);
            let first = headers.min_by_key(|h| h.tid).and_then(|h| h.name());
            for (position, (thread, (lane, partial))) in
                process.threads.iter().zip(read).enumerate()
            {
                let header = &thread.file.header;
                let at = lanes.len();
                let end = match header.tsc_end {
                    0 => last.unwrap_or(0),
                    end => end.max(thread.last_tsc),
                };
                lanes.push(Lane {
                    process: number,
                    thread: header.index,
                    tid: header.tid,
                    name: (header.name().filter(|_| header.name() != first)).map(str::to_owned),
                    is_root: is_root(thread, &reader.nodes, &process.index),
                    begin_ns: process.clock.at(header.tsc_start),
                    end_ns: process.clock.at(end.max(header.tsc_start)),
                    has_ended: header.tsc_end != 0,
                    lost: header.lost,
                    unrecorded_ns: process.clock.length(header.unrecorded_ticks),
                    intervals: lane.intervals,
                    position,
                });
                index.push(lane);
                for (node, part) in partial {
                    let fork = of_process.entry(node).or_default();
                    fork.absorb(part);
                    if let Some(member) = part.member {
                        fork.team = teams.with(fork.team, (member, at));
                    }
                }
            }
            forks.push(of_process);
            progress.release();
        }
        let names = reader.counted.clone();
        Ok(Timeline {
            reader,
            lanes,
            index,
            forks,
            teams,
            names,
            tasks: OnceLock::new(),
        })
    }

    /// The threads, by process and number.
    pub fn lanes(&self) -> &[Lane] {
        &self.lanes
    }

    /// The run's header.
    pub fn header(&self) -> &RunHeader {
        &self.reader.header
    }

    /// The processes, in the order of their begin.
    pub fn processes(&self) -> &[ProcessInfo] {
        &self.reader.infos
    }

    /// The places that spans refer to: those where a construct begins.
    pub fn sites(&self) -> &[Site] {
        &self.reader.sites
    }

    /// The events of the run's set, counted or not.
    pub fn events(&self) -> &[EventInfo] {
        &self.reader.events
    }

    /// Names of the events that [`Timeline::counts`] gives, in order.
    pub fn counted(&self) -> &[String] {
        &self.names
    }

    /// What was lost or broken.
    pub fn health(&self) -> &Health {
        &self.reader.health
    }

    /// Intervals on record, all threads together.
    pub fn intervals(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.intervals).sum()
    }

    /// What a thread did, by its position in [`Timeline::lanes`].
    ///
    /// # Panics
    /// If there is no such thread.
    pub fn steps(&self, lane: usize) -> Steps<'_, 'a> {
        Steps::new(self, lane)
    }

    /// A span's own counts, in the order of [`Timeline::counted`]: `None` where one is not known. Those of a critical section and
    /// the like are all at its entering. Replaces what is in `counts`.
    pub fn counts(&self, lane: &Lane, span: &Span<'_>, counts: &mut Vec<Option<u64>>) {
        counts.clear();
        let record = span
            .record
            .filter(|_| span.kind != Kind::Exit && span.is_whole());
        let process = &self.reader.processes[lane.process as usize];
        let counters = record.and_then(|r| process.counters.get(&r.set));
        let (Some(record), Some(counters)) = (record, counters) else {
            return counts.resize(self.names.len(), None);
        };
        let mut raw = [NOT_COUNTED; MAX_COUNTERS];
        (raw.iter_mut().zip(record.counts.iter())).for_each(|(to, count)| *to = count);
        let count = |column: &Option<usize>| column.map(|c| raw[c]).filter(|&c| c != NOT_COUNTED);
        counts.extend(counters[..self.names.len()].iter().map(count));
        let times = counters[self.names.len()..].chunks(shared::COLUMNS - 1);
        for (times, &at) in times.zip(&self.reader.shared) {
            if let (Some(value), [Some(running), Some(enabled)]) =
                (counts[at], [count(&times[0]), count(&times[1])])
            {
                counts[at] = shared::scaled(value, running, enabled);
            }
        }
    }

    /// Of an interval of entering a critical section and the like: when the thread was out again, in nanoseconds since the run's
    /// begin. `None` of a piece without the end: the thread got in later.
    pub fn released_ns(&self, lane: &Lane, span: &Span<'_>) -> Option<i64> {
        let record = span
            .record
            .filter(|_| span.kind == Kind::Enter && span.has_end())?;
        let process = &self.reader.processes[lane.process as usize];
        Some(process.clock.at(index::held(&record).1))
    }

    /// When a process's time stamp counter had this value, in nanoseconds since the run's begin.
    pub(crate) fn at(&self, lane: &Lane, tsc: u64) -> i64 {
        let process = &self.reader.processes[lane.process as usize];
        process.clock.at(tsc)
    }

    fn place(&self, lane: &Lane, site: u32) -> Option<(u32, u64)> {
        let process = &self.reader.processes[lane.process as usize];
        process.places.get(&site).copied().flatten()
    }
}
