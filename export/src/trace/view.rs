//! What of a run a trace has: a stretch of time, and regions of choice.

use super::Orders;
use ompfuse_fuse::run::timeline::{Span, Step, Timeline};
use ompfuse_fuse::samples::Stacks;
use std::io;

/// Decides about a span by itself.
type Choice<'v> = &'v dyn Fn(&Timeline<'_>, &Span<'_>) -> bool;

/// What a trace has. By default everything.
#[derive(Clone, Copy, Default)]
pub struct View<'v> {
    /// From when to when, in nanoseconds since the first thread's begin. What crosses a border is cut there; of a piece, own time and counts
    /// are not known, and left out.
    pub window: Option<(u64, u64)>,
    /// What is in it, with everything nested in that.
    pub select: Option<Choice<'v>>,
    /// What orders units, where the format has a place for that.
    pub orders: Option<&'v Orders>,
    /// The run's samples, where the format has a place for stacks.
    pub samples: Option<&'v Stacks<'v>>,
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "View({:?})", self.window)
    }
}

impl View<'_> {
    pub(super) fn is_all(&self) -> bool {
        self.window.is_none() && self.select.is_none()
    }

    /// The last time of a trace, if that isn't its threads' last.
    pub(crate) fn end(&self) -> Option<u64> {
        self.window.map(|(_, end)| end)
    }
}

/// A span that goes on.
struct Open<'a> {
    span: Span<'a>,
    is_selected: bool,
    is_entered: bool,
}

/// What of a thread is seen.
pub(super) struct Seen<'t, 'a, 'v> {
    timeline: &'t Timeline<'a>,
    choice: Option<Choice<'v>>,
    /// The window, in nanoseconds since the run's begin.
    from: i64,
    to: i64,
    open: Vec<Open<'a>>,
}

impl<'t, 'a, 'v> Seen<'t, 'a, 'v> {
    pub(super) fn new(timeline: &'t Timeline<'a>, view: &View<'v>) -> Seen<'t, 'a, 'v> {
        let origin = super::origin(timeline);
        let at = |ns: u64| origin.saturating_add_unsigned(ns);
        let (from, to) = view
            .window
            .map_or((i64::MIN, i64::MAX), |(from, to)| (at(from), at(to)));
        Seen {
            timeline,
            choice: view.select,
            from,
            to,
            open: vec![],
        }
    }

    /// Hands on what is seen of a step. Returns whether anything can follow.
    pub(super) fn take(
        &mut self,
        step: Step<'a>,
        give: &mut impl FnMut(Step<'a>) -> io::Result<()>,
    ) -> io::Result<bool> {
        match step {
            Step::Enter(span) => {
                if span.begin_ns >= self.to {
                    return Ok(false);
                }
                let around = self.open.last().is_some_and(|open| open.is_selected);
                let is_selected = around
                    || self
                        .choice
                        .is_none_or(|choice| choice(self.timeline, &span));
                self.open.push(Open {
                    span: span.cut_to(self.from, self.to),
                    is_selected,
                    is_entered: false,
                });
                if span.begin_ns >= self.from {
                    self.enter(give)?;
                }
            }
            Step::Leave(_, at) => {
                if at > self.to {
                    return Ok(false);
                }
                if at > self.from {
                    self.enter(give)?;
                }
                self.leave(at, give)?;
            }
        }
        Ok(true)
    }

    /// What is seen at a time of the spans that are open then.
    pub(super) fn at(&self, ns: i64, open: &[Span<'a>]) -> Vec<Span<'a>> {
        let is_inside = (self.from..self.to).contains(&ns);
        let all = open.iter().zip(&self.open);
        let seen = all.filter(|(_, seen)| is_inside && seen.is_selected);
        seen.map(|(span, _)| *span).collect()
    }

    /// Leaves what goes on at the window's end.
    pub(super) fn end(
        &mut self,
        give: &mut impl FnMut(Step<'a>) -> io::Result<()>,
    ) -> io::Result<()> {
        if self.open.iter().any(|open| !open.is_entered) {
            self.enter(give)?;
        }
        while !self.open.is_empty() {
            self.leave(self.to, give)?;
        }
        Ok(())
    }

    /// Enters what is open and was not entered yet, since it began before the window.
    fn enter(&mut self, give: &mut impl FnMut(Step<'a>) -> io::Result<()>) -> io::Result<()> {
        let entered = self.open.iter().rposition(|open| open.is_entered);
        for open in &mut self.open[entered.map_or(0, |at| at + 1)..] {
            if open.is_selected {
                open.is_entered = true;
                give(Step::Enter(open.span))?;
            }
        }
        Ok(())
    }

    fn leave(
        &mut self,
        at: i64,
        give: &mut impl FnMut(Step<'a>) -> io::Result<()>,
    ) -> io::Result<()> {
        match self.open.pop() {
            Some(open) if open.is_entered => give(Step::Leave(open.span, at)),
            _ => Ok(()),
        }
    }
}
