//! Plays a graph: with a number of threads, or with one for each strand.
//!
//! A thread goes on as long as it can. Where it waits for tasks it executes others meanwhile, and comes back when these have ended, as
//! a thread's stack wants it. Who waits for a lock, a turn or another iteration does nothing. So schedules are greedy (Graham 1969).

mod orders;
mod tasks;
#[cfg(test)]
mod tests;

use super::{Graph, Kind, Step};
use crate::run::nodes::NONE;
use orders::{Locks, Orders};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use tasks::{Tasks, Teams};

/// How a graph is played.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::span) struct Play {
    /// Each strand, and each unit of a loop, has a thread of its own, locks are free, and nothing costs anything but code: its length is the
    /// span. Else there is a thread for each member of the first team.
    pub(in crate::span) unlimited: bool,
    /// With that: iterations of a unit last equally long, and run at once.
    pub(in crate::span) equal: bool,
}

/// Creations until a thread that waits for tasks has seen a new one.
const WAKING: u64 = 4;

/// What came of it.
#[derive(Debug, Clone, Default)]
pub(in crate::span) struct Played {
    /// From the begin of all threads to the end of the last one, in ticks.
    pub(in crate::span) ticks: u64,
    /// By step, where its strand was when what the step had waited for came: the strand and its next step. Only of unlimited plays.
    pub(super) causes: Vec<(u32, u32)>,
    /// By strand, where another one was when it could begin.
    pub(super) begun: Vec<(u32, u32)>,
    /// The strand that ended last.
    pub(super) last: u32,
}

/// A strand on a thread's stack.
#[derive(Debug, Clone, Copy)]
struct Frame {
    strand: u32,
    at: u32,
    end: u32,
    /// The step at hand has been begun: a creation is paid for, a barrier arrived at, units were dealt.
    is_begun: bool,
}

#[derive(Debug, Default)]
struct Thread {
    stack: Vec<Frame>,
    is_idle: bool,
    /// Its number in the team.
    member: u32,
    /// Barriers of the team that had passed when it came to one.
    passed: u32,
    /// Unlimited plays: units that it waits for.
    units: u32,
}

struct Sim<'g> {
    graph: &'g Graph,
    play: Play,
    /// Ticks until a thread that waits for tasks has seen a new one.
    waking: u64,
    now: u64,
    threads: Vec<Thread>,
    /// What goes on when.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// Threads that have nothing to do; some are busy again.
    idle: Vec<u32>,
    /// Unlimited plays: threads whose strand has ended.
    free: Vec<u32>,
    tasks: Tasks,
    teams: Teams,
    orders: Orders,
    locks: Locks,
    /// By sharing, the next unit.
    next_unit: Vec<u32>,
    /// By block's strand.
    is_taken: Vec<bool>,
    /// Unlimited plays: by strand of a unit, the thread that waits for it.
    unit_of: Vec<u32>,
    played: Played,
    has_ended: bool,
}

/// Plays it. `None`: something waits for what never comes, so the graph is not that of a program.
pub(in crate::span) fn play(graph: &Graph, play: Play) -> Option<Played> {
    let strands = graph.strands.len();
    let causes = if play.unlimited { graph.steps.len() } else { 0 };
    let mut sim = Sim {
        graph,
        play,
        waking: WAKING.saturating_mul(creation(graph)),
        now: 0,
        threads: vec![],
        due: BinaryHeap::new(),
        idle: vec![],
        free: vec![],
        tasks: Tasks::new(graph),
        teams: Teams::new(graph),
        orders: Orders::new(graph),
        locks: Locks::new(graph),
        next_unit: vec![0; graph.sharings.len()],
        is_taken: vec![false; strands],
        unit_of: vec![NONE; strands],
        played: Played {
            causes: vec![(NONE, NONE); causes],
            begun: vec![(NONE, NONE); if play.unlimited { strands } else { 0 }],
            last: NONE,
            ticks: 0,
        },
        has_ended: false,
    };
    sim.begin_team(0, (NONE, NONE));
    while let Some(Reverse((at, thread))) = sim.due.pop() {
        sim.now = at;
        sim.advance(thread);
    }
    sim.played.ticks = sim.now;
    sim.has_ended.then_some(sim.played)
}

/// What creating a task takes, in ticks: the mean.
fn creation(graph: &Graph) -> u64 {
    let all = graph.steps.iter().filter_map(|s| match s {
        Step::Create { ticks, .. } => Some(*ticks),
        _ => None,
    });
    let count = all.clone().count() as u64;
    sum(all) / count.max(1)
}

/// Of times, which damaged records may make as large as can be.
pub(super) fn sum(ticks: impl Iterator<Item = u64>) -> u64 {
    ticks.fold(0, u64::saturating_add)
}

impl Sim<'_> {
    fn begin_team(&mut self, team: u32, from: (u32, u32)) {
        for (member, &strand) in (0..).zip(&self.graph.teams[team as usize].members) {
            self.begin(strand, member, from);
        }
    }

    /// A strand on a thread of its own, from now on.
    fn begin(&mut self, strand: u32, member: u32, from: (u32, u32)) {
        if let Some(begun) = self.played.begun.get_mut(strand as usize) {
            *begun = from;
        }
        let frame = self.frame(strand);
        let thread = self.free.pop().unwrap_or_else(|| {
            self.threads.push(Thread::default());
            self.threads.len() as u32 - 1
        });
        let of = &mut self.threads[thread as usize];
        of.stack.push(frame);
        of.member = member;
        self.due.push(Reverse((self.now, thread)));
    }

    fn frame(&self, strand: u32) -> Frame {
        let of = &self.graph.strands[strand as usize];
        Frame {
            strand,
            at: of.first,
            end: of.end,
            is_begun: false,
        }
    }

    /// A thread that has nothing to do until somebody wakes it.
    fn rest(&mut self, thread: u32) {
        if !std::mem::replace(&mut self.threads[thread as usize].is_idle, true) {
            self.idle.push(thread);
        }
    }

    fn wake(&mut self, thread: u32) {
        if std::mem::take(&mut self.threads[thread as usize].is_idle) {
            self.due.push(Reverse((self.now, thread)));
        }
    }

    /// As [`Sim::wake`], of a thread that looks for tasks: who creates the next one is faster.
    fn wake_up(&mut self, thread: u32) {
        if std::mem::take(&mut self.threads[thread as usize].is_idle) {
            self.due
                .push(Reverse((self.now.saturating_add(self.waking), thread)));
        }
    }

    /// What a thread does from now on, until it takes time or waits.
    fn advance(&mut self, thread: u32) {
        loop {
            let Some(&frame) = self.threads[thread as usize].stack.last() else {
                if self.play.unlimited {
                    return self.free.push(thread);
                }
                if self.take(thread, false) {
                    continue;
                }
                return self.rest(thread);
            };
            if frame.at == frame.end {
                self.threads[thread as usize].stack.pop();
                self.end(frame);
                continue;
            }
            if !self.step(thread, frame, self.graph.steps[frame.at as usize]) {
                return;
            }
        }
    }

    fn top(&mut self, thread: u32) -> Option<&mut Frame> {
        self.threads[thread as usize].stack.last_mut()
    }

    /// The step is over.
    fn next(&mut self, thread: u32) -> bool {
        if let Some(frame) = self.top(thread) {
            frame.at += 1;
            frame.is_begun = false;
        }
        true
    }

    fn mark(&mut self, thread: u32) {
        if let Some(frame) = self.top(thread) {
            frame.is_begun = true;
        }
    }

    fn later(&mut self, thread: u32, ticks: u64) -> bool {
        self.due
            .push(Reverse((self.now.saturating_add(ticks), thread)));
        false
    }

    /// Whether the thread goes on at once.
    fn step(&mut self, thread: u32, frame: Frame, step: Step) -> bool {
        match step {
            Step::Code { ticks, .. } => {
                self.next(thread);
                let parts = match self.play.equal {
                    true => self.graph.strands[frame.strand as usize].iterations,
                    false => 1,
                };
                self.later(thread, ticks / parts)
            }
            Step::Create { ticks, task } => {
                if !frame.is_begun && !self.play.unlimited && ticks > 0 {
                    self.mark(thread);
                    return self.later(thread, ticks);
                }
                self.next(thread);
                self.create(task, (frame.strand, frame.at + 1));
                true
            }
            Step::Inline { strand } => self.inline(thread, frame, strand),
            Step::Block { strand } => match self.is_taken[strand as usize] {
                true => self.next(thread),
                false => self.inline(thread, frame, strand),
            },
            Step::Wait | Step::WaitAll | Step::WaitGroup { .. } | Step::WaitFor { .. } => {
                self.wait(thread, frame, step)
            }
            Step::Fulfill { task } => {
                if let Some(of) = self.graph.strands.get(task as usize) {
                    self.end_one(task, of, (frame.strand, frame.at + 1));
                }
                self.next(thread)
            }
            Step::Barrier => self.barrier(thread, frame),
            Step::Share { sharing } => self.share(thread, frame, sharing),
            Step::Enter { lock } => match self.play.unlimited || frame.is_begun {
                true => self.next(thread),
                false if self.locks.enter(lock, thread) => self.next(thread),
                false => {
                    self.mark(thread);
                    false
                }
            },
            Step::Leave { lock } => {
                if !self.play.unlimited
                    && let Some(next) = self.locks.leave(lock)
                {
                    self.due.push(Reverse((self.now, next)));
                }
                self.next(thread)
            }
            Step::Turn { .. } | Step::Turned { .. } | Step::Post { .. } | Step::Await { .. } => {
                self.order(thread, frame, step)
            }
            Step::Fork { team } => {
                if !frame.is_begun {
                    self.mark(thread);
                    self.teams.forked_by(team, thread);
                    self.begin_team(team, (frame.strand, frame.at + 1));
                    return false;
                }
                self.next(thread)
            }
        }
    }

    /// A block, or a task that isn't deferred, on the same thread.
    fn inline(&mut self, thread: u32, frame: Frame, strand: u32) -> bool {
        self.is_taken[strand as usize] = true;
        self.next(thread);
        if let Some(begun) = self.played.begun.get_mut(strand as usize) {
            *begun = (frame.strand, frame.at);
        }
        let is_task = self.graph.strands[strand as usize].kind == Kind::Task;
        if is_task {
            self.tasks.count(self.graph, strand);
            self.teams.tasks[self.graph.strands[strand as usize].team as usize] += 1;
        }
        let frame = self.frame(strand);
        self.threads[thread as usize].stack.push(frame);
        true
    }

    /// Units of a loop.
    fn share(&mut self, thread: u32, frame: Frame, sharing: u32) -> bool {
        let graph = self.graph;
        let of = &graph.sharings[sharing as usize];
        if self.play.unlimited {
            return self.share_out(thread, frame, sharing);
        }
        let member = self.threads[thread as usize].member;
        let next = &mut self.next_unit[sharing as usize];
        let is_dealt = !of.schedule.is_asked_for();
        if is_dealt && frame.is_begun {
            return self.next(thread);
        }
        if is_dealt {
            let mine = || of.units.iter().filter(|u| u.member == member);
            if mine().all(|u| u.strand == NONE) {
                self.mark(thread);
                return self.later(thread, sum(mine().map(|u| u.ticks)));
            }
            self.mark(thread);
            for unit in of.units.iter().rev().filter(|u| u.member == member) {
                let strand = unit.strand;
                let frame = match strand {
                    NONE => continue,
                    strand => self.frame(strand),
                };
                self.threads[thread as usize].stack.push(frame);
            }
            let simple = mine().filter(|u| u.strand == NONE);
            return self.later(thread, sum(simple.map(|u| u.ticks)));
        }
        let Some(unit) = of.units.get(*next as usize) else {
            return self.next(thread);
        };
        *next += 1;
        if unit.strand == NONE {
            return self.later(thread, of.fetch.saturating_add(unit.ticks));
        }
        let inner = self.frame(unit.strand);
        self.threads[thread as usize].stack.push(inner);
        self.later(thread, of.fetch)
    }

    /// All units of a thread at once, each on a thread of its own.
    fn share_out(&mut self, thread: u32, frame: Frame, sharing: u32) -> bool {
        if frame.is_begun && self.threads[thread as usize].units > 0 {
            self.rest(thread);
            return false;
        }
        if frame.is_begun {
            return self.next(thread);
        }
        self.mark(thread);
        let graph = self.graph;
        let member = self.threads[thread as usize].member;
        let of = &graph.sharings[sharing as usize];
        let mine = of.units.iter().filter(|u| u.member == member);
        let mut longest = (0, NONE);
        for unit in mine {
            if unit.strand == NONE {
                let parts = if self.play.equal { unit.iterations } else { 1 };
                longest = longest.max((unit.ticks / parts, unit.rec));
                continue;
            }
            self.threads[thread as usize].units += 1;
            self.unit_of[unit.strand as usize] = thread;
            self.begin(unit.strand, member, (frame.strand, frame.at));
        }
        if longest.0 > 0 {
            // A simple unit is its loop's code: the step is its place on the path.
            self.played.causes[frame.at as usize] = (NONE, longest.1);
        }
        self.later(thread, longest.0) // units that end later wake it then
    }

    /// What comes of the end of a strand.
    fn end(&mut self, frame: Frame) {
        let strand = self.graph.strands[frame.strand as usize];
        match strand.kind {
            Kind::Member(_) => self.leave_team(strand.team, frame),
            Kind::Task => self.end_one(frame.strand, &strand, (frame.strand, strand.end)),
            Kind::Inner => self.end_unit(frame),
        }
    }

    /// A unit of an unlimited play may be the last that its loop waits for.
    fn end_unit(&mut self, frame: Frame) {
        let Some(thread) = self
            .threads
            .get_mut(self.unit_of[frame.strand as usize] as usize)
        else {
            return;
        };
        thread.units -= 1;
        if thread.units == 0 {
            let thread = self.unit_of[frame.strand as usize];
            self.release(thread, (frame.strand, frame.end));
        }
    }

    /// What a thread waits for has come, where this strand is now.
    fn release(&mut self, thread: u32, from: (u32, u32)) {
        let of = &self.threads[thread as usize];
        if let (true, Some(frame)) = (of.is_idle, of.stack.last())
            && let Some(cause) = self.played.causes.get_mut(frame.at as usize)
        {
            *cause = from;
        }
        self.wake(thread);
    }
}
