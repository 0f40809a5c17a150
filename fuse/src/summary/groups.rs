//! Sums over intervals of one kind, at one place, inside one parallel region.

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

/// One interval's numbers.
pub(super) struct Numbers {
    pub(super) own_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) extent: u64,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) instances: HashSet<(u16, u32, u128)>,
    /// Intervals that can't be told to be one instance.
    pub(super) single: u64,
    threads: BTreeMap<u32, usize>,
    columns: ThreadColumns,
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
        group.add(thread, &numbers);
        for (total, column) in group.counts.iter_mut().zip(events.iter().chain(made_of)) {
            // What is not known of a part is not known of the whole.
            *total = total.and_then(|t| Some(t.wrapping_add(column.get(row)?)));
        }
        group
    }

    /// `columns`: the events of the groups' counts; `made_of`: what scaled ones were made of (see [`Run::xu_scaled`]); `events`: those
    /// of the summary, among which they are.
    pub(super) fn into_stats(
        self,
        columns: &[EventColumn],
        made_of: &[EventColumn],
        events: &[EventOrigin],
    ) -> Vec<RegionStat> {
        let count = |group: &Group, event: &EventOrigin| {
            let is_it = |c: &EventColumn| c.name == event.name;
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
                threads: group.columns,
            })
            .collect()
    }
}

impl Group {
    fn add(&mut self, thread: u32, numbers: &Numbers) {
        let columns = &mut self.columns;
        let at = *self.threads.entry(thread).or_insert_with(|| {
            columns.thread.push(thread);
            for column in [
                &mut columns.count,
                &mut columns.own_ns,
                &mut columns.wall_ns,
                &mut columns.extent,
            ] {
                column.push(0);
            }
            columns.max_ns.push(0);
            columns.min_ns.push(u64::MAX);
            columns.thread.len() - 1
        });
        columns.count[at] += 1;
        columns.own_ns[at] += numbers.own_ns;
        columns.wall_ns[at] += numbers.wall_ns;
        columns.extent[at] = columns.extent[at].saturating_add(numbers.extent);
        columns.min_ns[at] = columns.min_ns[at].min(numbers.own_ns);
        columns.max_ns[at] = columns.max_ns[at].max(numbers.own_ns);
    }
}
