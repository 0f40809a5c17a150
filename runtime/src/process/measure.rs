//! What recording costs in this process: measured once, when it begins.

use super::clock;
use crate::probes;
use crate::syscall;
use crate::thread::{Thread, meter, now, sample};
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::record::{MAX_COUNTERS, THREAD_NAME};
use ompfuse_format::run::{BoundaryCost, EventStatus, IntervalCost, ProbeCount, ProcessCosts};
use std::fs::File;
use std::io::Read;
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
/// charged to the main thread's serial part, and leaves no record.
pub(super) fn measure(thread: &Thread) {
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
        let counted = thread.try_out(boundaries, probes::empty_task);
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

/// Processors that the calling thread may run on.
pub(super) fn processors() -> Option<u32> {
    let mut mask = Mask::default();
    mask.add(0).then(|| mask.count())
}

/// A set of processors.
pub(super) struct Mask([u64; 128]);

impl Default for Mask {
    fn default() -> Mask {
        Mask([0; 128])
    }
}

impl Mask {
    /// Adds those that a thread may run on (sched_getaffinity(2)). `tid` 0: the calling thread. Says whether the kernel told.
    pub(super) fn add(&mut self, tid: u32) -> bool {
        let mut mask = [0u64; 128];
        let args = [
            tid as usize,
            size_of_val(&mask),
            mask.as_mut_ptr() as usize,
            0,
            0,
            0,
        ];
        // SAFETY: the kernel writes at most the given length into the local array.
        let written = unsafe { syscall::raw(libc::SYS_sched_getaffinity, args) };
        for (word, own) in self.0.iter_mut().zip(mask) {
            *word |= own;
        }
        written > 0
    }

    pub(super) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }
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

/// Processor time of all threads since the process began, in nanoseconds.
pub(super) fn cpu_ns() -> Option<u64> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes to a timespec that is there.
    let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    (done == 0).then_some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// Most memory that the process had in use at once, in bytes. `getrusage` tells instead what the process had before it became this program.
pub(super) fn peak_bytes() -> Option<u64> {
    let mut file = File::open("/proc/self/status").ok()?;
    let mut text = [0; 2048];
    let len = file.read(&mut text).ok()?;
    // The program's name in it may be any bytes.
    let mut lines = text[..len].split(|&b| b == b'\n');
    let line = lines.find_map(|l| l.strip_prefix(b"VmHWM:"))?;
    let text = core::str::from_utf8(line.strip_suffix(b"kB")?).ok()?;
    let kilobytes: u64 = text.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// What the kernel tells of a thread (`schedstat`; Linux, Documentation/scheduler/sched-stats.rst).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schedule {
    /// How long it had a processor, in nanoseconds.
    ran_ns: u64,
    /// How long it was ready to run and had none.
    queued_ns: u64,
}

impl Schedule {
    /// As headers have both: 0 is not known.
    pub(crate) fn one_more(self) -> (u64, u64) {
        let more = |ns: u64| ns.saturating_add(1);
        (more(self.ran_ns), more(self.queued_ns))
    }
}

/// Of a thread of this process.
pub(crate) fn schedule(tid: u32) -> Option<Schedule> {
    let mut file = File::open(format!("/proc/self/task/{tid}/schedstat")).ok()?;
    let mut text = [0; 128];
    let len = file.read(&mut text).ok()?;
    let text = core::str::from_utf8(&text[..len]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    Some(Schedule {
        ran_ns: fields.next()?.parse().ok()?,
        queued_ns: fields.next()?.parse().ok()?,
    })
}

/// What a thread is called: its `comm` without the end of the line, and zeros behind it.
pub(super) fn name(tid: u32) -> Option<[u8; THREAD_NAME]> {
    let mut file = File::open(format!("/proc/self/task/{tid}/comm")).ok()?;
    let mut name = [0; THREAD_NAME];
    let len = file.read(&mut name).ok()?;
    if let Some(end) = name.get_mut(len.saturating_sub(1)) {
        *end = 0;
    }
    Some(name)
}

/// What the calling thread is called, likewise: a call that filters allow where they forbid to open files.
pub(super) fn own_name() -> Option<[u8; THREAD_NAME]> {
    let mut name = [0; THREAD_NAME];
    // SAFETY: the kernel writes at most 16 bytes, the last of which is zero (prctl(2)).
    let done = unsafe { libc::prctl(libc::PR_GET_NAME, name.as_mut_ptr()) };
    (done == 0).then_some(name)
}

fn switches() -> Option<u64> {
    // SAFETY: all-zero is a valid rusage, which the kernel fills.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        (libc::getrusage(libc::RUSAGE_SELF, &mut usage) == 0).then_some(usage)?
    };
    Some((usage.ru_nvcsw + usage.ru_nivcsw) as u64)
}

/// In the child of a fork: the kernel counts its switches from 0.
pub(super) fn after_fork() {
    SWITCHES.store(0, Ordering::Relaxed);
}

/// How long the clocks are compared, in nanoseconds.
const COMPARED_NS: u64 = 1_000_000;

/// A length of time in ticks, which takes a millisecond to find out.
pub(super) fn ticks_of(ns: u64) -> u64 {
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
