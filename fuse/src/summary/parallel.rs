//! Parallel regions instance by instance: fork, implicit tasks, join (ompP's sub-regions; reference/ompp_report.md).

use super::collect::length;
use super::{ParallelStat, WorkerWaits};
use crate::run::{NONE, Run};
use ompfuse_format::Construct;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Nanoseconds inside parallel regions that are in no other one on record; where several root threads' regions overlap,
/// counted once.
pub(super) fn parallel_ns(run: &Run) -> u64 {
    let rows = &run.intervals;
    let forks = || (0..rows.len()).filter(|&row| rows.construct[row].is_fork());
    let recorded: HashSet<u32> = forks().map(|row| rows.node[row]).collect();
    let is_outermost = |row: &usize| {
        let above = |&node: &u32| Some(enclosing(run, run.nodes.parent[node as usize]));
        let around = std::iter::successors(Some(enclosing(run, rows.parent[*row])), |node| {
            Some(node).filter(|&&n| n != NONE).and_then(above)
        });
        // Those that were switched off have a node and no interval. Damaged nodes may be their own parents.
        let mut around = around.take(MOST_LEVELS).take_while(|&node| node != NONE);
        !around.any(|node| recorded.contains(&node))
    };
    let mut outermost: Vec<(i64, i64)> = forks()
        .filter(is_outermost)
        .map(|row| (rows.t0_ns[row], rows.t1_ns[row]))
        .collect();
    union_ns(&mut outermost)
}

/// Length of the union of spans.
pub(super) fn union_ns(spans: &mut [(i64, i64)]) -> u64 {
    spans.sort_unstable();
    let (mut covered, mut until) = (0, i64::MIN);
    for &(begin, end) in spans.iter() {
        covered += length(begin.max(until), end);
        until = until.max(end);
    }
    covered
}

/// Parallel regions inside each other that are looked at.
const MOST_LEVELS: usize = 1000;

/// Innermost parallel region's node around a node, itself included.
fn enclosing(run: &Run, node: u32) -> u32 {
    run.nodes
        .parallel
        .get(node as usize)
        .copied()
        .unwrap_or(NONE)
}

/// One execution of a parallel region.
#[derive(Debug, Default)]
pub(super) struct Instance {
    pub(super) fork: i64,
    pub(super) join: i64,
    pub(super) team: u64,
    pub(super) nested: bool,
    pub(super) site: u32,
    /// The encountering thread.
    pub(super) master: ThreadKey,
    /// End of the last implicit task or of what was executed after it.
    pub(super) last: i64,
    /// Parts that were recorded; a thread's are one in `parts`.
    pub(super) members: u64,
    pub(super) parts: Vec<Part>,
}

/// Process, and number of the thread in it.
pub(super) type ThreadKey = (u16, u32);

/// One thread's part of an instance.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) thread: ThreadKey,
    pub(super) begin: i64,
    pub(super) end: i64,
    /// Exclusive time of what the thread executed for the region after its end (tasks in the last barrier).
    pub(super) tail_ns: u64,
}

/// All executions of a run.
pub(super) struct Instances {
    by_node: HashMap<u32, Instance>,
    /// Those without a node of their own.
    without_node: Vec<Instance>,
    /// Where each thread's part of each instance is in the instance's list.
    place: HashMap<(u32, ThreadKey), usize>,
}

impl Instances {
    /// Sums per parallel region. `run`: it, or the part of it that they were made of.
    pub(super) fn into_stats(self, run: &Run) -> Vec<ParallelStat> {
        let Instances {
            by_node,
            without_node,
            ..
        } = self;
        let number: HashMap<ThreadKey, u32> = (0..)
            .zip(&run.threads)
            .map(|(at, t)| ((t.process, t.index), at))
            .collect();
        let outermost = outermost(run);
        let mut stats: BTreeMap<u32, Executions> = BTreeMap::new();
        for instance in by_node.into_values().chain(without_node) {
            let (stat, workers) = stats.entry(instance.site).or_default();
            stat.add(&instance);
            for part in instance
                .parts
                .iter()
                .filter(|p| p.thread != instance.master)
            {
                if let (Some(&span), Some(&at)) =
                    (outermost.get(&part.thread), number.get(&part.thread))
                {
                    *workers.entry(at).or_default() += part.waiting(&instance, span);
                }
            }
        }
        in_order(stats, run)
    }
}

/// Sums over the executions of a region, and by thread the time in which workers did nothing for it.
pub(super) type Executions = (ParallelStat, BTreeMap<u32, u64>);

/// The regions' sums, which are by position in the sites, with what threads executed behind their parts and did not record.
pub(super) fn in_order(mut stats: BTreeMap<u32, Executions>, run: &Run) -> Vec<ParallelStat> {
    let number: HashMap<ThreadKey, u32> = (0..)
        .zip(&run.threads)
        .map(|(at, t)| ((t.process, t.index), at))
        .collect();
    for left in &run.left_behind {
        let Some((stat, workers)) = stats.get_mut(&left.parallel) else {
            continue;
        };
        stat.left_behind_ns += left.own_ns;
        let at = number.get(&(left.process, left.thread));
        if let Some(waited) = at.and_then(|at| workers.get_mut(at)) {
            *waited = waited.saturating_sub(left.own_ns);
        }
    }
    let stat = |(site, (stat, workers)): (u32, Executions)| {
        let (thread, ns) = workers.into_iter().unzip();
        ParallelStat {
            site: (site != NONE).then_some(site),
            workers: WorkerWaits { thread, ns },
            ..stat
        }
    };
    stats.into_iter().map(stat).collect()
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

impl Instances {
    /// From a run's forks, and their parts.
    pub(super) fn of(run: &Run) -> Instances {
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
                site: rows.site[row],
                master: (rows.process[row], rows.thread[row]),
                last: i64::MIN,
                parts: vec![],
            };
            match rows.node[row] {
                NONE => without_node.push(instance),
                node => drop(instances.insert(node, instance)),
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
                instance.parts.push(Part {
                    thread,
                    begin,
                    end,
                    tail_ns: 0,
                });
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
    pub(super) fn has(&self, node: u32) -> bool {
        self.by_node.contains_key(&node)
    }

    /// Takes over what was executed in them: of the run, or of parts of it, one after the other.
    pub(super) fn add(&mut self, run: &Run) {
        let Instances {
            by_node: instances,
            place,
            ..
        } = self;
        let rows = &run.intervals;
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
                part.tail_ns += own_ns;
                instance.last = instance.last.max(end);
            }
        };
        let xus = &run.xus;
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
        let inside = |c: Construct| {
            !matches!(
                c,
                Construct::ImplicitTask
                    | Construct::Team
                    | Construct::Parallel
                    | Construct::Teams
                    | Construct::Program
            )
        };
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

/// A thread that waits so many times as long as it has done something before has done nothing worth the name.
const IDLE: u64 = 10;

impl Part {
    /// Nanoseconds from fork to join in which the thread, a worker, does nothing for the region. `span`: begin and end of
    /// its recording; what is outside is in no account.
    pub(super) fn waiting(&self, instance: &Instance, (first, last): (i64, i64)) -> u64 {
        let before = length(instance.fork.max(first), self.begin);
        let after = length(self.end, instance.join.min(last));
        before + after.saturating_sub(self.tail_ns)
    }
}

impl ParallelStat {
    /// Takes over the sums of other executions.
    pub(super) fn merge(&mut self, other: &ParallelStat) {
        self.executions += other.executions;
        self.nested += other.nested;
        self.measured += other.measured;
        self.wall_ns += other.wall_ns;
        self.team_ns += other.team_ns;
        self.team = self.team.max(other.team);
        self.startup_ns += other.startup_ns;
        self.shutdown_ns += other.shutdown_ns;
        self.imbalance_ns += other.imbalance_ns;
        self.limited_ns += other.limited_ns;
    }

    pub(super) fn add(&mut self, instance: &Instance) {
        let wall = length(instance.fork, instance.join);
        self.executions += 1;
        self.nested += u64::from(instance.nested);
        self.wall_ns += wall;
        // A league whose teams take turns binds fewer threads than it has teams.
        let is_complete = instance.members > 0 && instance.members >= instance.team;
        let threads = if is_complete {
            instance.parts.len() as u64
        } else {
            instance.team
        };
        self.team_ns += wall * threads.clamp(1, 1 << 20);
        self.team = self.team.max(instance.team);
        if !is_complete {
            return;
        }
        self.measured += 1;
        let last = instance.last.min(instance.join);
        let (mut limited, mut busy) = (0, 0);
        for part in &instance.parts {
            let waited = length(part.end, last).saturating_sub(part.tail_ns);
            let done = length(part.begin, part.end) + part.tail_ns;
            match done.saturating_mul(IDLE) <= waited {
                true => limited += waited,
                false => busy += 1,
            }
            self.startup_ns += length(instance.fork, part.begin);
            self.imbalance_ns += waited;
            self.shutdown_ns += length(last, instance.join);
        }
        if busy == 1 {
            self.limited_ns += limited;
        }
    }
}
