//! The pass before: where pieces of a thread's records begin, what is open at their ends, and when regions began and ended.

use super::Kind;
use super::teams::TeamId;
use crate::run::nodes::{NONE, NodeTable};
use crate::run::read::Process;
use crate::run::survey::Surveyed;
use ompfuse_format::Construct;
use ompfuse_format::record::{Interval, Record, Records};
use ompfuse_progress::Progress;
use rustc_hash::FxHashMap;

/// Intervals of a piece: some megabytes as spans.
pub(super) const CHUNK: usize = if cfg!(test) { 7 } else { 1 << 13 };

/// So many intervals are read before memory is given back.
pub(super) const STRETCH: u64 = 1 << 18;

/// Pieces of a thread's records.
#[derive(Debug, Default)]
pub(super) struct LaneIndex<'a> {
    pub(super) chunks: Vec<Chunk<'a>>,
    pub(super) intervals: u64,
}

/// A piece.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub(super) reader: Reader<'a>,
    /// Everything before the piece has ended by this tick.
    pub(super) from: u64,
    /// What begins in it, and is recorded later.
    pub(super) crossing: Vec<Item<'a>>,
}

/// What becomes a span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) kind: Kind,
    pub(super) t0: u64,
    pub(super) t1: u64,
    /// Of two with the same times the greater one is around the other.
    pub(super) order: u64,
    pub(super) interval: Interval<'a>,
}

/// A thread's intervals, as they were recorded.
#[derive(Debug, Clone)]
pub(super) struct Reader<'a> {
    records: Records<'a>,
    order: u64,
    last: Option<(Construct, u64, u64)>,
}

impl<'a> Reader<'a> {
    fn new(records: Records<'a>) -> Reader<'a> {
        Reader {
            records,
            order: 0,
            last: None,
        }
    }

    /// The next interval, and its place in the order.
    pub(super) fn next(&mut self) -> Option<(Interval<'a>, u64)> {
        let interval = self.records.by_ref().find_map(|record| match record {
            Ok(Record::Interval(interval)) => Some(interval),
            _ => None,
        })?;
        let (construct, t0, t1) = (interval.construct, interval.t0, interval.t1);
        self.order += 2;
        let mut order = self.order;
        // Fetching ranges has its loop's times and comes behind it; it is inside.
        if construct == Construct::Dispatch && self.last == Some((Construct::Loop, t0, t1)) {
            order -= 3;
        }
        self.last = Some((construct, t0, t1));
        Some((interval, order))
    }
}

/// What becomes of an interval.
pub(super) fn items<'a>(interval: Interval<'a>, order: u64) -> impl Iterator<Item = Item<'a>> {
    let (t0, t1) = (interval.t0, interval.t1.max(interval.t0));
    let item = |kind, t0, t1| Item {
        kind,
        t0,
        t1,
        order,
        interval,
    };
    let parts = match interval.construct.is_exclusive() {
        false => [Some(item(Kind::Interval, t0, t1)), None],
        true => {
            let (entered, left) = held(&interval);
            let exit = (left < t1).then(|| item(Kind::Exit, left, t1));
            [Some(item(Kind::Enter, t0, entered)), exit]
        }
    };
    parts.into_iter().flatten()
}

/// From when to when a thread was in a critical section or the like, in ticks.
pub(super) fn held(interval: &Interval<'_>) -> (u64, u64) {
    let (t0, t1) = (interval.t0, interval.t1.max(interval.t0));
    let entered = t0.saturating_add(interval.extent).min(t1);
    let leaving = interval.own_ticks.saturating_sub(interval.extent);
    (entered, t1.saturating_sub(leaving).max(entered))
}

/// One execution of a parallel region, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fork {
    /// Fork and join, once they are known.
    pub(super) span: Option<(u64, u64)>,
    /// The end of the team's last work.
    pub(super) last: u64,
    pub(super) construct: Option<Construct>,
    pub(super) site: u32,
    /// Of one thread: its number in the team, if it has a part of the region.
    pub(super) member: Option<u32>,
    /// Of all: the threads that have a part of it.
    pub(super) team: TeamId,
}

impl Fork {
    pub(super) fn absorb(&mut self, other: Fork) {
        self.last = self.last.max(other.last);
        self.member = self.member.or(other.member);
        if other.span.is_some() {
            (self.span, self.construct, self.site) = (other.span, other.construct, other.site);
        }
    }
}

/// What one thread tells of executions, by node.
pub(super) type Partial = FxHashMap<u64, Fork>;

/// Reads a thread.
pub(super) fn read<'a>(
    thread: &Surveyed<'a>,
    process: &Process<'a>,
    nodes: &NodeTable,
    progress: Progress<'_>,
) -> (LaneIndex<'a>, Partial) {
    let mut lane = LaneIndex::default();
    let mut forks = Partial::default();
    let mut reader = Reader::new(thread.file.records());
    let mut ended = 0;
    // The region whose part has ended last, its position among the nodes, and that end.
    let mut behind: Option<(u64, u32, u64)> = None;
    loop {
        if lane.intervals.is_multiple_of(CHUNK as u64) {
            lane.chunks.push(Chunk {
                reader: reader.clone(),
                from: ended,
                crossing: vec![],
            });
        }
        let Some((interval, order)) = reader.next() else {
            break;
        };
        lane.intervals += 1;
        if lane.intervals.is_multiple_of(STRETCH) {
            progress.release();
        }
        let from = lane.chunks.last().map_or(0, |chunk| chunk.from);
        for item in items(interval, order) {
            if item.t0 < from {
                let after = lane.chunks.partition_point(|chunk| chunk.from <= item.t0);
                lane.chunks[after.saturating_sub(1)].crossing.push(item);
            }
        }
        ended = ended.max(interval.t1).max(interval.t0);
        let i = &interval;
        if i.construct.is_part() && i.parent != 0 {
            let fork = forks.entry(i.parent).or_default();
            fork.last = fork.last.max(i.t1);
            fork.member = Some(u32::try_from(i.extent).unwrap_or(u32::MAX));
            let position = process.index.get(i.parent);
            behind = position.map(|position| (i.parent, position, i.t1));
        } else if i.construct.is_fork() && i.node != 0 {
            forks.entry(i.node).or_default().absorb(Fork {
                span: Some((i.t0, i.t1.max(i.t0))),
                last: 0,
                construct: Some(i.construct),
                site: i.site,
                ..Fork::default()
            });
        } else if let Some((node, region, end)) = behind
            && i.t0 >= end
            && i.construct != Construct::Program
        {
            // Executed in the same region, behind the thread's part of it.
            let around = process.index.get(i.parent);
            let around = around.map_or(NONE, |at| nodes.parallel[at as usize]);
            if around == region {
                let fork = forks.entry(node).or_default();
                fork.last = fork.last.max(i.t1);
            }
        }
    }
    (lane, forks)
}
