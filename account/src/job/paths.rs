//! Call paths with one entry for each rank: threads and the functions that led to regions are summed up.

use crate::model::{CallPath, CallPathThread, PathCount};
use std::collections::HashMap;

/// Paths while they are added up. Each comes after the one around it.
#[derive(Debug, Default)]
pub(super) struct Paths {
    list: Vec<CallPath>,
    /// By the path around and the region.
    known: HashMap<(Option<u32>, Option<u32>), u32>,
    /// By path and rank the position in its list.
    ranks: HashMap<(u32, Option<u32>), usize>,
}

impl Paths {
    /// Adds paths. `number`: of a region in the sum.
    pub(super) fn add(&mut self, paths: &[CallPath], number: impl Fn(u32) -> Option<u32>) {
        let mut found: Vec<u32> = Vec::with_capacity(paths.len());
        for path in paths {
            let CallPath {
                parent,
                region,
                context: _, // where it was called from is left out
                executions,
                wall_s,
                exclusive_s,
                inclusive_s,
                per_thread,
                events: _, // by rank only
            } = path;
            let parent = parent.map(|parent| found[parent as usize]);
            let region = region.and_then(&number);
            let next = self.list.len() as u32;
            let at = *self.known.entry((parent, region)).or_insert(next);
            found.push(at);
            if at == next {
                self.list.push(CallPath::empty(parent, region, None));
            }
            let sum = &mut self.list[at as usize];
            sum.executions += executions;
            sum.exclusive_s += exclusive_s;
            sum.inclusive_s += inclusive_s;
            if let Some(wall_s) = wall_s {
                *sum.wall_s.get_or_insert(0.0) += wall_s;
            }
            for thread in per_thread {
                let next = sum.per_thread.len();
                let place = *self.ranks.entry((at, thread.mpi_rank)).or_insert(next);
                if place == next {
                    sum.per_thread.push(CallPathThread {
                        process: None,
                        thread: 0,
                        ..thread.clone()
                    });
                } else {
                    add(&mut sum.per_thread[place], thread);
                }
            }
        }
    }

    /// The sums, each behind the one around it, in the order of regions. `number`: of a region in the report.
    pub(super) fn finish(mut self, number: impl Fn(u32) -> Option<u32>) -> Vec<CallPath> {
        let mut inside: Vec<Vec<usize>> = vec![vec![]; self.list.len()];
        let mut next: Vec<usize> = vec![];
        for (at, path) in self.list.iter_mut().enumerate() {
            path.region = path.region.and_then(&number);
            path.per_thread.sort_by_key(|t| t.mpi_rank);
            let siblings = path.parent.map(|parent| &mut inside[parent as usize]);
            siblings.unwrap_or(&mut next).push(at);
        }
        let last_first = |some: &mut Vec<usize>| {
            some.sort_by_key(|&at| std::cmp::Reverse(self.list[at].region));
        };
        last_first(&mut next);
        inside.iter_mut().for_each(last_first);
        let mut place = vec![0; self.list.len()];
        let mut ordered = Vec::with_capacity(self.list.len());
        while let Some(at) = next.pop() {
            place[at] = ordered.len() as u32;
            next.append(&mut inside[at]);
            let path = &self.list[at];
            let parent = path.parent.map(|parent| place[parent as usize]);
            ordered.push(CallPath {
                parent,
                ..path.clone()
            });
        }
        ordered
    }
}

fn add(sum: &mut CallPathThread, more: &CallPathThread) {
    let CallPathThread {
        process: _,
        mpi_rank: _,
        thread: _,
        exclusive_s,
        inclusive_s,
        visits,
        classes,
        idle_s,
        events,
    } = more;
    // What is not known of a thread with time is not known of all. A thread without time has no counts.
    let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    let is_empty = |t: &CallPathThread| t.inclusive_s == 0.0 && t.events.is_empty();
    if is_empty(sum) {
        sum.events.clone_from(events);
    } else if !is_empty(more) {
        sum.events.retain(|name, _| events.contains_key(name));
        for (name, count) in &mut sum.events {
            let PathCount {
                exclusive,
                inclusive,
            } = events[name];
            count.exclusive = both(count.exclusive, exclusive);
            count.inclusive = both(count.inclusive, inclusive);
        }
    }
    sum.exclusive_s += exclusive_s;
    sum.inclusive_s += inclusive_s;
    if let Some(visits) = visits {
        *sum.visits.get_or_insert(0) += visits;
    }
    for (&class, seconds) in classes {
        *sum.classes.entry(class).or_default() += seconds;
    }
    if let Some(idle_s) = idle_s {
        *sum.idle_s.get_or_insert(0.0) += idle_s;
    }
}
