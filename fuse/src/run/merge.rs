//! The records of a process's threads in one sequence: intervals in the order of their ends.

use ompfuse_format::record::{Interval, Record, RecordError, Records};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// See [`Merge::next`].
#[derive(Debug)]
pub(crate) struct Merge<'a> {
    threads: Vec<Cursor<'a>>,
    /// Those that have a next interval, by its end, but for the current one.
    others: BinaryHeap<Reverse<(u64, usize)>>,
    current: Option<usize>,
}

#[derive(Debug)]
struct Cursor<'a> {
    records: Records<'a>,
    /// Its next interval.
    head: Option<Interval<'a>>,
    /// The latest end: a thread's records stay in their order, whatever their times are.
    end: u64,
}

impl<'a> Merge<'a> {
    /// Of threads. `other` is told of every record that is no interval as soon as all intervals before it were handed out:
    /// what identifies a construct comes early so.
    pub(crate) fn new(
        threads: impl Iterator<Item = Records<'a>>,
        mut other: impl FnMut(usize, Result<Record<'a>, RecordError>),
    ) -> Merge<'a> {
        let cursor = |records| Cursor {
            records,
            head: None,
            end: 0,
        };
        let mut merge = Merge {
            threads: threads.map(cursor).collect(),
            others: BinaryHeap::new(),
            current: None,
        };
        for thread in 0..merge.threads.len() {
            if let Some(end) = merge.threads[thread].advance(|r| other(thread, r)) {
                merge.others.push(Reverse((end, thread)));
            }
        }
        merge.current = merge.others.pop().map(|Reverse((_, thread))| thread);
        merge
    }

    /// The interval that ended next, and its thread.
    #[inline]
    pub(crate) fn next(
        &mut self,
        mut other: impl FnMut(usize, Result<Record<'a>, RecordError>),
    ) -> Option<(usize, Interval<'a>)> {
        let thread = self.current?;
        let cursor = &mut self.threads[thread];
        let interval = cursor.head.take()?;
        match (cursor.advance(|r| other(thread, r)), self.others.peek()) {
            (Some(end), Some(Reverse(first))) if *first < (end, thread) => {
                if let Some(mut first) = self.others.peek_mut() {
                    let Reverse((_, next)) = std::mem::replace(&mut *first, Reverse((end, thread)));
                    self.current = Some(next);
                }
            }
            (Some(_), _) => {}
            (None, _) => self.current = self.others.pop().map(|Reverse((_, thread))| thread),
        }
        Some((thread, interval))
    }

    /// Bytes that were not read yet.
    pub(crate) fn left(&self) -> usize {
        self.threads.iter().map(|t| t.records.left()).sum()
    }
}

impl<'a> Cursor<'a> {
    /// Reads on to the next interval. Gives its place in the order.
    #[inline]
    fn advance(&mut self, mut other: impl FnMut(Result<Record<'a>, RecordError>)) -> Option<u64> {
        loop {
            match self.records.next()? {
                Ok(Record::Interval(interval)) => {
                    self.end = self.end.max(interval.t1);
                    self.head = Some(interval);
                    return Some(self.end);
                }
                record => other(record),
            }
        }
    }
}
