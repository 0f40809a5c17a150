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
            let parent = path.parent.map(|parent| found[parent as usize]);
            let region = path.region.and_then(&number);
            let next = self.list.len() as u32;
            let at = *self.known.entry((parent, region)).or_insert(next);
            found.push(at);
            if at == next {
                self.list.push(CallPath::empty(parent, region, None));
            }
            let sum = &mut self.list[at as usize];
            sum.executions += path.executions;
            sum.exclusive_s += path.exclusive_s;
            sum.inclusive_s += path.inclusive_s;
            if let Some(wall_s) = path.wall_s {
                *sum.wall_s.get_or_insert(0.0) += wall_s;
            }
            for thread in &path.per_thread {
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

    /// The sums. `number`: of a region in the report.
    pub(super) fn finish(mut self, number: impl Fn(u32) -> Option<u32>) -> Vec<CallPath> {
        for path in &mut self.list {
            path.region = path.region.and_then(&number);
            path.per_thread.sort_by_key(|t| t.mpi_rank);
        }
        self.list
    }
}

fn add(sum: &mut CallPathThread, more: &CallPathThread) {
    // What is not known of a thread with time is not known of all. A thread without time has no counts.
    let both = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b);
    let is_empty = |t: &CallPathThread| t.inclusive_s == 0.0 && t.events.is_empty();
    if is_empty(sum) {
        sum.events.clone_from(&more.events);
    } else if !is_empty(more) {
        sum.events.retain(|name, _| more.events.contains_key(name));
        for (name, count) in &mut sum.events {
            let other: PathCount = more.events[name];
            count.exclusive = both(count.exclusive, other.exclusive);
            count.inclusive = both(count.inclusive, other.inclusive);
        }
    }
    sum.exclusive_s += more.exclusive_s;
    sum.inclusive_s += more.inclusive_s;
    if let Some(visits) = more.visits {
        *sum.visits.get_or_insert(0) += visits;
    }
    for (&class, seconds) in &more.classes {
        *sum.classes.entry(class).or_default() += seconds;
    }
    if let Some(idle_s) = more.idle_s {
        *sum.idle_s.get_or_insert(0.0) += idle_s;
    }
}
