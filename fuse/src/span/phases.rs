//! What the last thread did while the others waited for it, phase by phase: a phase is what a team does from one barrier to the
//! next.

use super::gather::Gathered;
use super::result::WaitedFor;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use std::collections::{BTreeMap, HashMap};

/// What one thread did in a phase, in ticks.
#[derive(Debug, Clone, Default)]
struct Share {
    begin: u64,
    arrived: u64,
    /// What it waited at the phase's end.
    waited: u64,
    barrier: Option<u32>,
    did: BTreeMap<WaitedFor, u64>,
    tasks: u64,
    /// Something of what it did was disturbed.
    disturbed: bool,
}

/// Waiting of one kind, in ticks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Waited {
    pub(super) ticks: u64,
    pub(super) times: u64,
    /// The part for threads whose work was disturbed.
    pub(super) disturbed: u64,
    /// Threads had units of several loops.
    pub(super) several: bool,
}

/// Waiting, by barrier (record's site; `None`: the region's end) and what for (record's sites).
pub(super) type Waits = BTreeMap<(Option<u32>, WaitedFor), Waited>;

/// Where tasks are a fifth of what was done in a phase, they are what threads waited for.
const OF_TASKS: u64 = 5;

/// Adds the waits of a region's execution. `fork`: its interval; `parts`: those of its threads; `tasks`: by begin, at least all that
/// its threads execute behind their parts.
pub(super) fn add(gathered: &Gathered, fork: u32, parts: &[u32], tasks: &[u32], waits: &mut Waits) {
    let of_fork = gathered.recs[fork as usize];
    let mut threads: Vec<Vec<Share>> = parts.iter().map(|&p| shares(gathered, p)).collect();
    let last = threads.iter().map(Vec::len).max().unwrap_or(0);
    if last == 0 || threads.iter().any(|t| t.len() != last) {
        return; // cancelled, or one thread's part is missing
    }
    let by_thread: HashMap<u16, usize> = parts
        .iter()
        .enumerate()
        .map(|(at, &part)| (gathered.recs[part as usize].thread, at))
        .collect();
    // Tasks that threads execute behind their parts.
    let begin = |at: u32| gathered.recs[at as usize].t0;
    let from = tasks.partition_point(|&at| begin(at) < of_fork.t0);
    for &at in &tasks[from..] {
        let rec = &gathered.recs[at as usize];
        if rec.t0 > of_fork.t1 {
            break;
        }
        let Some(&thread) = by_thread.get(&rec.thread) else {
            continue;
        };
        let end = gathered.recs[parts[thread] as usize].t1;
        if rec.t0 >= end
            && let Some(share) = threads[thread].last_mut()
        {
            share.tasks += rec.own;
            share.disturbed |= rec.disturbed;
            *share.did.entry(WaitedFor::Tasks(rec.site)).or_default() += rec.own;
        }
    }
    let end = |share: &Share| share.arrived + share.tasks;
    let ends = threads.iter().filter_map(|t| t.last()).map(end);
    let end_of_all = ends.max().unwrap_or(0).min(of_fork.t1);
    for thread in &mut threads {
        if let Some(share) = thread.last_mut() {
            share.waited = end_of_all.saturating_sub(share.arrived + share.tasks);
        }
    }
    for phase in 0..last {
        let shares: Vec<&Share> = threads.iter().map(|t| &t[phase]).collect();
        let waited: u64 = shares.iter().map(|s| s.waited).sum();
        if waited == 0 || shares.len() < 2 {
            continue;
        }
        let barrier = shares.iter().find_map(|s| s.barrier);
        let entry = waits.entry((barrier, waited_for(&shares))).or_default();
        entry.ticks += waited;
        entry.times += 1;
        let last = shares.iter().max_by_key(|s| s.arrived + s.tasks);
        let units = shares.iter().flat_map(|s| s.did.keys());
        let mut units = units.filter(|what| matches!(what, WaitedFor::Units(_)));
        let first = units.next();
        entry.several |= units.any(|other| Some(other) != first);
        if last.is_some_and(|s| s.disturbed) {
            entry.disturbed += waited;
        }
    }
}

/// What the thread that came last had more of than the mean.
fn waited_for(shares: &[&Share]) -> WaitedFor {
    let count = shares.len() as f64;
    let all: u64 = shares.iter().flat_map(|s| s.did.values()).sum();
    let of_tasks = |s: &&Share| {
        let tasks = s
            .did
            .iter()
            .filter(|(k, _)| matches!(k, WaitedFor::Tasks(_)));
        tasks.map(|(k, v)| (*k, *v)).collect::<Vec<_>>()
    };
    let mut tasks: BTreeMap<WaitedFor, u64> = BTreeMap::new();
    for (key, ticks) in shares.iter().flat_map(of_tasks) {
        *tasks.entry(key).or_default() += ticks;
    }
    let in_tasks: u64 = tasks.values().sum();
    // Why there were no more is told by what happened at each instant (`super::idle`).
    if in_tasks > 0 && in_tasks >= all / OF_TASKS {
        let most = tasks.iter().max_by_key(|(_, v)| **v);
        return most.map_or(WaitedFor::Runtime, |(k, _)| *k);
    }
    let Some(last) = shares.iter().max_by_key(|s| s.arrived + s.tasks) else {
        return WaitedFor::Runtime;
    };
    let excess = |of: &dyn Fn(&Share) -> u64| {
        let mean = shares.iter().map(|s| of(s) as f64).sum::<f64>() / count;
        of(last) as f64 - mean
    };
    let done = |s: &Share| s.did.values().sum::<u64>();
    let mut best = (
        WaitedFor::Runtime,
        excess(&|s: &Share| {
            (s.arrived + s.tasks)
                .saturating_sub(s.begin)
                .saturating_sub(done(s))
        }),
    );
    let late = excess(&|s: &Share| s.begin);
    if late > best.1 {
        best = (WaitedFor::Late, late);
    }
    for key in last.did.keys() {
        let more = excess(&|s: &Share| s.did.get(key).copied().unwrap_or(0));
        if more > best.1 {
            best = (*key, more);
        }
    }
    best.0
}

/// A thread's part of a region, phase by phase.
fn shares(gathered: &Gathered, part: u32) -> Vec<Share> {
    let of_part = &gathered.recs[part as usize];
    let mut list = vec![];
    let mut share = Share {
        begin: of_part.t0,
        disturbed: of_part.disturbed,
        ..Share::default()
    };
    let mut until = of_part.t0;
    for at in gathered.inside(part) {
        let rec = &gathered.recs[at as usize];
        *share.did.entry(WaitedFor::Code).or_default() += rec.t0.saturating_sub(until);
        until = until.max(rec.t1);
        if rec.construct.is_barrier() {
            did(gathered, at, &mut share);
            share.arrived = rec.t0;
            share.waited = rec.own;
            share.barrier = Some(rec.site);
            let next = Share {
                begin: rec.t1,
                disturbed: of_part.disturbed,
                ..Share::default()
            };
            list.push(std::mem::replace(&mut share, next));
            continue;
        }
        did(gathered, at, &mut share);
    }
    *share.did.entry(WaitedFor::Code).or_default() += of_part.t1.saturating_sub(until);
    share.arrived = of_part.t1;
    list.push(share);
    list
}

/// Adds what a thread did in an interval. Code of no construct of its own belongs to what it is in.
fn did(gathered: &Gathered, at: u32, share: &mut Share) {
    let mut open = vec![(at, WaitedFor::Code)];
    while let Some((at, around)) = open.pop() {
        let rec = &gathered.recs[at as usize];
        let inside = || gathered.inside(at);
        let in_inside = || {
            let inside = inside().map(|i| gathered.recs[i as usize].len());
            inside.sum::<u64>()
        };
        let key = match rec.construct {
            c if c.is_divided() || c.is_share() => WaitedFor::Units(rec.site),
            c if c.is_block() => WaitedFor::Block(rec.site),
            Construct::Task => WaitedFor::Tasks(rec.site),
            c if c.is_fork() => {
                *share.did.entry(WaitedFor::Nested(rec.site)).or_default() += rec.len();
                continue;
            }
            c if c.charges_to() == Charge::Entry => {
                let entered = rec.extent.min(rec.own);
                *share.did.entry(WaitedFor::Entering(rec.site)).or_default() += entered;
                let held = rec.len().saturating_sub(rec.own + in_inside());
                *share.did.entry(around).or_default() += held;
                open.extend(inside().map(|i| (i, around)));
                continue;
            }
            c if c.charges_to() == Charge::Work => around,
            _ => {
                // Waits and the runtime; what they execute meanwhile counts.
                if rec.construct.is_barrier() {
                    share.tasks += in_inside();
                }
                open.extend(inside().map(|i| (i, around)));
                continue;
            }
        };
        *share.did.entry(key).or_default() += rec.own;
        share.disturbed |= rec.disturbed;
        open.extend(inside().map(|i| (i, key)));
    }
}
