//! The events of one thread.

use super::book::Book;
use super::regions::is_lock;
use crate::trace::{Orders, is_stretch, origin, since};
use ompfuse_format::Construct;
use ompfuse_fuse::run::timeline::{Kind, Lane, Span, Step, Timeline};
use ompfuse_otf2::{Attribute, Error, Events, Task, UNDEFINED};

/// The generation of implicit tasks.
const IMPLICIT: u32 = 0;

/// A span that goes on.
#[derive(Debug)]
struct Open {
    /// Its region; `None`: there are no events of it.
    region: Option<u32>,
    /// The events that were counted in it, a bit for each.
    counted: u64,
    /// The task that it executes.
    task: Option<Task>,
}

/// A parallel region that the thread is in.
#[derive(Debug)]
struct InRegion {
    node: u64,
    /// The team's communicator, its position in the timeline, and the thread's own number in it.
    team: Option<(u32, u32, u32)>,
    /// On a thread that has not forked it: the region that was entered for it, spans that were open then, and when it ends if nothing of
    /// it follows.
    joined: Option<Joined>,
}

#[derive(Debug)]
struct Joined {
    region: u32,
    depth: usize,
    ends: Option<u64>,
}

/// A thread whose events are being written.
pub(super) struct Thread<'t, 'a, 'w> {
    timeline: &'t Timeline<'a>,
    lane: &'t Lane,
    number: usize,
    orders: Option<&'t Orders>,
    origin: i64,
    /// Nanoseconds of a step of numbers of acquisitions.
    tick: u64,
    book: &'w mut Book,
    events: Events<'w>,
    open: Vec<Open>,
    regions: Vec<InRegion>,
    /// Locks that are held: until when, lock, and number of the acquisition.
    held: Vec<(u64, u32, u32)>,
    /// What was counted so far.
    sums: Vec<u64>,
    counts: Vec<Option<u64>>,
    values: Vec<u64>,
    attributes: Vec<Attribute>,
    now: u64,
}

impl<'t, 'a, 'w> Thread<'t, 'a, 'w> {
    pub(super) fn new(
        timeline: &'t Timeline<'a>,
        number: usize,
        orders: Option<&'t Orders>,
        book: &'w mut Book,
        events: Events<'w>,
    ) -> Thread<'t, 'a, 'w> {
        let origin = origin(timeline);
        let last = timeline
            .lanes()
            .iter()
            .map(|lane| since(origin, lane.end_ns));
        Thread {
            timeline,
            lane: &timeline.lanes()[number],
            number,
            orders,
            origin,
            tick: last.max().unwrap_or(0) / u64::from(UNDEFINED) + 1,
            book,
            events,
            open: vec![],
            regions: vec![],
            held: vec![],
            sums: vec![0; timeline.counted().len()],
            counts: vec![],
            values: vec![],
            attributes: vec![],
            now: 0,
        }
    }

    pub(super) fn take(&mut self, step: Step<'a>) -> Result<(), Error> {
        match step {
            Step::Enter(span) => self.enter(&span),
            Step::Leave(span, at) => self.leave(&span, at),
        }
    }

    /// Ends what goes on. Returns the number of events. `last`: the last time that may be, if there is one.
    pub(super) fn end(mut self, last: Option<u64>) -> Result<u64, Error> {
        self.leave_region(None)?;
        while let Some(at) = self.held.iter().map(|lock| lock.0).min() {
            let at = last.map_or(at, |last| at.min(last));
            self.held
                .iter_mut()
                .for_each(|lock| lock.0 = lock.0.min(at));
            self.release_until(at)?;
        }
        self.events.finish()
    }

    fn enter(&mut self, span: &Span<'a>) -> Result<(), Error> {
        let at = since(self.origin, span.begin_ns);
        self.leave_region(Some(span))?;
        self.release_until(at)?;
        let at = self.at(at);
        let counted = self.count(span);
        if !self.is_shown(span) {
            self.open.push(Open {
                region: None,
                counted,
                task: None,
            });
            return Ok(());
        }
        if let Some(node) = span.region()
            && self.regions.last().is_none_or(|region| region.node != node)
        {
            self.enter_region(span, node, at)?;
        }
        let name = self.timeline.task_name(self.lane, span);
        let task = name.and_then(|name| {
            let (_, team, _) = self.regions.last()?.team?;
            let known = self.book.team(self.timeline, team);
            let creator = known.members.iter().position(|&m| m == name.creator)?;
            Some(Task {
                team: known.comm,
                creator: creator as u32,
                generation: u32::try_from(name.number).ok()?,
            })
        });
        let executed = task.filter(|_| span.is_task());
        if let Some(task) = executed {
            self.events.task_switch(at, task)?;
        }
        self.metric(at, counted)?;
        let archive = self.events.definitions();
        let region = self.book.region(archive, self.timeline, span)?;
        self.attributes.clear();
        if span.is_unit() {
            let list = &mut self.attributes;
            self.book
                .attributes(archive, self.timeline, self.lane, span, list)?;
            if let Some(ordered) = self.orders.and_then(|o| o.of(self.lane, span)) {
                self.book.orders(archive, ordered, list)?;
            }
        }
        self.events.enter(at, region, &self.attributes)?;
        if let Some(task) = task.filter(|_| executed.is_none() && span.is_whole()) {
            self.events.task_create(at, task)?;
        }
        self.open.push(Open {
            region: Some(region),
            counted,
            task: executed,
        });
        Ok(())
    }

    fn leave(&mut self, span: &Span<'a>, at: i64) -> Result<(), Error> {
        self.leave_region(None)?;
        let at = since(self.origin, at);
        self.release_until(at)?;
        let at = self.at(at);
        let Some(open) = self.open.pop() else {
            return Ok(());
        };
        let region = match open.region {
            Some(region) => region,
            // A sum of many short times, written where its loop ends.
            None if !is_stretch(span) => {
                let region = self
                    .book
                    .region(self.events.definitions(), self.timeline, span)?;
                self.metric(at, open.counted)?;
                self.events.enter(at, region, &[])?;
                region
            }
            None => return Ok(()),
        };
        self.timeline.counts(self.lane, span, &mut self.counts);
        for (sum, count) in self.sums.iter_mut().zip(&self.counts) {
            *sum = sum.wrapping_add(count.unwrap_or(0));
        }
        self.metric(at, open.counted)?;
        self.events.leave(at, region)?;
        if let Some(task) = open.task {
            if self.timeline.ends(self.lane, span) {
                self.events.task_complete(at, task)?;
            }
            if let Some(task) = self.executed() {
                self.events.task_switch(at, task)?;
            }
        }
        if span.kind == Kind::Enter && is_lock(span.construct) {
            self.acquire(span, at)?;
        }
        let depth = self.open.len();
        match self.regions.last_mut() {
            Some(region) if Some(region.node) == span.region() => match &mut region.joined {
                Some(joined) if joined.depth == depth => joined.ends = Some(at),
                None if is_fork(span) => {
                    let team = region.team;
                    self.regions.pop();
                    if let Some((comm, ..)) = team {
                        self.events.team_end(at, comm)?;
                    }
                    self.events.join(at)?;
                }
                _ => {}
            },
            _ => {}
        }
        Ok(())
    }

    /// The thread begins to be in a parallel region: it forks it, or was forked.
    fn enter_region(&mut self, span: &Span<'a>, node: u64, at: u64) -> Result<(), Error> {
        let team = self.timeline.team_of(self.lane, span).and_then(|team| {
            let known = self.book.team(self.timeline, team);
            let own = known.members.iter().position(|&m| m == self.number)?;
            Some((known.comm, team, own as u32))
        });
        if is_fork(span) {
            let threads = u32::try_from(span.extent).unwrap_or(u32::MAX);
            self.events.fork(at, threads)?;
        }
        if let Some((comm, ..)) = team {
            self.events.team_begin(at, comm)?;
        }
        let mut joined = None;
        if !is_fork(span) {
            let mut around = *span;
            around.kind = Kind::Interval;
            around.construct = match span.construct {
                Construct::ImplicitTask => Construct::Parallel,
                Construct::Team => Construct::Teams,
                construct => construct,
            };
            let archive = self.events.definitions();
            let region = self.book.region(archive, self.timeline, &around)?;
            self.events.enter(at, region, &[])?;
            joined = Some(Joined {
                region,
                depth: self.open.len(),
                ends: None,
            });
        }
        self.regions.push(InRegion { node, team, joined });
        Ok(())
    }

    /// Leaves regions that the thread was in, unless what is next is a part of them.
    fn leave_region(&mut self, next: Option<&Span<'a>>) -> Result<(), Error> {
        while let Some(region) = self.regions.last_mut()
            && let Some(joined) = &mut region.joined
            && let Some(at) = joined.ends
        {
            let goes_on =
                next.is_some_and(|span| span.region() == Some(region.node) && !is_fork(span));
            if goes_on {
                joined.ends = None;
                break;
            }
            let (region, team) = (joined.region, region.team);
            self.regions.pop();
            self.release_until(at)?;
            let at = self.at(at);
            self.events.leave(at, region)?;
            if let Some((comm, ..)) = team {
                self.events.team_end(at, comm)?;
            }
        }
        Ok(())
    }

    /// What the thread executes in the innermost team: an explicit task, or its own part.
    fn executed(&self) -> Option<Task> {
        let region = self.regions.last()?;
        let depth = region.joined.as_ref().map_or(0, |joined| joined.depth);
        let (comm, _, own) = region.team?;
        let tasks = self.open[depth..].iter().rev().filter_map(|open| open.task);
        let of_team = tasks.into_iter().find(|task| task.team == comm);
        Some(of_team.unwrap_or(Task {
            team: comm,
            creator: own,
            generation: IMPLICIT,
        }))
    }

    fn acquire(&mut self, span: &Span<'a>, at: u64) -> Result<(), Error> {
        let Some(until) = self.timeline.released_ns(self.lane, span) else {
            return Ok(());
        };
        let lock = self.book.lock(self.lane, span);
        // The clock tells the order in which threads had a lock.
        let order = u32::try_from(at / self.tick).unwrap_or(UNDEFINED - 1);
        self.events.acquire(at, lock, order)?;
        self.held
            .push((since(self.origin, until).max(at), lock, order));
        Ok(())
    }

    /// Gives back the locks that are held until then.
    fn release_until(&mut self, at: u64) -> Result<(), Error> {
        while let Some(next) = (self.held.iter().enumerate())
            .filter(|(_, lock)| lock.0 <= at)
            .min_by_key(|(_, lock)| lock.0)
        {
            let (until, lock, order) = self.held.swap_remove(next.0);
            let until = self.at(until);
            self.events.release(until, lock, order)?;
        }
        Ok(())
    }

    /// The events that are known of a span, a bit for each.
    fn count(&mut self, span: &Span<'a>) -> u64 {
        self.timeline.counts(self.lane, span, &mut self.counts);
        let known = self.counts.iter().enumerate();
        let known = known.filter(|(_, count)| count.is_some());
        known.fold(0, |bits, (event, _)| bits | 1 << event)
    }

    /// The sums so far of these events.
    fn metric(&mut self, at: u64, events: u64) -> Result<(), Error> {
        if events == 0 {
            return Ok(());
        }
        let class = self.book.class(self.events.definitions(), events)?;
        self.values.clear();
        let sums = self.sums.iter().enumerate();
        let of_class = sums.filter(|(event, _)| events >> event & 1 != 0);
        self.values.extend(of_class.map(|(_, sum)| sum));
        self.events.metric(at, class, &self.values)
    }

    /// A worker's program is nothing: it waits there for work.
    fn is_shown(&self, span: &Span<'_>) -> bool {
        let is_idle = span.construct == Construct::Program && !self.lane.is_root;
        is_stretch(span) && !is_idle
    }

    /// Times never decrease.
    fn at(&mut self, ns: u64) -> u64 {
        self.now = self.now.max(ns);
        self.now
    }
}

/// Whether it is a parallel region on the thread that has forked it.
fn is_fork(span: &Span<'_>) -> bool {
    span.kind == Kind::Interval && span.construct.is_fork()
}
