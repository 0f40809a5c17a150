//! What each thread of a team does, from when on.

use super::tasks::Tasks;
use super::{Event, Execution, Team};
use crate::run::nodes::NONE;
use crate::span::gather::{Gathered, Rec};
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use rustc_hash::FxHashMap;

/// Intervals inside each other that are looked at.
const MOST_LEVELS: u32 = 200;

/// What a thread does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Doing {
    /// It hasn't begun, or has ended.
    Nothing,
    /// It executes code.
    Works(Busy),
    /// It waits: [`Lanes::waits`].
    Waits(u32),
}

impl Doing {
    pub(super) fn busy(&self) -> Option<&Busy> {
        match self {
            Doing::Works(busy) => Some(busy),
            _ => None,
        }
    }
}

/// Where a thread works. Places are records' sites, or [`NONE`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Busy {
    /// The task, or the thread's part of the region.
    pub(super) strand: u32,
    /// The outermost task around that is executed where it was created.
    pub(super) at_once: u32,
    /// The task around that is executed in a `taskyield` of who has yet to create others.
    pub(super) in_yield: u32,
    /// The block around, of the thread's own part.
    pub(super) block: u32,
    /// When that ends.
    pub(super) until: u64,
    /// The tasks that it has yet to create.
    pub(super) creates: u32,
    /// It is creating one.
    pub(super) is_creating: bool,
    /// It is code that every thread executes.
    pub(super) is_code: bool,
}

/// A wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    /// `None`: the region's end.
    pub(super) site: Option<u32>,
    /// Whose tasks it waits for; [`NONE`] where it may execute any: at barriers.
    pub(super) strand: u32,
    pub(super) is_taskwait: bool,
    /// The place of the only task that it waits for, or [`NONE`].
    pub(super) single: u32,
}

/// See the module.
pub(super) struct Lanes {
    pub(super) threads: usize,
    pub(super) waits: Vec<Wait>,
}

/// What is around an interval.
#[derive(Debug, Clone, Copy)]
struct Around {
    busy: Busy,
    /// The strand's last creation, and of tasks of what place.
    last: (u64, u32),
    /// It is a `taskyield`, whose task has yet to create others.
    yields: bool,
    levels: u32,
}

struct Walk<'a, 'g> {
    of: Execution<'g>,
    tasks: &'a Tasks<'g>,
    events: &'a mut Vec<(u64, Event)>,
    waits: Vec<Wait>,
    fork: u32,
    /// By strand, when it waited last.
    waited: FxHashMap<u32, u64>,
    thread: u32,
}

impl Lanes {
    pub(super) fn new(
        of: Execution<'_>,
        team: Team,
        tasks: &Tasks<'_>,
        events: &mut Vec<(u64, Event)>,
    ) -> Lanes {
        let members = &of.graph.teams[team.number as usize].members;
        let mut walk = Walk {
            of,
            tasks,
            events,
            waits: vec![],
            fork: team.fork,
            waited: FxHashMap::default(),
            thread: 0,
        };
        let mut ends = vec![];
        for (thread, &strand) in (0..).zip(members) {
            walk.thread = thread;
            ends.push(walk.member(strand));
        }
        let end = ends.iter().copied().max().unwrap_or(0);
        let end = end.min(of.gathered.recs[team.fork as usize].t1);
        for thread in 0..members.len() as u32 {
            walk.events.push((end, Event::Does(thread, Doing::Nothing)));
        }
        Lanes {
            threads: members.len(),
            waits: walk.waits,
        }
    }
}

/// The last creation by each task or thread's part of a process, and of tasks of what place: by task's node, or by region's and thread.
#[derive(Debug, Default)]
pub(in crate::span) struct Creations(FxHashMap<(u32, u16), (u64, u32)>);

impl Creations {
    pub(in crate::span) fn of(gathered: &Gathered) -> Creations {
        let mut last: FxHashMap<(u32, u16), (u64, u32)> = FxHashMap::default();
        for rec in gathered.recs.iter().filter(|r| r.construct.is_creation()) {
            let Some(owner) = owner(gathered, rec.parent, rec.thread) else {
                continue;
            };
            let of = last.entry(owner).or_default();
            *of = (rec.t0, rec.site).max(*of);
        }
        Creations(last)
    }

    fn last(&self, owner: (u32, u16)) -> (u64, u32) {
        self.0.get(&owner).copied().unwrap_or((0, NONE))
    }
}

/// The task or thread's part that a node is in.
fn owner(gathered: &Gathered, mut node: u32, thread: u16) -> Option<(u32, u16)> {
    for _ in 0..MOST_LEVELS {
        let place = gathered.nodes.get(node as usize)?;
        match place.construct {
            Construct::Task => return Some((node, 0)),
            c if c.is_fork() => return Some((node, thread)),
            _ => node = place.parent,
        }
    }
    None
}

impl Walk<'_, '_> {
    /// A thread's part, and what it executes behind that. When it ends.
    fn member(&mut self, strand: u32) -> u64 {
        let at = self.of.graph.strands[strand as usize].rec;
        let recs = &self.of.gathered.recs;
        let part = recs[at as usize];
        let around = Around {
            busy: Busy {
                strand,
                at_once: NONE,
                in_yield: NONE,
                block: NONE,
                until: part.t1,
                creates: NONE,
                is_creating: false,
                is_code: true,
            },
            last: self.of.creations.last((part.parent, part.thread)),
            yields: false,
            levels: 0,
        };
        self.inside(at, around, None);
        let wait = self.wait(None, NONE, false, NONE);
        self.does(part.t1, Doing::Waits(wait));
        let instances = self.of.instances;
        let from = instances.partition_point(|&i| recs[i as usize].t0 < part.t1);
        let fork_end = recs[self.fork as usize].t1;
        let mut end = part.t1;
        for &task in &instances[from..] {
            let rec = recs[task as usize];
            if rec.t0 > fork_end {
                break;
            }
            if rec.thread == part.thread && rec.t0 >= end {
                self.meet(task, &rec, around);
                self.does(rec.t1, Doing::Waits(wait));
                end = rec.t1;
            }
        }
        end
    }

    fn does(&mut self, at: u64, doing: Doing) {
        self.events.push((at, Event::Does(self.thread, doing)));
    }

    fn wait(&mut self, site: Option<u32>, strand: u32, is_taskwait: bool, single: u32) -> u32 {
        self.waits.push(Wait {
            site,
            strand,
            is_taskwait,
            single,
        });
        self.waits.len() as u32 - 1
    }

    /// What is in an interval, one after the other. `wait`: it is this one, else code.
    fn inside(&mut self, at: u32, around: Around, wait: Option<u32>) {
        let rec = self.of.gathered.recs[at as usize];
        let own = |t: u64| match wait {
            Some(wait) => Doing::Waits(wait),
            None => {
                let creates = match around.last.0 > t {
                    true => around.last.1,
                    false => NONE,
                };
                let is_creating = around.busy.is_creating;
                Doing::Works(Busy {
                    creates: if is_creating { rec.site } else { creates },
                    ..around.busy
                })
            }
        };
        self.does(rec.t0, own(rec.t0));
        if around.levels > MOST_LEVELS {
            return;
        }
        let gathered = self.of.gathered;
        for inside in gathered.inside(at) {
            let next = gathered.recs[inside as usize];
            self.meet(inside, &next, around);
            self.does(next.t1, own(next.t1));
        }
    }

    fn meet(&mut self, at: u32, rec: &Rec, mut around: Around) {
        around.levels += 1;
        match rec.construct {
            Construct::Task => return self.task(at, rec, around),
            c if c.is_task_wait() => {
                let single = self.single(at, rec, around.busy.strand);
                let is_taskwait = c == Construct::Taskwait;
                let strand = around.busy.strand;
                let wait = self.wait(Some(rec.site), strand, is_taskwait, single);
                let depends = self.of.gathered.waits.contains_key(&at);
                if single != NONE || depends {
                    self.events.push((rec.t0, Event::Opens(wait)));
                    self.events.push((rec.t1, Event::Closes(wait)));
                }
                return self.inside(at, around, Some(wait));
            }
            c if c.is_barrier() => {
                let wait = self.wait(Some(rec.site), NONE, false, NONE);
                return self.inside(at, around, Some(wait));
            }
            // A region of its own.
            c if c.is_fork() => {
                around.busy.is_code = false;
                let doing = Doing::Works(around.busy);
                return self.does(rec.t0, doing);
            }
            c if c.is_block() => {
                (around.busy.block, around.busy.until) = (rec.site, rec.t1);
            }
            c if c.is_creation() => around.busy.is_creating = true,
            Construct::Taskyield => around.yields = around.last.0 > rec.t0,
            c if c.charges_to() == Charge::Work && !c.is_code() => around.busy.is_code = false,
            _ => {}
        }
        self.inside(at, around, None);
    }

    fn task(&mut self, at: u32, rec: &Rec, mut around: Around) {
        let strand = self.tasks.strand(rec.node);
        let at_once = strand.is_some_and(|s| self.tasks.is_inline(s));
        // What it depends on decides when it is executed.
        let is_dependent = strand.is_some_and(|s| self.tasks.is_dependent(s));
        let busy = &mut around.busy;
        busy.at_once = match (at_once && !is_dependent, busy.at_once) {
            (true, NONE) => rec.site,
            (true, outermost) => outermost,
            (false, _) => NONE,
        };
        busy.in_yield = match std::mem::take(&mut around.yields) {
            true => rec.site,
            false => NONE,
        };
        busy.strand = strand.unwrap_or(busy.strand);
        (busy.block, busy.is_creating, busy.is_code) = (NONE, false, false);
        around.last = self.of.creations.last((rec.node, 0));
        self.inside(at, around, None);
    }

    /// The place of the only task that is waited for.
    fn single(&mut self, at: u32, rec: &Rec, strand: u32) -> u32 {
        let before = self.waited.insert(strand, rec.t1).unwrap_or(0);
        if self.of.gathered.waits.contains_key(&at) {
            return NONE;
        }
        let since = self.of.gathered.groups.get(&at).copied();
        let since = since.unwrap_or(before);
        let single = self.tasks.single(strand, since, (rec.t0, rec.t1));
        single.unwrap_or(NONE)
    }
}
