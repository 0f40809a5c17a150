//! A thread's pieces, one after the other, as spans that begin and end.

use super::index::{CHUNK, Fork, Item, Reader, items};
use super::tasks::Creations;
use super::{Kind, Lane, Span, Step, Timeline};
use crate::run::clock::Clock;
use ompfuse_format::Construct;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// What a thread did, in the order of time. See [`Timeline::steps`].
#[derive(Debug)]
pub struct Steps<'t, 'a> {
    timeline: &'t Timeline<'a>,
    lane: &'t Lane,
    clock: Clock,
    /// Its number in the lanes, and the next piece.
    at: (usize, usize),
    items: Vec<Item<'a>>,
    ready: VecDeque<Step<'a>>,
    open: Vec<Open<'a>>,
    now: u64,
    created: Creations,
    is_over: bool,
}

/// A span that goes on.
#[derive(Debug)]
struct Open<'a> {
    span: Span<'a>,
    /// Its end in ticks.
    end: u64,
    /// The region that it is a part of, or around a part of.
    fork: Option<Fork>,
}

impl Open<'_> {
    fn is_around(&self) -> bool {
        matches!(self.span.kind, Kind::End | Kind::Shutdown)
    }
}

impl<'t, 'a> Steps<'t, 'a> {
    pub(super) fn new(timeline: &'t Timeline<'a>, lane: usize) -> Steps<'t, 'a> {
        let of = &timeline.lanes[lane];
        let process = &timeline.reader.processes[of.process as usize];
        Steps {
            timeline,
            lane: of,
            clock: process.clock,
            at: (lane, 0),
            items: vec![],
            ready: VecDeque::new(),
            open: vec![],
            now: process.threads[of.position].file.header.tsc_start,
            created: Creations::of(lane),
            is_over: false,
        }
    }

    /// Makes steps of the next piece. After the last one, ends what is open.
    fn read_on(&mut self, out: &mut impl FnMut(Step<'a>)) {
        let (lane, chunk) = self.at;
        self.at.1 += 1;
        let Some(chunk) = self.timeline.index[lane].chunks.get(chunk) else {
            self.leave_until(u64::MAX, out);
            self.is_over = true;
            return;
        };
        let mut reader: Reader<'a> = chunk.reader.clone();
        self.items.clear();
        self.items.extend_from_slice(&chunk.crossing);
        for _ in 0..CHUNK {
            let Some((interval, order)) = reader.next() else {
                break;
            };
            let new = items(interval, order).filter(|item| item.t0 >= chunk.from);
            self.items.extend(new);
        }
        let key = |i: &Item<'_>| (i.t0, Reverse(i.t1), Reverse(i.order), i.kind);
        self.items.sort_unstable_by_key(key);
        for at in 0..self.items.len() {
            self.take(self.items[at], out);
        }
    }

    fn take(&mut self, item: Item<'a>, out: &mut impl FnMut(Step<'a>)) {
        let begin = item.t0.max(self.now);
        self.leave_until(begin, out);
        // What is around a part has ended when something begins that is no part of it.
        let ends = |open: &Open<'_>| open.is_around() && item.t1 > open.end;
        while self.open.last().is_some_and(ends) {
            self.leave(begin, out);
        }
        let i = &item.interval;
        let is_part = item.kind == Kind::Interval && i.construct.is_part();
        let fork = match is_part {
            true => self.timeline.forks[self.lane.process as usize].get(&i.parent),
            false => None,
        };
        if let Some((fork, (forked, _))) = fork.and_then(|f| Some((f, f.span?))) {
            let from = forked.max(self.now);
            if from < begin {
                self.enter_around(Kind::Startup, fork, (from, begin), i.parent, out);
                self.leave(begin, out);
            }
        }
        let (own, extent) = (self.clock.length(i.own_ticks), self.clock.length(i.extent));
        let own_ns = match item.kind {
            Kind::Enter => extent.min(own),
            Kind::Exit => own - extent.min(own),
            _ => own,
        };
        let site = self.timeline.place(self.lane, i.site).map(|p| p.0);
        let span = Span {
            kind: item.kind,
            construct: i.construct,
            site,
            begin_ns: 0,
            end_ns: 0,
            own_ns: Some(own_ns),
            node: i.node,
            parent: i.parent,
            extent: if i.construct.is_exclusive() {
                0
            } else {
                i.extent
            },
            cpu: (i.cpu != u16::MAX).then_some(i.cpu),
            in_parallel: is_part,
            is_cut: false,
            created: match i.construct {
                Construct::TaskCreate => {
                    self.created
                        .next(self.timeline.tasks.get(), self.lane, i.site)
                }
                _ => 0,
            },
            piece: None,
            record: Some(item.interval),
        };
        self.enter(span, (begin, item.t1), fork.copied(), out);
    }

    /// Enters a span, in what is open.
    fn enter(
        &mut self,
        mut span: Span<'a>,
        (begin, end): (u64, u64),
        fork: Option<Fork>,
        out: &mut impl FnMut(Step<'a>),
    ) {
        let around = self.open.last();
        let last = around.map_or(u64::MAX, |open| open.end);
        let end = end.max(begin);
        // A fork's own time is the region's, what is in a part or around one too.
        span.in_parallel |= around.is_some_and(|open| open.span.in_parallel);
        span.is_cut = end > last;
        let end = end.min(last);
        (span.begin_ns, span.end_ns) = (self.clock.at(begin), self.clock.at(end));
        self.now = begin;
        out(Step::Enter(span));
        self.open.push(Open { span, end, fork });
    }

    fn enter_around(
        &mut self,
        kind: Kind,
        fork: &Fork,
        span: (u64, u64),
        region: u64,
        out: &mut impl FnMut(Step<'a>),
    ) {
        let around = Span {
            kind,
            construct: fork.construct.unwrap_or(Construct::Parallel),
            site: self.timeline.place(self.lane, fork.site).map(|p| p.0),
            begin_ns: 0,
            end_ns: 0,
            own_ns: None,
            node: 0,
            parent: region,
            extent: 0,
            cpu: None,
            in_parallel: true,
            is_cut: false,
            created: 0,
            piece: None,
            record: None,
        };
        self.enter(around, span, Some(*fork), out);
    }

    /// Leaves what ends by then.
    fn leave_until(&mut self, tick: u64, out: &mut impl FnMut(Step<'a>)) {
        while let Some(end) = self.open.last().map(|open| open.end)
            && end <= tick
        {
            self.leave(end, out);
        }
    }

    /// Leaves the innermost span. What follows a thread's part of a region begins.
    fn leave(&mut self, at: u64, out: &mut impl FnMut(Step<'a>)) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let at = at.max(self.now);
        self.now = at;
        out(Step::Leave(open.span, self.clock.at(at)));
        let Some((fork, (_, join))) = open.fork.and_then(|f| Some((f, f.span?))) else {
            return;
        };
        let last = fork.last.min(join);
        let (region, is_whole) = (open.span.parent, at == open.end);
        match open.span.kind {
            Kind::Interval | Kind::End if !is_whole => {}
            Kind::Interval if at < last => {
                self.enter_around(Kind::End, &fork, (at, last), region, out);
            }
            Kind::Interval | Kind::End if at < join => {
                self.enter_around(Kind::Shutdown, &fork, (at, join), region, out);
            }
            _ => {}
        }
    }
}

impl<'a> Iterator for Steps<'_, 'a> {
    type Item = Step<'a>;

    fn next(&mut self) -> Option<Step<'a>> {
        while self.ready.is_empty() && !self.is_over {
            let mut ready = std::mem::take(&mut self.ready);
            self.read_on(&mut |step| ready.push_back(step));
            self.ready = ready;
        }
        self.ready.pop_front()
    }

    // Steps are large: whoever wants all of them gets each as it is made.
    fn fold<B, F: FnMut(B, Step<'a>) -> B>(mut self, init: B, mut f: F) -> B {
        let mut folded = Some(init);
        let mut out = |step| folded = folded.take().map(|folded| f(folded, step));
        std::mem::take(&mut self.ready)
            .into_iter()
            .for_each(&mut out);
        while !self.is_over {
            self.read_on(&mut out);
        }
        folded.expect("each step gives what it takes")
    }
}
