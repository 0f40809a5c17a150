//! A thread's state: which account is being charged, and the frames that say where in the program it is.
//!
//! **Accounts.** At every moment exactly one [`Cost`] is charged. A boundary ([`Thread::switch`]) reads the clock and the
//! counters once, adds what has passed to the current account and makes another one current. So all accounts of a
//! thread add up to its total, whatever nests in what.
//!
//! **Frames.** A [`Frame`] is a task region: the thread's root, its part of a parallel region (implicit task) or an
//! explicit task. It lives on the stack of the function that runs the body. Work-sharing constructs have no function
//! of their own that we could wrap; they are [`Work`] entries on a stack in the thread, and belong to the frame that
//! was innermost when they began. Ranks for labels are counted where the children are created.

use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::probes::parallel::Detached;
use crate::syscall;
use core::arch::x86_64::_rdtsc;
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::record::{self, IntervalHead, MAX_COUNTERS, NO_SITE, Node, Step};

/// Work-sharing constructs open at once on a thread, all frames together; deeper ones are not recorded.
pub(crate) const MAX_WORK: usize = 128;
/// Mutexes held at once on a thread that are timed; further ones are charged to the code around them.
pub(crate) const MAX_MUTEXES: usize = 32;

/// An account: exclusive time in ticks and counts.
#[derive(Debug)]
pub(crate) struct Cost {
    pub(crate) ticks: Cell<u64>,
    pub(crate) counts: [Cell<u64>; MAX_COUNTERS],
}

impl Cost {
    /// An empty account.
    #[inline]
    pub(crate) fn new() -> Cost {
        Cost {
            ticks: Cell::new(0),
            counts: [const { Cell::new(0) }; MAX_COUNTERS],
        }
    }

    /// Empties it, as far as `k` counters are concerned.
    #[inline]
    pub(crate) fn clear(&self, k: usize) {
        self.ticks.set(0);
        self.counts.iter().take(k).for_each(|c| c.set(0));
    }

    /// Moves everything into another account.
    #[inline]
    pub(crate) fn drain_into(&self, other: &Cost, k: usize) {
        other.ticks.set(other.ticks.get() + self.ticks.take());
        for (from, to) in self.counts.iter().zip(&other.counts).take(k) {
            to.set(to.get() + from.take());
        }
    }
}

/// Where something stands in the tree of labels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) parent: u64,
    pub(crate) step: Step,
    pub(crate) index: i64,
}

/// A task region.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) up: Cell<*const Frame>,
    pub(crate) construct: Construct,
    pub(crate) site: u32,
    /// The node that children name as their parent: for an implicit task that of the parallel construct.
    pub(crate) node: u64,
    pub(crate) place: Place,
    /// Whether the node's record exists.
    written: Cell<bool>,
    /// Rank of the last child (work-sharing constructs; tasks too, except directly in a parallel construct).
    rank: Cell<i64>,
    /// Tasks and parallel constructs created directly in this implicit task.
    calls: Cell<i64>,
    /// Thread number in the team.
    pub(crate) tid: i64,
    /// Team size.
    pub(crate) team: i64,
    pub(crate) t0: Cell<u64>,
    pub(crate) cost: Cost,
    /// The account that was charged before.
    before: Cell<*const Cost>,
    work_base: Cell<usize>,
    mutex_base: Cell<usize>,
}

impl Frame {
    /// A frame that is not entered yet.
    pub(crate) fn new(
        construct: Construct,
        site: u32,
        node: u64,
        place: Place,
        tid: i64,
        team: i64,
    ) -> Frame {
        Frame {
            up: Cell::new(core::ptr::null()),
            construct,
            site,
            node,
            place,
            // A parallel construct's node is written where it forks.
            written: Cell::new(matches!(construct, Construct::ImplicitTask)),
            rank: Cell::new(0),
            calls: Cell::new(0),
            tid,
            team,
            t0: Cell::new(0),
            cost: Cost::new(),
            before: Cell::new(core::ptr::null()),
            work_base: Cell::new(0),
            mutex_base: Cell::new(0),
        }
    }
}

/// An open work-sharing construct, or a range of one.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) construct: Cell<Construct>,
    pub(crate) site: Cell<u32>,
    pub(crate) node: Cell<u64>,
    place: Cell<Place>,
    written: Cell<bool>,
    rank: Cell<i64>,
    t0: Cell<u64>,
    pub(crate) cost: Cost,
    /// Ticks and counts spent fetching ranges.
    pub(crate) dispatch: Cost,
    /// How often.
    pub(crate) fetches: Cell<u64>,
    /// Loop: value of the first iteration. Range: unused.
    pub(crate) first: Cell<i64>,
    /// Loop: increment.
    pub(crate) step: Cell<i64>,
    /// Range: iterations.
    extent: Cell<u64>,
}

/// A mutex that is held.
#[derive(Debug)]
struct Held {
    construct: Cell<Construct>,
    site: Cell<u32>,
    t0: Cell<u64>,
    wait: Cell<u64>,
    cost: Cost,
}

/// Everything of one thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) index: u32,
    counters: Counters,
    pub(crate) buffer: Buffer,
    /// Clock and counters at the last boundary.
    last: Cell<u64>,
    last_counts: [Cell<u64>; MAX_COUNTERS],
    account: Cell<*const Cost>,
    frame: Cell<*const Frame>,
    root: Frame,
    sequence: Cell<u64>,
    work: [Work; MAX_WORK],
    work_top: Cell<usize>,
    /// Work-sharing constructs that found the stack full.
    work_lost: Cell<usize>,
    mutexes: [Held; MAX_MUTEXES],
    mutex_top: Cell<usize>,
    mutex_lost: Cell<usize>,
    /// What task allocation has cost since the last task was handed over.
    pub(crate) pending: Cost,
    /// Innermost detached frame, and those to be used again.
    detached: Cell<*mut Detached>,
    detached_free: Cell<*mut Detached>,
    detached_lost: Cell<usize>,
    /// Left over from before a fork: nothing is recorded on it any more.
    pub(crate) abandoned: Cell<bool>,
    /// Next in the list of the process.
    pub(crate) next: Cell<*const Thread>,
}

impl Thread {
    /// A thread that starts recording now: its root is its current frame. Initialises `at` in place, as the whole is too
    /// large for a stack of unknown size.
    ///
    /// # Safety
    /// `at` points to zeroed memory of this size that nobody else uses.
    pub(crate) unsafe fn init<'a>(
        at: *mut Thread,
        index: u32,
        counters: Counters,
        buffer: Buffer,
    ) -> &'a Thread {
        let node = u64::from(index + 1) << 40;
        let place = Place {
            parent: 0,
            step: Step::Root,
            index: 0,
        };
        // SAFETY: the caller's promise. All-zero bytes are valid for the arrays and cells that are not written here
        // (null pointers, false, Construct::Program, Step::Root).
        let thread = unsafe {
            (&raw mut (*at).index).write(index);
            (&raw mut (*at).counters).write(counters);
            (&raw mut (*at).buffer).write(buffer);
            (&raw mut (*at).root).write(Frame::new(Construct::Program, NO_SITE, node, place, 0, 1));
            &*at
        };
        thread.sequence.set(1);
        thread.frame.set(&raw const thread.root);
        thread.account.set(&raw const thread.root.cost);
        thread.last.set(now());
        thread.read_counters(|_, _| ());
        thread.root.t0.set(thread.last.get());
        thread.write_node(node, Construct::Program, NO_SITE, place);
        thread.root.written.set(true);
        thread
    }

    /// Number of counters.
    #[inline(always)]
    pub(crate) fn k(&self) -> usize {
        self.counters.len()
    }

    /// Clock at the last boundary, in ticks.
    #[inline(always)]
    pub(crate) fn last(&self) -> u64 {
        self.last.get()
    }

    /// Counter values at the last boundary.
    pub(crate) fn last_counts(&self) -> [u64; MAX_COUNTERS] {
        core::array::from_fn(|i| self.last_counts[i].get())
    }

    #[inline]
    fn read_counters(&self, mut add: impl FnMut(usize, u64)) {
        let mut values = [0; MAX_COUNTERS];
        if self.counters.read(&mut values) {
            for (at, &value) in values.iter().enumerate().take(self.k()) {
                add(at, value.wrapping_sub(self.last_counts[at].replace(value)));
            }
        }
    }

    /// Charges what has passed since the last boundary to the current account.
    #[inline]
    pub(crate) fn charge(&self) {
        let now = now();
        // SAFETY: the current account belongs to an open frame, work entry or probe of this thread, which outlives it.
        let account = unsafe { &*self.account.get() };
        let passed = now.saturating_sub(self.last.get());
        account.ticks.set(account.ticks.get() + passed);
        self.last.set(self.last.get() + passed);
        if self.k() > 0 {
            self.read_counters(|at, delta| {
                account.counts[at].set(account.counts[at].get().wrapping_add(delta))
            });
        }
    }

    /// A boundary: charges the current account, then makes `to` current. Returns the former one.
    #[inline]
    pub(crate) fn switch(&self, to: *const Cost) -> *const Cost {
        self.charge();
        self.account.replace(to)
    }

    /// The current frame.
    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        // SAFETY: frames are left in the reverse order of entering, before their memory goes.
        unsafe { &*self.frame.get() }
    }

    /// Whether the thread is outside everything.
    pub(crate) fn is_idle(&self) -> bool {
        core::ptr::eq(self.frame.get(), &raw const self.root) && self.work_top.get() == 0
    }

    /// Innermost open work entry of the current frame.
    #[inline]
    pub(crate) fn work(&self) -> Option<&Work> {
        let top = self.work_top.get();
        if top > self.frame().work_base.get() {
            self.work.get(top - 1)
        } else {
            None
        }
    }

    #[inline]
    fn innermost_cost(&self) -> *const Cost {
        match self.work() {
            Some(work) => &raw const work.cost,
            None => &raw const self.frame().cost,
        }
    }

    /// A new node number.
    #[inline]
    pub(crate) fn new_node(&self) -> u64 {
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        u64::from(self.index + 1) << 40 | sequence
    }

    /// Writes the identity of a node.
    pub(crate) fn write_node(&self, node: u64, construct: Construct, site: u32, place: Place) {
        if self.abandoned.get() {
            return;
        }
        let Place {
            parent,
            step,
            index,
        } = place;
        let node = Node {
            construct,
            site,
            node,
            parent,
            step,
            index,
        };
        self.buffer.record(Node::LEN, |out| {
            // SAFETY: the buffer gives Node::LEN bytes, which nothing else refers to.
            record::encode_node(unsafe { &mut *out.cast::<[u8; Node::LEN]>() }, &node);
        });
    }

    /// Writes an interval.
    #[inline]
    pub(crate) fn write_interval(&self, head: &IntervalHead, cost: &Cost) {
        if self.abandoned.get() {
            return; // the mapping belongs to the process before the fork
        }
        let k = self.k();
        let mut counts = [0; MAX_COUNTERS];
        for (to, from) in counts.iter_mut().zip(&cost.counts).take(k) {
            *to = from.get();
        }
        let counts = counts.get(..k).unwrap_or(&[]);
        self.buffer.record(record::Interval::LEN + 8 * k, |out| {
            record::encode_interval(head, counts, |at, word| {
                // SAFETY: the encoder writes the 9 + k words that the buffer gives.
                unsafe { out.add(at).write(word) };
            });
        });
    }

    /// Node of the innermost construct, whose record need not exist yet: for what is told by its parent only.
    #[inline]
    pub(crate) fn here(&self) -> u64 {
        self.work().map_or(self.frame().node, |w| w.node.get())
    }

    /// Place of a new task or parallel construct created here ([XU] section 4, combination.md section 1).
    #[inline]
    pub(crate) fn place_task(&self) -> Place {
        if self.work().is_none() && self.frame().construct == Construct::ImplicitTask {
            let frame = self.frame();
            let calls = frame.calls.get();
            frame.calls.set(calls + 1);
            let index = frame.tid + calls * frame.team;
            return Place {
                parent: frame.node,
                step: Step::TidRanked,
                index,
            };
        }
        self.place_ranked()
    }

    /// Place of a new work-sharing construct here, or of a task where tasks are ranked in the order of creation.
    #[inline]
    pub(crate) fn place_ranked(&self) -> Place {
        let (node, written, rank) = match self.work() {
            Some(work) => {
                if !work.written.replace(true) {
                    self.write_node(
                        work.node.get(),
                        work.construct.get(),
                        work.site.get(),
                        work.place.get(),
                    );
                }
                (work.node.get(), true, &work.rank)
            }
            None => (
                self.frame().node,
                self.frame().written.replace(true),
                &self.frame().rank,
            ),
        };
        if !written {
            let frame = self.frame();
            self.write_node(node, frame.construct, frame.site, frame.place);
        }
        rank.set(rank.get() + 1);
        Place {
            parent: node,
            step: Step::Ranked,
            index: rank.get(),
        }
    }

    /// Opens a work-sharing construct, or a range or section of the innermost one, whose account is current from now on.
    /// The caller has charged what came before. `None` where the stack is full.
    pub(crate) fn open(
        &self,
        construct: Construct,
        site: u32,
        place: Place,
        extent: u64,
    ) -> Option<&Work> {
        let top = self.work_top.get();
        let Some(work) = self.work.get(top) else {
            self.work_lost.set(self.work_lost.get() + 1);
            return None;
        };
        self.work_top.set(top + 1);
        work.construct.set(construct);
        work.site.set(site);
        work.node.set(self.new_node());
        work.place.set(place);
        work.written.set(false);
        work.rank.set(0);
        work.t0.set(self.last.get());
        work.cost.clear(self.k());
        work.dispatch.clear(self.k());
        work.fetches.set(0);
        work.extent.set(extent);
        self.account.set(&raw const work.cost);
        Some(work)
    }

    /// Closes the innermost work entry. The caller has charged; the account around it is current afterwards.
    fn close_innermost(&self) {
        let Some(work) = self.work() else { return };
        let Place {
            parent,
            step,
            index,
        } = work.place.get();
        let mut head = IntervalHead {
            construct: work.construct.get(),
            site: work.site.get(),
            node: work.node.get(),
            parent,
            step,
            cpu: crate::process::cpu(),
            index,
            extent: work.extent.get(),
            t0: work.t0.get(),
            t1: self.last.get(),
            own_ticks: work.cost.ticks.get(),
        };
        self.write_interval(&head, &work.cost);
        if work.fetches.get() > 0 {
            head.construct = Construct::Dispatch;
            (head.parent, head.node, head.step, head.index) = (work.node.get(), 0, Step::None, 0);
            (head.extent, head.own_ticks) = (work.fetches.get(), work.dispatch.ticks.get());
            self.write_interval(&head, &work.dispatch);
        }
        self.work_top.set(self.work_top.get() - 1);
        self.account.set(self.innermost_cost());
    }

    /// Closes every work entry of the current frame: what a barrier, the next work-sharing construct or the end of the
    /// body imply. One boundary for all.
    #[inline]
    pub(crate) fn close_all(&self) {
        if self.work().is_some() {
            self.charge();
            while self.work().is_some() {
                self.close_innermost();
            }
        }
    }

    /// Closes work entries up to and including the innermost one that `wanted` accepts; none if there is no such.
    pub(crate) fn close_to(&self, wanted: impl Fn(&Work) -> bool) {
        let open = &self.work[self.frame().work_base.get()..self.work_top.get()];
        let Some(at) = open.iter().rposition(wanted) else {
            return;
        };
        let down_to = self.frame().work_base.get() + at;
        self.charge();
        while self.work_top.get() > down_to {
            self.close_innermost();
        }
    }

    /// Enters a frame: its account is charged from now on.
    pub(crate) fn enter(&self, frame: &Frame) {
        frame.before.set(self.switch(&raw const frame.cost));
        frame.t0.set(self.last.get());
        frame.up.set(self.frame.replace(frame));
        frame.work_base.set(self.work_top.get());
        frame.mutex_base.set(self.mutex_top.get());
    }

    /// Leaves the current frame, closing what its end implies, and writes its interval. `extent`: see
    /// [`record::Interval::extent`].
    pub(crate) fn leave(&self, frame: &Frame, extent: u64) {
        if self.abandoned.get() || !core::ptr::eq(self.frame.get(), frame) {
            return; // forked away in between
        }
        self.charge();
        while self.work().is_some() {
            self.close_innermost();
        }
        while self.mutex_top.get() > frame.mutex_base.get() {
            self.mutex_top.set(self.mutex_top.get() - 1);
            if let Some(held) = self.mutexes.get(self.mutex_top.get()) {
                held.cost.drain_into(&frame.cost, self.k());
            }
        }
        let implicit = frame.construct == Construct::ImplicitTask;
        let head = IntervalHead {
            construct: frame.construct,
            site: frame.site,
            node: if implicit { 0 } else { frame.node },
            parent: if implicit {
                frame.node
            } else {
                frame.place.parent
            },
            step: if implicit {
                Step::None
            } else {
                frame.place.step
            },
            cpu: crate::process::cpu(),
            index: if implicit {
                frame.tid
            } else {
                frame.place.index
            },
            extent,
            t0: frame.t0.get(),
            t1: self.last.get(),
            own_ticks: frame.cost.ticks.get(),
        };
        self.write_interval(&head, &frame.cost);
        self.frame.set(frame.up.get());
        self.account.set(frame.before.get());
    }

    /// Writes a wait or a service of the runtime that began at `t0` and ends at the last boundary.
    pub(crate) fn write_wait(
        &self,
        construct: Construct,
        site: u32,
        t0: u64,
        extent: u64,
        cost: &Cost,
    ) {
        let head = IntervalHead {
            construct,
            site,
            node: 0,
            parent: self.here(),
            step: Step::None,
            cpu: crate::process::cpu(),
            index: 0,
            extent,
            t0,
            t1: self.last.get(),
            own_ticks: cost.ticks.get(),
        };
        self.write_interval(&head, cost);
    }

    /// Charges the innermost construct with what has no interval of its own.
    pub(crate) fn absorb(&self, cost: &Cost) {
        // SAFETY: as in charge.
        cost.drain_into(unsafe { &*self.innermost_cost() }, self.k());
    }

    /// A mutex was entered; `cost` is what that took, since `t0`.
    pub(crate) fn hold(&self, construct: Construct, site: u32, t0: u64, cost: &Cost) {
        let Some(held) = self.mutexes.get(self.mutex_top.get()) else {
            self.mutex_lost.set(self.mutex_lost.get() + 1);
            self.absorb(cost);
            return;
        };
        self.mutex_top.set(self.mutex_top.get() + 1);
        held.construct.set(construct);
        held.site.set(site);
        held.t0.set(t0);
        held.wait.set(cost.ticks.get());
        held.cost.clear(self.k());
        cost.drain_into(&held.cost, self.k());
    }

    /// A mutex was released; `cost` is what that took.
    pub(crate) fn unhold(&self, cost: &Cost) {
        if self.mutex_lost.get() > 0 {
            self.mutex_lost.set(self.mutex_lost.get() - 1);
            return;
        }
        let Some(top) = self.mutex_top.get().checked_sub(1) else {
            return;
        };
        let Some(held) = self.mutexes.get(top) else {
            return;
        };
        self.mutex_top.set(top);
        cost.drain_into(&held.cost, self.k());
        self.write_wait(
            held.construct.get(),
            held.site.get(),
            held.t0.get(),
            held.wait.get(),
            &held.cost,
        );
    }

    /// Keeps a frame whose body the program runs between two calls. `None` without memory for it.
    pub(crate) fn detach(&self, detached: Detached) -> Option<&Detached> {
        let mut at = self.detached_free.get();
        if at.is_null() {
            let Some(memory) = syscall::map_memory(size_of::<Detached>()) else {
                self.detached_lost.set(self.detached_lost.get() + 1);
                return None;
            };
            at = memory.cast();
        } else {
            // SAFETY: on the free list, so initialised and used by nobody.
            self.detached_free.set(unsafe { (*at).next.get() });
        }
        // SAFETY: room for one, from the free list or fresh pages; the list keeps it until `reattach`.
        let kept = unsafe {
            at.write(detached);
            &*at
        };
        kept.next.set(self.detached.replace(at));
        Some(kept)
    }

    /// The innermost detached frame, if it is of this construct and still the current task region.
    pub(crate) fn detached(&self, construct: Construct) -> Option<&Detached> {
        if self.detached_lost.get() > 0 {
            self.detached_lost.set(self.detached_lost.get() - 1);
            return None;
        }
        // SAFETY: on the list of detached frames, hence alive.
        let detached = unsafe { self.detached.get().as_ref()? };
        let current = core::ptr::eq(self.frame.get(), &raw const detached.frame);
        (current && detached.frame.construct == construct).then_some(detached)
    }

    /// Gives up the innermost detached frame, which has been left.
    pub(crate) fn reattach(&self, detached: &Detached) {
        let at = self.detached.get();
        self.detached.set(detached.next.get());
        detached.next.set(self.detached_free.replace(at));
    }

    /// Ends the thread's recording: everything that is open is closed, up to the root.
    pub(crate) fn finish(&self) {
        if self.abandoned.get() {
            return;
        }
        self.pending.drain_into(&self.root.cost, self.k());
        loop {
            let frame = self.frame();
            let last = core::ptr::eq(frame, &raw const self.root);
            self.leave(frame, frame.tid as u64);
            if last {
                break;
            }
        }
        self.abandoned.set(true);
        self.buffer
            .finish(self.last.get(), &self.last_counts()[..self.k()]);
    }

    /// Closes the counters' descriptors.
    pub(crate) fn close_counters(&self) {
        self.counters.close();
    }
}

/// Time stamp counter.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { _rdtsc() }
}
