//! The tasks of each creator, in the order of their creation.

use crate::run::nodes::NONE;
use crate::span::gather::{Gathered, Rec};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use rustc_hash::{FxHashMap, FxHashSet};

/// Finds a creation's task.
#[derive(Debug, Default)]
pub(super) struct Created {
    /// Sorted by parent, thread of the team where several create, and order.
    tasks: Vec<(u32, i64, i64, u32)>,
    /// By parent and thread: what is next.
    next: FxHashMap<(u32, i64), usize>,
    /// By thread and region its number in the team.
    members: FxHashMap<(u32, u16), i64>,
    /// Fewer tasks are on record than were created, or the other way round.
    pub(super) has_gaps: bool,
    /// Creations whose task was executed there for no want of room.
    pub(super) undeferred: FxHashSet<u32>,
    /// Sites of tasks. What is created elsewhere is no task, as an event that a detached one waits for.
    sites: FxHashSet<u32>,
    /// Intervals in which a task hands its own next part over.
    handed_over: FxHashSet<u32>,
}

impl Created {
    pub(super) fn of(gathered: &Gathered) -> Created {
        let nodes = &gathered.nodes;
        let mut teams: FxHashMap<u32, i64> = FxHashMap::default();
        let mut members = FxHashMap::default();
        let mut creations = 0;
        let handed_over = handed_over(gathered);
        let of_tasks = gathered.recs.iter();
        let of_tasks = of_tasks.filter(|r| r.construct == Construct::Task);
        let sites: FxHashSet<u32> = of_tasks.map(|r| r.site).collect();
        for (at, rec) in (0..).zip(&gathered.recs) {
            match rec.construct {
                c if c.is_fork() => {
                    teams.insert(rec.node, rec.extent.max(1) as i64);
                }
                c if c.is_part() => {
                    members.insert((rec.parent, rec.thread), rec.extent as i64);
                }
                Construct::TaskCreate if handed_over.contains(&at) => {}
                Construct::TaskCreate if sites.contains(&rec.site) => creations += 1,
                _ => {}
            }
        }
        let mut tasks = vec![];
        for (at, node) in nodes.iter().enumerate() {
            if node.construct != Construct::Task || node.parent == NONE {
                continue;
            }
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
            undeferred: undeferred(gathered, &handed_over),
            sites,
            handed_over,
        }
    }

    /// Whether that is no creation: a task that has begun hands its next part over.
    pub(super) fn goes_on(&self, at: u32) -> bool {
        self.handed_over.contains(&at)
    }

    /// Whether a task is created there.
    pub(super) fn is_one(&self, rec: &Rec) -> bool {
        self.sites.contains(&rec.site)
    }

    /// The task of a creation: called in the order of time for each creator.
    pub(super) fn next(&mut self, gathered: &Gathered, create: &Rec) -> Option<u32> {
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
    pub(super) fn all(&self, parent: u32) -> Vec<u32> {
        let from = self.tasks.partition_point(|t| t.0 < parent);
        let these = self.tasks[from..].iter().take_while(|t| t.0 == parent);
        these.map(|t| t.3).collect()
    }
}

/// Where tasks in several parts hand their next part over: libomp's `untied` ones do it by the call that creates a task, at the end of each part
/// but the last.
fn handed_over(gathered: &Gathered) -> FxHashSet<u32> {
    // By a task's node, when its last part began, and whether there are others.
    let mut last: FxHashMap<u32, (u64, bool)> = FxHashMap::default();
    let parts = || {
        let recs = (0..).zip(&gathered.recs);
        recs.filter(|(_, r)| r.construct == Construct::Task)
    };
    for (_, part) in parts() {
        let (known, has_others) = last.entry(part.node).or_insert((part.t0, false));
        *has_others |= *known != part.t0;
        *known = part.t0.max(*known);
    }
    let mut found = FxHashSet::default();
    for (at, part) in parts() {
        let is_earlier = |&(last, has_others): &(u64, bool)| has_others && part.t0 < last;
        if !last.get(&part.node).is_some_and(is_earlier) {
            continue;
        }
        let own = gathered.inside(at).filter(|&i| {
            let rec = &gathered.recs[i as usize];
            rec.construct == Construct::TaskCreate && rec.parent == part.node
        });
        found.extend(own.last());
    }
    found
}

/// Runtimes execute a task at its creation, too, if so many wait that there is no room for it: libgomp from 64 tasks a thread on, libomp from
/// 256.
const ROOM: usize = 64;

/// Creations whose task was executed there, because of an `if` or `final` clause. It is certain while there is room for more tasks, and
/// likely where it is so for each task of a place.
fn undeferred(gathered: &Gathered, handed_over: &FxHashSet<u32>) -> FxHashSet<u32> {
    let is_task = |at: &u32| gathered.recs[*at as usize].construct == Construct::Task;
    let mut by_site: FxHashMap<u32, bool> = FxHashMap::default();
    let (mut here, mut created, mut inside) = (vec![], vec![], FxHashSet::default());
    for (at, rec) in (0..).zip(&gathered.recs) {
        if rec.construct != Construct::TaskCreate || handed_over.contains(&at) {
            continue;
        }
        let task = gathered.inside(at).find(is_task);
        *by_site.entry(rec.site).or_insert(true) &= task.is_some();
        match task {
            Some(task) => {
                here.push(at);
                inside.insert(gathered.recs[task as usize].node);
            }
            None => created.push(rec.t0),
        }
    }
    let mut begins: FxHashMap<u32, u64> = FxHashMap::default();
    for rec in gathered.recs.iter() {
        if rec.construct == Construct::Task && !inside.contains(&rec.node) {
            let begin = begins.entry(rec.node).or_insert(rec.t0);
            *begin = rec.t0.min(*begin);
        }
    }
    let mut begun: Vec<u64> = begins.into_values().collect();
    created.sort_unstable();
    begun.sort_unstable();
    let waiting = |t: u64| {
        let created = created.partition_point(|&c| c < t);
        created.saturating_sub(begun.partition_point(|&b| b <= t))
    };
    here.retain(|&at| {
        let rec = &gathered.recs[at as usize];
        by_site[&rec.site] || waiting(rec.t0) < ROOM
    });
    here.into_iter().collect()
}
