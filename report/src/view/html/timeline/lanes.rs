//! A thread's nested spans as a sequence: at each moment the innermost one counts. The longest stretches are kept one by one, the
//! others as sums. Which ones are long is known only at the end: until then each lane keeps those that may be among them.

use super::bins::{Bins, Scale};
use super::longest::{Longest, place};
use super::whats::Whats;
use ompfuse_fuse::run::timeline::{Lane, Span, Step, Timeline};
use rustc_hash::FxHashSet;

/// New stretches after which a lane looks which ones are still long enough.
const OFTEN: usize = super::MOST as usize / 4;

/// What a lane does from one moment to another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stretch {
    pub(super) begin: i64,
    pub(super) end: i64,
    pub(super) what: u16,
    /// The number of its span: one that something else is nested in has several stretches.
    pub(super) open: u32,
}

impl Stretch {
    fn ns(&self) -> u64 {
        (self.end - self.begin) as u64
    }
}

/// A span that had a stretch that was kept.
#[derive(Debug)]
pub(super) struct Left<'a> {
    pub(super) open: u32,
    pub(super) span: Span<'a>,
    /// Its exclusive time.
    pub(super) own_ns: u64,
}

/// A lane's time.
#[derive(Debug)]
pub(super) struct Drawing<'a> {
    pub(super) whats: Whats,
    pub(super) stretches: Vec<Stretch>,
    pub(super) left: Vec<Left<'a>>,
    pub(super) bins: Bins,
    /// Stretches that are drawn, one by one or as sums.
    pub(super) spans: u64,
    /// Execution units, or parts of them.
    pub(super) units: u64,
}

impl Drawing<'_> {
    /// Makes sums of the stretches that are shorter.
    pub(super) fn cut(&mut self, least: u64) {
        let bins = &mut self.bins;
        let before = self.stretches.len();
        self.stretches.retain(|stretch| {
            let is_long = stretch.ns() >= least;
            if !is_long {
                bins.add(stretch.what, stretch.begin, stretch.end);
            }
            is_long
        });
        if self.stretches.len() < before {
            let kept: FxHashSet<u32> = self.stretches.iter().map(|s| s.open).collect();
            self.left.retain(|left| kept.contains(&left.open));
        }
    }
}

struct Open {
    what: u16,
    number: u32,
    /// The sum of its stretches.
    ns: u64,
    is_told: bool,
    is_kept: bool,
}

/// Reads a lane.
pub(super) struct Reading<'l, 't, 'a> {
    timeline: &'t Timeline<'a>,
    lane: &'t Lane,
    longest: &'l Longest<'a>,
    drawing: Drawing<'a>,
    open: Vec<Open>,
    opened: u32,
    since: i64,
    /// Stretches by length that `longest` doesn't know of.
    lengths: Vec<u64>,
    /// Stretches that are shorter are not kept.
    least: u64,
    new: usize,
}

impl<'l, 't, 'a> Reading<'l, 't, 'a> {
    pub(super) fn new(
        timeline: &'t Timeline<'a>,
        lane: &'t Lane,
        scale: Scale,
        longest: &'l Longest<'a>,
    ) -> Self {
        Reading {
            timeline,
            lane,
            longest,
            drawing: Drawing {
                whats: Whats::default(),
                stretches: vec![],
                left: vec![],
                bins: Bins::new(scale),
                spans: 0,
                units: 0,
            },
            open: vec![],
            opened: 0,
            since: i64::MIN,
            lengths: Longest::nothing(),
            least: 0,
            new: 0,
        }
    }

    pub(super) fn step(&mut self, step: Step<'a>) {
        match step {
            Step::Enter(span) => {
                self.tell(span.begin_ns, false);
                self.opened = self.opened.wrapping_add(1);
                self.open.push(Open {
                    what: self.drawing.whats.of(self.timeline, self.lane, &span),
                    number: self.opened,
                    ns: 0,
                    is_told: false,
                    is_kept: false,
                });
            }
            Step::Leave(span, at) => {
                self.tell(at, span.is_unit());
                let Some(top) = self.open.pop().filter(|top| top.is_told) else {
                    return;
                };
                self.drawing.units += u64::from(span.is_unit());
                if top.is_kept {
                    self.drawing.left.push(Left {
                        open: top.number,
                        own_ns: span.own_ns.unwrap_or(top.ns),
                        span,
                    });
                }
            }
        }
    }

    /// What was innermost until then had a stretch. `is_unit`: it is a unit that ends, of which one without length is told, too.
    fn tell(&mut self, at: i64, is_unit: bool) {
        let since = std::mem::replace(&mut self.since, at);
        let Some(top) = self.open.last_mut() else {
            return;
        };
        if at <= since && (top.is_told || !is_unit) {
            return;
        }
        let ns = (at - since) as u64;
        top.ns += ns;
        top.is_told = true;
        let drawing = &mut self.drawing;
        drawing.whats.took(top.what, ns);
        if drawing.whats.is_idle(top.what) {
            return;
        }
        drawing.spans += 1;
        self.lengths[place(ns)] += 1;
        if ns < self.least {
            return drawing.bins.add(top.what, since, at);
        }
        top.is_kept = true;
        drawing.stretches.push(Stretch {
            begin: since,
            end: at,
            what: top.what,
            open: top.number,
        });
        self.new += 1;
        if self.new == OFTEN {
            self.new = 0;
            self.least = self.longest.with(&mut self.lengths);
            drawing.cut(self.least);
        }
    }

    /// Hands over what was read.
    pub(super) fn finish(mut self, number: usize) {
        self.longest.with(&mut self.lengths);
        self.longest.keep(number, self.drawing);
    }
}
