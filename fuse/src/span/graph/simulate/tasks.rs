//! Tasks that are open, teams, and who waits for them.

use super::{Frame, Sim};
use crate::run::nodes::NONE;
use crate::span::graph::{Graph, Step, Strand};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::VecDeque;

/// See [`Sim::create`].
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// By strand, children that have not ended.
    children: Vec<u32>,
    /// ... and children of which something has not.
    subtrees: Vec<u32>,
    /// Predecessors that have not ended, and 1 if it was not created yet.
    pending: Vec<u32>,
    is_done: Vec<bool>,
    /// Of detached tasks: the code has ended, or the event was fulfilled.
    is_half: Vec<bool>,
    /// By strand, the first of its successors in `successors`.
    first: Vec<u32>,
    successors: Vec<u32>,
    ready: VecDeque<u32>,
    /// By strand, the thread that waits for its children.
    waiter: Vec<u32>,
    /// By task, threads that wait for just that, or for all that comes of it.
    watchers: FxHashMap<u32, Vec<u32>>,
}

impl Tasks {
    pub(super) fn new(graph: &Graph) -> Tasks {
        let count = graph.strands.len();
        let mut first = vec![0; count + 1];
        let of = |s: &Strand| {
            let (from, to) = s.preds;
            &graph.preds[from as usize..to as usize]
        };
        for &pred in graph.strands.iter().flat_map(of) {
            first[pred as usize + 1] += 1;
        }
        for at in 0..count {
            first[at + 1] += first[at];
        }
        let mut next = first.clone();
        let mut successors = vec![0; graph.strands.iter().map(|s| of(s).len()).sum()];
        for (strand, s) in (0..).zip(&graph.strands) {
            for &pred in of(s) {
                successors[next[pred as usize] as usize] = strand;
                next[pred as usize] += 1;
            }
        }
        Tasks {
            children: vec![0; count],
            subtrees: vec![0; count],
            pending: graph
                .strands
                .iter()
                .map(|s| of(s).len() as u32 + 1)
                .collect(),
            is_done: vec![false; count],
            is_half: vec![false; count],
            first,
            successors,
            waiter: vec![NONE; count],
            ..Tasks::default()
        }
    }

    /// A task that its creator has now.
    pub(super) fn count(&mut self, graph: &Graph, task: u32) {
        if let Some(creator) = graph
            .strands
            .get(graph.strands[task as usize].creator as usize)
        {
            self.children[creator.task as usize] += 1;
            self.subtrees[creator.task as usize] += 1;
        }
    }
}

/// By team.
#[derive(Debug, Default)]
pub(super) struct Teams {
    /// Tasks that have not ended.
    pub(super) tasks: Vec<u32>,
    active: Vec<u32>,
    arrived: Vec<u32>,
    passed: Vec<u32>,
    waiting: Vec<Vec<u32>>,
    /// The thread that has started it.
    forker: Vec<u32>,
}

impl Teams {
    pub(super) fn new(graph: &Graph) -> Teams {
        let count = graph.teams.len();
        Teams {
            tasks: vec![0; count],
            active: graph.teams.iter().map(|t| t.members.len() as u32).collect(),
            arrived: vec![0; count],
            passed: vec![0; count],
            waiting: vec![vec![]; count],
            forker: vec![NONE; count],
        }
    }

    pub(super) fn forked_by(&mut self, team: u32, thread: u32) {
        self.forker[team as usize] = thread;
    }
}

impl Sim<'_> {
    /// A task is there. `from`: where its creator is.
    pub(super) fn create(&mut self, task: u32, from: (u32, u32)) {
        self.tasks.count(self.graph, task);
        self.teams.tasks[self.graph.strands[task as usize].team as usize] += 1;
        self.settle(task, from);
    }

    /// One thing less that a task waits for.
    fn settle(&mut self, task: u32, from: (u32, u32)) {
        let pending = &mut self.tasks.pending[task as usize];
        *pending = pending.saturating_sub(1);
        if *pending > 0 {
            return;
        }
        if self.play.unlimited {
            return self.begin(task, 0, from);
        }
        self.tasks.ready.push_back(task);
        let mut others = vec![];
        while let Some(thread) = self.idle.pop() {
            if !self.threads[thread as usize].is_idle {
                continue;
            }
            if self.may_take(thread, task) {
                self.wake_up(thread);
                break;
            }
            others.push(thread);
        }
        self.idle.extend(others);
    }

    /// Whether a thread may execute a task now. Where libgomp waits, only what it waits for may be executed.
    fn may_take(&self, thread: u32, task: u32) -> bool {
        let Some(frame) = self.threads[thread as usize].stack.last() else {
            return true;
        };
        let of = self.graph.strands[frame.strand as usize].task;
        let creator = |task: u32| {
            let creator = self.graph.strands[task as usize].creator;
            Some(self.graph.strands.get(creator as usize)?.task)
        };
        match self.graph.steps[frame.at as usize] {
            Step::Wait if self.graph.children_only => creator(task) == Some(of),
            Step::WaitFor { first, end, only } if only => {
                self.graph.preds[first as usize..end as usize].contains(&task)
            }
            Step::WaitAll | Step::WaitGroup { .. } if self.graph.children_only => {
                std::iter::successors(creator(task), |&above| creator(above)).any(|t| t == of)
            }
            _ => true,
        }
    }

    /// Whether the thread has a task to execute now: the newest one, or the oldest.
    pub(super) fn take(&mut self, thread: u32, newest: bool) -> bool {
        let ready = &self.tasks.ready;
        let at = match newest {
            true => ready.iter().rposition(|&t| self.may_take(thread, t)),
            false => ready.iter().position(|&t| self.may_take(thread, t)),
        };
        let Some(task) = at.and_then(|at| self.tasks.ready.remove(at)) else {
            return false;
        };
        let frame = self.frame(task);
        self.threads[thread as usize].stack.push(frame);
        true
    }

    /// One of what ends a task: its own code, and its event if it is detached. `from`: where who does it is.
    pub(super) fn end_one(&mut self, task: u32, strand: &Strand, from: (u32, u32)) {
        let has_other = std::mem::replace(&mut self.tasks.is_half[task as usize], true);
        if has_other || !strand.is_detached {
            self.complete(task, from);
        }
    }

    fn complete(&mut self, task: u32, from: (u32, u32)) {
        let graph = self.graph;
        let strand = graph.strands[task as usize];
        if std::mem::replace(&mut self.tasks.is_done[task as usize], true) {
            return; // damaged records may fulfil an event twice
        }
        let (first, end) = (
            self.tasks.first[task as usize],
            self.tasks.first[task as usize + 1],
        );
        for at in first..end {
            self.settle(self.tasks.successors[at as usize], from);
        }
        self.release_watchers(task, from);
        if let Some(creator) = graph.strands.get(strand.creator as usize) {
            let children = &mut self.tasks.children[creator.task as usize];
            *children = children.saturating_sub(1);
            if *children == 0 {
                self.release_waiter(creator.task, from);
            }
        }
        if self.tasks.subtrees[task as usize] == 0 {
            self.end_subtree(task, from);
        }
        let team = strand.team as usize;
        self.teams.tasks[team] = self.teams.tasks[team].saturating_sub(1);
        self.settle_team(strand.team, from);
    }

    /// All that came of a task has ended, itself included.
    fn end_subtree(&mut self, mut task: u32, from: (u32, u32)) {
        let graph = self.graph;
        while let Some(creator) = graph
            .strands
            .get(graph.strands[task as usize].creator as usize)
        {
            let above = creator.task;
            let left = &mut self.tasks.subtrees[above as usize];
            *left = left.saturating_sub(1);
            if *left > 0 {
                return;
            }
            self.release_waiter(above, from);
            if !self.tasks.is_done[above as usize] {
                return;
            }
            self.release_watchers(above, from);
            task = above;
        }
    }

    fn release_watchers(&mut self, task: u32, from: (u32, u32)) {
        for thread in self.tasks.watchers.remove(&task).unwrap_or_default() {
            self.release(thread, from);
        }
    }

    fn release_waiter(&mut self, task: u32, from: (u32, u32)) {
        let thread = self.tasks.waiter[task as usize];
        if thread != NONE {
            self.release(thread, from);
        }
    }

    /// A wait for tasks. Whether the thread goes on at once.
    pub(super) fn wait(&mut self, thread: u32, frame: Frame, step: Step) -> bool {
        let task = self.graph.strands[frame.strand as usize].task;
        let open = match step {
            Step::WaitAll => self.tasks.subtrees[task as usize] > 0,
            Step::WaitFor { first, end, .. } | Step::WaitGroup { first, end } => {
                let mut preds = self.graph.preds[first as usize..end as usize].iter();
                let of = &self.tasks;
                let is_group = matches!(step, Step::WaitGroup { .. });
                let is_open = |p: usize| !of.is_done[p] || is_group && of.subtrees[p] > 0;
                let open = preds.find(|p| is_open(**p as usize));
                if let Some(&open) = open {
                    self.tasks.watchers.entry(open).or_default().push(thread);
                }
                open.is_some()
            }
            _ => self.tasks.children[task as usize] > 0,
        };
        if !open {
            return self.next(thread);
        }
        self.tasks.waiter[task as usize] = thread;
        let is_only = matches!(step, Step::WaitFor { only: true, .. });
        self.meanwhile(thread, !is_only)
    }

    /// Whether there is something else to do.
    fn meanwhile(&mut self, thread: u32, newest: bool) -> bool {
        if !self.play.unlimited && self.take(thread, newest) {
            return true;
        }
        self.rest(thread);
        false
    }

    /// Whether the thread goes on at once.
    pub(super) fn barrier(&mut self, thread: u32, frame: Frame) -> bool {
        let team = self.graph.strands[frame.strand as usize].team;
        let teams = &mut self.teams;
        if !frame.is_begun {
            teams.arrived[team as usize] += 1;
            teams.waiting[team as usize].push(thread);
            self.threads[thread as usize].passed = teams.passed[team as usize];
            self.mark(thread);
            self.settle_team(team, (frame.strand, frame.at));
            return true;
        }
        if teams.passed[team as usize] != self.threads[thread as usize].passed {
            return self.next(thread);
        }
        self.meanwhile(thread, false)
    }

    /// A member's own code has ended.
    pub(super) fn leave_team(&mut self, team: u32, frame: Frame) {
        self.teams.active[team as usize] -= 1;
        self.settle_team(team, (frame.strand, frame.end));
    }

    /// Ends a barrier, or the team, if nobody is missing.
    fn settle_team(&mut self, team: u32, from: (u32, u32)) {
        let (teams, at) = (&mut self.teams, team as usize);
        if teams.tasks[at] > 0 || teams.arrived[at] < teams.active[at] {
            return;
        }
        if teams.active[at] > 0 {
            teams.arrived[at] = 0;
            teams.passed[at] += 1;
            for thread in std::mem::take(&mut teams.waiting[at]) {
                self.release(thread, from);
            }
            return;
        }
        if team == 0 {
            self.has_ended = true;
            self.played.last = from.0;
            return;
        }
        let thread = teams.forker[at];
        let fork = self.threads[thread as usize].stack.last().map(|f| f.at);
        if let Some(cause) = fork.and_then(|at| self.played.causes.get_mut(at as usize)) {
            *cause = from;
        }
        self.due.push(Reverse((self.now, thread)));
    }
}
