//! Samples as stacks: what a thread did at a time, and the functions that it was in.

use super::collected::{Collected, SampleAt};
use super::named::{Named, Share};
use super::walk::{Event, Events, Walk, events};
use crate::run::places::SampledPlaces;
use crate::run::timeline::{Span, Step, Timeline};

/// The samples of a run, by thread. There are few (250 a second), so all of them are in memory.
#[derive(Debug)]
pub struct Stacks<'p> {
    named: Named<'p>,
    lanes: Vec<Events>,
    period_ns: u64,
}

/// A sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stack {
    /// When: nanoseconds since the run's begin.
    pub at_ns: i64,
    /// What its thread did. Only of [`Share::Work`] there are calls.
    pub share: Share,
    /// The code that it was in, and the calls that had led there from the begin of the innermost region: the outermost first, positions in
    /// [`SampledPlaces::places`]. `None`: nothing is known of it.
    pub calls: Vec<Option<u32>>,
    /// Whether the outermost call is the first in its region.
    pub is_whole: bool,
}

impl<'p> Stacks<'p> {
    /// `None`: there are none, or their times can't be compared with those of the records.
    pub fn new(
        timeline: &Timeline<'_>,
        collected: &'p Collected,
        places: &'p SampledPlaces,
    ) -> Option<Stacks<'p>> {
        let period_ns = collected.files.iter().map(|f| f.header.period_ns).max()?;
        if collected.is_empty() || collected.files.iter().any(|f| !f.header.has_tsc) {
            return None;
        }
        let lanes = 0..timeline.lanes().len();
        Some(Stacks {
            named: Named::new(collected, places),
            lanes: lanes
                .map(|lane| events(timeline, lane, collected, false))
                .collect(),
            period_ns,
        })
    }

    /// What the positions in stacks refer to.
    pub fn places(&self) -> &'p SampledPlaces {
        self.named.places
    }

    /// Nanoseconds of processor time that a sample stands for.
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// Those of a thread, by its position in [`Timeline::lanes`].
    pub fn along<'s, 'a>(&'s self, timeline: &Timeline<'a>, lane: usize) -> Along<'s, 'p, 'a> {
        Along {
            named: &self.named,
            walk: Walk::new(&self.lanes[lane]),
            is_root: timeline.lanes()[lane].is_root,
        }
    }

    fn stack(named: &Named<'_>, file: usize, sample: &SampleAt, at_ns: i64, share: Share) -> Stack {
        let mut stack = Stack {
            at_ns,
            share,
            calls: vec![],
            is_whole: true,
        };
        if share == Share::Work {
            let calls = named.calls(file, sample);
            stack.is_whole = calls.are_whole;
            stack.calls = calls.places;
            stack.calls.reverse();
            stack.calls.push(named.place(file, &sample.at));
        }
        stack
    }
}

/// The samples of a thread beside its steps. For each step ask for the samples before it, then [pass](Along::pass) it.
#[derive(Debug)]
pub struct Along<'s, 'p, 'a> {
    named: &'s Named<'p>,
    walk: Walk<'s, 'a>,
    is_root: bool,
}

impl<'a> Along<'_, '_, 'a> {
    /// The next sample before a step, and the spans that its thread was in, the innermost last.
    pub fn before(&mut self, step: &Step<'a>) -> Option<(&[Span<'a>], Stack)> {
        let moment = self.walk.before(step)?;
        let Event::Sample(file, sample) = moment.event else {
            return None; // only samples were asked for
        };
        let place = self.named.place(file, &sample.at);
        let share = match self.named.share(place, moment.span, self.is_root) {
            Share::Idle => Share::Idle,
            _ if moment.is_uncertain => Share::Uncertain,
            share => share,
        };
        let stack = Stacks::stack(self.named, file, &sample, moment.ns, share);
        Some((moment.open, stack))
    }

    /// Goes on behind a step.
    pub fn pass(&mut self, step: &Step<'a>) {
        if !self.walk.is_over() {
            self.walk.pass(step);
        }
    }
}
