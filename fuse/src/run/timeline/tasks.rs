//! Which creation made which task, and where a task ends.
//!
//! A creation is on record without its task. But a task's node has the number of the thread that created it, and numbers of a thread
//! follow one another: its creations and its tasks, both in order, are the same tasks. That holds where all of them are on record:
//! a thread with another number of tasks than creations names none, nor does a process in which anything was lost or left out.

use super::index::STRETCH;
use super::{Kind, Lane, Span, Timeline};
use crate::run::nodes::NodeSet;
use crate::run::read::Process;
use crate::run::survey::Surveyed;
use ompfuse_format::Construct;
use ompfuse_format::record::Record;
use ompfuse_progress::Progress;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

/// What names a task in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TaskName {
    /// The lane of the thread that has created it.
    pub creator: usize,
    /// Its number among that thread's nodes, from 1.
    pub number: u64,
}

/// The tasks of all processes.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    of_process: Vec<OfProcess>,
    /// By lane: its creations can be named.
    is_sure: Vec<bool>,
    /// By process and number of a thread.
    lanes: FxHashMap<(u16, u32), usize>,
}

#[derive(Debug)]
struct OfProcess {
    /// Tasks that were created one by one.
    tasks: NodeSet,
    /// Their places. What is created elsewhere is no task, as an event that a detached one waits for.
    sites: HashSet<u32>,
    /// Of those that have several parts, the end of the last one.
    ends: FxHashMap<u64, u64>,
}

/// What one thread tells.
struct OfThread {
    tasks: NodeSet,
    /// Those with several parts on this thread.
    in_parts: Vec<u64>,
    /// Places of tasks.
    sites: HashSet<u32>,
    /// Creations by place.
    creations: FxHashMap<u32, u64>,
    is_whole: bool,
}

impl<'a> Timeline<'a> {
    /// Reads the records once more, so that creations have the nodes of their tasks ([`Span::created`]), and ends of tasks are known
    /// ([`Timeline::ends`]).
    pub fn read_tasks(&self, progress: Progress<'_>) {
        self.tasks.get_or_init(|| self.tasks_of_all(progress));
    }

    fn tasks_of_all(&self, progress: Progress<'_>) -> Tasks {
        let mut tasks = Tasks::default();
        for (process, number) in self.reader.processes.iter().zip(0u16..) {
            let lanes = self.lanes.iter().enumerate();
            let lanes: Vec<(usize, &Lane)> = lanes.filter(|(_, l)| l.process == number).collect();
            tasks.add(self.is_taskloop(process), process, &lanes, progress);
            progress.steps(lanes.len(), self.lanes.len());
            progress.release();
        }
        tasks
    }

    /// Whether a node is a taskloop's, whose tasks are created all at once and have numbers of those who execute them.
    fn is_taskloop<'t>(&'t self, process: &'t Process<'a>) -> impl Fn(u64) -> bool + Sync + 't {
        let constructs = &self.reader.nodes.construct;
        move |node| {
            let position = process.index.get(node);
            position.is_some_and(|at| constructs[at as usize] == Construct::Taskloop)
        }
    }

    /// What names a task; `None`: it is none, or one of a taskloop, or nobody has asked for tasks ([`Timeline::read_tasks`]).
    pub fn task_name(&self, lane: &Lane, span: &Span<'_>) -> Option<TaskName> {
        let tasks = self.tasks.get()?;
        let node = match span.construct {
            Construct::TaskCreate => span.created,
            Construct::Task => span.node,
            _ => 0,
        };
        let of_process = &tasks.of_process[lane.process as usize];
        if !of_process.tasks.contains(node) {
            return None;
        }
        let thread = u32::try_from((node >> 40).checked_sub(1)?).ok()?;
        Some(TaskName {
            creator: *tasks.lanes.get(&(lane.process, thread))?,
            number: node & ((1 << 40) - 1),
        })
    }

    /// Whether a unit's part is its last one. Of a unit that was not interrupted it is.
    pub fn ends(&self, lane: &Lane, span: &Span<'_>) -> bool {
        let Some((tasks, record)) = self.tasks.get().zip(span.record) else {
            return span.has_end();
        };
        let end = tasks.of_process[lane.process as usize].ends.get(&span.node);
        span.has_end() && end.is_none_or(|&end| end == record.t1)
    }
}

impl Tasks {
    /// Adds the next process.
    fn add(
        &mut self,
        is_taskloop: impl Fn(u64) -> bool + Sync,
        process: &Process<'_>,
        lanes: &[(usize, &Lane)],
        progress: Progress<'_>,
    ) {
        let threads: Vec<OfThread> = (process.threads.par_iter())
            .map(|thread| read(thread, &is_taskloop, progress))
            .collect();
        let expected = lanes.iter().map(|(_, lane)| lane.intervals as usize).sum();
        let mut tasks = NodeSet::new(expected);
        let mut in_parts = vec![];
        let is_whole = threads.iter().all(|thread| thread.is_whole);
        let mut sites = HashSet::new();
        let mut creations = vec![];
        for thread in threads {
            sites.extend(thread.sites);
            creations.push(thread.creations);
            tasks.common(&thread.tasks, |node| in_parts.push(node));
            in_parts.extend(thread.in_parts);
            tasks.absorb(thread.tasks);
        }
        let mut ends: FxHashMap<u64, u64> = in_parts.into_iter().map(|node| (node, 0)).collect();
        if !ends.is_empty() {
            for thread in &process.threads {
                add_ends(thread, &mut ends);
            }
        }
        for &(at, lane) in lanes {
            let of_lane = creations[lane.position].iter();
            let of_tasks = of_lane.filter(|(site, _)| sites.contains(site));
            let number: u64 = of_tasks.map(|(_, number)| number).sum();
            let is_sure =
                is_whole && lane.lost == 0 && tasks.number_of(lane.thread) == Some(number);
            self.is_sure.push(is_sure);
            self.lanes.insert((lane.process, lane.thread), at);
        }
        self.of_process.push(OfProcess { tasks, sites, ends });
    }
}

fn read(
    thread: &Surveyed<'_>,
    is_taskloop: impl Fn(u64) -> bool,
    progress: Progress<'_>,
) -> OfThread {
    let records = thread.file.records();
    let mut of = OfThread {
        tasks: NodeSet::new(records.left() / ompfuse_format::record::Node::LEN),
        in_parts: vec![],
        sites: HashSet::new(),
        creations: FxHashMap::default(),
        is_whole: thread.file.header.lost == 0 && thread.file.header.unrecorded_ticks == 0,
    };
    for (read, record) in (1..).zip(records) {
        if u64::is_multiple_of(read, STRETCH) {
            progress.release();
        }
        match record {
            Ok(Record::Interval(i)) if i.construct == Construct::TaskCreate => {
                *of.creations.entry(i.site).or_default() += 1;
            }
            Ok(Record::Interval(i)) if i.construct == Construct::Task && i.node != 0 => {
                if is_taskloop(i.parent) {
                    continue;
                }
                of.sites.insert(i.site);
                if !of.tasks.insert(i.node) {
                    of.in_parts.push(i.node);
                }
            }
            Ok(Record::LeftOut(_)) | Err(_) => of.is_whole = false,
            Ok(_) => {}
        }
    }
    of
}

fn add_ends(thread: &Surveyed<'_>, ends: &mut FxHashMap<u64, u64>) {
    for record in thread.file.records() {
        if let Ok(Record::Interval(i)) = record
            && i.construct == Construct::Task
            && let Some(end) = ends.get_mut(&i.node)
        {
            *end = i.t1.max(*end);
        }
    }
}

/// The tasks of a thread's creations, one after the other.
#[derive(Debug)]
pub(super) struct Creations {
    lane: usize,
    /// The last one.
    node: u64,
}

impl Creations {
    pub(super) fn of(lane: usize) -> Creations {
        Creations { lane, node: 0 }
    }

    /// The node of the next one, which is on record at this place; 0: not known.
    pub(super) fn next(&mut self, tasks: Option<&Tasks>, lane: &Lane, site: u32) -> u64 {
        let Some(tasks) = tasks.filter(|tasks| tasks.is_sure[self.lane]) else {
            return 0;
        };
        let of_process = &tasks.of_process[lane.process as usize];
        if !of_process.sites.contains(&site) {
            return 0;
        }
        let next = of_process.tasks.after(lane.thread, self.node);
        self.node = next.unwrap_or(self.node);
        next.unwrap_or(0)
    }
}

impl Span<'_> {
    /// Whether it is the execution of a task, or a part of that.
    pub fn is_task(&self) -> bool {
        self.kind == Kind::Interval && self.construct == Construct::Task
    }
}
