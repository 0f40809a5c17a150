//! Whether threads had processors, and who had them.

#[cfg(test)]
mod tests;

use super::account::of_work;
use super::{NS, Summary};
use crate::model::{FewerThreads, Running, Sharing};
use ompfuse_fuse::run::{ProcessInfo, ThreadAccount};
use ompfuse_fuse::summary::ProcessorLimit;
use std::collections::BTreeMap;

/// Share of the working time without a processor from which on it is told; an idle machine takes a smaller one, too.
const STARVED: f64 = 0.05;
/// Shorter times in regions tell nothing: a thread's start alone may take as long.
const TOO_SHORT_NS: u64 = 1_000_000;

/// Other programs that took no larger share of the processors aren't why threads lacked some.
const FEW_TAKEN: f64 = 0.1;
/// From this share on it is them alone.
const MOST_TAKEN: f64 = 0.5;

/// A thread's life of which the end is not known, in nanoseconds.
const MOST: u64 = u64::MAX / 4;

/// What is known of a thread's time, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Times {
    process: u16,
    /// From the begin of its recording to its end.
    life: u64,
    /// Executing the program's code in parallel regions.
    work: u64,
    /// Starting and ending them.
    around: u64,
    /// Having a processor, and ready without one, at least.
    ran: u64,
    queued: u64,
    /// The latter at most.
    queued_most: u64,
    /// Ready without one before its recording, of a thread that a team has begun with: its start takes as long.
    before: u64,
}

impl Times {
    /// The least of it in which the thread was ready and had no processor: the rest of its time can't hold all of that.
    fn without(self, part: u64) -> u64 {
        (self.queued + part).saturating_sub(self.life).min(part)
    }

    /// The least of its work in which it was neither: it slept by its own choice.
    fn asleep(self) -> u64 {
        self.work
            .saturating_sub(self.ran.saturating_add(self.queued_most))
    }
}

/// Of each thread; `None`: the kernel tells of none.
fn times(summary: &Summary) -> Option<Vec<Times>> {
    summary.accounts.iter().find(|a| a.queued_ns.is_some())?;
    let of = |a: &ThreadAccount| {
        // Of threads that ended before the program nothing is known at their end.
        let life = a.total_ns.map_or(MOST, |ns| ns + a.ours_ns);
        Times {
            process: a.process,
            life,
            queued: a.queued_ns.unwrap_or(0),
            queued_most: a.queued_ns.unwrap_or(life),
            ran: a.ran_ns.unwrap_or(0),
            before: a.queued_before_ns.filter(|_| !a.root).unwrap_or(0),
            ..Times::default()
        }
    };
    let mut all: Vec<Times> = summary.accounts.iter().map(of).collect();
    let work = summary.regions.iter().filter(|r| of_work(r));
    for stat in work {
        for (&thread, &ns) in stat.threads.thread.iter().zip(&stat.threads.own_ns) {
            if let Some(times) = all.get_mut(thread as usize) {
                times.work += ns;
            }
        }
    }
    for parts in summary.parallel.iter().map(|p| &p.team_parts) {
        for (row, &thread) in parts.thread.iter().enumerate() {
            if let Some(times) = all.get_mut(thread as usize) {
                times.around += parts.startup_ns[row] + parts.shutdown_ns[row];
            }
        }
    }
    Some(all)
}

/// Whether threads had processors; `None`: nothing is known, or too little.
pub(super) fn running(summary: &Summary) -> Option<Running> {
    let (wanted, not_running) = sums(summary);
    if wanted < TOO_SHORT_NS {
        return None;
    }
    let (threads, processes) = at_once(summary);
    let times = times(summary);
    let sum = |of: fn(&Times) -> u64| Some(times.as_ref()?.iter().map(of).sum::<u64>());
    let worked = sum(|t| t.work);
    let without = sum(|t| t.without(t.work));
    let share = |part: Option<u64>| Some(part? as f64 / worked?.max(1) as f64);
    let seconds = |ns: Option<u64>| ns.map(|ns| ns as f64 * NS);
    let mut running = Running {
        threads: threads.max(1),
        processes,
        processors: summary.processors,
        limit: summary.limit,
        stolen_s: summary.stolen_s,
        stolen: stolen(summary),
        used: None,
        taken: None,
        sharing: None,
        fewer: None,
        wanted_s: wanted as f64 * NS,
        not_running_s: not_running as f64 * NS,
        not_running: not_running as f64 / wanted as f64,
        worked_s: seconds(worked),
        without_processor_s: seconds(without),
        queued_s: seconds(sum(|t| t.queued)),
        asleep_s: seconds(sum(|t| t.asleep())),
        is_starved: share(without).is_some_and(|share| share >= STARVED),
    };
    if let Some(n) = running.processors.filter(|&n| n > 0.0) {
        let all_s = n * own_s(summary);
        let share = |ns: u64| (all_s > 0.0).then(|| (ns as f64 * NS / all_s).min(1.0));
        let ran = summary.accounts.iter().map(|a| a.ran_ns);
        running.used = ran.sum::<Option<u64>>().and_then(share);
        // Of threads that have ended there is what they used in regions.
        let in_regions = summary.region_parts.iter().map(|p| p.processor_ns);
        let in_regions = in_regions.sum::<Option<u64>>();
        let at_least = running.used.or_else(|| in_regions.and_then(share));
        running.taken = taken(summary, &running, at_least, n);
    }
    running.sharing = sharing(&running);
    running.fewer = fewer(summary, &running, times.as_deref().unwrap_or(&[]));
    Some(running)
}

/// Seconds from the first process's begin to the last one's end.
fn own_s(summary: &Summary) -> f64 {
    let processes = summary.runs.first().map_or(&[][..], |r| &r.processes);
    let spans = || processes.iter().map(ProcessInfo::own_span);
    let begin = spans().map(|(begin, _)| begin).min().unwrap_or(0);
    let end = spans().map(|(_, end)| end).max().unwrap_or(0);
    (end - begin).max(0) as f64 * NS
}

/// The most that other programs had of the processors, as a share of their time.
fn taken(summary: &Summary, running: &Running, used: Option<f64>, n: f64) -> Option<f64> {
    let left = used.map(|used| 1.0 - used);
    let duration_s = summary.runs.first().and_then(|r| r.duration_s);
    // Where threads are bound, others may have had other processors. What a quota is too little for nobody else has.
    let of_all = !matches!(
        running.limit,
        Some(ProcessorLimit::Binding | ProcessorLimit::Quota)
    );
    let measured = summary
        .others_s
        .zip(duration_s)
        .filter(|(_, all_s)| *all_s > 0.0 && of_all);
    let measured = measured.map(|(others_s, all_s)| (others_s / (n * all_s)).clamp(0.0, 1.0));
    match (measured, left) {
        (Some(measured), left) => Some(measured.min(left.unwrap_or(1.0))),
        // What nobody is known to have used may have been idle.
        (None, Some(left)) => Some(left).filter(|&left| left <= FEW_TAKEN),
        (None, None) => None,
    }
}

/// Who had the processors that threads were ready for.
fn sharing(running: &Running) -> Option<Sharing> {
    if running.limit == Some(ProcessorLimit::Quota) {
        return Some(Sharing::Own);
    }
    let n = running.processors?;
    let is_own = running.threads > 1 && running.threads as f64 > n;
    Some(match running.taken {
        Some(taken) if is_own && taken <= FEW_TAKEN => Sharing::Own,
        Some(taken) if is_own && taken <= MOST_TAKEN => Sharing::Both,
        Some(taken) if taken > FEW_TAKEN => Sharing::Others,
        _ => return None,
    })
}

/// Least share of the threads' time in which they had a processor or wanted one, so that fewer of them can do the same.
const COMPUTING: f64 = 0.9;
/// A thread that works so many times the mean has uneven work: more threads than processors even that out.
const UNEVEN: f64 = 1.15;
/// Larger shares are enough for a program with fewer threads to get fewer processors than now.
const NOTHING_TAKEN: f64 = 0.05;

/// How the program would have no more threads than processors, if that can't make it slower: no other program competes, threads
/// compute, and none has more to do than others.
fn fewer(summary: &Summary, running: &Running, times: &[Times]) -> Option<FewerThreads> {
    let n = running.processors?;
    let taken = running
        .taken
        .filter(|_| running.sharing == Some(Sharing::Own));
    let is_alone = taken.is_some_and(|t| t <= NOTHING_TAKEN);
    let at_work = times.iter().filter(|t| t.work > 0);
    let (used, life) = at_work.fold((0, 0), |(used, life), t| {
        (used + t.ran + t.queued, t.life.saturating_add(life))
    });
    // Who isn't running while it works either has no processor, or sleeps.
    let slept_s = running.not_running_s - running.without_processor_s.unwrap_or(0.0);
    let is_computing = used as f64 >= COMPUTING * life as f64 && life > 0
        || slept_s <= (1.0 - COMPUTING) * running.wanted_s;
    if !is_alone || !is_computing || !is_even(summary) {
        return None;
    }
    let each = n.floor() as u64 / running.processes.max(1);
    if each == 0 && running.processes > 1 {
        return Some(FewerThreads::Processes);
    }
    let each = each.max(1);
    let is_limited = set(summary, "OMP_THREAD_LIMIT").is_some_and(|limit| limit <= each);
    match decides(summary, running.threads) {
        true => Some(FewerThreads::Variable { threads: each }),
        false => (!is_limited).then_some(FewerThreads::Limit { threads: each }),
    }
}

/// A number in the environment, the first of a list.
pub(crate) fn set(summary: &Summary, name: &str) -> Option<u64> {
    let mut all = summary.environment.iter();
    let value = &all.find(|(known, _)| known == name)?.1;
    value.split(',').next()?.trim().parse().ok()
}

/// What may decide the number of threads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Deciding {
    /// A call asks for a number.
    is_asked: bool,
    /// What the variable says, or what holds without it: a thread for each processor.
    said: Option<u64>,
    /// Threads of the largest team, and the most at once in a process.
    team: u64,
    at_once: u64,
}

impl Deciding {
    /// Whether the variable does it: no call asks for a number, no team is inside another, and all are as large as it says.
    fn is_variable(self) -> bool {
        !self.is_asked && self.at_once == self.team && self.said == Some(self.team)
    }
}

/// Whether `OMP_NUM_THREADS` decides how many threads there are. `threads`: the most at once.
pub(crate) fn decides(summary: &Summary, threads: u64) -> bool {
    deciding(summary, threads).is_variable()
}

fn deciding(summary: &Summary, threads: u64) -> Deciding {
    // clang has calls of their own for it; gcc's calls hand it over with the region.
    let asks = |entry: &String| {
        entry.contains("push_num_threads") || entry.starts_with("omp_set_num_threads")
    };
    let is_asked = summary.modules.iter().flat_map(|m| &m.entries).any(asks);
    let processes = summary.runs.first().map_or(&[][..], |r| &r.processes);
    let is_sized = processes.iter().any(|p| p.sized_teams != Some(false));
    let usual = processes.iter().filter_map(|p| p.processors).max();
    let most = summary.own.iter().map(|o| o.threads).max();
    Deciding {
        is_asked: is_asked || is_sized,
        said: set(summary, "OMP_NUM_THREADS").or(usual.map(u64::from)),
        team: summary.parallel.iter().map(|p| p.team).max().unwrap_or(1),
        at_once: most.unwrap_or(threads),
    }
}

/// Whether threads of a team had as much to compute.
fn is_even(summary: &Summary) -> bool {
    let mut by_member: BTreeMap<(u32, u16), Vec<u64>> = BTreeMap::new();
    for parts in &summary.region_parts {
        let processor_ns = parts.processor_ns.unwrap_or(0);
        let members = by_member.entry((parts.site, parts.process)).or_default();
        members.push(processor_ns);
    }
    let most: u64 = by_member.values().filter_map(|m| m.iter().max()).sum();
    let mean = |m: &Vec<u64>| m.iter().sum::<u64>() as f64 / m.len().max(1) as f64;
    let mean: f64 = by_member.values().map(mean).sum();
    mean > 0.0 && most as f64 <= UNEVEN * mean
}

/// The most threads at once, and in how many processes.
fn at_once(summary: &Summary) -> (u64, u64) {
    let processes = summary.runs.first().map_or(&[][..], |r| &r.processes);
    let threads = summary.own.iter().map(|o| o.threads);
    let spans = processes.iter().map(ProcessInfo::own_span);
    let all: Vec<((i64, i64), u64)> = spans.zip(threads).collect();
    let at = |&((moment, _), _): &((i64, i64), u64)| {
        let there = (all.iter()).filter(|((begin, end), _)| (*begin..*end).contains(&moment));
        there.fold((0, 0), |(threads, count), of| (threads + of.1, count + 1))
    };
    all.iter().map(at).max().unwrap_or((0, 0))
}

/// Share of the machine's processor time that the hypervisor took during the run. `None`: not known.
fn stolen(summary: &Summary) -> Option<f64> {
    let all_s = summary.runs.first()?.duration_s? * f64::from(summary.cpus);
    (all_s > 0.0).then_some((summary.stolen_s? / all_s).clamp(0.0, 1.0))
}

/// Time in parallel regions without waits for other threads, and the least of it in which a thread was not running: nanoseconds.
fn sums(summary: &Summary) -> (u64, u64) {
    let known = summary.region_parts.iter();
    let known = known.filter_map(|p| Some((p, p.processor_ns?)));
    known.fold((0, 0), |(wanted, not_running), (parts, processor_ns)| {
        // Who waits may sleep, or may spin: what was not running was so at least.
        let own = parts.read_wall_ns.saturating_sub(parts.wait_ns);
        (wanted + own, not_running + own.saturating_sub(processor_ns))
    })
}

/// What part of the losses that come of late or slow threads is due to threads that were ready and had no processor, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Queues {
    /// All the time that threads were so, as far as it is known.
    pub(crate) all: u64,
    /// More threads than processors used most of these, whatever is known of that time.
    pub(crate) is_crowded: bool,
    /// The least of it in starting and ending regions, and the most.
    pub(crate) around: [u64; 2],
    /// How long others waited for them: at least, and at most.
    pub(crate) delays: [u64; 2],
}

/// All zero also if it is not known.
pub(crate) fn queues(summary: &Summary) -> Queues {
    let Some(times) = times(summary) else {
        return Queues::default();
    };
    let mut by_process: BTreeMap<u16, Vec<Times>> = BTreeMap::new();
    for times in &times {
        by_process.entry(times.process).or_default().push(*times);
    }
    let mut queues = Queues::default();
    for all in by_process.values() {
        let busy = |t: &Times| t.work + t.around;
        let least = |t: &Times| t.without(busy(t));
        let most = |t: &Times| (t.queued_most + t.before).min(busy(t));
        let slowest = all.iter().map(least).max().unwrap_or(0);
        let at_most = all.iter().map(most).max().unwrap_or(0);
        for t in all.iter().filter(|t| busy(t) > 0) {
            queues.all += t.queued + t.before;
            queues.around[0] += least(t).saturating_sub(t.without(t.work));
            queues.around[1] += (t.queued_most + t.before).min(t.around);
            queues.delays[0] += slowest.saturating_sub(most(t));
            queues.delays[1] += at_most;
        }
        // The slowest waits for nobody.
        queues.delays[1] = queues.delays[1].saturating_sub(at_most);
    }
    let used = used_by_many(summary);
    let is_unknown = summary.accounts.iter().any(|a| a.queued_ns.is_none());
    queues.is_crowded = used >= FULL || is_unknown && used >= MUCH_USED;
    if used >= FULL {
        queues.around[0] = queues.around[1];
        queues.delays[0] = queues.delays[1];
    }
    queues
}

/// From this share of the processors' time on, the program's own threads had them all the time that others of them wanted one.
const FULL: f64 = 0.9;

/// From this share on they may have lacked some for long, where nothing is known of threads that have ended.
const MUCH_USED: f64 = 0.5;

/// Share of the processors' time in parallel regions that more threads than processors used there; 0: there aren't more, or it isn't
/// known. If that is all, who is late or slow there had no processor, unless it has more to compute.
fn used_by_many(summary: &Summary) -> f64 {
    let Some(n) = summary.processors else {
        return 0.0;
    };
    let used_ns = summary
        .region_parts
        .iter()
        .map(|p| p.processor_ns)
        .sum::<Option<u64>>();
    let all_ns = n * summary.parallel_ns as f64;
    let (threads, _) = at_once(summary);
    let is_known = threads as f64 > n && all_ns > 0.0;
    used_ns
        .filter(|_| is_known)
        .map_or(0.0, |ns| ns as f64 / all_ns)
}

/// How much less processor time the threads of the parallel region at a site used in it than the one that used most, in nanoseconds:
/// so long they wait for it whoever has the processors.
pub(crate) fn unequal_ns(summary: &Summary, site: Option<u32>) -> u64 {
    let mut by_process: BTreeMap<u16, Vec<u64>> = BTreeMap::new();
    let parts = summary.region_parts.iter().filter(|p| Some(p.site) == site);
    for parts in parts.filter(|p| p.read == p.parts) {
        let members = by_process.entry(parts.process).or_default();
        members.push(parts.processor_ns.unwrap_or(0));
    }
    let less = |members: &Vec<u64>| {
        let most = members.iter().copied().max().unwrap_or(0);
        members.iter().map(|ns| most - ns).sum::<u64>()
    };
    by_process.values().map(less).sum()
}
