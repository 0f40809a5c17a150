//! Recorded time by process, state and place.

use super::super::indexed::Indexed;
use super::super::overhead::Parts;
use crate::model::account::State;
use ompfuse_format::Construct;
use ompfuse_format::construct::Charge;
use ompfuse_fuse::run::Within;
use ompfuse_fuse::summary::{ParallelStat, RegionStat, Summary, ThreadColumns};
use std::collections::BTreeMap;

/// Why the time of a process that ended inside of something is unknown.
pub(super) const NOT_ENDED: &str = "not-ended";

/// Nanoseconds that rounding may make of an interval.
const ROUNDED: u64 = 4;

/// What time is summed up by.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) state: State,
    pub(super) parallel: Option<u32>,
    pub(super) site: Option<u32>,
    pub(super) what: String,
}

/// By process: nanoseconds, and number of occurrences.
#[derive(Debug, Default)]
pub(super) struct Sums(BTreeMap<u16, BTreeMap<Key, (u64, u64)>>);

/// Where something happened.
type Place = (Option<u32>, Option<u32>);

impl Sums {
    pub(super) fn put(
        &mut self,
        process: u16,
        state: State,
        (parallel, site): Place,
        what: impl Into<String>,
        (ns, count): (u64, u64),
    ) {
        if ns == 0 && count == 0 {
            return;
        }
        let key = Key {
            state,
            parallel,
            site,
            what: what.into(),
        };
        let sum = self.0.entry(process).or_default().entry(key).or_default();
        sum.0 += ns;
        sum.1 += count;
    }

    /// A process's.
    pub(super) fn of(&self, process: usize) -> impl Iterator<Item = (&Key, (u64, u64))> {
        let of_process = self.0.get(&(process as u16)).into_iter().flatten();
        of_process.map(|(key, sum)| (key, *sum))
    }

    /// All processes'.
    pub(super) fn all(&self) -> impl Iterator<Item = (&Key, (u64, u64))> {
        let all = self.0.values().flatten();
        all.map(|(key, sum)| (key, *sum))
    }

    /// All intervals' own time. What workers do outside of regions is idle, and follows from the others.
    pub(super) fn add_recorded(&mut self, summary: &Indexed<'_>) {
        for region in &summary.regions {
            for (process, region) in by_process(summary, region) {
                self.add_region(summary, process, &region);
            }
        }
    }

    fn add_region(&mut self, summary: &Indexed<'_>, process: u16, region: &RegionStat) {
        let place = (region.parallel, region.site);
        let Some(construct) = region.construct else {
            return self.put(process, State::Useful, place, "unit", sum(region));
        };
        match state(construct) {
            _ if construct == Construct::Program => {
                let columns = region.threads.thread.iter().zip(&region.threads.own_ns);
                for (_, &own) in columns.filter(|(thread, _)| is_root(summary, **thread)) {
                    self.put(process, State::Serial, (None, None), "program", (own, 1));
                }
            }
            _ if region.parallel.is_none() && summary.has_exited_inside(process) => {
                self.put(process, State::Unknown, place, NOT_ENDED, sum(region));
            }
            _ if region.site.is_none() => {
                let what = "unknown-place";
                self.put(process, State::Unknown, place, what, sum(region));
            }
            Some(State::Useful) if region.parallel.is_none() => {
                self.put(process, State::Serial, place, construct.name(), sum(region));
            }
            Some(state) => self.put(process, state, place, construct.name(), sum(region)),
            // What a fork's own time is spent on is told by its executions.
            None if construct.is_fork() => {}
            None => {
                let mut parts = Parts::default();
                parts.add_region(summary, region);
                self.add_parts(process, place, parts);
            }
        }
    }

    fn add_parts(&mut self, process: u16, place: Place, parts: Parts) {
        for ((class, what), sum) in parts.into_list() {
            self.put(process, State::of_class(class), place, what, sum);
        }
    }

    /// What was executed and not recorded as units: its time is known by place. Of several processes it isn't known by process.
    pub(super) fn add_left_out(&mut self, summary: &Indexed<'_>) {
        if summary.own.len() != 1 {
            return;
        }
        for left_out in &summary.left_out {
            let parallel = match left_out.within {
                Within::Part(parallel) | Within::Behind(parallel) => Some(parallel),
                Within::Outside => None,
                Within::Unknown => continue,
            };
            let place = (parallel, Some(left_out.site));
            let of = (left_out.own_ns, left_out.count);
            let construct = left_out.construct;
            match state(construct) {
                Some(State::Useful) if parallel.is_none() => {
                    self.put(0, State::Serial, place, construct.name(), of);
                }
                Some(state) => self.put(0, state, place, construct.name(), of),
                None if construct.is_fork() => {}
                None => {
                    let mut parts = Parts::default();
                    parts.add_unrecorded(summary, left_out, parallel);
                    self.add_parts(0, place, parts);
                }
            }
        }
    }

    /// What exit handlers and destructors did after the records were complete.
    pub(super) fn add_handlers(&mut self, summary: &Indexed<'_>) {
        for (process, own) in (0..).zip(&summary.own) {
            let of = (own.handlers_ns, 0);
            self.put(process, State::Serial, (None, None), "program", of);
        }
    }

    /// What threads do between a region's fork and join around their parts of it.
    pub(super) fn add_around_parts(&mut self, summary: &Indexed<'_>) {
        for stat in &summary.parallel {
            let processes = 0..summary.own.len() as u16;
            for process in processes {
                self.add_around(summary, stat, process);
            }
        }
    }

    fn add_around(&mut self, summary: &Indexed<'_>, stat: &ParallelStat, process: u16) {
        let columns = &stat.team_parts;
        let is_its = |thread: u32| process_of(summary, thread) == Some(process);
        let rows: Vec<usize> = (0..columns.thread.len())
            .filter(|&row| is_its(columns.thread[row]))
            .collect();
        let total = |column: &[u64]| rows.iter().map(|&row| column[row]).sum::<u64>();
        let of_process = |mut part: ParallelStat| {
            part.startup_ns = total(&columns.startup_ns);
            part.imbalance_ns = total(&columns.barrier_ns);
            part.shutdown_ns = total(&columns.shutdown_ns);
            part.limited_ns = match stat.imbalance_ns {
                0 => 0,
                all => {
                    (u128::from(stat.limited_ns) * u128::from(part.imbalance_ns) / u128::from(all))
                        as u64
                }
            };
            part
        };
        let part = match summary.own.len() {
            1 => stat.clone(),
            _ => of_process(stat.clone()),
        };
        let mut parts = Parts::default();
        parts.add_region_end(summary, &part);
        let told: u64 = parts.sum();
        let place = (stat.site, stat.site);
        self.add_parts(process, place, parts);
        // The fork's own time and what workers waited are on record as well: what is more than that has no known part.
        let forks = summary.at_site(stat.site.unwrap_or(u32::MAX)).iter();
        let forks = forks.filter(|r| r.construct.is_some_and(Construct::is_fork));
        let own = |columns: &ThreadColumns| -> u64 {
            let threads = columns.thread.iter().zip(&columns.own_ns);
            threads
                .filter(|(t, _)| is_its(**t))
                .map(|(_, own)| own)
                .sum()
        };
        let own: u64 = forks.map(|r| own(&r.threads)).sum();
        let waits = stat.workers.thread.iter().zip(&stat.workers.ns);
        let waited: u64 = waits.filter(|(t, _)| is_its(**t)).map(|(_, ns)| ns).sum();
        let rounded = ROUNDED * stat.executions * stat.team.max(1) + 1000;
        let missing = (own + waited).saturating_sub(told);
        if missing > rounded.max(told / 1000) {
            let sum = (missing, stat.executions - stat.measured);
            self.put(process, State::Unknown, place, "missing-parts", sum);
        }
    }
}

/// The state of a kind's own time; `None`: it waits or manages, for one or the other reason.
fn state(construct: Construct) -> Option<State> {
    match construct {
        Construct::Io => Some(State::Io),
        Construct::Mpi => Some(State::Communication),
        c if c.is_call() => Some(State::Call),
        c if c.charges_to() == Charge::Work => Some(State::Useful),
        _ => None,
    }
}

/// Whether it is the program's code in parallel regions.
pub(in crate::from_summary) fn of_work(region: &RegionStat) -> bool {
    let is_useful = |c: Construct| c != Construct::Program && state(c) == Some(State::Useful);
    let is_known = region.site.is_some() && region.parallel.is_some();
    is_known && region.construct.is_none_or(is_useful)
}

fn sum(region: &RegionStat) -> (u64, u64) {
    (region.own_ns(), region.count())
}

/// Whether a thread's code outside of constructs is the program's.
pub(super) fn is_root(summary: &Summary, thread: u32) -> bool {
    (summary.accounts.get(thread as usize)).is_some_and(|a| a.root)
}

fn process_of(summary: &Summary, thread: u32) -> Option<u16> {
    (summary.accounts.get(thread as usize)).map(|a| a.process)
}

/// Sums of a region by process.
fn by_process<'r>(
    summary: &Summary,
    region: &'r RegionStat,
) -> Vec<(u16, std::borrow::Cow<'r, RegionStat>)> {
    if summary.own.len() == 1 {
        return vec![(0, std::borrow::Cow::Borrowed(region))];
    }
    let mut rows: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (row, &thread) in region.threads.thread.iter().enumerate() {
        let process = process_of(summary, thread).unwrap_or(0);
        rows.entry(process).or_default().push(row);
    }
    let part = |(process, rows): (u16, Vec<usize>)| {
        let of = |column: &[u64]| {
            rows.iter()
                .filter_map(|&r| column.get(r))
                .copied()
                .collect()
        };
        let all = &region.threads;
        let threads = ThreadColumns {
            thread: rows.iter().map(|&row| all.thread[row]).collect(),
            count: of(&all.count),
            own_ns: of(&all.own_ns),
            wall_ns: of(&all.wall_ns),
            extent: of(&all.extent),
            min_ns: of(&all.min_ns),
            max_ns: of(&all.max_ns),
            largest: of(&all.largest),
        };
        let part = RegionStat {
            threads,
            counts: vec![],
            distribution: None,
            ..region.clone()
        };
        (process, std::borrow::Cow::Owned(part))
    };
    rows.into_iter().map(part).collect()
}

/// Threads of a process that are roots: time of theirs outside of regions in a state, in nanoseconds.
pub(super) fn outside(sums: &Sums, process: usize, states: &[State]) -> u64 {
    let all = sums.of(process);
    all.filter(|(key, _)| key.parallel.is_none() && states.contains(&key.state))
        .map(|(_, (ns, _))| ns)
        .sum()
}
