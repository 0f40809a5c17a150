//! Sums over intervals of one kind, at one place, inside one parallel region.

use super::distribution::Distribution;
use super::sums::{Numbers, Sums};
use super::tree::PathKind;
use super::{EventOrigin, RegionStat, ThreadColumns};
use crate::run::NONE;
use crate::run::shared::{COLUMNS, scaled};
use crate::table::EventColumn;
use ompfuse_format::Construct;
use std::collections::{BTreeMap, HashMap, HashSet};

/// What intervals are summed up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) site: u32,
    pub(super) construct: Option<Construct>,
    /// Site of the innermost enclosing parallel region.
    pub(super) parallel: u32,
    /// See [`super::tree::Paths`].
    pub(super) path: u32,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Group {
    pub(super) instances: HashSet<(u16, u32, u128)>,
    /// Intervals that can't be told to be one instance.
    pub(super) single: u64,
    threads: BTreeMap<u32, OfThread>,
    /// Of units, where only sums were recorded.
    distribution: Option<Box<Distribution>>,
}

/// Of one thread. Counts are by column.
#[derive(Debug, Clone)]
struct OfThread {
    sums: Sums,
    counts: Vec<Option<u64>>,
}

impl OfThread {
    fn none(columns: usize) -> OfThread {
        OfThread {
            sums: Sums::NONE,
            counts: vec![Some(0); columns],
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Groups {
    index: HashMap<Key, usize>,
    groups: Vec<(Key, Group)>,
    /// Neighbouring rows are often alike.
    last: Option<(Key, usize)>,
}

impl Groups {
    pub(super) fn add(
        &mut self,
        key: Key,
        thread: u32,
        numbers: Numbers,
        (events, made_of): (&[EventColumn], &[EventColumn]),
        row: usize,
    ) -> &mut Group {
        let at = match self.last {
            Some((last, at)) if last == key => at,
            _ => self.at(key),
        };
        self.last = Some((key, at));
        let group = &mut self.groups[at].1;
        let none = || OfThread::none(events.len() + made_of.len());
        let of_thread = group.threads.entry(thread).or_insert_with(none);
        of_thread.sums.add(&numbers);
        let columns = events.iter().chain(made_of);
        for (total, column) in of_thread.counts.iter_mut().zip(columns) {
            // What is not known of a part is not known of the whole.
            *total = total.and_then(|t| Some(t.wrapping_add(column.get(row)?)));
        }
        group
    }

    fn at(&mut self, key: Key) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            self.groups.push((key, Group::default()));
            self.groups.len() - 1
        })
    }

    /// Takes over what was summed up elsewhere: threads' intervals, and their counts by column.
    pub(super) fn merge(
        &mut self,
        key: Key,
        instances: u64,
        threads: impl Iterator<Item = (u32, Sums, Vec<Option<u64>>)>,
        distribution: Option<Box<Distribution>>,
    ) {
        let at = self.at(key);
        let group = &mut self.groups[at].1;
        group.single += instances;
        threads.for_each(|(thread, sums, counts)| group.merge(thread, &OfThread { sums, counts }));
        group.take_over(distribution.as_deref());
    }

    /// Sums by place, kind and parallel region, and by path. `columns`: the events of the groups' counts; `made_of`: what scaled ones
    /// were made of (see [`crate::Run::xu_scaled`]); `events`: those of the summary, among which they are.
    pub(super) fn into_stats(
        self,
        columns: &[String],
        made_of: &[String],
        events: &[EventOrigin],
    ) -> (Vec<RegionStat>, HashMap<u32, Vec<PathKind>>) {
        let count = |counts: &[Option<u64>], event: &EventOrigin| {
            let is_it = |name: &String| *name == event.name;
            let Some(raw) = made_of.iter().position(is_it) else {
                return columns.iter().position(is_it).and_then(|c| counts[c]);
            };
            // Of the whole region's times, also where some of its parts saw nothing of the event.
            let sums = &counts[columns.len() + raw..][..COLUMNS];
            let &[Some(value), Some(running), Some(enabled)] = sums else {
                return None;
            };
            scaled(value, running, enabled)
        };
        let count = |counts: &[Option<u64>]| -> Vec<Option<u64>> {
            events.iter().map(|e| count(counts, e)).collect()
        };
        let width = columns.len() + made_of.len();
        let mut groups = self.groups;
        groups.sort_by_key(|(key, _)| (key.path, key.construct, key.parallel));
        let mut kinds: HashMap<u32, Vec<PathKind>> = HashMap::new();
        let same = |a: &(Key, Group), b: &(Key, Group)| {
            (a.0.path, a.0.construct) == (b.0.path, b.0.construct)
        };
        for same in groups.chunk_by(same) {
            let (key, whole) = (same[0].0, Group::sum(same));
            if let Some(construct) = key.construct {
                let by_thread = whole.threads.values().map(|t| count(&t.counts));
                kinds.entry(key.path).or_default().push(PathKind {
                    construct,
                    instances: whole.instances(),
                    counts: by_event(by_thread.collect(), events.len()),
                    threads: whole.in_order(),
                });
            }
        }
        groups.sort_by_key(|(key, _)| (key.site, key.construct, key.parallel, key.path));
        let place = |key: &Key| (key.site, key.construct, key.parallel);
        let flat = groups.chunk_by(|a, b| place(&a.0) == place(&b.0));
        let flat = flat.map(|same| {
            let (key, whole) = (same[0].0, Group::sum(same));
            RegionStat {
                site: (key.site != NONE).then_some(key.site),
                construct: key.construct,
                parallel: (key.parallel != NONE).then_some(key.parallel),
                instances: whole.instances(),
                counts: count(&whole.counts(width)),
                threads: whole.in_order(),
                distribution: (whole.distribution.clone()).map(|d| in_order(d, columns, events)),
            }
        });
        (flat.collect(), kinds)
    }
}

/// From each thread's counts to each event's; nothing for events of which no count is known.
fn by_event(by_thread: Vec<Vec<Option<u64>>>, events: usize) -> Vec<Vec<Option<u64>>> {
    let of_event = |at: usize| {
        let counts: Vec<Option<u64>> = by_thread.iter().map(|t| t[at]).collect();
        match counts.iter().any(Option::is_some) {
            true => counts,
            false => vec![],
        }
    };
    let all: Vec<Vec<Option<u64>>> = (0..events).map(of_event).collect();
    match all.iter().all(Vec::is_empty) {
        true => vec![],
        false => all,
    }
}

/// With the events' histograms in the order of a summary's events. `columns`: of its own.
fn in_order(
    mut distribution: Box<Distribution>,
    columns: &[String],
    events: &[EventOrigin],
) -> Box<Distribution> {
    let of = |event: &EventOrigin| {
        let at = columns.iter().position(|name| *name == event.name)?;
        distribution.events.get(at).cloned().flatten()
    };
    distribution.events = events.iter().map(of).collect();
    distribution
}

impl Group {
    fn instances(&self) -> u64 {
        self.instances.len() as u64 + self.single
    }

    /// Of groups that are summed up together; that no instance is in two of them is known.
    fn sum(groups: &[(Key, Group)]) -> std::borrow::Cow<'_, Group> {
        if let [(_, one)] = groups {
            return std::borrow::Cow::Borrowed(one);
        }
        let mut sum = Group::default();
        for (_, group) in groups {
            sum.single += group.instances();
            for (&thread, of_thread) in &group.threads {
                sum.merge(thread, of_thread);
            }
            sum.take_over(group.distribution.as_deref());
        }
        std::borrow::Cow::Owned(sum)
    }

    fn take_over(&mut self, distribution: Option<&Distribution>) {
        match (&mut self.distribution, distribution) {
            (Some(known), Some(new)) => known.merge(new.clone()),
            (known @ None, Some(new)) => *known = Some(Box::new(new.clone())),
            (_, None) => {}
        }
    }

    fn merge(&mut self, thread: u32, other: &OfThread) {
        let OfThread { sums, counts } = other;
        let none = || OfThread::none(counts.len());
        let of_thread = self.threads.entry(thread).or_insert_with(none);
        of_thread.sums.merge(sums);
        for (total, count) in of_thread.counts.iter_mut().zip(counts) {
            *total = total.and_then(|t| Some(t.wrapping_add((*count)?)));
        }
    }

    /// All threads' counts by column.
    fn counts(&self, columns: usize) -> Vec<Option<u64>> {
        let mut all = vec![Some(0u64); columns];
        for of_thread in self.threads.values() {
            for (total, count) in all.iter_mut().zip(&of_thread.counts) {
                *total = total.and_then(|t| Some(t.wrapping_add((*count)?)));
            }
        }
        all
    }

    /// The threads' columns, in their order.
    fn in_order(&self) -> ThreadColumns {
        let column = |of: fn(&Sums) -> u64| self.threads.values().map(|t| of(&t.sums)).collect();
        ThreadColumns {
            thread: self.threads.keys().copied().collect(),
            count: column(|s| s.totals.count),
            own_ns: column(|s| s.totals.own),
            wall_ns: column(|s| s.totals.wall),
            extent: column(|s| s.totals.extent),
            min_ns: column(|s| s.min),
            max_ns: column(|s| s.max),
            largest: column(|s| s.largest),
        }
    }
}
