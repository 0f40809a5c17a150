//! The first records of a process, with what is inside what on each thread, and the tree of nodes.

mod dependent;

use crate::run::merge::Merge;
use crate::run::nodes::{NONE, NodeIndex};
use crate::run::streaming::StreamingProcess;
use dependent::Pending;
use ompfuse_format::Construct;
use ompfuse_format::record::depend::Point;
use ompfuse_format::record::{Interval, NOT_COUNTED, Node, Step};
use rustc_hash::FxHashMap;

pub(super) use dependent::Dependent;

/// An interval.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rec {
    pub(super) construct: Construct,
    pub(super) thread: u16,
    /// The site that stands for all of its region's.
    pub(super) site: u32,
    /// Its own node's position, or [`NONE`].
    pub(super) node: u32,
    /// The position of the node that it happened in, or [`NONE`].
    pub(super) parent: u32,
    pub(super) index: i64,
    pub(super) extent: u64,
    pub(super) t0: u64,
    pub(super) t1: u64,
    pub(super) own: u64,
    /// [`Interval::disturbed`].
    pub(super) disturbed: bool,
    /// Waiting in what is inside it on its thread, and tasks that were executed meanwhile.
    pub(super) waited: u64,
    /// The first interval inside it on its thread, or [`NONE`].
    pub(super) child: u32,
    /// The next one beside it inside of the same one, or [`NONE`].
    pub(super) next: u32,
}

impl Rec {
    pub(super) fn len(&self) -> u64 {
        self.t1.saturating_sub(self.t0)
    }

    /// How long it is without the waiting in it, and without tasks that were executed meanwhile.
    pub(super) fn busy(&self) -> u64 {
        self.len().saturating_sub(self.waited)
    }

    /// What it adds to [`Rec::waited`] of what is around it.
    fn waiting(&self) -> u64 {
        let own = match self.construct {
            // What was executed in a creation or a wait is another unit's.
            Construct::Task => return self.len(),
            c if c.is_wait() => self.own,
            c if c.is_exclusive() => self.extent.min(self.own),
            _ => 0,
        };
        own.saturating_add(self.waited)
    }
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) construct: Construct,
    /// Position of its parent, or [`NONE`].
    pub(super) parent: u32,
    pub(super) step: Step,
    pub(super) index: i64,
    /// Nodes above it.
    pub(super) depth: u32,
    /// The outermost fork around it, itself included, or [`NONE`].
    pub(super) region: u32,
    /// A task is around it, or it is one.
    pub(super) in_task: bool,
}

/// What was read.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) recs: Vec<Rec>,
    pub(super) nodes: Vec<Place>,
    /// By interval, instructions and misses; empty if the run counted neither.
    pub(super) counts: Vec<[Option<u64>; 2]>,
    /// By a loop's node, own time of fetching its ranges, and how often.
    pub(super) fetches: FxHashMap<u32, (u64, u64)>,
    /// By the node's position, what tasks depend on.
    pub(super) depends: FxHashMap<u32, Dependent>,
    /// By interval, what waits for tasks depend on.
    pub(super) waits: FxHashMap<u32, Dependent>,
    /// By interval, when the taskgroup that it ends began.
    pub(super) groups: FxHashMap<u32, u64>,
    /// By interval, posts and waits of doacross loops.
    pub(super) points: FxHashMap<u32, Point>,
    /// Nothing was left unread.
    pub(super) is_whole: bool,
}

/// Deeper trees are not looked at: they come of damaged files.
const MOST_LEVELS: u32 = 1 << 20;

/// Reads at most `most` intervals. `columns`: where the counts of instructions and misses are.
pub(super) fn gather(
    process: &mut StreamingProcess<'_, '_>,
    columns: [Option<usize>; 2],
    most: usize,
) -> Gathered {
    let mut gathered = Gathered::default();
    // A record has 24 bytes at least.
    let mut index = NodeIndex::new(process.bytes / 24);
    let mut parents: Vec<u64> = vec![];
    let records: Vec<_> = (process.threads.iter())
        .map(|t| t.found.file.records())
        .collect();
    let mut open: Vec<Vec<u32>> = vec![vec![]; records.len()];
    let mut new = |node: &Node, gathered: &mut Gathered| {
        if node.node != 0 && index.insert(node.node, gathered.nodes.len() as u32) {
            gathered.nodes.push(Place {
                construct: node.construct,
                parent: NONE,
                step: node.step,
                index: node.index,
                depth: 0,
                region: NONE,
                in_task: false,
            });
            parents.push(node.parent);
        }
    };
    // Numbers of nodes are kept until all nodes are known.
    let mut wanted: Vec<[u64; 2]> = vec![];
    let mut fetches: Vec<(u64, u64, u64)> = vec![];
    let mut pending = Pending::new(records.len());
    let mut merge = Merge::new(records.into_iter(), |thread, record| {
        pending.take(thread, record);
    });
    pending.begin();
    loop {
        pending.nodes.drain(..).for_each(|n| new(&n, &mut gathered));
        if gathered.recs.len() + fetches.len() >= most {
            break;
        }
        let Some((thread, i)) = merge.next(|thread, record| pending.take(thread, record)) else {
            gathered.is_whole = true;
            break;
        };
        let point = pending.before(thread);
        if i.construct == Construct::Dispatch {
            // It lasts as long as its loop, and is the sum of many calls.
            fetches.push((i.parent, i.own_ticks, i.extent));
            continue;
        }
        if i.node != 0 {
            new(&crate::run::survey::entry(&i), &mut gathered);
        }
        let site = process.sites.of(i.site).site;
        if columns.iter().any(Option::is_some) {
            let counts = counts(&i, process.counters(i.set), columns);
            gathered.counts.push(counts);
        }
        let at = gathered.recs.len() as u32;
        let (child, waited) = adopt(&mut gathered.recs, &mut open[thread], i.t0);
        open[thread].push(at);
        gathered.points.extend(point.map(|point| (at, point)));
        let of = pending.wait(thread, &i);
        gathered.waits.extend(of.map(|of| (at, of)));
        let since = pending.group(&i);
        gathered.groups.extend(since.map(|since| (at, since)));
        wanted.push([i.node, i.parent]);
        gathered.recs.push(Rec {
            construct: i.construct,
            thread: thread as u16,
            site,
            node: NONE,
            parent: NONE,
            index: i.index,
            extent: i.extent,
            t0: i.t0,
            t1: i.t1,
            own: i.own_ticks,
            disturbed: i.disturbed,
            waited,
            child,
            next: NONE,
        });
    }
    pending.nodes.drain(..).for_each(|n| new(&n, &mut gathered));
    let at = |node: u64| match node {
        0 => NONE,
        node => index.get(node).unwrap_or(NONE),
    };
    for (rec, [node, parent]) in gathered.recs.iter_mut().zip(wanted) {
        (rec.node, rec.parent) = (at(node), at(parent));
    }
    for (node, own, times) in fetches {
        let sum = gathered.fetches.entry(at(node)).or_default();
        *sum = (sum.0.saturating_add(own), sum.1.saturating_add(times));
    }
    for (place, parent) in gathered.nodes.iter_mut().zip(parents) {
        place.parent = at(parent);
    }
    let depends = pending.tasks.drain();
    gathered.depends = depends.map(|(node, of)| (at(node), of)).collect();
    resolve(&mut gathered.nodes);
    gathered
}

/// Takes what is inside an interval that began then: a thread's intervals come in the order of their ends. The first of it, and
/// [`Rec::waited`].
fn adopt(recs: &mut [Rec], open: &mut Vec<u32>, t0: u64) -> (u32, u64) {
    let (mut first, mut waited) = (NONE, 0u64);
    while let Some(&last) = open.last() {
        let rec = &mut recs[last as usize];
        // What took no time and ended just then came before it.
        if rec.t0 < t0 || rec.t1 <= t0 {
            break;
        }
        rec.next = first;
        first = last;
        waited = waited.saturating_add(rec.waiting());
        open.pop();
    }
    (first, waited)
}

fn counts(
    i: &Interval<'_>,
    counters: Option<&[Option<usize>]>,
    columns: [Option<usize>; 2],
) -> [Option<u64>; 2] {
    columns.map(|column| {
        let counter = column.and_then(|c| counters?.get(c).copied().flatten());
        let count = counter.and_then(|c| i.counts.iter().nth(c));
        count.filter(|&c| c != NOT_COUNTED)
    })
}

/// Depths and what is around, from the parents.
fn resolve(nodes: &mut [Place]) {
    let mut is_done = vec![false; nodes.len()];
    let mut path: Vec<u32> = vec![];
    for start in 0..nodes.len() {
        let mut at = start as u32;
        while at != NONE && !is_done[at as usize] && path.len() < MOST_LEVELS as usize {
            path.push(at);
            is_done[at as usize] = true; // damaged nodes may be their own parents
            at = nodes[at as usize].parent;
        }
        while let Some(at) = path.pop() {
            let above = nodes.get(nodes[at as usize].parent as usize).copied();
            let node = &mut nodes[at as usize];
            node.depth = above.map_or(0, |a| a.depth + 1);
            let around = above.map_or(NONE, |a| a.region);
            node.region = match around {
                NONE if node.construct.is_fork() => at,
                around => around,
            };
            node.in_task = node.construct == Construct::Task || above.is_some_and(|a| a.in_task);
        }
    }
}

impl Gathered {
    /// What is directly inside an interval, in the order of time.
    pub(super) fn inside(&self, rec: u32) -> Inside<'_> {
        Inside {
            recs: &self.recs,
            at: self.recs[rec as usize].child,
        }
    }

    /// The outermost region that an interval belongs to, or [`NONE`].
    pub(super) fn region_of(&self, rec: &Rec) -> u32 {
        let at = match rec.construct.is_fork() {
            true => rec.node,
            false => rec.parent,
        };
        self.nodes.get(at as usize).map_or(NONE, |n| n.region)
    }

    /// Whether a task's code executes an interval.
    pub(super) fn is_in_task(&self, rec: &Rec) -> bool {
        let in_task = |at: u32| self.nodes.get(at as usize).is_some_and(|n| n.in_task);
        rec.construct == Construct::Task || in_task(rec.parent)
    }
}

/// See [`Gathered::inside`].
pub(super) struct Inside<'g> {
    recs: &'g [Rec],
    at: u32,
}

impl Iterator for Inside<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let at = self.at;
        let rec = self.recs.get(at as usize)?;
        self.at = rec.next;
        Some(at)
    }
}
