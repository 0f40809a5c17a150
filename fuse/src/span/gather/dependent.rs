//! What orders tasks and iterations, told by records in front of those that they are about.

use ompfuse_format::Construct;
use ompfuse_format::record::depend::{Access, DETACHED, MOST_ADDRESSES, OF_GROUP, OF_WAIT, Point};
use ompfuse_format::record::{Interval, Node, Record, RecordError};
use rustc_hash::FxHashMap;

/// What a task, or a wait, depends on.
#[derive(Debug, Clone, Default)]
pub(in crate::span) struct Dependent {
    /// [`ompfuse_format::record::depend::Depend::flags`].
    pub(in crate::span) flags: u32,
    /// The event of a task with `detach`.
    pub(in crate::span) event: Option<u64>,
    pub(in crate::span) accesses: Vec<(u64, Access)>,
}

/// What was read besides intervals, and not put anywhere yet.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) nodes: Vec<Node>,
    /// By node's number.
    pub(super) tasks: FxHashMap<u64, Dependent>,
    /// By node's number, taskgroups that are open there: their sites, and since when.
    groups: FxHashMap<u64, Vec<(u32, u64)>>,
    threads: Vec<Thread>,
}

#[derive(Debug, Default)]
struct Thread {
    /// Waits to come, by the number of the node that waits.
    waits: Vec<(u64, Dependent)>,
    /// A point of the interval after the next one that is handed out, and of the next one.
    told: Option<Point>,
    ready: Option<Point>,
}

impl Pending {
    pub(super) fn new(threads: usize) -> Pending {
        Pending {
            threads: (0..threads).map(|_| Thread::default()).collect(),
            ..Pending::default()
        }
    }

    /// Takes in a record of a thread: of those before the thread's interval that is handed out after the next one.
    pub(super) fn take(&mut self, thread: usize, record: Result<Record<'_>, RecordError>) {
        match record {
            Ok(Record::Node(node)) => self.nodes.push(node),
            Ok(Record::Point(point)) => self.threads[thread].told = Some(point),
            Ok(Record::Depend(d)) if d.flags & OF_GROUP != 0 => {
                self.groups.entry(d.node).or_default().extend(d.group());
            }
            Ok(Record::Depend(d)) if d.flags & OF_WAIT != 0 => {
                let waits = &mut self.threads[thread].waits;
                let goes_on =
                    |(node, of): &&mut (u64, Dependent)| *node == d.node && is_full(&of.accesses);
                match waits.last_mut().filter(goes_on) {
                    Some((_, of)) => of.accesses.extend(d.addresses()),
                    None => waits.push((
                        d.node,
                        Dependent {
                            flags: d.flags,
                            event: None,
                            accesses: d.addresses().collect(),
                        },
                    )),
                }
            }
            Ok(Record::Depend(d)) => {
                let of = self.tasks.entry(d.node).or_default();
                of.flags |= d.flags;
                match d.flags & DETACHED {
                    0 => of.accesses.extend(d.addresses()),
                    _ => of.event = d.event(),
                }
            }
            _ => {}
        }
    }

    /// The first interval of each thread is the next one that is handed out.
    pub(super) fn begin(&mut self) {
        for thread in &mut self.threads {
            thread.ready = thread.told.take();
        }
    }

    /// The point in front of the thread's interval that is handed out now; further records of the thread were taken in already.
    pub(super) fn before(&mut self, thread: usize) -> Option<Point> {
        let thread = &mut self.threads[thread];
        std::mem::replace(&mut thread.ready, thread.told.take())
    }

    /// When a taskgroup began that ends here.
    pub(super) fn group(&mut self, interval: &Interval<'_>) -> Option<u64> {
        if interval.construct != Construct::Taskgroup {
            return None;
        }
        let open = self.groups.get_mut(&interval.parent)?;
        // The next one may be on record by now.
        let at = (open.iter())
            .rposition(|&(site, since)| site == interval.site && since <= interval.t0)?;
        Some(open.remove(at).1)
    }

    /// What a wait depends on.
    pub(super) fn wait(&mut self, thread: usize, interval: &Interval<'_>) -> Option<Dependent> {
        let waits = &mut self.threads[thread].waits;
        if waits.is_empty() || interval.construct != Construct::Taskwait {
            return None;
        }
        let at = waits.iter().position(|w| w.0 == interval.parent)?;
        Some(waits.remove(at).1)
    }
}

/// More may follow in the next record.
fn is_full(accesses: &[(u64, Access)]) -> bool {
    !accesses.is_empty() && accesses.len().is_multiple_of(MOST_ADDRESSES)
}
