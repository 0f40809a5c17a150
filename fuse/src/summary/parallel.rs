//! Parallel regions instance by instance: fork, implicit tasks, join (ompP calls them sub-regions; docs/reference/ompp.md).

use super::collect::length;
use super::growth::{Around, AroundKind};
use super::tree::{Paths, Step};
use super::{ParallelStat, TeamColumns, WorkerWaits};
use crate::account::Peak;
use crate::run::{NONE, Run};
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_format::record::sums::{self, execution, member};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Nanoseconds inside parallel regions that are in no other one on record; where several root threads' regions overlap,
/// counted once.
pub(super) fn parallel_ns(run: &Run) -> u64 {
    let mut all: Vec<(i64, i64)> = outermost_regions(run).map(|(_, span)| span).collect();
    union_ns(&mut all)
}

/// The same by process.
pub(super) fn by_process(run: &Run) -> Vec<u64> {
    let mut spans: Vec<Vec<(i64, i64)>> = vec![vec![]; run.processes.len()];
    for (process, span) in outermost_regions(run) {
        if let Some(of_process) = spans.get_mut(process as usize) {
            of_process.push(span);
        }
    }
    spans.iter_mut().map(|spans| union_ns(spans)).collect()
}

/// Process, begin and end of the regions that are in no other one on record.
fn outermost_regions(run: &Run) -> impl Iterator<Item = (u16, (i64, i64))> + '_ {
    let rows = &run.intervals;
    let forks = move || (0..rows.len()).filter(|&row| rows.construct[row].is_fork());
    let recorded: HashSet<u32> = forks().map(|row| rows.node[row]).collect();
    let is_outermost = move |row: &usize| {
        let above = |&node: &u32| Some(enclosing(run, run.nodes.parent[node as usize]));
        let around = std::iter::successors(Some(enclosing(run, rows.parent[*row])), |node| {
            Some(node).filter(|&&n| n != NONE).and_then(above)
        });
        // Those that were switched off have a node and no interval. Damaged nodes may be their own parents.
        let mut around = around.take(MOST_LEVELS).take_while(|&node| node != NONE);
        !around.any(|node| recorded.contains(&node))
    };
    forks()
        .filter(is_outermost)
        .map(|row| (rows.process[row], (rows.t0_ns[row], rows.t1_ns[row])))
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
    /// See [`Paths`].
    pub(super) path: u32,
    /// The encountering thread.
    pub(super) master: ThreadKey,
    /// End of the last implicit task or of what was executed after it.
    pub(super) last: i64,
    /// Another region was executed in it.
    pub(super) has_inside: bool,
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
    /// Own time of the program's code in it, where that is summed up by execution.
    pub(super) busy_ns: u64,
}

impl Part {
    /// From begin to end.
    pub(super) fn new(thread: ThreadKey, begin: i64, end: i64) -> Part {
        Part {
            thread,
            begin,
            end,
            tail_ns: 0,
            busy_ns: 0,
        }
    }
}

/// Whether a kind's own time is the program's code, calls of other libraries included.
pub(super) fn is_busy(construct: Construct) -> bool {
    construct.charges_to() == Charge::Work || construct.is_call()
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
    /// Sums by path. `run`: it, or the part of it that they were made of.
    pub(super) fn into_stats(self, run: &Run) -> BTreeMap<u32, Executions> {
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
}

impl Instances {
    /// By process the most threads in teams and roots at once.
    pub(super) fn peaks(&self, run: &Run) -> Vec<u64> {
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

/// By process and number of a thread its position in the run's threads.
fn numbers(run: &Run) -> HashMap<ThreadKey, u32> {
    let threads = (0..).zip(&run.threads);
    threads.map(|(at, t)| ((t.process, t.index), at)).collect()
}

/// Sums over executions of a region.
#[derive(Debug, Clone, Default)]
pub(super) struct Executions {
    stat: ParallelStat,
    threads: BTreeMap<u32, OfThread>,
}

/// What a thread did in them.
#[derive(Debug, Clone, Default)]
struct OfThread {
    /// Time in which it did nothing for them, if it was a worker and its begin and end are known.
    waited: Option<u64>,
    count: u64,
    measured: u64,
    startup: u64,
    body: u64,
    barrier: u64,
    task: u64,
    shutdown: u64,
}

impl Executions {
    /// Over all of them.
    pub(super) fn stat(&self) -> &ParallelStat {
        &self.stat
    }

    /// One more. `known`: of a thread its number, and its begin and end as far as they are known.
    pub(super) fn add(
        &mut self,
        instance: &Instance,
        known: impl Fn(ThreadKey) -> Option<(u32, Option<(i64, i64)>)>,
    ) {
        let is_complete = self.stat.add(instance);
        for part in &instance.parts {
            let Some((thread, span)) = known(part.thread) else {
                continue;
            };
            let of_thread = self.threads.entry(thread).or_default();
            of_thread.add(instance, part, is_complete);
            if let Some(span) = span.filter(|_| part.thread != instance.master) {
                *of_thread.waited.get_or_insert(0) += part.waiting(instance, span);
            }
        }
    }

    /// How long the busiest thread of an execution, which is on record already, has worked.
    pub(super) fn add_busiest(&mut self, instance: &Instance, busy_ns: u64) {
        let least_idle = length(instance.fork, instance.join).saturating_sub(busy_ns);
        self.stat.least_idle_of += 1;
        self.stat.least_idle_ns += least_idle * instance.threads();
    }

    /// Takes over what the threads have summed up themselves. `ns`: of a sum of ticks.
    pub(super) fn add_sums(&mut self, e: &sums::Executions<'_>, ns: impl Fn(u64) -> u64) {
        let (stat, ns) = (&mut self.stat, |at: usize| ns(e.sum(at)));
        stat.executions += e.sum(execution::COUNT);
        stat.nested += e.sum(execution::NESTED);
        stat.measured += e.sum(execution::MEASURED);
        stat.wall_ns += ns(execution::WALL);
        stat.team_ns += ns(execution::TEAM_TICKS);
        stat.team = stat.team.max(e.sum(execution::TEAM));
        stat.startup_ns += ns(execution::STARTUP);
        stat.shutdown_ns += ns(execution::SHUTDOWN);
        stat.imbalance_ns += ns(execution::IMBALANCE);
        stat.limited_ns += ns(execution::LIMITED);
    }

    /// The same of one thread, by its number. `ended`: its last tick, 0 if that isn't known.
    pub(super) fn add_member(
        &mut self,
        thread: u32,
        m: &sums::Member<'_>,
        ended: u64,
        ns: impl Fn(u64) -> u64,
    ) {
        let of_thread = self.threads.entry(thread).or_default();
        if m.sum(member::WORKED) > 0 {
            // What came behind the thread's end is in no account of it.
            let end = ended.max(m.sum(member::LAST_END));
            let missing = match ended {
                0 => 0, // not known
                _ => m.sum(member::LAST_JOIN).saturating_sub(end),
            };
            let waited = m.sum(member::WAITED).saturating_sub(missing);
            *of_thread.waited.get_or_insert(0) += ns(waited);
        }
        let ns = |at| ns(m.sum(at));
        of_thread.count += m.sum(member::COUNT);
        of_thread.measured += m.sum(member::MEASURED);
        of_thread.startup += ns(member::STARTUP);
        of_thread.body += ns(member::BODY);
        of_thread.barrier += ns(member::BARRIER);
        of_thread.task += ns(member::TASK);
        of_thread.shutdown += ns(member::SHUTDOWN);
    }

    /// Takes over those of a process whose threads begin with `first`.
    pub(super) fn merge(&mut self, other: &Executions, first: u32) {
        self.stat.merge(&other.stat);
        for (thread, theirs) in &other.threads {
            let ours = self.threads.entry(first + thread).or_default();
            if let Some(waited) = theirs.waited {
                *ours.waited.get_or_insert(0) += waited;
            }
            ours.count += theirs.count;
            ours.measured += theirs.measured;
            ours.startup += theirs.startup;
            ours.body += theirs.body;
            ours.barrier += theirs.barrier;
            ours.task += theirs.task;
            ours.shutdown += theirs.shutdown;
        }
    }

    /// The sums. `site`: a position, or [`NONE`].
    fn into_stat(self, site: u32) -> ParallelStat {
        let waits = self.threads.iter();
        let waits = waits.filter_map(|(&thread, t)| Some((thread, t.waited?)));
        let (thread, ns) = waits.unzip();
        let column = |of: fn(&OfThread) -> u64| self.threads.values().map(of).collect();
        ParallelStat {
            site: (site != NONE).then_some(site),
            workers: WorkerWaits { thread, ns },
            team_parts: TeamColumns {
                thread: self.threads.keys().copied().collect(),
                count: column(|t| t.count),
                measured: column(|t| t.measured),
                startup_ns: column(|t| t.startup),
                body_ns: column(|t| t.body),
                barrier_ns: column(|t| t.barrier),
                task_ns: column(|t| t.task),
                shutdown_ns: column(|t| t.shutdown),
            },
            ..self.stat
        }
    }
}

impl OfThread {
    /// A part of an execution. Between fork and join no moment is counted twice or not at all.
    fn add(&mut self, instance: &Instance, part: &Part, is_complete: bool) {
        let (fork, join) = (instance.fork, instance.join.max(instance.fork));
        let begin = part.begin.clamp(fork, join);
        let end = part.end.clamp(begin, join);
        self.count += 1;
        self.startup += length(fork, begin);
        self.body += length(begin, end);
        if is_complete {
            let last = instance.last.clamp(end, join);
            let task = part.tail_ns.min(length(end, last));
            self.measured += 1;
            self.task += task;
            self.barrier += length(end, last) - task;
            self.shutdown += length(last, join);
        }
    }
}

/// Sums by position in the sites, in order, and by path, with what threads executed behind their parts and did not record.
/// `site_of`: of a path.
pub(super) fn in_order(
    mut stats: BTreeMap<u32, Executions>,
    site_of: impl Fn(u32) -> u32,
    run: &Run,
) -> (Vec<ParallelStat>, HashMap<u32, ParallelStat>) {
    let number = numbers(run);
    let mut paths: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &path in stats.keys() {
        paths.entry(site_of(path)).or_default().push(path);
    }
    for left in &run.left_behind {
        let Some(paths) = paths.get(&left.parallel) else {
            continue;
        };
        // On which of several paths it was is not known.
        let mut rest = left.own_ns;
        for (at, path) in paths.iter().enumerate() {
            let Some(of_path) = stats.get_mut(path) else {
                continue;
            };
            of_path.stat.left_behind_ns += if at == 0 { left.own_ns } else { 0 };
            let thread = number.get(&(left.process, left.thread));
            let of_thread = thread.and_then(|at| of_path.threads.get_mut(at));
            if let Some(waited) = of_thread.and_then(|t| t.waited.as_mut()) {
                let taken = rest.min(*waited);
                *waited -= taken;
                rest -= taken;
            }
        }
    }
    let flat = |(site, paths): (u32, Vec<u32>)| {
        let mut all = Executions::default();
        for path in paths {
            all.merge(&stats[&path], 0);
        }
        all.into_stat(site)
    };
    let flat = paths.into_iter().map(flat).collect();
    let by_path = stats.into_iter();
    let by_path = by_path.map(|(path, stat)| (path, stat.into_stat(site_of(path))));
    (flat, by_path.collect())
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
pub(super) fn arounds(run: &Run, mut tell: impl FnMut(Around)) {
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
    pub(super) fn of(run: &Run, path_of: impl Fn(u32) -> u32, paths: &mut Paths) -> Instances {
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
        let xus = &run.xus;
        for row in (0..xus.len()).filter(|&row| xus.construct[row].is_some_and(is_busy)) {
            let thread = (xus.process[row], xus.thread[row]);
            let node = enclosing(run, run.xu_parent[row]);
            if let Some(&at) = place.get(&(node, thread))
                && let Some(instance) = instances.get_mut(&node)
            {
                instance.parts[at].busy_ns += xus.own_ns[row];
            }
        }
        for row in (0..rows.len()).filter(|&row| is_busy(rows.construct[row])) {
            let thread = (rows.process[row], rows.thread[row]);
            let node = enclosing(run, rows.parent[row]);
            if let Some(&at) = place.get(&(node, thread))
                && let Some(instance) = instances.get_mut(&node)
            {
                instance.parts[at].busy_ns += rows.own_ns[row];
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
                part.tail_ns += own_ns;
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

impl Instance {
    /// Whether all of its parts are on record.
    fn is_complete(&self) -> bool {
        self.members > 0 && self.members >= self.team
    }

    /// Whether it is outermost, and all of its parts are on record.
    pub(super) fn is_alone(&self) -> bool {
        self.is_complete() && !self.nested
    }

    /// Threads that it binds: a league whose teams take turns binds fewer than it has teams.
    pub(super) fn threads(&self) -> u64 {
        let threads = match self.is_complete() {
            true => self.parts.len() as u64,
            false => self.team,
        };
        threads.clamp(1, 1 << 20)
    }

    /// What its threads do around their parts, with the times that they do it in: the parts of a [`ParallelStat`]'s sums. `span`: a
    /// thread's begin and end, if they are known.
    pub(super) fn around(
        &self,
        span: impl Fn(ThreadKey) -> Option<(i64, i64)>,
        mut tell: impl FnMut(Around),
    ) {
        let mut put = |kind, span: (i64, i64), ns| {
            let site = self.site;
            tell(Around {
                site,
                kind,
                span,
                ns,
            });
        };
        for part in self.parts.iter().filter(|p| p.thread != self.master) {
            let Some((first, last)) = span(part.thread) else {
                continue;
            };
            let before = (self.fork.max(first), part.begin);
            put(AroundKind::Workers, before, length(before.0, before.1));
            let after = (part.end, self.join.min(last));
            let ns = length(after.0, after.1).saturating_sub(part.tail_ns);
            put(AroundKind::Workers, after, ns);
        }
        if self.members == 0 || self.members < self.team {
            return;
        }
        let last = self.last.min(self.join);
        let waited = |p: &Part| length(p.end, last).saturating_sub(p.tail_ns);
        let is_idle = |p: &Part| {
            let done = length(p.begin, p.end) + p.tail_ns;
            done.saturating_mul(IDLE) <= waited(p)
        };
        let one_works = self.parts.iter().filter(|p| !is_idle(p)).count() == 1;
        for part in &self.parts {
            let kind = match one_works && is_idle(part) {
                true => AroundKind::Limited,
                false => AroundKind::Imbalance,
            };
            put(
                AroundKind::Startup,
                (self.fork, part.begin),
                length(self.fork, part.begin),
            );
            put(kind, (part.end, last), waited(part));
            put(
                AroundKind::Shutdown,
                (last, self.join),
                length(last, self.join),
            );
        }
    }
}

impl ParallelStat {
    /// Takes over the sums of other executions.
    fn merge(&mut self, other: &ParallelStat) {
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
        self.left_behind_ns += other.left_behind_ns;
        self.least_idle_of += other.least_idle_of;
        self.least_idle_ns += other.least_idle_ns;
    }

    /// One more execution; whether all of its parts are on record.
    fn add(&mut self, instance: &Instance) -> bool {
        let wall = length(instance.fork, instance.join);
        self.executions += 1;
        self.nested += u64::from(instance.nested);
        self.wall_ns += wall;
        let is_complete = instance.is_complete();
        self.team_ns += wall * instance.threads();
        self.team = self.team.max(instance.team);
        if !is_complete {
            return false;
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
        true
    }
}
