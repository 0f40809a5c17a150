//! Work-sharing loops and sections: their units, and what other schedules would make of them.

use super::gather::{Gathered, Rec};
use super::replay::{Guided, Schedule, Unit, Units, candidates, greedily};
use super::result::{Candidate, Largest, Longest, LoopAnalysis};
use crate::run::nodes::NONE;
use ompfuse_format::Construct;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Units that are replayed for a loop's place, at most.
const MOST_REPLAYED: u64 = 100_000;

/// Loops by record's site, in ticks.
#[derive(Debug, Default)]
pub(super) struct Loops {
    by_site: BTreeMap<u32, LoopAnalysis>,
    /// By record's site and first iteration.
    largest: FxHashMap<(u32, i64), Largest>,
    /// By record's site: units that were replayed.
    replayed: FxHashMap<u32, u64>,
    schedules: FxHashMap<u32, Vec<Schedule>>,
}

/// One execution of a loop by a team.
#[derive(Debug, Default)]
struct Execution {
    site: u32,
    is_sections: bool,
    units: Vec<Unit>,
    /// By thread.
    loads: FxHashMap<u16, u64>,
    largest: Option<(Rec, u64, [Option<u64>; 2])>,
    counts: [Option<u64>; 2],
    fetched: Option<(u64, u64)>,
}

impl Loops {
    /// Adds the loops of a region's execution.
    pub(super) fn add(&mut self, gathered: &Gathered, recs: &[u32], team: u32, guided: Guided) {
        let mut executions: FxHashMap<(u32, u32, i64), Execution> = FxHashMap::default();
        let mut key_of: FxHashMap<u32, (u32, u32, i64)> = FxHashMap::default();
        for &at in recs {
            let rec = &gathered.recs[at as usize];
            let is_sections = rec.construct == Construct::Section;
            if rec.construct != Construct::Range && !is_sections {
                continue;
            }
            let key = *key_of.entry(rec.parent).or_insert_with(|| {
                let of_loop = gathered.nodes.get(rec.parent as usize);
                let of_loop = of_loop.map(|n| (n.parent, n.index));
                let (parent, rank) = of_loop.unwrap_or((NONE, 0));
                (rec.site, parent, rank)
            });
            let execution = executions.entry(key).or_insert_with(|| Execution {
                site: rec.site,
                is_sections,
                counts: [Some(0); 2],
                ..Execution::default()
            });
            let counts = gathered.counts.get(at as usize).copied();
            let time = rec.busy();
            execution.add(rec, time, counts.unwrap_or_default(), is_sections);
        }
        for (node, key) in &key_of {
            let fetched = gathered.fetches.get(node);
            if let Some((&(own, fetches), execution)) = fetched.zip(executions.get_mut(key)) {
                let (ticks, times) = execution.fetched.unwrap_or_default();
                execution.fetched = Some((ticks + own, times + fetches));
            }
        }
        let mut list: Vec<((u32, u32, i64), Execution)> = executions.into_iter().collect();
        list.sort_unstable_by_key(|e| e.0);
        for (_, execution) in list {
            self.one(execution, team, guided);
        }
    }

    fn one(&mut self, execution: Execution, team: u32, guided: Guided) {
        let count = execution.units.len() as u64;
        let time: u64 = execution.units.iter().map(|u| u.time).sum();
        let slowest = execution.loads.values().copied().max().unwrap_or(0);
        let fetch = execution.fetched.map(|(ticks, times)| ticks / times.max(1));
        let stat = self.by_site.entry(execution.site).or_default();
        stat.is_sections = execution.is_sections;
        stat.executions += 1;
        stat.with_few_units += u64::from(count < u64::from(team));
        stat.units += count;
        let iterations = execution.units.iter().map(|u| u.len);
        stat.iterations = iterations.fold(stat.iterations, u64::saturating_add);
        stat.units_ns += time;
        stat.slowest_ns += slowest;
        if let Some(fetch) = fetch {
            stat.fetch_ns = Some(stat.fetch_ns.map_or(fetch, |f| f.min(fetch)));
        }
        let longest = execution.largest.map(|(rec, ticks, counts)| {
            let iterations = rec.extent.max(1);
            let key = (execution.site, rec.index);
            let largest = self.largest.entry(key).or_default();
            largest.first = rec.index;
            largest.iterations = largest.iterations.max(iterations);
            largest.ns += ticks;
            Longest {
                ns: ticks,
                iterations,
                counts,
            }
        });
        let longest = longest.unwrap_or_default();
        if stat.executions == 1 {
            (stat.counts, stat.longest) = (execution.counts, longest);
        } else {
            add(&mut stat.counts, execution.counts);
            stat.longest += longest;
        }
        stat.longest_first_ns += longest_first(&execution.units, team, fetch.unwrap_or(0));
        let units = Units::new(execution.units);
        let replayed = self.replayed.entry(execution.site).or_default();
        *replayed += count;
        let is_few = *replayed <= MOST_REPLAYED;
        let fetch = fetch.unwrap_or(0);
        if !is_few {
            return;
        }
        let schedules = self.schedules.entry(execution.site);
        let schedules = schedules.or_insert_with(|| candidates(&units, team));
        let candidates = &mut stat.candidates;
        if candidates.is_empty() {
            candidates.extend(schedules.iter().map(|&schedule| Candidate {
                schedule,
                ns: 0,
                assumes_equal: false,
            }));
        }
        for candidate in candidates {
            let replayed = units.replay_with(guided, candidate.schedule, team, fetch);
            candidate.ns += replayed.time;
            candidate.assumes_equal |= replayed.assumes_equal;
        }
    }

    /// All, by record's site, in ticks. What was replayed in part has no candidates: they would be sums of fewer executions.
    pub(super) fn finish(mut self) -> BTreeMap<u32, LoopAnalysis> {
        for (site, stat) in &mut self.by_site {
            if self.replayed.get(site).is_some_and(|&n| n > MOST_REPLAYED) {
                stat.candidates.clear();
            }
        }
        for ((site, _), largest) in self.largest {
            if let Some(stat) = self.by_site.get_mut(&site)
                && (largest.ns, -largest.first) > (stat.largest.ns, -stat.largest.first)
            {
                stat.largest = largest;
            }
        }
        self.by_site
    }
}

/// When a loop ends whose longest unit begins first, and the others as they did, each on the thread that is free first.
fn longest_first(units: &[Unit], team: u32, fetch: u64) -> u64 {
    let mut in_order: Vec<&Unit> = units.iter().collect();
    in_order.sort_unstable_by_key(|u| u.first);
    let longest = (0..in_order.len()).max_by_key(|&at| (in_order[at].time, std::cmp::Reverse(at)));
    if let Some(longest) = longest {
        in_order[..=longest].rotate_right(1);
    }
    let times = in_order.iter().map(|u| u.time.saturating_add(fetch));
    greedily(times, u64::from(team))
}

/// Adds counts. What isn't known of some isn't known of all.
pub(super) fn add(counts: &mut [Option<u64>; 2], more: [Option<u64>; 2]) {
    for (sum, count) in counts.iter_mut().zip(more) {
        *sum = sum.zip(count).map(|(s, c)| s + c);
    }
}

impl std::ops::AddAssign for Longest {
    fn add_assign(&mut self, more: Longest) {
        let Longest {
            ns,
            iterations,
            counts,
        } = more;
        self.ns += ns;
        self.iterations += iterations;
        add(&mut self.counts, counts);
    }
}

impl Execution {
    fn add(&mut self, rec: &Rec, time: u64, counts: [Option<u64>; 2], is_sections: bool) {
        self.units.push(Unit {
            first: rec.index,
            len: match is_sections {
                true => 1,
                false => rec.extent.max(1),
            },
            time,
        });
        *self.loads.entry(rec.thread).or_default() += time;
        if self.largest.is_none_or(|(_, ticks, _)| ticks < time) {
            self.largest = Some((*rec, time, counts));
        }
        add(&mut self.counts, counts);
    }
}
