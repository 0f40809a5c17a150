//! Samples of a thread beside what it did, in the order of time.

use super::collected::{Away, Collected, SampleAt};
use crate::run::timeline::{Span, Step, Timeline};

/// What the two clocks may differ by, in nanoseconds. A sample nearer to the begin or end of a span may belong to its neighbour.
///
/// More isn't needed: the kernel stamps a sample while the thread is stopped, so every boundary that the thread has recorded before is
/// earlier than the stamp, and every later one later. Interrupting a thread takes longer than this.
const CLOCKS_NS: i64 = 200;

/// What is known of a thread at a time.
#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// A sample of one of the files.
    Sample(usize, SampleAt),
    /// It lost its processor then, as one of the files says.
    Away(usize, Away),
}

/// Events of a thread by time, in nanoseconds since the run's begin.
pub(super) type Events = Vec<(i64, Event)>;

/// The events of a thread of a timeline, by its position there. `with_away`: not only samples.
pub(super) fn events(
    timeline: &Timeline<'_>,
    number: usize,
    collected: &Collected,
    with_away: bool,
) -> Events {
    let lane = &timeline.lanes()[number];
    let key = (timeline.processes()[lane.process as usize].pid, lane.tid);
    let mut events = vec![];
    for (at, file) in collected.files.iter().enumerate() {
        // Another process or thread may have had the numbers before, or after.
        let at_ns = |raw_ns: u64| {
            let ns = timeline.at(lane, file.tsc(raw_ns)?);
            (lane.begin_ns..=lane.end_ns).contains(&ns).then_some(ns)
        };
        let samples = file.threads.get(&key).into_iter().flatten();
        events.extend(samples.filter_map(|s| Some((at_ns(s.raw_ns)?, Event::Sample(at, *s)))));
        let away = file.away.get(&key).into_iter().flatten();
        let away = away.filter(|a| with_away && !a.is_open); // who hasn't gone on has ended
        let at_away = |a: &Away| Some((at_ns(a.raw_ns)?, Event::Away(at, *a)));
        events.extend(away.filter_map(at_away));
    }
    events.sort_by_key(|(ns, _)| *ns); // stable
    events
}

/// A thread's events and spans side by side. For each of its steps ask for the [`Moment`]s before it, then [pass](Walk::pass) it.
#[derive(Debug)]
pub(super) struct Walk<'e, 'a> {
    events: &'e [(i64, Event)],
    next: usize,
    open: Vec<Span<'a>>,
    /// When another span began to be the innermost one, and when one of another region did.
    since: i64,
    since_region: i64,
    region: Option<u32>,
}

/// An event, and what its thread did.
#[derive(Debug)]
pub(super) struct Moment<'w, 'a> {
    pub(super) ns: i64,
    pub(super) event: Event,
    /// The spans that it was in, the innermost last.
    pub(super) open: &'w [Span<'a>],
    /// The innermost one.
    pub(super) span: &'w Span<'a>,
    /// The region.
    pub(super) site: Option<u32>,
    pub(super) unit_is_uncertain: bool,
    pub(super) is_uncertain: bool,
}

impl<'e, 'a> Walk<'e, 'a> {
    pub(super) fn new(events: &'e [(i64, Event)]) -> Walk<'e, 'a> {
        Walk {
            events,
            next: 0,
            open: vec![],
            since: i64::MIN,
            since_region: i64::MIN,
            region: None,
        }
    }

    /// The next event before a step. Those outside of all spans are left out.
    pub(super) fn before(&mut self, step: &Step<'a>) -> Option<Moment<'_, 'a>> {
        let now = time(step);
        let is_before = |at: usize| self.events.get(at).is_some_and(|(ns, _)| *ns < now);
        if self.open.is_empty() {
            while is_before(self.next) {
                self.next += 1;
            }
            return None;
        }
        if !is_before(self.next) {
            return None;
        }
        let (ns, event) = self.events[self.next];
        self.next += 1;
        let is_near = |since: i64| ns.saturating_sub(since).min(now.saturating_sub(ns)) < CLOCKS_NS;
        Some(Moment {
            ns,
            event,
            open: &self.open,
            span: self.open.last()?,
            site: self.region,
            unit_is_uncertain: is_near(self.since),
            is_uncertain: is_near(self.since_region),
        })
    }

    /// Goes on behind a step.
    pub(super) fn pass(&mut self, step: &Step<'a>) {
        match step {
            Step::Enter(span) => self.open.push(*span),
            Step::Leave(..) => {
                self.open.pop();
            }
        }
        self.since = time(step);
        let site = self.open.iter().rev().find_map(|span| span.site);
        if site != self.region {
            (self.region, self.since_region) = (site, self.since);
        }
    }

    /// Whether no event is left.
    pub(super) fn is_over(&self) -> bool {
        self.next == self.events.len()
    }
}

fn time(step: &Step<'_>) -> i64 {
    match step {
        Step::Enter(span) => span.begin_ns,
        Step::Leave(_, at) => *at,
    }
}
