//! Spans: the longest chains of code that must run one after the other.
//!
//! A task may begin where its creator had created it, in the creator's own time. A `taskwait` waits for the creator's tasks, a
//! `taskgroup` for all that come of them, a barrier for all of the team's. The units of a loop may all run at once. What a critical
//! section orders is left out: so is what `depend` and locks order.

use super::gather::{Gathered, Rec};
use crate::run::nodes::NONE;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use rustc_hash::FxHashMap;

/// Lengths of one chain, in ticks, by what is counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Length {
    /// Code, each unit as it was recorded.
    pub(super) pure: u64,
    /// Code, the iterations of a range side by side.
    pub(super) equal: u64,
    /// As `pure`, and the creation of tasks.
    pub(super) burdened: u64,
    /// As `burdened`, where tasks take no time.
    pub(super) without_tasks: u64,
}

impl Length {
    fn code(ticks: u64) -> Length {
        Length {
            pure: ticks,
            equal: ticks,
            burdened: ticks,
            without_tasks: ticks,
        }
    }

    fn creation(ticks: u64) -> Length {
        Length {
            burdened: ticks,
            without_tasks: ticks,
            ..Length::default()
        }
    }

    fn zip(self, other: Length, of: impl Fn(u64, u64) -> u64) -> Length {
        Length {
            pure: of(self.pure, other.pure),
            equal: of(self.equal, other.equal),
            burdened: of(self.burdened, other.burdened),
            without_tasks: of(self.without_tasks, other.without_tasks),
        }
    }

    pub(super) fn plus(self, other: Length) -> Length {
        self.zip(other, |a, b| a + b)
    }

    pub(super) fn max(self, other: Length) -> Length {
        self.zip(other, u64::max)
    }

    fn less(self, other: Length) -> Length {
        self.zip(other, u64::saturating_sub)
    }
}

/// How long a task or region is: until its own code has ended, and until all that came of it has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Ends {
    own: Length,
    all: Length,
}

/// A chain on the way.
#[derive(Debug, Default)]
struct Path {
    /// How long it is.
    now: Length,
    /// When the tasks that it has created will have ended, and all that comes of them.
    children: Length,
    all: Length,
    /// Its length from one barrier to the next, tasks included.
    phases: Vec<Length>,
    /// The last task that it has created.
    last: u32,
    levels: u32,
}

/// Waiting in a `taskwait`, by its site and that of the last task: ticks.
pub(super) type TaskWaits = FxHashMap<(u32, u32), u64>;

/// Works the spans of all tasks and regions out.
pub(super) struct Paths<'g> {
    gathered: &'g Gathered,
    /// By node: the parts of a task, or of a team's threads. A list through `next_part`.
    first_part: Vec<u32>,
    next_part: Vec<u32>,
    /// By node: its place among `ends`, of tasks and regions only.
    owner: Vec<u32>,
    ends: Vec<Ends>,
    created: Created,
    /// Sites of tasks that are never deferred.
    undeferred: FxHashMap<u32, bool>,
    pub(super) task_waits: TaskWaits,
    /// Fewer tasks are on record than were created, or the other way round.
    pub(super) has_gaps: bool,
}

/// Intervals inside each other that are looked at; more come of damaged files.
const MOST_LEVELS: u32 = 200;

impl<'g> Paths<'g> {
    pub(super) fn new(gathered: &'g Gathered) -> Paths<'g> {
        let (recs, nodes) = (&gathered.recs, &gathered.nodes);
        let mut first_part = vec![NONE; nodes.len()];
        let mut next_part = vec![NONE; recs.len()];
        for (at, rec) in recs.iter().enumerate().rev() {
            let of = match rec.construct {
                Construct::Task => rec.node,
                c if c.is_part() => rec.parent,
                _ => continue,
            };
            if let Some(first) = first_part.get_mut(of as usize) {
                next_part[at] = std::mem::replace(first, at as u32);
            }
        }
        let owner = nodes.iter().scan(0, |next, node| {
            let is_owner = node.construct == Construct::Task || node.construct.is_fork();
            let place = if is_owner { *next } else { NONE };
            *next += u32::from(is_owner);
            Some(place)
        });
        let owner: Vec<u32> = owner.collect();
        let owners = owner.iter().filter(|&&o| o != NONE).count();
        let mut paths = Paths {
            gathered,
            owner,
            first_part,
            next_part,
            ends: vec![Ends::default(); owners],
            created: Created::of(gathered),
            undeferred: undeferred(gathered),
            task_waits: FxHashMap::default(),
            has_gaps: false,
        };
        paths.work_out();
        paths.has_gaps |= paths.created.has_gaps;
        paths
    }

    /// The span of a region.
    pub(super) fn of_region(&self, node: u32) -> Length {
        self.ends_of(node).all
    }

    /// Of a task or region.
    fn ends_of(&self, node: u32) -> Ends {
        let place = self.owner.get(node as usize);
        let ends = place.and_then(|&place| self.ends.get(place as usize));
        ends.copied().unwrap_or_default()
    }

    /// What is deepest comes first: tasks before those that create them.
    fn work_out(&mut self) {
        let nodes = &self.gathered.nodes;
        let is_owner = |n: &u32| self.owner[*n as usize] != NONE;
        let mut owners: Vec<u32> = (0..nodes.len() as u32).filter(is_owner).collect();
        owners.sort_by_key(|&n| std::cmp::Reverse(nodes[n as usize].depth));
        for owner in owners {
            let is_fork = nodes[owner as usize].construct.is_fork();
            let ends = match is_fork {
                true => self.region(owner),
                false => self.task(owner),
            };
            self.ends[self.owner[owner as usize] as usize] = ends;
        }
    }

    fn parts(&self, owner: u32) -> Vec<u32> {
        let first = Some(self.first_part[owner as usize]).filter(|&p| p != NONE);
        let next = |&p: &u32| Some(self.next_part[p as usize]).filter(|&p| p != NONE);
        std::iter::successors(first, next).collect()
    }

    fn task(&mut self, node: u32) -> Ends {
        let mut path = Path {
            last: NONE,
            ..Path::default()
        };
        for part in self.parts(node) {
            self.sequence(part, &mut path);
        }
        let tasks_free = |length: Length| Length {
            without_tasks: 0,
            ..length
        };
        Ends {
            own: tasks_free(path.now),
            all: tasks_free(path.now.max(path.all)),
        }
    }

    fn region(&mut self, node: u32) -> Ends {
        let mut phases: Vec<Length> = vec![];
        for part in self.parts(node) {
            let mut path = Path {
                last: NONE,
                ..Path::default()
            };
            self.sequence(part, &mut path);
            path.end_phase();
            for (at, length) in path.phases.into_iter().enumerate() {
                match phases.get_mut(at) {
                    Some(phase) => *phase = phase.max(length),
                    None => phases.push(length),
                }
            }
        }
        let all = phases.into_iter().fold(Length::default(), Length::plus);
        Ends { own: all, all }
    }

    /// The code of an interval and what is in it, one after the other.
    fn sequence(&mut self, at: u32, path: &mut Path) {
        let rec = self.gathered.recs[at as usize];
        let has_code = rec.construct.charges_to() != Charge::Wait
            && rec.construct.charges_to() != Charge::Runtime;
        path.levels += 1;
        let mut until = rec.t0;
        for inside in self.gathered.inside(at) {
            let next = self.gathered.recs[inside as usize];
            if has_code {
                path.add(Length::code(next.t0.saturating_sub(until)));
            }
            until = until.max(next.t1);
            self.meet(inside, &next, path);
        }
        if has_code {
            path.add(Length::code(rec.t1.saturating_sub(until)));
        }
        path.levels -= 1;
    }

    fn meet(&mut self, at: u32, rec: &Rec, path: &mut Path) {
        if path.levels > MOST_LEVELS {
            path.add(Length::code(rec.own));
            return;
        }
        match rec.construct {
            Construct::Loop | Construct::Sections | Construct::Distribute => {
                self.units(at, rec, path);
            }
            Construct::Task => {
                // Between its parts, or undeferred.
                let is_first = self.first_part.get(rec.node as usize) == Some(&at);
                if is_first {
                    path.execute(self.ends_of(rec.node));
                }
            }
            Construct::TaskCreate => self.create(at, rec, path),
            Construct::Taskwait | Construct::Taskgroup => {
                if let Some(task) = self.gathered.recs.get(path.last as usize) {
                    *self.task_waits.entry((rec.site, task.site)).or_default() += rec.own;
                }
                path.now = match rec.construct {
                    Construct::Taskwait => path.now.max(path.children),
                    _ => path.now.max(path.all),
                };
            }
            Construct::Taskloop => self.taskloop(rec, path),
            Construct::Barrier | Construct::ImplicitBarrier => path.end_phase(),
            Construct::Critical | Construct::Lock | Construct::Ordered => {
                self.sequence(at, path);
                // Entering and leaving are no code.
                path.now = path.now.less(Length::code(rec.own));
            }
            c if c.is_fork() => {
                path.add(self.ends_of(rec.node).all);
            }
            c if c.charges_to() == Charge::Work => self.sequence(at, path),
            _ => {}
        }
    }

    /// The units of a loop, which may all run at once.
    fn units(&mut self, at: u32, rec: &Rec, path: &mut Path) {
        path.add(Length::code(rec.own));
        let begin = path.now;
        let mut longest = Length::default();
        path.levels += 1;
        for inside in self.gathered.inside(at) {
            let unit = self.gathered.recs[inside as usize];
            if !unit.construct.is_xu() || unit.construct == Construct::Task {
                self.meet(inside, &unit, path);
                continue;
            }
            if unit.child == NONE {
                longest = longest.max(one(unit.len(), &unit));
                continue;
            }
            let mut inner = Path {
                last: path.last,
                levels: path.levels,
                ..Path::default()
            };
            self.sequence(inside, &mut inner);
            path.last = inner.last;
            path.children = path.children.max(begin.plus(inner.children));
            path.all = path.all.max(begin.plus(inner.all));
            let mut length = inner.now;
            length.equal /= unit.extent.max(1);
            longest = longest.max(length);
        }
        path.levels -= 1;
        path.add(longest);
    }

    fn create(&mut self, at: u32, rec: &Rec, path: &mut Path) {
        let Some(node) = self.created.next(self.gathered, rec) else {
            self.has_gaps = true;
            return;
        };
        path.add(Length::creation(rec.own));
        let first = self.first_part[node as usize];
        path.last = first;
        let ends = self.ends_of(node);
        let is_undeferred = self.undeferred.get(&rec.site) == Some(&true);
        let is_inside = || self.gathered.inside(at).any(|i| i == first);
        match is_undeferred && is_inside() {
            true => path.execute(ends),
            false => path.spawn(ends),
        }
    }

    fn taskloop(&mut self, rec: &Rec, path: &mut Path) {
        let (mut last, mut ended) = (NONE, true);
        let tasks = self.created.all(rec.node);
        for node in tasks {
            let mut ends = self.ends_of(node);
            let part = self.first_part[node as usize];
            if let Some(part) = self.gathered.recs.get(part as usize) {
                ends.own.equal /= part.extent.max(1);
                ended &= part.t1 <= rec.t1;
            }
            last = part;
            path.spawn(ends);
        }
        path.add(Length::creation(rec.own));
        path.last = last;
        // With `nogroup` it does not wait.
        if ended {
            path.now = path.now.max(path.all);
        }
    }
}

/// A unit without anything in it.
fn one(ticks: u64, unit: &Rec) -> Length {
    Length {
        equal: ticks / unit.extent.max(1),
        ..Length::code(ticks)
    }
}

impl Path {
    fn add(&mut self, length: Length) {
        self.now = self.now.plus(length);
    }

    /// A task that runs beside.
    fn spawn(&mut self, task: Ends) {
        self.children = self.children.max(self.now.plus(task.own));
        self.all = self.all.max(self.now.plus(task.all));
    }

    /// One that runs at once.
    fn execute(&mut self, task: Ends) {
        self.all = self.all.max(self.now.plus(task.all));
        self.now = self.now.plus(task.own);
    }

    fn end_phase(&mut self) {
        self.phases.push(self.now.max(self.all));
        (self.now, self.children, self.all) = Default::default();
    }
}

/// The tasks of each creator, in the order of their creation.
#[derive(Debug, Default)]
struct Created {
    /// Sorted by parent, thread of the team where several create, and order.
    tasks: Vec<(u32, i64, i64, u32)>,
    /// By parent and thread: what is next.
    next: FxHashMap<(u32, i64), usize>,
    /// By thread and region its number in the team.
    members: FxHashMap<(u32, u16), i64>,
    has_gaps: bool,
}

impl Created {
    fn of(gathered: &Gathered) -> Created {
        let nodes = &gathered.nodes;
        let mut teams: FxHashMap<u32, i64> = FxHashMap::default();
        let mut members = FxHashMap::default();
        let mut creations = 0;
        for rec in &gathered.recs {
            match rec.construct {
                c if c.is_fork() => {
                    teams.insert(rec.node, rec.extent.max(1) as i64);
                }
                c if c.is_part() => {
                    members.insert((rec.parent, rec.thread), rec.extent as i64);
                }
                Construct::TaskCreate => creations += 1,
                _ => {}
            }
        }
        let mut tasks = vec![];
        for (at, node) in nodes.iter().enumerate() {
            if node.construct != Construct::Task || node.parent == NONE {
                continue;
            }
            use ompfuse_format::record::Step;
            let thread = match (node.step, teams.get(&node.parent)) {
                (Step::TidRanked, Some(team)) => node.index.rem_euclid(*team),
                _ => 0,
            };
            tasks.push((node.parent, thread, node.index, at as u32));
        }
        tasks.sort_unstable();
        let of_loops =
            |t: &&(u32, i64, i64, u32)| nodes[t.0 as usize].construct == Construct::Taskloop;
        let has_gaps = tasks.len() - tasks.iter().filter(of_loops).count() != creations;
        let mut next = FxHashMap::default();
        for (at, task) in tasks.iter().enumerate() {
            next.entry((task.0, task.1)).or_insert(at);
        }
        Created {
            tasks,
            next,
            members,
            has_gaps,
        }
    }

    /// The task of a creation: called in the order of time for each creator.
    fn next(&mut self, gathered: &Gathered, create: &Rec) -> Option<u32> {
        let parent = gathered.nodes.get(create.parent as usize)?;
        let thread = match parent.construct.is_fork() {
            true => *(self.members.get(&(create.parent, create.thread))).unwrap_or(&0),
            false => 0,
        };
        let next = self.next.get_mut(&(create.parent, thread))?;
        let &(of, by, _, node) = self.tasks.get(*next)?;
        *next += 1;
        ((of, by) == (create.parent, thread)).then_some(node)
    }

    /// All of a creator.
    fn all(&self, parent: u32) -> Vec<u32> {
        let from = self.tasks.partition_point(|t| t.0 < parent);
        let these = self.tasks[from..].iter().take_while(|t| t.0 == parent);
        these.map(|t| t.3).collect()
    }
}

/// By site of tasks: whether each of them was executed where it was created.
fn undeferred(gathered: &Gathered) -> FxHashMap<u32, bool> {
    let mut sites: FxHashMap<u32, bool> = FxHashMap::default();
    let creations = gathered.recs.iter().enumerate();
    let creations = creations.filter(|(_, r)| r.construct == Construct::TaskCreate);
    for (at, rec) in creations {
        let has_task = gathered
            .inside(at as u32)
            .any(|i| gathered.recs[i as usize].construct == Construct::Task);
        *sites.entry(rec.site).or_insert(true) &= has_task;
    }
    sites
}
