//! Sums over intervals of one kind, at one place, inside one parallel region.

use super::sums::{Numbers, Sums};
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
}

#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) instances: HashSet<(u16, u32, u128)>,
    /// Intervals that can't be told to be one instance.
    pub(super) single: u64,
    threads: BTreeMap<u32, Sums>,
    counts: Vec<Option<u64>>,
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
            _ => *self.index.entry(key).or_insert_with(|| {
                self.groups.push((
                    key,
                    Group {
                        counts: vec![Some(0); events.len() + made_of.len()],
                        ..Group::default()
                    },
                ));
                self.groups.len() - 1
            }),
        };
        self.last = Some((key, at));
        let group = &mut self.groups[at].1;
        (group.threads.entry(thread).or_insert(Sums::NONE)).add(&numbers);
        for (total, column) in group.counts.iter_mut().zip(events.iter().chain(made_of)) {
            // What is not known of a part is not known of the whole.
            *total = total.and_then(|t| Some(t.wrapping_add(column.get(row)?)));
        }
        group
    }

    /// Takes over what was summed up elsewhere: a thread's intervals.
    pub(super) fn merge(
        &mut self,
        key: Key,
        instances: u64,
        counts: &[Option<u64>],
        threads: impl Iterator<Item = (u32, Sums)>,
    ) {
        let at = *self.index.entry(key).or_insert_with(|| {
            let new = Group {
                counts: vec![Some(0); counts.len()],
                ..Group::default()
            };
            self.groups.push((key, new));
            self.groups.len() - 1
        });
        let group = &mut self.groups[at].1;
        group.single += instances;
        for (total, count) in group.counts.iter_mut().zip(counts) {
            *total = total.and_then(|t| Some(t.wrapping_add((*count)?)));
        }
        threads.for_each(|(thread, sums)| group.merge(thread, &sums));
    }

    /// `columns`: the events of the groups' counts; `made_of`: what scaled ones were made of (see [`crate::Run::xu_scaled`]);
    /// `events`: those of the summary, among which they are.
    pub(super) fn into_stats(
        self,
        columns: &[String],
        made_of: &[String],
        events: &[EventOrigin],
    ) -> Vec<RegionStat> {
        let count = |group: &Group, event: &EventOrigin| {
            let is_it = |name: &String| *name == event.name;
            let Some(raw) = made_of.iter().position(is_it) else {
                return columns.iter().position(is_it).and_then(|c| group.counts[c]);
            };
            // Of the whole region's times, also where some of its parts saw nothing of the event.
            let sums = &group.counts[columns.len() + raw..][..COLUMNS];
            let &[Some(value), Some(running), Some(enabled)] = sums else {
                return None;
            };
            scaled(value, running, enabled)
        };
        let mut groups = self.groups;
        groups.sort_by_key(|(key, _)| *key);
        groups
            .into_iter()
            .map(|(key, group)| RegionStat {
                site: (key.site != NONE).then_some(key.site),
                construct: key.construct,
                parallel: (key.parallel != NONE).then_some(key.parallel),
                instances: group.instances.len() as u64 + group.single,
                counts: events.iter().map(|e| count(&group, e)).collect(),
                threads: group.in_order(),
            })
            .collect()
    }
}

impl Group {
    fn merge(&mut self, thread: u32, sums: &Sums) {
        self.threads.entry(thread).or_insert(Sums::NONE).merge(sums);
    }

    /// The threads' columns, in their order.
    fn in_order(&self) -> ThreadColumns {
        let column = |of: fn(&Sums) -> u64| self.threads.values().map(of).collect();
        ThreadColumns {
            thread: self.threads.keys().copied().collect(),
            count: column(|s| s.totals.count),
            own_ns: column(|s| s.totals.own),
            wall_ns: column(|s| s.totals.wall),
            extent: column(|s| s.totals.extent),
            min_ns: column(|s| s.min),
            max_ns: column(|s| s.max),
        }
    }
}
