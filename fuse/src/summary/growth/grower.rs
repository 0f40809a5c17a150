//! Sums over time while records are read.

use super::stretches::{Stretch, Stretches};
use super::{AroundKind, MOST};
use ompfuse_format::Construct;
use rustc_hash::FxHashMap;

/// Sums over time of one process.
#[derive(Debug)]
pub(in super::super) struct Grower {
    edges: Edges,
    pub(in super::super) folded: u32,
    rows: Vec<Vec<u64>>,
    own: FxHashMap<OwnKey, usize>,
    around: FxHashMap<(u32, AroundKind), usize>,
    threads: Vec<Stretches>,
    /// The first and the last time that were met.
    span: Option<(i64, i64)>,
}

/// Record's site, kind, and of the program the thread.
pub(in super::super) type OwnKey = (u32, Construct, Option<u32>);

/// What a thread of a region's execution did around its part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) struct Around {
    /// Record's site of the region.
    pub(in super::super) site: u32,
    pub(in super::super) kind: AroundKind,
    pub(in super::super) span: (i64, i64),
    /// Nanoseconds in it.
    pub(in super::super) ns: u64,
}

/// Where intervals end.
#[derive(Debug)]
enum Edges {
    /// So many nanoseconds behind another, the first begins at 0.
    Width(u64),
    /// Where every so many executions have ended.
    Instances { each: u64, met: u64, ends: Vec<i64> },
}

impl Edges {
    /// The interval that a time is in; what is before the first is in it.
    fn at(&self, time: i64) -> usize {
        match self {
            Edges::Width(width) => (time.max(0) as u64 / width) as usize,
            Edges::Instances { ends, .. } => ends.partition_point(|&end| end <= time),
        }
    }

    /// The end of an interval; the last one's is not known.
    fn end(&self, at: usize) -> i64 {
        match self {
            Edges::Width(width) => ((at as u64 + 1) * width) as i64,
            Edges::Instances { ends, .. } => ends.get(at).copied().unwrap_or(i64::MAX),
        }
    }
}

impl Grower {
    /// `width`: nanoseconds of an interval; `None`: they end with executions of a region.
    pub(in super::super) fn new(width: Option<u64>, threads: usize) -> Grower {
        Grower {
            edges: match width {
                // Times are below 2^63: so many intervals are one.
                Some(width) => Edges::Width(width.clamp(1, 1 << 52)),
                None => Edges::Instances {
                    each: 1,
                    met: 0,
                    ends: vec![],
                },
            },
            folded: 0,
            rows: vec![],
            own: FxHashMap::default(),
            around: FxHashMap::default(),
            threads: (0..threads).map(|_| Stretches::default()).collect(),
            span: None,
        }
    }

    /// An interval of a thread, whose records come in their order. `enter_ns`: of a construct that one thread at a time is in, how
    /// long it took to enter; what is executed in it is the work of what is around it.
    pub(in super::super) fn interval(
        &mut self,
        thread: usize,
        key: OwnKey,
        (begin, end): (i64, i64),
        (own_ns, enter_ns): (u64, Option<u64>),
    ) {
        let row = match self.own.get(&key) {
            Some(&row) => row,
            None => {
                self.rows.push(vec![]);
                self.own.insert(key, self.rows.len() - 1);
                self.rows.len() - 1
            }
        };
        let end = end.max(begin);
        let last = self.make_room(begin, end);
        if let Some(enter_ns) = enter_ns {
            return self.exclusive(thread, row, (begin, end), own_ns, enter_ns.min(own_ns));
        }
        if last == 0 || self.edges.end(last - 1) <= begin {
            self.threads[thread].forget(begin);
            self.put(row, last, own_ns);
        } else {
            let inside = self.threads[thread].claim(begin);
            self.divide(row, (begin, end), own_ns, &inside);
        }
        let edges = &self.edges;
        self.threads[thread].push(begin, end, |a, b| edges.at(a) == edges.at(b));
    }

    /// Only entering and leaving take time of its own.
    fn exclusive(
        &mut self,
        thread: usize,
        row: usize,
        (begin, end): (i64, i64),
        own_ns: u64,
        enter_ns: u64,
    ) {
        let length = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        let entered = begin.saturating_add(length(enter_ns)).min(end);
        let leaves = end.saturating_sub(length(own_ns - enter_ns)).max(entered);
        self.divide(row, (begin, entered), enter_ns, &[]);
        self.divide(row, (leaves, end), own_ns - enter_ns, &[]);
        let inside = self.threads[thread].claim(begin);
        let edges = &self.edges;
        let same = |a, b| edges.at(a) == edges.at(b);
        let stretches = &mut self.threads[thread];
        stretches.push(begin, entered, same);
        inside.into_iter().for_each(|s| stretches.put_back(s));
        stretches.push(leaves, end, same);
    }

    /// What a thread did around its part.
    pub(in super::super) fn around(&mut self, around: Around) {
        if around.ns == 0 {
            return;
        }
        let rows = &mut self.rows;
        let row = *self
            .around
            .entry((around.site, around.kind))
            .or_insert_with(|| {
                rows.push(vec![]);
                rows.len() - 1
            });
        let (begin, end) = around.span;
        let end = end.max(begin);
        self.make_room(begin, end);
        self.divide(row, (begin, end), around.ns, &[]);
    }

    /// An execution of the region has ended that intervals end with.
    pub(in super::super) fn instance(&mut self, end: i64) {
        let Edges::Instances { each, met, ends } = &mut self.edges else {
            return;
        };
        *met += 1;
        if *met % *each != 0 || ends.last().is_some_and(|&last| last >= end) {
            return;
        }
        ends.push(end);
        if ends.len() == MOST {
            self.fold();
        }
    }

    /// Executions that intervals end with.
    pub(in super::super) fn instances(&self) -> Option<u64> {
        match self.edges {
            Edges::Width(_) => None,
            Edges::Instances { met, .. } => Some(met),
        }
    }

    /// Folds until there is a place for something that ends then. Gives that place.
    fn make_room(&mut self, begin: i64, end: i64) -> usize {
        let (first, last) = self.span.get_or_insert((begin, end));
        (*first, *last) = ((*first).min(begin), (*last).max(end));
        loop {
            let at = self.edges.at((end - 1).max(begin));
            if at < MOST {
                return at;
            }
            self.fold();
        }
    }

    /// Two neighbours each become one.
    pub(in super::super) fn fold(&mut self) {
        self.folded += 1;
        match &mut self.edges {
            Edges::Width(width) => *width *= 2,
            Edges::Instances { each, ends, .. } => {
                *each *= 2;
                *ends = ends.iter().copied().skip(1).step_by(2).collect();
            }
        }
        for row in &mut self.rows {
            *row = row.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }

    fn put(&mut self, row: usize, at: usize, ns: u64) {
        let row = &mut self.rows[row];
        if row.len() <= at {
            row.resize(at + 1, 0);
        }
        row[at] += ns;
    }

    /// Divides time among intervals. `inside`: what of its span something else was executed in.
    fn divide(&mut self, row: usize, (begin, end): (i64, i64), ns: u64, inside: &[Stretch]) {
        let (first, last) = (self.edges.at(begin), self.edges.at((end - 1).max(begin)));
        let own_until = |time: i64| {
            let others: f64 = inside.iter().map(|s| s.before(time)).sum();
            (time.saturating_sub(begin) as f64 - others).max(0.0)
        };
        let mut all = own_until(end);
        // Where that doesn't fit to what it says itself, time is spread over all of it.
        let is_even = all <= 0.0;
        if is_even {
            all = end.saturating_sub(begin).max(1) as f64;
        }
        let mut given = 0;
        for at in first..=last {
            let until = self.edges.end(at).min(end);
            let share = match is_even {
                true => until.saturating_sub(begin) as f64 / all,
                false => own_until(until) / all,
            };
            // All of it in the end, to the nanosecond.
            let due = match at == last {
                true => ns,
                false => ((ns as f64 * share).round() as u64).clamp(given, ns),
            };
            self.put(row, at, due - given);
            given = due;
        }
    }

    /// Makes intervals as long as another's, where both are of equal times.
    pub(in super::super) fn align(&mut self, other: &mut Grower) {
        while let (Edges::Width(own), Edges::Width(others)) = (&self.edges, &other.edges) {
            match own.cmp(others) {
                std::cmp::Ordering::Less => self.fold(),
                std::cmp::Ordering::Greater => other.fold(),
                std::cmp::Ordering::Equal => return,
            }
        }
    }

    /// Length of an interval in nanoseconds, or executions.
    pub(in super::super) fn each(&self) -> u64 {
        match self.edges {
            Edges::Width(width) => width,
            Edges::Instances { each, .. } => each,
        }
    }

    /// The first and the last time that were met.
    pub(in super::super) fn span(&self) -> Option<(i64, i64)> {
        self.span
    }

    /// Begin of the first interval, and each one's end, for all up to a time.
    pub(in super::super) fn edges(&self, last: i64) -> Vec<i64> {
        let first = match self.edges {
            Edges::Width(_) => 0,
            Edges::Instances { .. } => self.span.map_or(0, |(first, _)| first),
        };
        let count = self.edges.at((last - 1).max(0)) + 1;
        let ends = (0..count).map(|at| self.edges.end(at).min(last));
        std::iter::once(first).chain(ends).collect()
    }

    /// Own times by interval.
    pub(in super::super) fn own(&self) -> impl Iterator<Item = (OwnKey, &[u64])> {
        self.own
            .iter()
            .map(|(&key, &row)| (key, &self.rows[row][..]))
    }

    /// What was done around parts, by interval.
    pub(in super::super) fn arounds(&self) -> impl Iterator<Item = ((u32, AroundKind), &[u64])> {
        let all = self.around.iter();
        all.map(|(&key, &row)| (key, &self.rows[row][..]))
    }

    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        let stretches: usize = self.threads.iter().map(Stretches::len).sum();
        self.rows.iter().map(Vec::len).sum::<usize>() + stretches
    }
}
