//! What recording costs in this process: measured once, when it begins.

use super::clock;
use crate::kernel::switches;
use crate::thread::{Thread, meter, now, sample};
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::record::MAX_COUNTERS;
use ompfuse_format::run::{BoundaryCost, EventStatus, IntervalCost, ProbeCount, ProcessCosts};
use std::sync::OnceLock;

/// Ticks of so many boundaries as are measured together; 0: not measured.
static BOUNDARY_TICKS: AtomicU64 = AtomicU64::new(0);
/// Ticks of the two readings of a part of a region; 0: not measured.
static PART_TICKS: AtomicU64 = AtomicU64::new(0);
/// Ticks of the same number of empty tasks, and of as many readings of the clock as they have intervals; 0: not measured.
static TASK_TICKS: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
/// Per counter, what an empty task has counted inside and around.
static PROBES: OnceLock<[[u64; 2]; MAX_COUNTERS]> = OnceLock::new();
/// The threads' switches when recording began.
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Boundaries (or tasks) that are measured together, and how often: what comes between them only makes some longer.
const MEASURED: (u64, u32) = (16, 8);

/// Intervals of an empty task: its creation, which executes it, and itself.
const OF_TASK: u64 = 2;

/// Measures what a boundary costs with this process's counters, and what the probes of a task add to its counts. It is
/// charged to the main thread's serial part, and leaves no record. `empty_task`: executes one, as the child of this node.
pub(crate) fn measure(thread: &Thread, empty_task: impl Fn(u64)) {
    let (boundaries, times) = MEASURED;
    let ticks = (0..times).map(|_| {
        let begin = now();
        (0..boundaries).for_each(|_| thread.charge());
        now() - begin
    });
    let ticks = ticks.min().unwrap_or(0);
    BOUNDARY_TICKS.store(ticks, Ordering::Relaxed);
    sample::set_boundary(ticks / boundaries);
    let ticks = (0..times).map(|_| thread.try_reading()).min().unwrap_or(0);
    PART_TICKS.store(ticks, Ordering::Relaxed);
    meter::set_cost(ticks);
    let read = (0..times).map(|_| {
        let begin = now();
        (0..boundaries * OF_TASK).for_each(|_| {
            core::hint::black_box(now());
        });
        now() - begin
    });
    TASK_TICKS[1].store(read.min().unwrap_or(0), Ordering::Relaxed);
    let mut taken = [0; MEASURED.1 as usize];
    let tasks = taken.iter_mut().filter_map(|taken| {
        let begin = now();
        let counted = thread.try_out(boundaries, &empty_task);
        *taken = now() - begin;
        counted
    });
    let least = tasks.reduce(|least, other| {
        core::array::from_fn(|at| core::array::from_fn(|n| least[at][n].min(other[at][n])))
    });
    // The usual one: in a program probes find caches less warm than the fastest of these.
    taken.sort_unstable();
    TASK_TICKS[0].store(taken[taken.len() / 2], Ordering::Relaxed);
    if let Some(least) = least {
        let _ = PROBES.set(least.map(|both| both.map(|n| n / boundaries)));
    }
    SWITCHES.store(switches().unwrap_or(0), Ordering::Relaxed);
}

/// What [`measure`] has measured.
pub(super) fn costs(status: &[EventStatus]) -> ProcessCosts {
    ProcessCosts {
        boundary: measured(&BOUNDARY_TICKS, MEASURED.0),
        part: measured(&PART_TICKS, 1),
        interval: interval(),
        probes: probe_counts(status),
        clock: None, // whoever writes it reads the clock then
    }
}

/// What so many boundaries (or parts) took.
fn measured(ticks: &AtomicU64, boundaries: u64) -> Option<BoundaryCost> {
    let ticks = ticks.load(Ordering::Relaxed);
    (ticks > 0).then_some(BoundaryCost { boundaries, ticks })
}

/// Of intervals.
fn interval() -> Option<IntervalCost> {
    let [ticks, clock_ticks] = [0, 1].map(|at| TASK_TICKS[at].load(Ordering::Relaxed));
    (ticks > 0).then_some(IntervalCost {
        intervals: MEASURED.0 * OF_TASK,
        ticks,
        clock_ticks,
    })
}

/// Of probes, for the events that are counted.
fn probe_counts(status: &[EventStatus]) -> Vec<ProbeCount> {
    let count = |status: &EventStatus| {
        if status.shared.is_some() {
            return None; // counted part of the time, which the others' task may have had no share of
        }
        let &[inside, around] = PROBES.get()?.get(status.column? as usize)?;
        Some(ProbeCount {
            event: status.name.clone(),
            inside,
            around,
        })
    };
    status.iter().filter_map(count).collect()
}

/// How often the process's threads have been switched since recording began.
pub(super) fn switched() -> Option<u64> {
    Some(switches()?.saturating_sub(SWITCHES.load(Ordering::Relaxed)))
}

/// In the child of a fork: the kernel counts its switches from 0.
pub(super) fn after_fork() {
    SWITCHES.store(0, Ordering::Relaxed);
}

/// How long the clocks are compared, in nanoseconds.
const COMPARED_NS: u64 = 1_000_000;

/// A length of time in ticks, which takes a millisecond to find out.
pub(crate) fn ticks_of(ns: u64) -> u64 {
    let begin = clock();
    loop {
        let now = clock();
        let passed = now.ns.saturating_sub(begin.ns);
        if passed >= COMPARED_NS {
            let ticks = u128::from(now.tsc.saturating_sub(begin.tsc)) * u128::from(ns);
            return u64::try_from(ticks / u128::from(passed)).unwrap_or(u64::MAX);
        }
    }
}
