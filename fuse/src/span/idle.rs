//! Why threads have nothing to do while tasks are executed: at each instant what would have given them work.
//!
//! An execution is told as events: what each thread does from when on ([`lanes`]), and when each task was created, could begin, and began
//! ([`tasks`]). Between two events every thread that waits has one reason.

mod lanes;
mod tasks;
#[cfg(test)]
mod tests;

use super::gather::Gathered;
use super::graph::{Graph, Kind};
use super::result::NoTask;
use crate::run::nodes::NONE;
use lanes::{Doing, Lanes};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use tasks::{Counts, Tasks};

pub(super) use lanes::Creations;

/// Waiting for one reason, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reason {
    pub(super) ticks: u64,
    /// See [`super::result::Idle::late_ns`].
    pub(super) late: u64,
    /// See [`super::result::Idle::disturbed_ns`].
    pub(super) disturbed: u64,
}

/// Neither late nor disturbed.
const PLAIN: [bool; 2] = [false; 2];

/// Waiting of a region's threads.
#[derive(Debug, Default)]
pub(super) struct Idle {
    /// By barrier or other wait (record's site; `None`: the region's end), and why.
    pub(super) reasons: BTreeMap<(Option<u32>, NoTask), Reason>,
    /// By record's sites of a wait and of tasks, how often it waited for a single one of these.
    pub(super) single: BTreeMap<(u32, u32), u64>,
}

/// What happens.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// A thread of the team does something else from now on.
    Does(u32, Doing),
    /// A wait for a single task, by its number.
    Opens(u32),
    Closes(u32),
    /// A task was created, and waits for others.
    Blocked(u32),
    Unblocked(u32),
    /// A task could begin.
    Ready(u32),
    Begun(u32),
    /// A task that excludes others begins or ends, or waits for that.
    Wants(u32),
    Enters(u32),
    Leaves(u32),
    /// A task's code has ended, and its event has not come.
    Awaits(u32),
}

/// An execution of an outermost region.
#[derive(Debug, Clone, Copy)]
pub(super) struct Execution<'g> {
    pub(super) gathered: &'g Gathered,
    pub(super) graph: &'g Graph,
    /// Its tasks, by begin.
    pub(super) instances: &'g [u32],
    /// Of the process.
    pub(super) creations: &'g Creations,
}

/// A team of it.
#[derive(Debug, Clone, Copy)]
struct Team {
    /// Its number in the graph.
    number: u32,
    /// The interval of the region that it executes.
    fork: u32,
}

/// Adds the waits of an execution and of those inside it. `forks`: intervals of their regions; `idle`: by the region's record's site. Each
/// task is looked at with its own team only.
pub(super) fn add(of: Execution<'_>, forks: &[u32], idle: &mut BTreeMap<u32, Idle>) {
    if !of.graph.strands.iter().any(|s| s.kind == Kind::Task) {
        return;
    }
    let recs = &of.gathered.recs;
    let forks: FxHashMap<u32, u32> = (forks.iter())
        .map(|&fork| (recs[fork as usize].node, fork))
        .collect();
    let tasks = Tasks::new(of);
    let mut counts = Counts::new(of.graph.strands.len());
    for (number, these) in tasks.by_team() {
        let first = of.graph.teams[number as usize].members.first();
        let part = first.map(|&member| of.graph.strands[member as usize].rec);
        let part = part.and_then(|part| recs.get(part as usize));
        let Some(&fork) = part.and_then(|part| forks.get(&part.parent)) else {
            continue;
        };
        let idle = idle.entry(recs[fork as usize].site).or_default();
        counts.begin(number);
        of_team(&tasks, Team { number, fork }, these, &mut counts, idle);
    }
}

/// Adds a team's waits. `these`: its tasks.
fn of_team(tasks: &Tasks<'_>, team: Team, these: &[u32], counts: &mut Counts, idle: &mut Idle) {
    let of = tasks.of;
    let mut events: Vec<(u64, Event)> = vec![];
    tasks.events(these, &mut events);
    let lanes = Lanes::new(of, team, tasks, &mut events);
    for wait in lanes.waits.iter().filter(|w| w.single != NONE) {
        if let Some(site) = wait.site {
            *idle.single.entry((site, wait.single)).or_default() += 1;
        }
    }
    // Of what happens at once on a thread the last counts.
    events.sort_by_key(|e| e.0);
    let mut sweep = Sweep {
        counts,
        doing: vec![Doing::Nothing; lanes.threads],
        open: vec![],
        of,
        tasks,
        lanes: &lanes,
    };
    let mut now = 0;
    for (at, event) in events {
        if at > now {
            sweep.count(at - now, idle);
            now = at;
        }
        sweep.take(event);
    }
}

struct Sweep<'g> {
    of: Execution<'g>,
    tasks: &'g Tasks<'g>,
    lanes: &'g Lanes,
    counts: &'g mut Counts,
    doing: Vec<Doing>,
    /// Waits for a single task.
    open: Vec<u32>,
}

impl Sweep<'_> {
    fn take(&mut self, event: Event) {
        match event {
            Event::Does(thread, doing) => self.doing[thread as usize] = doing,
            Event::Opens(wait) => self.open.push(wait),
            Event::Closes(wait) => self.open.retain(|&w| w != wait),
            event => self.counts.take(self.tasks, event),
        }
    }

    /// Gives each thread that waits a reason for this time.
    fn count(&mut self, ticks: u64, idle: &mut Idle) {
        let waits = |d: &Doing| match d {
            Doing::Waits(wait) => Some(*wait),
            _ => None,
        };
        let mut waiting: Vec<u32> = self.doing.iter().filter_map(waits).collect();
        if waiting.is_empty() {
            return;
        }
        let mut free = self.counts.free();
        let mut add = |wait: u32, why: NoTask, [late, disturbed]: [bool; 2]| {
            let at = self.lanes.waits[wait as usize].site;
            let reason = idle.reasons.entry((at, why)).or_default();
            reason.ticks += ticks;
            reason.late += if late { ticks } else { 0 };
            reason.disturbed += if disturbed { ticks } else { 0 };
        };
        if free > 0 {
            // First those that may execute only their own, then who may execute all.
            waiting.sort_by_key(|&w| self.lanes.waits[w as usize].strand == NONE);
            let ready = self.counts.ready();
            let busy = self.doing.iter().filter_map(|d| d.busy());
            let awaited = busy.filter(|b| self.is_task(b.strand));
            let awaited = awaited.max_by_key(|b| self.tasks.end(b.strand));
            let awaited = awaited.map_or(ready, |b| self.tasks.site(b.strand));
            let (mut own, mut others) = (vec![], vec![]);
            for wait in waiting {
                match free > 0 && self.may_take(wait) {
                    true => {
                        free -= 1;
                        own.push(wait);
                    }
                    false => others.push(wait),
                }
            }
            own.iter()
                .for_each(|&w| add(w, NoTask::Untaken(ready), PLAIN));
            let (barred, rest): (Vec<u32>, Vec<u32>) = (others.into_iter())
                .partition(|&w| free > 0 && self.lanes.waits[w as usize].strand != NONE);
            (barred.iter()).for_each(|&w| add(w, NoTask::NotItsOwn(awaited), PLAIN));
            waiting = rest;
        }
        if waiting.is_empty() {
            return;
        }
        if let Some((why, of_last)) = self.reason() {
            waiting.iter().for_each(|&w| add(w, why, of_last));
        }
    }

    fn is_task(&self, strand: u32) -> bool {
        self.of.graph.strands[strand as usize].kind == Kind::Task
    }

    /// Whether one of the tasks that are ready may be executed in a wait.
    fn may_take(&self, wait: u32) -> bool {
        let wait = &self.lanes.waits[wait as usize];
        let [children, below] = self.counts.ready_of(wait.strand);
        match wait.is_taskwait && self.of.graph.children_only {
            _ if wait.strand == NONE => true,
            true => children > 0,
            false => below > 0,
        }
    }

    /// Why there is no task to execute, and whether [`super::result::Idle::late_ns`] and `disturbed_ns` count it.
    fn reason(&self) -> Option<(NoTask, [bool; 2])> {
        let busy = || self.doing.iter().filter_map(|d| d.busy());
        if busy().next().is_none()
            && let Some(site) = self.counts.awaited()
        {
            return Some((NoTask::Event(site), PLAIN));
        }
        if let Some(site) = self.counts.blocked() {
            return Some((NoTask::Dependent(site), PLAIN));
        }
        if let Some(site) = self.counts.excluded() {
            return Some((NoTask::Excluded(site), PLAIN));
        }
        if let Some(busy) = busy().find(|b| b.at_once != NONE) {
            return Some((NoTask::AtOnce(busy.at_once), PLAIN));
        }
        if let Some(busy) = busy().find(|b| b.in_yield != NONE) {
            return Some((NoTask::InYield(busy.in_yield), PLAIN));
        }
        // A task that creates others is a task that takes long.
        let is_task = |strand: u32| self.is_task(strand);
        let creator = busy().find(|b| b.creates != NONE && !is_task(b.strand));
        if let Some(creator) = creator {
            let why = match creator.block {
                block if block != NONE && !creator.is_creating => NoTask::Block(block),
                _ => NoTask::Creating(creator.creates),
            };
            return Some((why, PLAIN));
        }
        let until = |b: &&lanes::Busy| match is_task(b.strand) {
            true => self.tasks.end(b.strand),
            false => b.until,
        };
        let last = busy().max_by_key(until)?;
        if !is_task(last.strand) {
            let why = match last.block {
                NONE if last.is_code => NoTask::Code,
                NONE => return None,
                block => NoTask::Block(block),
            };
            return Some((why, PLAIN));
        }
        let site = self.tasks.site(last.strand);
        let is_only = busy().count() == 1;
        let open = self.open.last().filter(|_| is_only);
        let open = open.map(|&wait| self.lanes.waits[wait as usize]);
        let why = match open.and_then(|wait| Some((wait.site?, wait.single))) {
            _ if self.tasks.is_dependent(last.strand) => NoTask::Dependent(site),
            _ if self.tasks.is_exclusive(last.strand) => NoTask::Excluded(site),
            // A `taskwait` with `depend`.
            Some((_, NONE)) => NoTask::Dependent(site),
            Some((wait, tasks)) => NoTask::OneByOne { wait, tasks },
            None => {
                let last = last.strand;
                let of_last = [self.tasks.is_late(last), self.tasks.is_disturbed(last)];
                return Some((NoTask::Last(site), of_last));
            }
        };
        Some((why, PLAIN))
    }
}
