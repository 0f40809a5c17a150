//! What a thread's records add up to, beside what its counters showed at its begin and end.

use super::clock::Clock;
use super::{CountAccount, ThreadAccount};
use ompfuse_format::event::exact;
use ompfuse_format::record::sums::{Intervals, interval};
use ompfuse_format::record::{Interval, MAX_COUNTERS, NOT_COUNTED, ThreadHeader};

/// Sums over a thread's intervals.
#[derive(Debug)]
pub(super) struct Account {
    own_ticks: u64,
    own_counts: [u64; MAX_COUNTERS],
    gaps: [u64; MAX_COUNTERS],
    /// Nothing was counted but by the first set's counters: sums can be compared with their readings.
    is_whole: bool,
    /// Counters are read for units on record only.
    for_units: bool,
}

impl Account {
    /// Of no interval yet.
    pub(super) fn new(header: &ThreadHeader) -> Account {
        Account {
            own_ticks: 0,
            own_counts: [0; MAX_COUNTERS],
            gaps: [0; MAX_COUNTERS],
            is_whole: header.unrecorded_ticks == 0 || header.reads_for_units != 0,
            for_units: header.reads_for_units != 0,
        }
    }

    /// The next interval.
    #[inline]
    pub(super) fn add(&mut self, interval: &Interval<'_>) {
        self.own_ticks = self.own_ticks.wrapping_add(interval.own_ticks);
        self.is_whole &= interval.set == 0;
        if interval.set != 0 {
            return; // of other events
        }
        for (at, count) in interval.counts.iter().enumerate() {
            match count {
                // Where counters are read for units on record only, others have no counts.
                NOT_COUNTED if self.for_units && !interval.construct.is_xu() => {}
                NOT_COUNTED => self.gaps[at] += 1,
                count => self.own_counts[at] = self.own_counts[at].wrapping_add(count),
            }
        }
    }

    /// Intervals of one kind, of which the thread has kept sums.
    pub(super) fn add_sums(&mut self, i: &Intervals<'_>) {
        self.own_ticks = self.own_ticks.wrapping_add(i.sum(interval::OWN));
        for (at, count) in i.counts().enumerate() {
            match count {
                NOT_COUNTED => self.gaps[at] += 1,
                count => self.own_counts[at] = self.own_counts[at].wrapping_add(count),
            }
        }
    }

    /// The account, but for the process and whether the thread is a root. `events`: those that have a column; `first`: their
    /// counters in the first event set.
    pub(super) fn finish(
        &self,
        header: &ThreadHeader,
        clock: &Clock,
        events: &[String],
        first: &[Option<usize>],
    ) -> ThreadAccount {
        let ended = header.tsc_end != 0;
        let ticks = header.tsc_end.wrapping_sub(header.tsc_start);
        let ticks = ticks.wrapping_sub(header.ours_ticks);
        let counts = events.iter().zip(first).filter_map(|(event, c)| {
            let c = c.filter(|&c| c < header.counters as usize)?;
            let total = header.counts_end[c].wrapping_sub(header.counts_start[c]);
            let nobodys = header.unattributed[c];
            // What patched code counts is read at any time; a gap is code that doesn't count.
            let is_read = self.gaps[c] == 0 || exact::is(event);
            let is_whole = self.is_whole && header.counts_end[c] != NOT_COUNTED;
            let is_known = ended && is_whole && is_read && nobodys != NOT_COUNTED;
            Some(CountAccount {
                event: event.clone(),
                own: self.own_counts[c],
                unattributed: (self.for_units)
                    .then_some(nobodys)
                    .filter(|&n| n != NOT_COUNTED),
                total: is_known.then_some(total),
                gaps: self.gaps[c],
            })
        });
        ThreadAccount {
            process: 0,
            index: header.index,
            tid: header.tid,
            name: header.name().map(str::to_owned),
            root: false,
            lost: header.lost,
            own_ticks: self.own_ticks,
            unrecorded_ticks: header.unrecorded_ticks,
            total_ticks: ended.then_some(ticks),
            total_ns: ended.then(|| clock.length(ticks)),
            begin_ns: clock.at(header.tsc_start),
            end_ns: ended.then(|| clock.at(header.tsc_end)),
            prepared_ns: clock.length(header.prepared_ticks),
            ours_ns: clock.length(header.ours_ticks),
            completed_ns: clock.length(header.completed_ticks),
            queued_ns: header.queued_ns(),
            queued_before_ns: header.queued_before_ns(),
            ran_ns: header.ran_ns(),
            counts: counts.collect(),
        }
    }
}

/// Accounts of all threads of a process. The first of them runs the program's own code if none is known to. A thread that has the name of
/// the first one has none of its own: it has inherited that.
pub(super) fn with_a_root(mut threads: Vec<ThreadAccount>) -> Vec<ThreadAccount> {
    if !threads.iter().any(|t| t.root)
        && let Some(first) = threads.iter_mut().min_by_key(|t| t.index)
    {
        first.root = true;
    }
    let first = threads.iter().min_by_key(|t| t.tid);
    let first = first.and_then(|t| t.name.clone());
    for thread in &mut threads {
        thread.name = thread
            .name
            .take()
            .filter(|name| Some(name) != first.as_ref());
    }
    threads
}
