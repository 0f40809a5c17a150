//! When tasks were created, could begin and began, and how many are in which state.

use super::{Event, Execution};
use crate::run::nodes::NONE;
use crate::span::graph::{Kind, Step};
use ompfuse_format::Construct;
use ompfuse_format::record::depend::{Access, DETACHED};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Deeper trees' tasks count as ready for those so many levels above them.
const MOST_LEVELS: usize = 64;
/// A task that waits for so small a part of its time until it begins has waited for nothing.
const LATE: u64 = 10;

/// A task.
#[derive(Debug, Clone, Copy, Default)]
struct Task {
    site: u32,
    created: u64,
    ready: u64,
    begin: u64,
    end: u64,
    is_on_record: bool,
    /// It was executed where it was created.
    is_inline: bool,
    is_detached: bool,
    is_disturbed: bool,
}

/// The tasks of an execution, by strand.
#[derive(Debug)]
pub(super) struct Tasks<'g> {
    pub(super) of: Execution<'g>,
    all: Vec<Task>,
    /// By strand, deferred tasks that came of it, itself included.
    sizes: Vec<u64>,
    /// By strand, the tasks that it has created, in order: when, and which.
    children: FxHashMap<u32, Vec<(u64, u32)>>,
    /// By task's node its strand.
    strands: FxHashMap<u32, u32>,
    /// By strand, addresses that the task has alone.
    excludes: FxHashMap<u32, Vec<u64>>,
    /// By team, those on record.
    teams: BTreeMap<u32, OfTeam>,
}

/// Of one team.
#[derive(Debug, Default)]
struct OfTeam {
    tasks: Vec<u32>,
    /// By begin, how long all its deferred tasks are that began before.
    begun: Vec<(u64, u64)>,
}

impl<'g> Tasks<'g> {
    pub(super) fn new(of: Execution<'g>) -> Tasks<'g> {
        let (recs, strands) = (&of.gathered.recs, &of.graph.strands);
        let mut times: FxHashMap<u32, (u64, u64, bool)> = FxHashMap::default();
        for &at in of.instances {
            let rec = &recs[at as usize];
            let known = times.entry(rec.node).or_insert((rec.t0, rec.t1, false));
            let (begin, end, is_disturbed) = *known;
            *known = (
                rec.t0.min(begin),
                rec.t1.max(end),
                rec.disturbed || is_disturbed,
            );
        }
        let mut all = vec![Task::default(); strands.len()];
        let (mut of_node, mut children) = (FxHashMap::default(), FxHashMap::default());
        let mut excludes: FxHashMap<u32, Vec<u64>> = FxHashMap::default();
        for (at, strand) in (0..).zip(strands) {
            let rec = recs.get(strand.rec as usize);
            let rec = rec.filter(|r| r.construct == Construct::Task);
            let (Kind::Task, Some(rec)) = (strand.kind, rec) else {
                continue;
            };
            let Some(&(begin, end, is_disturbed)) = times.get(&rec.node) else {
                continue;
            };
            of_node.insert(rec.node, at);
            let depends = of.gathered.depends.get(&rec.node);
            let alone = depends.iter().flat_map(|d| &d.accesses);
            let alone = alone.filter(|a| a.1 == Access::MutexInOutSet).map(|a| a.0);
            let alone: Vec<u64> = alone.collect();
            if !alone.is_empty() {
                excludes.insert(at, alone);
            }
            all[at as usize] = Task {
                site: rec.site,
                created: strand.since.min(begin),
                ready: begin,
                begin,
                end,
                is_on_record: true,
                is_inline: false,
                is_disturbed,
                is_detached: depends.is_some_and(|d| d.flags & DETACHED != 0),
            };
            if let Some(creator) = strands.get(strand.creator as usize) {
                let of_creator: &mut Vec<_> = children.entry(creator.task).or_default();
                of_creator.push((strand.since, at));
            }
        }
        for step in &of.graph.steps {
            if let Step::Inline { strand } = step {
                all[*strand as usize].is_inline = true;
            }
        }
        let mut tasks = Tasks {
            of,
            sizes: vec![0; all.len()],
            all,
            children,
            strands: of_node,
            excludes,
            teams: BTreeMap::new(),
        };
        tasks.find_teams();
        tasks.find_ready();
        tasks.find_sizes();
        tasks
    }

    /// When what a task depends on had ended.
    fn find_ready(&mut self) {
        for (at, strand) in self.of.graph.strands.iter().enumerate() {
            let (first, end) = (strand.preds.0 as usize, strand.preds.1 as usize);
            let preds = || self.of.graph.preds[first..end].iter();
            // When an event came isn't known here.
            let is_known = |p: &u32| {
                let pred = &self.all[*p as usize];
                pred.is_on_record && !pred.is_detached
            };
            let ends = preds().map(|p| self.all[*p as usize].end).max();
            let task = self.all[at];
            self.all[at].ready = match preds().all(is_known) {
                true => ends.unwrap_or(0).clamp(task.created, task.begin),
                false => task.begin,
            };
        }
    }

    fn find_teams(&mut self) {
        for (at, strand) in (0..).zip(&self.of.graph.strands) {
            if strand.kind == Kind::Task {
                let of_team = self.teams.entry(strand.team).or_default();
                of_team.tasks.push(at);
            }
        }
        for of_team in self.teams.values_mut() {
            let tasks = of_team.tasks.iter().map(|&at| &self.all[at as usize]);
            let deferred = tasks.filter(|t| t.is_on_record && !t.is_inline);
            of_team.begun = deferred.map(|t| (t.begin, t.end - t.begin)).collect();
            of_team.begun.sort_unstable();
            let mut all = 0u64;
            for (_, length) in &mut of_team.begun {
                let own = std::mem::replace(length, all);
                all = all.saturating_add(own);
            }
            of_team.begun.push((u64::MAX, all));
        }
    }

    /// By team its tasks.
    pub(super) fn by_team(&self) -> impl Iterator<Item = (u32, &[u32])> {
        self.teams.iter().map(|(team, of)| (*team, &of.tasks[..]))
    }

    fn find_sizes(&mut self) {
        // A task's strand is there before those of its children.
        for at in (0..self.all.len()).rev() {
            let task = self.all[at];
            self.sizes[at] += u64::from(task.is_on_record && !task.is_inline);
            let strands = &self.of.graph.strands;
            if let Some(creator) = strands.get(strands[at].creator as usize)
                && (creator.task as usize) < at
            {
                self.sizes[creator.task as usize] += self.sizes[at];
            }
        }
    }

    /// What happens to these tasks.
    pub(super) fn events(&self, these: &[u32], events: &mut Vec<(u64, Event)>) {
        for &at in these {
            let task = &self.all[at as usize];
            if !task.is_on_record {
                continue;
            }
            let mut span = |from: (u64, Event), to: (u64, Event)| {
                if from.0 < to.0 {
                    events.extend([from, to]);
                }
            };
            let blocked = (task.created, Event::Blocked(at));
            span(blocked, (task.ready, Event::Unblocked(at)));
            if self.is_exclusive(at) {
                events.extend([
                    (task.ready, Event::Wants(at)),
                    (task.begin, Event::Enters(at)),
                    (task.end, Event::Leaves(at)),
                ]);
            } else if !task.is_inline {
                span(
                    (task.ready, Event::Ready(at)),
                    (task.begin, Event::Begun(at)),
                );
            }
            // Who fulfils its event is on record, and takes its time.
            if task.is_detached && !self.of.graph.strands[at as usize].is_detached {
                events.push((task.end, Event::Awaits(at)));
            }
        }
    }

    /// The strand of a task's interval.
    pub(super) fn strand(&self, node: u32) -> Option<u32> {
        self.strands.get(&node).copied()
    }

    pub(super) fn is_inline(&self, strand: u32) -> bool {
        self.all[strand as usize].is_inline
    }

    pub(super) fn end(&self, strand: u32) -> u64 {
        self.all[strand as usize].end
    }

    pub(super) fn site(&self, strand: u32) -> u32 {
        self.all[strand as usize].site
    }

    /// Whether it waited behind others that are shorter.
    pub(super) fn is_late(&self, strand: u32) -> bool {
        let task = &self.all[strand as usize];
        let length = task.end - task.begin;
        let team = self.of.graph.strands[strand as usize].team;
        let Some(OfTeam { begun, .. }) = self.teams.get(&team) else {
            return false;
        };
        let at = |t: u64| begun.partition_point(|b| b.0 < t);
        let (from, to) = (at(task.ready), at(task.begin));
        let others = begun[to].1 - begun[from].1;
        let mean = others / (to - from).max(1) as u64;
        to > from && task.begin - task.ready > length / LATE && length > mean + mean / 2
    }

    /// See [`ompfuse_format::record::Interval::disturbed`].
    pub(super) fn is_disturbed(&self, strand: u32) -> bool {
        self.all[strand as usize].is_disturbed
    }

    /// Whether it depends on others.
    pub(super) fn is_dependent(&self, strand: u32) -> bool {
        let preds = self.of.graph.strands[strand as usize].preds;
        preds.0 < preds.1
    }

    /// Whether it excludes others.
    pub(super) fn is_exclusive(&self, strand: u32) -> bool {
        self.excludes.contains_key(&strand)
    }

    /// The place of the only task that a strand has created since then, if nothing came of it but itself, and it waits from the creation on.
    pub(super) fn single(&self, strand: u32, since: u64, wait: (u64, u64)) -> Option<u32> {
        let children = self.children.get(&strand)?;
        let these =
            children.partition_point(|c| c.0 < since)..children.partition_point(|c| c.0 <= wait.0);
        let sizes = children
            .get(these)?
            .iter()
            .map(|c| (c, self.sizes[c.1 as usize]));
        let mut deferred = sizes.filter(|(_, size)| *size > 0);
        let (&(created, only), size) = deferred.next()?;
        if size != 1 || deferred.next().is_some() {
            return None;
        }
        // Code between is executed beside the task.
        let all = wait.1.saturating_sub(created);
        (wait.0.saturating_sub(created) <= all / 4).then(|| self.site(only))
    }
}

/// How many tasks of a team are in which state at an instant.
#[derive(Debug, Default)]
pub(super) struct Counts {
    team: u32,
    /// By site.
    ready: BTreeMap<u32, u64>,
    blocked: BTreeMap<u32, u64>,
    awaiting: BTreeMap<u32, u64>,
    all_ready: u64,
    /// By strand, for which team it is, and children and all descendants that are ready.
    below: Vec<(u32, [u32; 2])>,
    /// By address, tasks that want it alone, and those that have it.
    wanted: FxHashMap<u64, (u64, u64)>,
    /// Of all addresses: tasks that want one that another has, and addresses that are wanted and that none has.
    kept_out: u64,
    let_in: u64,
    excluding: u32,
}

impl Counts {
    pub(super) fn new(strands: usize) -> Counts {
        Counts {
            below: vec![(NONE, [0; 2]); strands],
            excluding: NONE,
            ..Counts::default()
        }
    }

    /// Begins anew with another team.
    pub(super) fn begin(&mut self, team: u32) {
        let below = std::mem::take(&mut self.below);
        *self = Counts {
            team,
            below,
            ..Counts::new(0)
        };
    }

    pub(super) fn take(&mut self, tasks: &Tasks<'_>, event: Event) {
        match event {
            Event::Blocked(task) => *self.blocked.entry(tasks.site(task)).or_default() += 1,
            Event::Unblocked(task) => less(&mut self.blocked, tasks.site(task)),
            Event::Awaits(task) => *self.awaiting.entry(tasks.site(task)).or_default() += 1,
            Event::Ready(task) => {
                *self.ready.entry(tasks.site(task)).or_default() += 1;
                self.all_ready += 1;
                self.climb(tasks, task, 1);
            }
            Event::Begun(task) => {
                less(&mut self.ready, tasks.site(task));
                self.all_ready -= 1;
                self.climb(tasks, task, -1);
            }
            Event::Wants(task) => self.exclude(tasks, task, [1, 0]),
            Event::Enters(task) => self.exclude(tasks, task, [-1, 1]),
            Event::Leaves(task) => self.exclude(tasks, task, [0, -1]),
            Event::Does(..) | Event::Opens(_) | Event::Closes(_) => {}
        }
    }

    fn climb(&mut self, tasks: &Tasks<'_>, task: u32, by: i32) {
        let strands = &tasks.of.graph.strands;
        let creator = |task: u32| {
            let creator = strands.get(strands[task as usize].creator as usize)?;
            Some(creator.task)
        };
        let above = std::iter::successors(creator(task), |&above| creator(above));
        for (levels, above) in above.take(MOST_LEVELS).enumerate() {
            let (team, below) = &mut self.below[above as usize];
            if *team != self.team {
                (*team, *below) = (self.team, [0; 2]);
            }
            let [children, all] = below;
            if levels == 0 {
                *children = children.saturating_add_signed(by);
            }
            *all = all.saturating_add_signed(by);
        }
    }

    fn exclude(&mut self, tasks: &Tasks<'_>, task: u32, by: [i64; 2]) {
        self.excluding = tasks.site(task);
        for &address in tasks.excludes.get(&task).into_iter().flatten() {
            let (wants, has) = self.wanted.entry(address).or_default();
            self.kept_out -= kept_out(*wants, *has);
            self.let_in -= let_in(*wants, *has);
            *wants = wants.saturating_add_signed(by[0]);
            *has = has.saturating_add_signed(by[1]);
            self.kept_out += kept_out(*wants, *has);
            self.let_in += let_in(*wants, *has);
        }
    }

    /// Tasks that could begin. Of those that exclude each other one could.
    pub(super) fn free(&self) -> u64 {
        self.all_ready + self.let_in
    }

    /// The place of most that could.
    pub(super) fn ready(&self) -> u32 {
        most(&self.ready).unwrap_or(self.excluding)
    }

    /// Children and descendants of a strand that could.
    pub(super) fn ready_of(&self, strand: u32) -> [u32; 2] {
        let below = self.below.get(strand as usize);
        let below = below.filter(|(team, _)| *team == self.team);
        below.map_or([0; 2], |(_, below)| *below)
    }

    /// The place of most that wait for others.
    pub(super) fn blocked(&self) -> Option<u32> {
        most(&self.blocked)
    }

    /// The place of most whose event has not come.
    pub(super) fn awaited(&self) -> Option<u32> {
        most(&self.awaiting)
    }

    /// The place of tasks that are kept out.
    pub(super) fn excluded(&self) -> Option<u32> {
        (self.kept_out > 0).then_some(self.excluding)
    }
}

/// Tasks that wait for others to let them in.
fn kept_out(wants: u64, has: u64) -> u64 {
    if has > 0 { wants } else { 0 }
}

/// Of tasks that exclude each other one could begin.
fn let_in(wants: u64, has: u64) -> u64 {
    u64::from(wants > 0 && has == 0)
}

fn less(of: &mut BTreeMap<u32, u64>, site: u32) {
    if let Some(count) = of.get_mut(&site) {
        *count -= 1;
        if *count == 0 {
            of.remove(&site);
        }
    }
}

fn most(of: &BTreeMap<u32, u64>) -> Option<u32> {
    of.iter().max_by_key(|(_, n)| **n).map(|(site, _)| *site)
}
