//! The executions of a run, one by one, from its forks and their parts.

use super::{Executions, Instance, Part, ThreadKey, enclosing, is_busy};
use crate::account::Peak;
use crate::run::{NONE, Run};
use crate::summary::growth::Around;
use crate::summary::tree::{Paths, Step};
use ompfuse_format::Construct;
use std::collections::{BTreeMap, HashMap};

/// All executions of a run.
pub(in crate::summary) struct Instances {
    by_node: HashMap<u32, Instance>,
    /// Those without a node of their own.
    without_node: Vec<Instance>,
    /// Where each thread's part of each instance is in the instance's list.
    place: HashMap<(u32, ThreadKey), usize>,
}

impl Instances {
    /// Sums by path. `run`: it, or the part of it that they were made of.
    pub(in crate::summary) fn into_stats(self, run: &Run) -> BTreeMap<u32, Executions> {
        let Instances {
            by_node,
            without_node,
            ..
        } = self;
        let number = numbers(run);
        let outermost = outermost(run);
        let mut stats: BTreeMap<u32, Executions> = BTreeMap::new();
        for instance in by_node.into_values().chain(without_node) {
            let of_path = stats.entry(instance.path).or_default();
            of_path.add(&instance, |thread| {
                let at = number.get(&thread)?;
                Some((*at, outermost.get(&thread).copied()))
            });
            if instance.is_alone() && !instance.has_inside {
                let busy = instance.parts.iter().map(|p| p.busy_ns).max();
                of_path.add_busiest(&instance, busy.unwrap_or(0));
            }
        }
        stats
    }

    /// By process the most threads in teams and roots at once.
    pub(in crate::summary) fn peaks(&self, run: &Run) -> Vec<u64> {
        let mut spans: Vec<Vec<(i64, i64, u64)>> = vec![vec![]; run.processes.len()];
        let all = self.by_node.values().chain(&self.without_node);
        for i in all {
            if let Some(of_process) = spans.get_mut(i.master.0 as usize) {
                of_process.push((i.join, i.fork, i.threads() - 1));
            }
        }
        let outermost = outermost(run);
        for thread in run.threads.iter().filter(|t| t.root) {
            let process = thread.process as usize;
            let (Some(of_process), Some(info)) =
                (spans.get_mut(process), run.processes.get(process))
            else {
                continue;
            };
            let known = outermost.get(&(thread.process, thread.index)).copied();
            let (begin, end) = known.unwrap_or((info.begin_ns, info.end_ns));
            of_process.push((end, begin, 1));
        }
        let peak = |mut spans: Vec<(i64, i64, u64)>| {
            spans.sort_unstable();
            let mut peak = Peak::default();
            spans
                .iter()
                .for_each(|&(end, begin, more)| peak.add(begin, end, more));
            peak.most()
        };
        spans.into_iter().map(peak).collect()
    }
}

/// Begin and end of each thread's own code: where workers wait, as far as it was recorded.
fn outermost(run: &Run) -> HashMap<ThreadKey, (i64, i64)> {
    let rows = &run.intervals;
    (0..rows.len())
        .filter(|&row| rows.construct[row] == Construct::Program)
        .map(|row| {
            (
                (rows.process[row], rows.thread[row]),
                (rows.t0_ns[row], rows.t1_ns[row]),
            )
        })
        .collect()
}

/// What a run's threads do around their parts of parallel regions.
pub(in crate::summary) fn arounds(run: &Run, mut tell: impl FnMut(Around)) {
    let mut instances = Instances::of(run, |_| Paths::ROOT, &mut Paths::default());
    instances.add(run);
    let outermost = outermost(run);
    let all = instances.by_node.values().chain(&instances.without_node);
    for instance in all {
        instance.around(|thread| outermost.get(&thread).copied(), &mut tell);
    }
}

impl Instances {
    /// From a run's forks, and their parts. `path_of`: of a node that there may be.
    pub(in crate::summary) fn of(
        run: &Run,
        path_of: impl Fn(u32) -> u32,
        paths: &mut Paths,
    ) -> Instances {
        let rows = &run.intervals;
        let of =
            |is: fn(Construct) -> bool| (0..rows.len()).filter(move |&row| is(rows.construct[row]));
        let mut instances: HashMap<u32, Instance> = HashMap::new();
        let mut without_node = vec![];
        for row in of(Construct::is_fork) {
            let around = enclosing(run, rows.parent[row]);
            let instance = Instance {
                fork: rows.t0_ns[row],
                join: rows.t1_ns[row],
                team: rows.extent[row],
                // A region in a team of a league is not nested in another one.
                nested: around != NONE
                    && run.nodes.construct[around as usize] == Construct::Parallel,
                members: 0,
                has_inside: false,
                site: rows.site[row],
                path: match rows.node[row] {
                    NONE => paths.step(
                        path_of(rows.parent[row]),
                        Step::of(rows.construct[row], rows.site[row], 0),
                    ),
                    node => path_of(node),
                },
                master: (rows.process[row], rows.thread[row]),
                last: i64::MIN,
                parts: vec![],
            };
            match rows.node[row] {
                NONE => without_node.push(instance),
                node => drop(instances.insert(node, instance)),
            }
        }
        for row in of(Construct::is_fork) {
            let around = enclosing(run, rows.parent[row]);
            if let Some(instance) = instances.get_mut(&around) {
                instance.has_inside = true;
            }
        }
        let mut place: HashMap<(u32, ThreadKey), usize> = HashMap::new();
        for row in of(Construct::is_part) {
            let node = enclosing(run, rows.parent[row]);
            if let Some(instance) = instances.get_mut(&node) {
                let thread = (rows.process[row], rows.thread[row]);
                let (begin, end) = (rows.t0_ns[row], rows.t1_ns[row]);
                instance.members += 1;
                if let Some(&at) = place.get(&(node, thread)) {
                    // One thread may execute several teams of a league, one after the other.
                    let part = &mut instance.parts[at];
                    (part.begin, part.end) = (part.begin.min(begin), part.end.max(end));
                    instance.last = instance.last.max(end);
                    continue;
                }
                place.insert((node, thread), instance.parts.len());
                instance.parts.push(Part::new(thread, begin, end));
                instance.last = instance.last.max(end);
            }
        }
        Instances {
            by_node: instances,
            without_node,
            place,
        }
    }

    /// Whether the execution of a parallel region that a node stands for is on record: one that is switched off or left out
    /// still is a parent of what was recorded in it.
    pub(in crate::summary) fn has(&self, node: u32) -> bool {
        self.by_node.contains_key(&node)
    }

    /// Takes over what was executed in them: of the run, or of parts of it, one after the other.
    pub(in crate::summary) fn add(&mut self, run: &Run) {
        let Instances {
            by_node: instances,
            place,
            ..
        } = self;
        let rows = &run.intervals;
        let xus = &run.xus;
        for row in (0..xus.len()).filter(|&row| xus.construct[row].is_some_and(is_busy)) {
            let thread = (xus.process[row], xus.thread[row]);
            let node = enclosing(run, run.xu_parent[row]);
            if let Some(&at) = place.get(&(node, thread))
                && let Some(instance) = instances.get_mut(&node)
            {
                add(&mut instance.parts[at].busy_ns, xus.own_ns[row]);
            }
        }
        for row in (0..rows.len()).filter(|&row| is_busy(rows.construct[row])) {
            let thread = (rows.process[row], rows.thread[row]);
            let node = enclosing(run, rows.parent[row]);
            if let Some(&at) = place.get(&(node, thread))
                && let Some(instance) = instances.get_mut(&node)
            {
                add(&mut instance.parts[at].busy_ns, rows.own_ns[row]);
            }
        }
        let mut executed = |parent: u32, thread: ThreadKey, begin: i64, end: i64, own_ns: u64| {
            let node = enclosing(run, parent);
            let Some(&at) = place.get(&(node, thread)) else {
                return;
            };
            let Some(instance) = instances.get_mut(&node) else {
                return;
            };
            let part = &mut instance.parts[at];
            if begin >= part.end && end <= instance.join {
                add(&mut part.tail_ns, own_ns);
                instance.last = instance.last.max(end);
            }
        };
        for row in (0..xus.len()).filter(|&row| xus.construct[row] == Some(Construct::Task)) {
            let thread = (xus.process[row], xus.thread[row]);
            executed(
                run.xu_parent[row],
                thread,
                xus.t0_ns[row],
                xus.t1_ns[row],
                xus.own_ns[row],
            );
        }
        let inside = |c: Construct| !(c.is_part() || c.is_fork() || c == Construct::Program);
        for row in (0..rows.len()).filter(|&row| inside(rows.construct[row])) {
            let thread = (rows.process[row], rows.thread[row]);
            executed(
                rows.parent[row],
                thread,
                rows.t0_ns[row],
                rows.t1_ns[row],
                rows.own_ns[row],
            );
        }
    }
}

/// Adds times, which may be anything in damaged records.
fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

/// By process and number of a thread its position in the run's threads.
pub(super) fn numbers(run: &Run) -> HashMap<ThreadKey, u32> {
    let threads = (0..).zip(&run.threads);
    threads.map(|(at, t)| ((t.process, t.index), at)).collect()
}
