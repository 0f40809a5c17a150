//! How long the parts of a scan take, for those who ask: all threads together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A part of looking at functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Instructions and blocks.
    Decode,
    /// Calls, and the values that reach them.
    Values,
    /// Inlined constructs.
    Shapes,
    /// Windows, atomic instructions.
    Rest,
}

/// Their names, in the order of [`Part`].
const NAMES: [&str; 4] = ["decoding", "values", "shapes", "windows and atomics"];

/// Adds up what each part took; reads no clock unless it is asked to.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Nanoseconds.
    parts: Option<[AtomicU64; NAMES.len()]>,
}

impl Clock {
    /// One that measures.
    pub(super) fn running() -> Clock {
        Clock {
            parts: Some(Default::default()),
        }
    }

    /// Begins to measure one function.
    pub(super) fn laps(&self) -> Laps<'_> {
        Laps {
            clock: self,
            since: self.parts.as_ref().map(|_| Instant::now()),
        }
    }

    /// What the parts took, with their names.
    pub(super) fn times(&self) -> Vec<(&'static str, Duration)> {
        let parts = self.parts.iter().flatten();
        let times = parts.map(|p| Duration::from_nanos(p.load(Ordering::Relaxed)));
        NAMES.into_iter().zip(times).collect()
    }
}

/// The parts of one function, one behind the other.
pub(super) struct Laps<'c> {
    clock: &'c Clock,
    since: Option<Instant>,
}

impl Laps<'_> {
    /// What was done since the last part ended is this one.
    pub(super) fn end(&mut self, part: Part) {
        if let (Some(since), Some(parts)) = (&mut self.since, &self.clock.parts) {
            let now = Instant::now();
            let taken = now.duration_since(*since).as_nanos() as u64;
            parts[part as usize].fetch_add(taken, Ordering::Relaxed);
            *since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_measured_only_when_asked_for() {
        let (idle, running) = (Clock::default(), Clock::running());
        for clock in [&idle, &running] {
            let mut laps = clock.laps();
            std::hint::black_box((0..1000).sum::<u64>());
            laps.end(Part::Shapes);
        }
        assert_eq!(idle.times(), []);
        let times = running.times();
        assert_eq!(times.len(), NAMES.len());
        assert!(times[2].0 == "shapes" && !times[2].1.is_zero() && times[0].1.is_zero());
    }
}
