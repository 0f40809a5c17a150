//! From what was recorded of a region's execution to its graph.

mod created;
mod tasks;

use super::division::{Division, division};
use super::siblings::Siblings;
use super::{Graph, Kind, Sharing, Step, Strand, Team, Unit};
use crate::run::nodes::NONE;
use crate::span::gather::{Gathered, Rec};
use crate::span::replay::Schedule;
use created::Created;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_format::record::depend::WAITS;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

/// Intervals inside each other that are looked at; more come of damaged files.
const MOST_LEVELS: u32 = 200;

/// Makes the graphs of a process's regions.
pub(in crate::span) struct Builder<'g> {
    gathered: &'g Gathered,
    /// By node: the parts of a task, or of a team's threads. A list through `next_part`.
    first_part: Vec<u32>,
    next_part: Vec<u32>,
    created: Created,
}

/// A graph that is being made.
struct Building<'b, 'g> {
    of: &'b mut Builder<'g>,
    schedule: &'b dyn Fn(u32) -> Option<Schedule>,
    graph: Graph,
    /// Tasks whose code comes later, with their nodes.
    tasks: Vec<(u32, u32)>,
    strands: FxHashMap<u32, u32>,
    sharings: FxHashMap<(u32, u32, i64), u32>,
    /// By sharing: when ordered blocks began.
    turns: Vec<Vec<u64>>,
    locks: FxHashMap<(Construct, i64, u32), u32>,
    /// Events by their handles: since when, and the task that they belong to.
    events: FxHashMap<u64, Vec<(u64, u32)>>,
    /// Who fulfils an event by its handle, and when.
    fulfilled: Vec<(u64, u64)>,
}

/// A task, explicit or implicit, whose code is being looked at.
struct Task {
    strand: u32,
    /// The block or range of it that is being looked at, else itself.
    inner: u32,
    team: u32,
    member: u32,
    siblings: Siblings,
    /// Tasks that it has created, and when.
    children: Vec<(u64, u32)>,
    levels: u32,
    /// The loop around.
    sharing: u32,
}

impl<'g> Builder<'g> {
    pub(in crate::span) fn new(gathered: &'g Gathered) -> Builder<'g> {
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
        Builder {
            created: Created::of(gathered),
            gathered,
            first_part,
            next_part,
        }
    }

    /// Of the execution whose node this is. `schedule`: what is known of a record's site.
    pub(in crate::span) fn region(
        &mut self,
        node: u32,
        schedule: &dyn Fn(u32) -> Option<Schedule>,
    ) -> Graph {
        let graph = Graph {
            has_gaps: self.created.has_gaps,
            ..Graph::default()
        };
        let mut building = Building {
            of: self,
            schedule,
            graph,
            tasks: vec![],
            strands: FxHashMap::default(),
            sharings: FxHashMap::default(),
            turns: vec![],
            locks: FxHashMap::default(),
            events: FxHashMap::default(),
            fulfilled: vec![],
        };
        building.team(node);
        while let Some((node, strand)) = building.tasks.pop() {
            building.task(node, strand);
        }
        building.finish()
    }

    fn parts(&self, owner: u32) -> Vec<u32> {
        let first = self.first_part.get(owner as usize).copied();
        let first = first.filter(|&p| p != NONE);
        let next = |&p: &u32| Some(self.next_part[p as usize]).filter(|&p| p != NONE);
        std::iter::successors(first, next).collect()
    }
}

impl Building<'_, '_> {
    fn rec(&self, at: u32) -> Rec {
        self.of.gathered.recs[at as usize]
    }

    /// A strand without steps yet. `task`: whose children it creates; itself if it is a task.
    fn strand(&mut self, kind: Kind, task: Option<u32>, team: u32, rec: u32) -> u32 {
        let at = self.graph.strands.len() as u32;
        self.graph.strands.push(Strand {
            kind,
            first: 0,
            end: 0,
            task: task.unwrap_or(at),
            creator: NONE,
            since: 0,
            team,
            preds: (0, 0),
            is_detached: false,
            rec,
            iterations: 1,
        });
        at
    }

    fn put(&mut self, strand: u32, steps: Vec<Step>) {
        let first = self.graph.steps.len() as u32;
        self.graph.steps.extend(steps);
        let strand = &mut self.graph.strands[strand as usize];
        (strand.first, strand.end) = (first, self.graph.steps.len() as u32);
    }

    /// Threads of a region.
    fn team(&mut self, node: u32) -> u32 {
        let team = self.graph.teams.len() as u32;
        let mut parts = self.of.parts(node);
        self.graph.teams.push(Team {
            size: parts.len(),
            members: vec![],
        });
        parts.sort_by_key(|&p| self.rec(p).extent);
        for (member, part) in (0..).zip(parts) {
            let strand = self.strand(Kind::Member(member), None, team, part);
            self.graph.teams[team as usize].members.push(strand);
            let mut steps = vec![];
            let mut task = Task::new(strand, team, member);
            self.sequence(part, &mut steps, &mut task);
            self.put(strand, steps);
        }
        team
    }

    fn task(&mut self, node: u32, strand: u32) {
        let team = self.graph.strands[strand as usize].team;
        let (mut steps, mut task) = (vec![], Task::new(strand, team, NONE));
        for part in self.of.parts(node) {
            self.sequence(part, &mut steps, &mut task);
        }
        self.put(strand, steps);
    }

    /// The code of an interval and what is in it, one after the other.
    fn sequence(&mut self, at: u32, steps: &mut Vec<Step>, task: &mut Task) {
        let rec = self.rec(at);
        let charge = rec.construct.charges_to();
        let has_code = charge != Charge::Wait && charge != Charge::Runtime;
        // Entering and leaving are no code.
        let (mut until, end) = match rec.construct.is_exclusive() {
            true => {
                let entering = rec.extent.min(rec.own);
                (
                    rec.t0.saturating_add(entering),
                    rec.t1.saturating_sub(rec.own - entering),
                )
            }
            false => (rec.t0, rec.t1),
        };
        if task.levels > MOST_LEVELS {
            return code(steps, rec.own, at);
        }
        task.levels += 1;
        for inside in self.of.gathered.inside(at) {
            let next = self.rec(inside);
            if has_code {
                code(steps, next.t0.saturating_sub(until), at);
            }
            until = until.max(next.t1);
            self.meet(inside, &next, steps, task);
        }
        if has_code {
            code(steps, end.saturating_sub(until), at);
        }
        task.levels -= 1;
    }

    fn meet(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        match rec.construct {
            c if c.is_divided() => self.share(at, rec, steps, task),
            c if c.is_block() => {
                let strand = self.inner(at, task);
                steps.push(Step::Block { strand });
            }
            Construct::Task => self.execute(at, rec, steps, task),
            Construct::TaskCreate if self.of.created.goes_on(at) => {}
            Construct::TaskCreate if self.of.created.is_one(rec) => {
                self.create(at, rec, steps, task);
            }
            Construct::TaskCreate => self.fulfill(at, rec, steps),
            c if c.is_task_wait() => self.wait(at, rec, steps, task),
            Construct::Taskloop => self.taskloop(rec, steps, task),
            c if c.is_barrier() && task.member != NONE => {
                steps.push(Step::Barrier);
            }
            Construct::Ordered => self.ordered(at, rec, steps, task),
            Construct::Critical | Construct::Lock | Construct::Reduction => {
                let site = if rec.index == 0 { rec.site } else { 0 };
                let key = (rec.construct, rec.index, site);
                let next = self.locks.len() as u32;
                let lock = *self.locks.entry(key).or_insert(next);
                steps.push(Step::Enter { lock });
                self.sequence(at, steps, task);
                steps.push(Step::Leave { lock });
            }
            c if c.is_fork() => {
                let team = self.team(rec.node);
                steps.push(Step::Fork { team });
            }
            c if c.charges_to() == Charge::Work => self.sequence(at, steps, task),
            _ => {}
        }
    }

    /// A block or range that is a strand of its own, inside a task.
    fn inner(&mut self, at: u32, task: &mut Task) -> u32 {
        let strand = self.strand(Kind::Inner, Some(task.strand), task.team, at);
        let around = std::mem::replace(&mut task.inner, strand);
        let mut steps = vec![];
        self.sequence(at, &mut steps, task);
        self.put(strand, steps);
        task.inner = around;
        strand
    }

    /// Units of a loop that a thread executes.
    fn share(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        code(steps, rec.own, at);
        let node = self.of.gathered.nodes.get(rec.node as usize);
        let key = node.map_or((rec.node, at, 0), |n| (rec.site, n.parent, n.index));
        let next = self.graph.sharings.len() as u32;
        let sharing = *self.sharings.entry(key).or_insert(next);
        if sharing == next {
            self.turns.push(vec![]);
            self.graph.sharings.push(Rc::new(Sharing {
                units: vec![],
                schedule: Schedule::Static,
                division: Division::Kept,
                fetch: 0,
                turns: 0,
            }));
            self.schedule(sharing, rec);
        }
        let around = std::mem::replace(&mut task.sharing, sharing);
        let mut is_shared = false;
        for inside in self.of.gathered.inside(at) {
            let unit = self.rec(inside);
            if !unit.construct.is_xu() || unit.construct == Construct::Task {
                self.meet(inside, &unit, steps, task);
                continue;
            }
            if !is_shared {
                steps.push(Step::Share { sharing });
                is_shared = true;
            }
            let strand = match unit.child {
                NONE => NONE,
                _ => self.inner(inside, task),
            };
            let iterations = match unit.construct {
                Construct::Section => 1,
                _ => unit.extent.max(1),
            };
            if strand != NONE && !self.is_ordered(strand) {
                self.graph.strands[strand as usize].iterations = iterations;
            }
            self.sharing(sharing).units.push(Unit {
                first: unit.index,
                iterations,
                ticks: unit.len(),
                rec: inside,
                strand,
                member: task.member,
            });
        }
        if !is_shared {
            steps.push(Step::Share { sharing }); // it came too late
        }
        task.sharing = around;
    }

    /// Whether it waits for other iterations, so that its own don't run at once.
    fn is_ordered(&self, strand: u32) -> bool {
        let strand = &self.graph.strands[strand as usize];
        let steps = &self.graph.steps[strand.first as usize..strand.end as usize];
        let waits = |s: &Step| matches!(s, Step::Turn { .. } | Step::Await { .. });
        steps.iter().any(waits)
    }

    fn sharing(&mut self, at: u32) -> &mut Sharing {
        Rc::make_mut(&mut self.graph.sharings[at as usize])
    }

    fn schedule(&mut self, sharing: u32, rec: &Rec) {
        let fetched = self.of.gathered.fetches.get(&rec.node);
        let (own, division) = match (rec.construct, (self.schedule)(rec.site)) {
            (Construct::Sections, _) => (Schedule::Dynamic(1), Division::Kept),
            (_, Some(own)) if own.is_guided() => (own, Division::Unknown),
            (_, Some(own)) => (own, Division::Kept),
            // `runtime`, `auto`: the ranges will tell.
            (_, None) if fetched.is_some() => (Schedule::Dynamic(1), Division::Unknown),
            (_, None) => (Schedule::Static, Division::Kept),
        };
        let fetch = fetched.map_or(0, |(ticks, times)| ticks / (*times).max(1));
        let sharing = self.sharing(sharing);
        sharing.fetch = fetch;
        (sharing.schedule, sharing.division) = (own, division);
    }

    fn ordered(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        if let Some(point) = self.of.gathered.points.get(&at) {
            let mut hash = rustc_hash::FxHasher::default();
            (task.sharing, point.vector).hash(&mut hash);
            let vector = hash.finish();
            steps.push(match point.flags & WAITS {
                0 => Step::Post { vector },
                _ => Step::Await { vector },
            });
            return;
        }
        let Some(turns) = self.turns.get_mut(task.sharing as usize) else {
            self.graph.is_open = true;
            return self.sequence(at, steps, task);
        };
        if rec.own >= rec.len() && rec.child == NONE && rec.extent >= rec.own {
            // A wait or post of a doacross loop whose point is not on record.
            self.graph.is_open = true;
            return;
        }
        let turn = turns.len() as u32;
        turns.push(rec.t0.saturating_add(rec.extent.min(rec.own)));
        let sharing = task.sharing;
        steps.push(Step::Turn { sharing, turn });
        self.sequence(at, steps, task);
        steps.push(Step::Turned { sharing, turn });
    }

    fn finish(mut self) -> Graph {
        self.graph.locks = self.locks.len() as u32;
        let mut ranks: Vec<Vec<u32>> = vec![];
        for (times, sharing) in self.turns.iter().zip(&mut self.graph.sharings) {
            Rc::make_mut(sharing).turns = times.len() as u32;
            let mut order: Vec<u32> = (0..times.len() as u32).collect();
            order.sort_by_key(|&t| times[t as usize]);
            let mut rank = vec![0; times.len()];
            for (at, &turn) in (0..).zip(&order) {
                rank[turn as usize] = at;
            }
            ranks.push(rank);
        }
        if self.turns.iter().any(|t| !t.is_empty()) {
            for step in &mut self.graph.steps {
                if let Step::Turn { sharing, turn } | Step::Turned { sharing, turn } = step {
                    *turn = ranks[*sharing as usize][*turn as usize];
                }
            }
        }
        self.find_events();
        let team = self.graph.teams.first().map_or(1, |t| t.size as u32);
        for sharing in &mut self.graph.sharings {
            let sharing = Rc::make_mut(sharing);
            sharing.units.shrink_to_fit();
            sharing.units.sort_by_key(|u| u.first);
            if sharing.division == Division::Unknown {
                (sharing.schedule, sharing.division) =
                    division(sharing.schedule, &sharing.units, team);
            }
            // Whoever has several ranges was dealt chunks, whatever the place says.
            let mut members: Vec<u32> = sharing.units.iter().map(|u| u.member).collect();
            members.sort_unstable();
            let has_several = members.windows(2).any(|m| m[0] == m[1]);
            if has_several && sharing.schedule == Schedule::Static {
                let finest = sharing.units.iter().map(|u| u.iterations).min();
                sharing.schedule = Schedule::StaticChunk(finest.unwrap_or(1));
            }
        }
        self.graph
    }
}

impl Task {
    fn new(strand: u32, team: u32, member: u32) -> Task {
        Task {
            strand,
            inner: strand,
            team,
            member,
            siblings: Siblings::default(),
            children: vec![],
            levels: 0,
            sharing: NONE,
        }
    }
}

/// Code of an interval; what follows without a step between is one.
fn code(steps: &mut Vec<Step>, more: u64, of: u32) {
    match steps.last_mut() {
        Some(Step::Code { ticks, rec }) if *rec == of => *ticks = ticks.saturating_add(more),
        _ if more == 0 => {}
        _ => steps.push(Step::Code {
            ticks: more,
            rec: of,
        }),
    }
}
