//! Sums over the executions of a region.

use super::instances::numbers;
use super::{IDLE, Instance, Part, ThreadKey};
use crate::run::{NONE, Run};
use crate::summary::sums::length;
use crate::summary::{ParallelStat, TeamColumns, WorkerWaits};
use ompfuse_format::record::sums::{self, execution, member};
use std::collections::{BTreeMap, HashMap};

/// Sums over executions of a region.
#[derive(Debug, Clone, Default)]
pub(in crate::summary) struct Executions {
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
    pub(in crate::summary) fn stat(&self) -> &ParallelStat {
        &self.stat
    }

    /// One more. `known`: of a thread its number, and its begin and end as far as they are known.
    pub(in crate::summary) fn add(
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
    pub(in crate::summary) fn add_busiest(&mut self, instance: &Instance, busy_ns: u64) {
        let least_idle = length(instance.fork, instance.join).saturating_sub(busy_ns);
        self.stat.least_idle_of += 1;
        self.stat.least_idle_ns += least_idle * instance.threads();
    }

    /// Takes over what the threads have summed up themselves. `ns`: of a sum of ticks.
    pub(in crate::summary) fn add_sums(
        &mut self,
        e: &sums::Executions<'_>,
        ns: impl Fn(u64) -> u64,
    ) {
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
    pub(in crate::summary) fn add_member(
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
    pub(in crate::summary) fn merge(&mut self, other: &Executions, first: u32) {
        let Executions { stat, threads } = other;
        self.stat.merge(stat);
        for (thread, theirs) in threads {
            self.threads
                .entry(first + thread)
                .or_default()
                .merge(theirs);
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
    /// Takes over the sums of other executions.
    fn merge(&mut self, other: &OfThread) {
        let OfThread {
            waited,
            count,
            measured,
            startup,
            body,
            barrier,
            task,
            shutdown,
        } = *other;
        if let Some(waited) = waited {
            *self.waited.get_or_insert(0) += waited;
        }
        self.count += count;
        self.measured += measured;
        self.startup += startup;
        self.body += body;
        self.barrier += barrier;
        self.task += task;
        self.shutdown += shutdown;
    }

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
pub(in crate::summary) fn in_order(
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

impl ParallelStat {
    /// Takes over the sums of other executions.
    fn merge(&mut self, other: &ParallelStat) {
        let ParallelStat {
            site: _,
            executions,
            nested,
            measured,
            wall_ns,
            team_ns,
            team,
            startup_ns,
            shutdown_ns,
            imbalance_ns,
            limited_ns,
            left_behind_ns,
            least_idle_of,
            least_idle_ns,
            workers: _, // made when all is added
            team_parts: _,
        } = *other;
        self.executions += executions;
        self.nested += nested;
        self.measured += measured;
        self.wall_ns += wall_ns;
        self.team_ns += team_ns;
        self.team = self.team.max(team);
        self.startup_ns += startup_ns;
        self.shutdown_ns += shutdown_ns;
        self.imbalance_ns += imbalance_ns;
        self.limited_ns += limited_ns;
        self.left_behind_ns += left_behind_ns;
        self.least_idle_of += least_idle_of;
        self.least_idle_ns += least_idle_ns;
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
