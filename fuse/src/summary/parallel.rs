//! Parallel regions instance by instance: fork, implicit tasks, join (ompP calls them sub-regions; docs/reference/ompp.md).

mod executions;
mod instances;

pub(super) use executions::{Executions, in_order};
pub(super) use instances::{Instances, arounds};

use super::growth::{Around, AroundKind};
use super::sums::length;
use crate::run::{NONE, Run};
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use std::collections::HashSet;

/// Nanoseconds inside parallel regions that are in no other one on record; where several root threads' regions overlap,
/// counted once.
pub(super) fn parallel_ns(run: &Run) -> u64 {
    let mut all: Vec<(i64, i64)> = outermost_regions(run).map(|(_, span)| span).collect();
    union_ns(&mut all)
}

/// The same by process.
pub(super) fn by_process(run: &Run) -> Vec<u64> {
    let mut spans: Vec<Vec<(i64, i64)>> = vec![vec![]; run.processes.len()];
    for (process, span) in outermost_regions(run) {
        if let Some(of_process) = spans.get_mut(process as usize) {
            of_process.push(span);
        }
    }
    spans.iter_mut().map(|spans| union_ns(spans)).collect()
}

/// Process, begin and end of the regions that are in no other one on record.
fn outermost_regions(run: &Run) -> impl Iterator<Item = (u16, (i64, i64))> + '_ {
    let rows = &run.intervals;
    let forks = move || (0..rows.len()).filter(|&row| rows.construct[row].is_fork());
    let recorded: HashSet<u32> = forks().map(|row| rows.node[row]).collect();
    let is_outermost = move |row: &usize| {
        let above = |&node: &u32| Some(enclosing(run, run.nodes.parent[node as usize]));
        let around = std::iter::successors(Some(enclosing(run, rows.parent[*row])), |node| {
            Some(node).filter(|&&n| n != NONE).and_then(above)
        });
        // Those that were switched off have a node and no interval. Damaged nodes may be their own parents.
        let mut around = around.take(MOST_LEVELS).take_while(|&node| node != NONE);
        !around.any(|node| recorded.contains(&node))
    };
    forks()
        .filter(is_outermost)
        .map(|row| (rows.process[row], (rows.t0_ns[row], rows.t1_ns[row])))
}

/// Length of the union of spans.
pub(super) fn union_ns(spans: &mut [(i64, i64)]) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut until) = (0, i64::MIN);
    for &(begin, end) in spans.iter() {
        covered += length(begin.max(until), end);
        until = until.max(end);
    }
    covered
}

/// Parallel regions inside each other that are looked at.
const MOST_LEVELS: usize = 1000;

/// Innermost parallel region's node around a node, itself included.
fn enclosing(run: &Run, node: u32) -> u32 {
    run.nodes
        .parallel
        .get(node as usize)
        .copied()
        .unwrap_or(NONE)
}

/// One execution of a parallel region.
#[derive(Debug, Default)]
pub(super) struct Instance {
    pub(super) fork: i64,
    pub(super) join: i64,
    pub(super) team: u64,
    pub(super) nested: bool,
    pub(super) site: u32,
    /// See [`Paths`].
    pub(super) path: u32,
    /// The encountering thread.
    pub(super) master: ThreadKey,
    /// End of the last implicit task or of what was executed after it.
    pub(super) last: i64,
    /// Another region was executed in it.
    pub(super) has_inside: bool,
    /// Parts that were recorded; a thread's are one in `parts`.
    pub(super) members: u64,
    pub(super) parts: Vec<Part>,
}

/// Process, and number of the thread in it.
pub(super) type ThreadKey = (u16, u32);

/// One thread's part of an instance.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) thread: ThreadKey,
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Exclusive time of what the thread executed for the region after its end (tasks in the last barrier).
    pub(super) tail_ns: u64,
    /// Own time of the program's code in it, where that is summed up by execution.
    pub(super) busy_ns: u64,
}

impl Part {
    /// From begin to end.
    pub(super) fn new(thread: ThreadKey, begin: i64, end: i64) -> Part {
        Part {
            thread,
            begin,
            end,
            tail_ns: 0,
            busy_ns: 0,
        }
    }
}

/// Whether a kind's own time is the program's code, calls of other libraries included.
pub(super) fn is_busy(construct: Construct) -> bool {
    construct.charges_to() == Charge::Work || construct.is_call()
}

/// A thread that waits so many times as long as it has done something before has done nothing worth the name.
const IDLE: u64 = 10;

impl Part {
    /// Nanoseconds from fork to join in which the thread, a worker, does nothing for the region. `span`: begin and end of
    /// its recording; what is outside is in no account.
    pub(super) fn waiting(&self, instance: &Instance, (first, last): (i64, i64)) -> u64 {
        let before = length(instance.fork.max(first), self.begin);
        let after = length(self.end, instance.join.min(last));
        before + after.saturating_sub(self.tail_ns)
    }
}

impl Instance {
    /// Whether all of its parts are on record.
    fn is_complete(&self) -> bool {
        self.members > 0 && self.members >= self.team
    }

    /// Whether it is outermost, and all of its parts are on record.
    pub(super) fn is_alone(&self) -> bool {
        self.is_complete() && !self.nested
    }

    /// Threads that it binds: a league whose teams take turns binds fewer than it has teams.
    pub(super) fn threads(&self) -> u64 {
        let threads = match self.is_complete() {
            true => self.parts.len() as u64,
            false => self.team,
        };
        threads.clamp(1, 1 << 20)
    }

    /// What its threads do around their parts, with the times that they do it in: the parts of a [`ParallelStat`]'s sums. `span`: a
    /// thread's begin and end, if they are known.
    pub(super) fn around(
        &self,
        span: impl Fn(ThreadKey) -> Option<(i64, i64)>,
        mut tell: impl FnMut(Around),
    ) {
        let mut put = |kind, span: (i64, i64), ns| {
            let site = self.site;
            tell(Around {
                site,
                kind,
                span,
                ns,
            });
        };
        for part in self.parts.iter().filter(|p| p.thread != self.master) {
            let Some((first, last)) = span(part.thread) else {
                continue;
            };
            let before = (self.fork.max(first), part.begin);
            put(AroundKind::Workers, before, length(before.0, before.1));
            let after = (part.end, self.join.min(last));
            let ns = length(after.0, after.1).saturating_sub(part.tail_ns);
            put(AroundKind::Workers, after, ns);
        }
        if self.members == 0 || self.members < self.team {
            return;
        }
        let last = self.last.min(self.join);
        let waited = |p: &Part| length(p.end, last).saturating_sub(p.tail_ns);
        let is_idle = |p: &Part| {
            let done = length(p.begin, p.end) + p.tail_ns;
            done.saturating_mul(IDLE) <= waited(p)
        };
        let one_works = self.parts.iter().filter(|p| !is_idle(p)).count() == 1;
        for part in &self.parts {
            let kind = match one_works && is_idle(part) {
                true => AroundKind::Limited,
                false => AroundKind::Imbalance,
            };
            put(
                AroundKind::Startup,
                (self.fork, part.begin),
                length(self.fork, part.begin),
            );
            put(kind, (part.end, last), waited(part));
            put(
                AroundKind::Shutdown,
                (last, self.join),
                length(last, self.join),
            );
        }
    }
}
