//! Sums of what happened in one execution of a parallel region, before it is known whether that is on record, and those of all.

use super::super::distribution::Distribution;
use super::super::parallel::is_busy;
use super::super::sums::{Numbers, Sums};
use ompfuse_format::Construct;
use ompfuse_format::record::Step;
use rustc_hash::FxHashMap;
use std::collections::HashSet;

/// What is summed up together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct What {
    /// Record's site of a region.
    pub(super) site: u32,
    /// Kind.
    pub(super) construct: Construct,
    /// The region's path.
    pub(super) path: u32,
}

/// Sums of one execution of a region.
#[derive(Debug, Default)]
pub(super) struct InRegion {
    entries: Vec<Entry>,
    /// Where they are, if there are many.
    at: FxHashMap<What, usize>,
}

/// Of one kind at one place.
#[derive(Debug)]
struct Entry {
    what: What,
    instances: u64,
    ranks: Ranks,
    threads: Vec<(u32, Sums)>,
    /// By thread, in the order of `threads`, and column.
    counts: Vec<Option<u64>>,
    /// Where its sums go: where the region is on record, and where it isn't.
    whole: [Option<usize>; 2],
}

/// Entries that are looked through one by one.
const FEW: usize = 8;

/// Where a thread's last sums are.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    entry: u32,
    thread: u32,
}

impl InRegion {
    /// Where a thread's sums of something are.
    pub(super) fn find(&mut self, what: What, thread: u32, columns: usize) -> At {
        let few = &self.entries[..self.entries.len().min(FEW)];
        let entry = few.iter().position(|e| e.what == what);
        let entry = entry.or_else(|| self.at.get(&what).copied());
        let entry = entry.unwrap_or_else(|| {
            if self.entries.len() >= FEW {
                self.at.insert(what, self.entries.len());
            }
            self.entries.push(Entry {
                what,
                instances: 0,
                ranks: Ranks::default(),
                threads: vec![],
                counts: vec![],
                whole: [None; 2],
            });
            self.entries.len() - 1
        });
        let Entry {
            threads, counts, ..
        } = &mut self.entries[entry];
        let at = threads.iter().position(|(t, _)| *t == thread);
        let at = at.unwrap_or_else(|| {
            threads.push((thread, Sums::NONE));
            counts.resize(threads.len() * columns, Some(0));
            threads.len() - 1
        });
        At {
            entry: entry as u32,
            thread: at as u32,
        }
    }

    /// Adds an interval. `count`: of each column.
    #[inline]
    pub(super) fn add(&mut self, at: At, numbers: &Numbers, count: impl Fn(usize) -> Option<u64>) {
        let entry = &mut self.entries[at.entry as usize];
        let thread = at.thread as usize;
        entry.threads[thread].1.add(numbers);
        let columns = entry.counts.len() / entry.threads.len();
        let counts = &mut entry.counts[thread * columns..][..columns];
        for (column, total) in counts.iter_mut().enumerate() {
            // What is not known of a part is not known of the whole.
            *total = total.and_then(|t| Some(t.wrapping_add(count(column)?)));
        }
    }

    /// Counts an instance that no other interval tells of.
    #[inline]
    pub(super) fn count(&mut self, at: At) {
        self.entries[at.entry as usize].instances += 1;
    }

    /// Counts an instance that several threads may have met: it is told by its place among its siblings.
    #[inline]
    pub(super) fn count_shared(&mut self, at: At, step: Step, index: i64) {
        let entry = &mut self.entries[at.entry as usize];
        entry.instances += u64::from(entry.ranks.insert(step, index));
    }

    /// Nanoseconds that the thread with the most of the program's code has worked, calls of other libraries included.
    pub(super) fn busiest(&self) -> u64 {
        let mut threads: Vec<(u32, u64)> = vec![];
        for entry in self.entries.iter().filter(|e| is_busy(e.what.construct)) {
            for (thread, sums) in &entry.threads {
                match threads.iter_mut().find(|(t, _)| t == thread) {
                    Some((_, ns)) => *ns = ns.saturating_add(sums.totals.own),
                    None => threads.push((*thread, sums.totals.own)),
                }
            }
        }
        threads.into_iter().map(|(_, ns)| ns).max().unwrap_or(0)
    }

    /// Hands the sums over, and begins anew.
    pub(super) fn give(&mut self, all: &mut AllSums, parallel: Option<u32>) {
        let is_recorded = usize::from(parallel.is_some());
        for entry in &mut self.entries {
            if entry.threads.is_empty() {
                continue;
            }
            let key = (entry.what, parallel);
            let whole = *entry.whole[is_recorded].get_or_insert_with(|| all.at(key));
            let whole = &mut all.list[whole].1;
            whole.instances += entry.instances;
            let columns = entry.counts.len() / entry.threads.len();
            for (at, (thread, sums)) in entry.threads.drain(..).enumerate() {
                let thread = thread as usize;
                if whole.threads.len() <= thread {
                    whole.threads.resize(thread + 1, Sums::NONE);
                    whole.counts.resize((thread + 1) * columns, Some(0));
                }
                whole.threads[thread].merge(&sums);
                let totals = &mut whole.counts[thread * columns..][..columns];
                let counts = &entry.counts[at * columns..][..columns];
                for (total, count) in totals.iter_mut().zip(counts) {
                    *total = total.and_then(|t| Some(t.wrapping_add((*count)?)));
                }
            }
            entry.counts.clear();
            entry.instances = 0;
            entry.ranks.clear();
        }
    }
}

/// Places among siblings.
#[derive(Debug, Default)]
struct Ranks {
    step: Option<Step>,
    /// A bit for each of the usual step.
    dense: Vec<u64>,
    others: HashSet<(Step, i64)>,
    count: usize,
}

impl Ranks {
    #[inline]
    fn insert(&mut self, step: Step, index: i64) -> bool {
        let usual = *self.step.get_or_insert(step);
        // No more memory than 64 times what is in it.
        let most = 64 * 64 * (self.count + 64);
        let is_new = match usize::try_from(index) {
            Ok(at) if step == usual && at < most => {
                let word = at / 64;
                if self.dense.len() <= word {
                    self.dense.resize(word + 1, 0);
                }
                let bit = 1 << (at % 64);
                let is_new = self.dense[word] & bit == 0;
                self.dense[word] |= bit;
                is_new && (self.others.is_empty() || !self.others.contains(&(step, index)))
            }
            _ => self.others.insert((step, index)),
        };
        self.count += usize::from(is_new);
        is_new
    }

    fn clear(&mut self) {
        self.dense.clear();
        self.count = 0;
        if !self.others.is_empty() {
            self.others.clear();
        }
    }
}

/// Sums over all executions.
#[derive(Debug, Default)]
pub(super) struct AllSums {
    index: FxHashMap<Key, usize>,
    list: Vec<(Key, Whole)>,
}

/// What is summed up, and the record's site of the region around it, if that execution is on record.
pub(super) type Key = (What, Option<u32>);

/// Of all executions.
#[derive(Debug, Default)]
pub(super) struct Whole {
    pub(super) instances: u64,
    /// By thread.
    pub(super) threads: Vec<Sums>,
    /// By thread and column.
    pub(super) counts: Vec<Option<u64>>,
    /// Of units, where only sums were recorded.
    pub(super) distribution: Option<Box<Distribution>>,
}

impl AllSums {
    fn at(&mut self, key: Key) -> usize {
        *self.index.entry(key).or_insert_with(|| {
            self.list.push((key, Whole::default()));
            self.list.len() - 1
        })
    }

    pub(super) fn into_list(self) -> Vec<(Key, Whole)> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_once() {
        let mut ranks = Ranks::default();
        assert!(ranks.insert(Step::Ranked, 1) && !ranks.insert(Step::Ranked, 1));
        assert!(ranks.insert(Step::TidRanked, 1) && !ranks.insert(Step::TidRanked, 1));
        for far in [-1, i64::MAX, 1 << 40] {
            assert!(ranks.insert(Step::Ranked, far) && !ranks.insert(Step::Ranked, far));
        }
        // What was far becomes near.
        let far = 64 * 64 * 70;
        assert!(ranks.insert(Step::Ranked, far));
        assert!((2..50_000).all(|rank| ranks.insert(Step::Ranked, rank)));
        assert!(!ranks.insert(Step::Ranked, far));
        ranks.clear();
        assert!(ranks.insert(Step::Ranked, 1) && ranks.dense.len() == 1);
    }
}
