//! Tasks: where they are created and executed, what they depend on, and who waits for them.

use super::{Building, Task};
use crate::run::nodes::NONE;
use crate::span::gather::Rec;
use crate::span::graph::{Kind, Step};
use ompfuse_format::Construct;
use ompfuse_format::record::depend::{Access, DETACHED, FULFILS, NO_WAIT, WAITS_ONLY};

impl Building<'_, '_> {
    /// A task that is executed here, not where it waits to be: undeferred, or a part.
    pub(super) fn execute(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        let is_first = self.of.first_part.get(rec.node as usize) == Some(&at);
        if !is_first {
            return;
        }
        let Some(&strand) = self.strands.get(&rec.node) else {
            let strand = self.new_task(rec.node, rec.t0, task);
            steps.push(Step::Inline { strand });
            return;
        };
        let is_creation = |s: &Step| matches!(s, Step::Create { task, .. } if *task == strand);
        if let Some(creation) = steps.iter_mut().rfind(|s| is_creation(s)) {
            *creation = Step::Inline { strand };
        }
    }

    /// A task that was created then.
    fn new_task(&mut self, node: u32, since: u64, task: &mut Task) -> u32 {
        let first = self.of.first_part[node as usize];
        let strand = self.strand(Kind::Task, None, task.team, first);
        self.strands.insert(node, strand);
        self.graph.strands[strand as usize].creator = task.inner;
        self.graph.strands[strand as usize].since = since;
        if let Some(rec) = self.of.gathered.recs.get(first as usize) {
            self.graph.strands[strand as usize].iterations = rec.extent.max(1);
        } else {
            self.graph.has_gaps = true;
        }
        self.tasks.push((node, strand));
        task.children.push((since, strand));
        strand
    }

    pub(super) fn create(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        let Some(node) = self.of.created.next(self.of.gathered, rec) else {
            self.graph.has_gaps = true;
            return;
        };
        let strand = self.new_task(node, rec.t0, task);
        let first = self.of.first_part[node as usize];
        let of = self.of.gathered.depends.get(&node);
        let is_detached = of.is_some_and(|of| of.flags & DETACHED != 0);
        match of {
            Some(of) => {
                if is_detached {
                    let event = of.event.unwrap_or(0);
                    let events = self.events.entry(event).or_default();
                    events.push((rec.t0, strand));
                }
                let accesses = of.accesses.clone();
                self.depend(strand, &accesses, task);
            }
            // The extent of a creation says whether it has dependences.
            None => self.graph.is_open |= rec.extent > 0,
        }
        let is_inside = || self.of.gathered.inside(at).any(|i| i == first);
        // A thread on its own executes all tasks at once.
        let is_alone = self.graph.teams[task.team as usize].size < 2;
        let is_here = self.of.created.undeferred.contains(&at) && !is_alone && is_inside();
        let (first, end) = self.graph.strands[strand as usize].preds;
        // Its creator waits for the event, too, before it goes on.
        self.graph.is_open |= is_here && is_detached;
        if is_here && first < end {
            steps.push(Step::WaitFor {
                first,
                end,
                only: true,
            });
        }
        steps.push(match is_here {
            true => Step::Inline { strand },
            false => Step::Create {
                ticks: rec.own,
                task: strand,
            },
        });
    }

    /// A call that may fulfil an event.
    pub(super) fn fulfill(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>) {
        let point = self.of.gathered.points.get(&at);
        if let Some(point) = point.filter(|p| p.flags & FULFILS != 0) {
            // The task is known when all are.
            let task = self.fulfilled.len() as u32;
            self.fulfilled.push((point.vector, rec.t0));
            steps.push(Step::Fulfill { task });
        }
    }

    /// Whose events are fulfilled: of those with this handle the last that there was by then.
    pub(super) fn find_events(&mut self) {
        for step in &mut self.graph.steps {
            let Step::Fulfill { task } = step else {
                continue;
            };
            let (event, when) = self.fulfilled[*task as usize];
            let of = self.events.get(&event).into_iter().flatten();
            let of = of.filter(|e| e.0 <= when).max();
            *task = of.map_or(NONE, |e| e.1);
            if let Some(strand) = self.graph.strands.get_mut(*task as usize) {
                strand.is_detached = true;
            }
        }
        let mut tasks = self.events.values().flatten();
        self.graph.detached = tasks.any(|e| !self.graph.strands[e.1 as usize].is_detached);
    }

    fn depend(&mut self, strand: u32, accesses: &[(u64, Access)], task: &mut Task) {
        self.graph.excludes |= accesses.iter().any(|a| a.1 == Access::MutexInOutSet);
        let before = task.siblings.before(accesses);
        task.siblings.add(strand, accesses);
        self.graph.strands[strand as usize].preds = self.preds(before);
    }

    fn preds(&mut self, before: Vec<u32>) -> (u32, u32) {
        let first = self.graph.preds.len() as u32;
        self.graph.preds.extend(before);
        (first, self.graph.preds.len() as u32)
    }

    pub(super) fn wait(&mut self, at: u32, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        if rec.construct == Construct::Taskgroup {
            return self.group(at, steps, task);
        }
        let Some(of) = self.of.gathered.waits.get(&at) else {
            return steps.push(match rec.construct {
                Construct::Taskwait => Step::Wait,
                _ => Step::WaitAll,
            });
        };
        let (flags, accesses) = (of.flags, of.accesses.clone());
        if flags & NO_WAIT != 0 {
            // A task without code, which later ones depend on.
            let strand = self.strand(Kind::Task, None, task.team, at);
            self.graph.strands[strand as usize].creator = task.inner;
            self.depend(strand, &accesses, task);
            steps.push(Step::Create {
                ticks: 0,
                task: strand,
            });
            return;
        }
        let (first, end) = self.preds(task.siblings.before(&accesses));
        steps.push(Step::WaitFor {
            first,
            end,
            only: flags & WAITS_ONLY != 0,
        });
    }

    /// The end of a taskgroup. Where groups begin that reductions imply is not on record.
    fn group(&mut self, at: u32, steps: &mut Vec<Step>, task: &Task) {
        let since = self.of.gathered.groups.get(&at).copied();
        let before = since.map_or(0, |since| task.children.partition_point(|c| c.0 < since));
        if before == 0 {
            // Without a begin: who ends later was created before it.
            let ends = self.rec(at).t1;
            let is_later = |&(_, strand): &(u64, u32)| {
                let first = self.graph.strands[strand as usize].rec;
                let first = self.of.gathered.recs.get(first as usize);
                first.is_some_and(|part| part.t1 > ends)
            };
            if since.is_some() || !task.children.iter().any(is_later) {
                return steps.push(Step::WaitAll);
            }
            self.graph.is_open = true;
            return;
        }
        let inside = task.children[before..].iter().map(|c| c.1);
        let (first, end) = self.preds(inside.collect());
        steps.push(Step::WaitGroup { first, end });
    }

    pub(super) fn taskloop(&mut self, rec: &Rec, steps: &mut Vec<Step>, task: &mut Task) {
        let tasks = self.of.created.all(rec.node);
        let ticks = rec.own / tasks.len().max(1) as u64;
        let mut has_ended = true;
        let mut strands = vec![];
        for node in tasks {
            let strand = self.new_task(node, rec.t0, task);
            let first = self.of.first_part[node as usize];
            let first = self.of.gathered.recs.get(first as usize);
            has_ended &= first.is_none_or(|part| part.t1 <= rec.t1);
            steps.push(Step::Create {
                ticks,
                task: strand,
            });
            strands.push(strand);
        }
        self.graph.taskloops.push(strands);
        // With `nogroup` it does not wait.
        if has_ended {
            steps.push(Step::WaitAll);
        }
    }
}
