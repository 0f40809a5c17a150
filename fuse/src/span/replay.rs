//! Units of a loop under other schedules: pure functions of what was recorded.
//!
//! Dynamic schedules are greedy: the next chunk goes to the thread that is free first (Graham 1969). A unit on record is never made
//! smaller, unless a boundary lies in it: then its iterations are taken to last equally long, and the result says so.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Chunks that are dealt out one by one, at most: more than the units that a loop is replayed of.
const MOST_STEPS: u64 = 1 << 17;

/// A schedule of a loop.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// `static`: one block for each thread.
    Static,
    /// `static,N`.
    StaticChunk(u64),
    /// `dynamic,N`.
    Dynamic(u64),
    /// `guided,N`.
    Guided(u64),
}

impl Schedule {
    /// Whether threads ask for their ranges, so that whoever is free has the next one.
    pub fn is_asked_for(self) -> bool {
        matches!(self, Schedule::Dynamic(_) | Schedule::Guided(_))
    }

    pub(super) fn is_guided(self) -> bool {
        matches!(self, Schedule::Guided(_))
    }
}

/// How a runtime library makes ranges smaller with `guided`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guided {
    /// A thread's share of what is left (`gomp_iter_guided_next` in libgomp's iter.c).
    #[default]
    Libgomp,
    /// Half of it, and the least range from there on where two of these and half of one are left for each thread
    /// (`kmp_sch_guided_iterative_chunked` in libomp's kmp_dispatch.cpp).
    Libomp,
}

impl Guided {
    /// Iterations of the next range. `least`: the chunk of the schedule.
    pub fn next(self, left: u64, threads: u64, least: u64) -> u64 {
        let (threads, least) = (threads.max(1), least.max(1));
        match self {
            Guided::Libgomp => left.div_ceil(threads).max(least),
            Guided::Libomp if left < 2 * threads.saturating_mul(least.saturating_add(1)) => least,
            Guided::Libomp => left / (2 * threads),
        }
    }
}

/// A range of iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// First iteration.
    pub first: i64,
    /// Iterations, at least 1.
    pub len: u64,
    /// How long it took, in any unit of time.
    pub time: u64,
}

/// Units of one execution of a loop, in the order of iterations.
#[derive(Debug, Clone)]
pub struct Units {
    /// Time before each iteration boundary: `(iterations before, time before)`, ascending.
    sums: Vec<(u64, u64)>,
}

/// A schedule's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replayed {
    /// Time of the thread that ends last.
    pub time: u64,
    /// A unit was divided.
    pub assumes_equal: bool,
}

impl Units {
    /// Of units in any order. Holes between them are left out.
    pub fn new(mut units: Vec<Unit>) -> Units {
        units.sort_unstable_by_key(|u| u.first);
        let mut sums = Vec::with_capacity(units.len() + 1);
        let (mut iterations, mut time) = (0, 0);
        sums.push((0, 0));
        for unit in units {
            iterations = unit.len.max(1).saturating_add(iterations);
            time = unit.time.saturating_add(time);
            sums.push((iterations, time));
        }
        Units { sums }
    }

    /// Iterations.
    pub fn iterations(&self) -> u64 {
        self.sums.last().map_or(0, |s| s.0)
    }

    /// Time of all.
    pub fn time(&self) -> u64 {
        self.sums.last().map_or(0, |s| s.1)
    }

    /// Iterations of the shortest unit but for the last one.
    pub fn finest(&self) -> u64 {
        let lengths = self.sums.windows(2).map(|w| w[1].0 - w[0].0);
        let units = self.sums.len() - 1;
        lengths.take((units - 1).max(1)).min().unwrap_or(1)
    }

    /// A chunk, or several at a time where that many steps would be needed that the time to replay them grew with the number of
    /// iterations on record, and not with the records. The loop ends at most one such step too late.
    fn in_few(&self, chunk: u64) -> u64 {
        let chunk = chunk.max(1);
        let chunks = self.iterations() / chunk;
        chunk.saturating_mul(chunks.div_ceil(MOST_STEPS).max(1))
    }

    /// The loop under a schedule. `fetch`: what fetching a chunk costs, in the unit of time.
    pub fn replay(&self, schedule: Schedule, threads: u32, fetch: u64) -> Replayed {
        self.replay_with(Guided::default(), schedule, threads, fetch)
    }

    /// As [`Units::replay`], with a runtime library's `guided`.
    pub fn replay_with(
        &self,
        guided: Guided,
        schedule: Schedule,
        threads: u32,
        fetch: u64,
    ) -> Replayed {
        let threads = u64::from(threads.max(1));
        let total = self.iterations();
        let mut deal = Deal {
            units: self,
            at: 0,
            divided: false,
        };
        let time = match schedule {
            Schedule::Static => {
                // As gcc and clang do: the first `total % threads` threads have one more.
                let (each, more) = (total / threads, total % threads);
                let block = |t| deal.next(each + u64::from(t < more));
                (0..threads).map(block).max().unwrap_or(0)
            }
            Schedule::StaticChunk(chunk) => {
                let mut loads = vec![0; threads as usize];
                let mut thread = 0;
                let chunk = self.in_few(chunk);
                while deal.left() > 0 {
                    loads[thread] += deal.next(chunk);
                    thread = (thread + 1) % threads as usize;
                }
                loads.into_iter().max().unwrap_or(0)
            }
            Schedule::Dynamic(chunk) => {
                let dealt = self.in_few(chunk);
                let fetches = fetch.saturating_mul(dealt / chunk.max(1));
                deal.greedily(threads, fetches, |_| dealt)
            }
            Schedule::Guided(least) => {
                deal.greedily(threads, fetch, |left| guided.next(left, threads, least))
            }
        };
        Replayed {
            time,
            assumes_equal: deal.divided,
        }
    }
}

/// Iterations that are dealt out in order.
struct Deal<'u> {
    units: &'u Units,
    /// Iterations that were.
    at: u64,
    divided: bool,
}

impl Deal<'_> {
    fn left(&self) -> u64 {
        self.units.iterations() - self.at
    }

    /// Time of the next iterations.
    fn next(&mut self, iterations: u64) -> u64 {
        let begin = self.before(self.at);
        self.at = self
            .at
            .saturating_add(iterations)
            .min(self.units.iterations());
        self.before(self.at) - begin
    }

    /// Time of the iterations before a boundary.
    fn before(&mut self, boundary: u64) -> u64 {
        let sums = &self.units.sums;
        let at = sums.partition_point(|s| s.0 < boundary);
        let (iterations, time) = sums[at.min(sums.len() - 1)];
        if iterations == boundary || at == 0 {
            return time;
        }
        self.divided = true;
        let (before, since) = sums[at - 1];
        let part = u128::from(time - since) * u128::from(boundary - before);
        since + (part / u128::from(iterations - before)) as u64
    }

    fn greedily(&mut self, threads: u64, fetch: u64, chunk: impl Fn(u64) -> u64) -> u64 {
        let times = std::iter::from_fn(|| match self.left() {
            0 => None,
            left => Some(self.next(chunk(left)).saturating_add(fetch)),
        });
        greedily(times, threads)
    }
}

/// When the last of these ends, if the next one always goes to the thread that is free first.
pub(super) fn greedily(times: impl Iterator<Item = u64>, threads: u64) -> u64 {
    let mut free: BinaryHeap<Reverse<u64>> = (0..threads.max(1)).map(|_| Reverse(0)).collect();
    let mut last = 0;
    for time in times {
        let Some(Reverse(now)) = free.pop() else {
            break;
        };
        let end = time.saturating_add(now);
        last = last.max(end);
        free.push(Reverse(end));
    }
    last
}

/// Schedules that are worth a try for such a loop: none with chunks finer than what is on record, unless a thread has one unit only.
pub fn candidates(units: &Units, threads: u32) -> Vec<Schedule> {
    let (total, finest) = (units.iterations(), units.finest());
    let threads = u64::from(threads.max(1));
    let mut list = vec![Schedule::Static];
    // With one range for each thread nothing finer is known: the pieces assume equal iterations.
    let base = match total / finest <= 2 * threads {
        true => (total / (16 * threads)).max(1),
        false => finest,
    };
    let mut chunk = base;
    while list.len() < 9 && chunk.saturating_mul(threads) <= total {
        list.push(Schedule::Dynamic(chunk));
        list.push(Schedule::StaticChunk(chunk));
        chunk = chunk.saturating_mul(4);
    }
    list.push(Schedule::Guided(base));
    list
}
