//! Parallel regions instance by instance: fork, implicit tasks, join (ompP's sub-regions; reference/ompp_report.md).

use super::ParallelStat;
use super::collect::length;
use crate::run::{NONE, Run};
use ompfuse_format::Construct;
use std::collections::{BTreeMap, HashMap};

/// Nanoseconds inside outermost parallel regions; where several root threads' regions overlap, counted once.
pub(super) fn parallel_ns(run: &Run) -> u64 {
    let rows = &run.intervals;
    let mut outermost: Vec<(i64, i64)> = (0..rows.len())
        .filter(|&row| {
            rows.construct[row] == Construct::Parallel && enclosing(run, rows.parent[row]) == NONE
        })
        .map(|row| (rows.t0_ns[row], rows.t1_ns[row]))
        .collect();
    outermost.sort_unstable();
    let (mut covered, mut until) = (0, i64::MIN);
    for (begin, end) in outermost {
        covered += length(begin.max(until), end);
        until = until.max(end);
    }
    covered
}

/// Innermost parallel region's node around a node, itself included.
fn enclosing(run: &Run, node: u32) -> u32 {
    run.nodes
        .parallel
        .get(node as usize)
        .copied()
        .unwrap_or(NONE)
}

/// One execution of a parallel region.
struct Instance {
    fork: i64,
    join: i64,
    team: u64,
    nested: bool,
    site: u32,
    /// End of the last implicit task or of what was executed after it.
    last: i64,
    /// Per implicit task: process and thread, begin, end, and time at work after its end.
    tasks: Vec<(i64, i64, u64)>,
}

/// Sums per parallel region.
pub(super) fn parallel_stats(run: &Run) -> Vec<ParallelStat> {
    let rows = &run.intervals;
    let mut instances: HashMap<u32, Instance> = HashMap::new();
    let mut without_node = vec![];
    for row in (0..rows.len()).filter(|&row| rows.construct[row] == Construct::Parallel) {
        let instance = Instance {
            fork: rows.t0_ns[row],
            join: rows.t1_ns[row],
            team: rows.extent[row],
            nested: enclosing(run, rows.parent[row]) != NONE,
            site: rows.site[row],
            last: i64::MIN,
            tasks: vec![],
        };
        match rows.node[row] {
            NONE => without_node.push(instance),
            node => drop(instances.insert(node, instance)),
        }
    }
    // Where each thread's implicit task of each instance is in the instance's list.
    let mut place: HashMap<(u32, u16, u32), usize> = HashMap::new();
    for row in (0..rows.len()).filter(|&row| rows.construct[row] == Construct::ImplicitTask) {
        let node = enclosing(run, rows.parent[row]);
        if let Some(instance) = instances.get_mut(&node) {
            place.insert(
                (node, rows.process[row], rows.thread[row]),
                instance.tasks.len(),
            );
            instance.tasks.push((rows.t0_ns[row], rows.t1_ns[row], 0));
            instance.last = instance.last.max(rows.t1_ns[row]);
        }
    }
    let mut tail = |parent: u32, process: u16, thread: u32, t0: i64, t1: i64, own_ns: u64| {
        let node = enclosing(run, parent);
        let Some(&at) = place.get(&(node, process, thread)) else {
            return;
        };
        let Some(instance) = instances.get_mut(&node) else {
            return;
        };
        let task = &mut instance.tasks[at];
        if t0 >= task.1 && t1 <= instance.join {
            task.2 += own_ns;
            instance.last = instance.last.max(t1);
        }
    };
    let xus = &run.xus;
    for row in (0..xus.len()).filter(|&row| xus.construct[row] == Some(Construct::Task)) {
        let (process, thread) = (xus.process[row], xus.thread[row]);
        tail(
            run.xu_parent[row],
            process,
            thread,
            xus.t0_ns[row],
            xus.t1_ns[row],
            xus.own_ns[row],
        );
    }
    for row in 0..rows.len() {
        if !matches!(
            rows.construct[row],
            Construct::ImplicitTask | Construct::Parallel | Construct::Program
        ) {
            let (process, thread) = (rows.process[row], rows.thread[row]);
            tail(
                rows.parent[row],
                process,
                thread,
                rows.t0_ns[row],
                rows.t1_ns[row],
                rows.own_ns[row],
            );
        }
    }
    let mut stats: BTreeMap<u32, ParallelStat> = BTreeMap::new();
    for instance in instances.into_values().chain(without_node) {
        let site = (instance.site != NONE).then_some(instance.site);
        let stat = stats.entry(instance.site).or_insert_with(|| ParallelStat {
            site,
            ..ParallelStat::default()
        });
        stat.add(&instance);
    }
    stats.into_values().collect()
}

impl ParallelStat {
    fn add(&mut self, instance: &Instance) {
        let wall = length(instance.fork, instance.join);
        self.executions += 1;
        self.nested += u64::from(instance.nested);
        self.wall_ns += wall;
        self.team_ns += wall * instance.team.clamp(1, 1 << 20);
        self.team = self.team.max(instance.team);
        if instance.tasks.is_empty() || (instance.tasks.len() as u64) < instance.team {
            return;
        }
        self.measured += 1;
        let last = instance.last.min(instance.join);
        for &(begin, end, tail) in &instance.tasks {
            self.startup_ns += length(instance.fork, begin);
            self.imbalance_ns += length(end, last).saturating_sub(tail);
            self.shutdown_ns += length(last, instance.join);
        }
    }
}
