//! What the last minute was like, second by second.

use super::{Sample, Watching};
use ompfuse_fuse::summary::live::{LiveRegion, LiveSite};
use std::collections::{BTreeMap, VecDeque};

/// Seconds that are kept.
const KEPT: usize = 60;

/// A second, or what came between two samples if that is longer.
#[derive(Default)]
struct Second {
    seconds: f64,
    all: u64,
    regions: BTreeMap<LiveSite, u64>,
    /// Work and all time.
    threads: BTreeMap<u32, (u64, u64)>,
    events: BTreeMap<String, u64>,
}

/// The last minute.
#[derive(Default)]
pub(super) struct History {
    seconds: VecDeque<Second>,
}

impl History {
    /// Takes in what came since a sample.
    pub(super) fn add(&mut self, watching: &Watching, before: &Sample, now: &Sample) {
        let seconds = now.ns.saturating_sub(before.ns) as f64 / 1e9;
        if self.seconds.back().is_none_or(|last| last.seconds >= 1.0) {
            self.seconds.push_back(Second::default());
            if self.seconds.len() > KEPT {
                self.seconds.pop_front();
            }
        }
        let Some(second) = self.seconds.back_mut() else {
            return;
        };
        second.seconds += seconds;
        for (site, region) in watching.since(Some(before)) {
            second.add(site, &region);
            for (event, count) in watching.live.counts(&region) {
                *second.events.entry(event).or_default() += count;
            }
        }
    }

    fn share(part: u64, of: u64) -> f64 {
        match of {
            0 => 0.0,
            of => part as f64 / of as f64,
        }
    }

    /// A region's share of all time.
    pub(super) fn region(&self, site: LiveSite) -> Vec<f64> {
        let of = |s: &Second| Self::share(s.regions.get(&site).copied().unwrap_or(0), s.all);
        self.seconds.iter().map(of).collect()
    }

    /// A thread's work, as a share of its time.
    pub(super) fn thread(&self, number: u32) -> Vec<f64> {
        let of = |s: &Second| {
            let (work, all) = s.threads.get(&number).copied().unwrap_or_default();
            Self::share(work, all)
        };
        self.seconds.iter().map(of).collect()
    }

    /// The work of several threads, as a share of their time.
    pub(super) fn threads(&self, numbers: &[u32]) -> Vec<f64> {
        let of = |s: &Second| {
            let known = numbers.iter().filter_map(|n| s.threads.get(n));
            let sums = known.fold((0, 0), |(a, b), (work, all)| (a + work, b + all));
            Self::share(sums.0, sums.1)
        };
        self.seconds.iter().map(of).collect()
    }

    /// Counts of an event per second.
    pub(super) fn event(&self, name: &str) -> Vec<f64> {
        let of = |s: &Second| {
            let count = s.events.get(name).copied().unwrap_or(0);
            if s.seconds > 0.0 {
                count as f64 / s.seconds
            } else {
                0.0
            }
        };
        self.seconds.iter().map(of).collect()
    }
}

impl Second {
    fn add(&mut self, site: LiveSite, region: &LiveRegion) {
        let ticks = region.ticks();
        if ticks == 0 {
            return;
        }
        self.all += ticks;
        *self.regions.entry(site).or_default() += ticks;
        for (thread, split) in region.by_thread() {
            let of = self.threads.entry(thread).or_default();
            of.0 += split.work;
            of.1 += split.work + split.wait + split.runtime;
        }
    }
}
