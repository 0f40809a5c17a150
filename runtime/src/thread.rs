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

/// Has the compiler prove that zero bytes are values of a type's fields, but for those that are written first. A field that
/// is in neither list is an error.
macro_rules! zeroed {
    ($type:ident { $($field:ident),* $(,)? } written { $($written:ident),* $(,)? }) => {
        const _: fn(&$type) = |all| {
            fn is_zeroed<T: zerocopy::FromZeros>(_: &T) {}
            let $type { $($field,)* $($written: _,)* } = all;
            $(is_zeroed($field);)*
        };
    };
}
use zeroed;

mod boundary;
pub(crate) mod called;
mod choice;
pub(crate) mod context;
mod cost;
mod creation;
mod depend;
mod detached;
mod enter;
mod frame;
mod here;
mod lazily;
mod locks;
mod messages;
pub(crate) mod meter;
mod ours;
mod ranks;
mod recover;
pub(crate) mod sample;
mod settings;
mod shares;
pub(crate) mod state;
pub(crate) mod sums;
pub(crate) mod watch;
mod write;

pub(crate) use choice::Choice;
pub(crate) use cost::Cost;
pub(crate) use detached::{Detached, Forked, Region};
pub(crate) use frame::{Chunks, Frame, Place, Work};
pub(crate) use meter::Outermost;
pub(crate) use shares::Share;

use boundary::Charging;
use called::Calls;
use context::Contexts;
use creation::Creation;
use frame::Held;
use here::{Here, Membership};
use lazily::Lazily;
use locks::Locks;
use meter::Meter;
use recover::{Entered, REMEMBERED};
use sample::Tally;
use settings::Choices;
use shares::Shares;

use crate::buffer::Buffer;
use crate::counters::Counters;
use core::arch::x86_64::_rdtsc;
use core::cell::Cell;
use ompfuse_format::Construct;
use ompfuse_format::record::short::Origin;
use ompfuse_format::record::{MAX_COUNTERS, NO_SITE, NOT_COUNTED, Step, TeamPlace};

/// Work-sharing constructs open at once on a thread, all frames together; deeper ones are not recorded.
pub(crate) const MAX_WORK: usize = 128;
/// Mutexes held at once on a thread that are timed; further ones are charged to the code around them.
pub(crate) const MAX_MUTEXES: usize = 32;

/// What makes a thread's probes do more than read the clock.
mod special {
    /// There are counters, or event sets have been changed.
    pub(super) const SETS: u8 = 1;
    /// Instances may be left out.
    pub(super) const SAMPLES: u8 = 2;
    /// Sums are kept, in place of records or beside them.
    pub(super) const SUMS: u8 = 4;
    /// They are kept in place of records.
    pub(super) const SUMS_ONLY: u8 = 8;
}

/// The set that accounts have while no other has been chosen, as [`Cost::set`].
const FIRST_SET: u8 = 1;

/// Everything of one thread. What every probe needs comes first, so that it lies together.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Thread {
    charging: Charging,
    here: Here,
    creation: Creation,
    /// What there is to be asked besides the clock ([`special`]).
    special: Cell<u8>,
    /// Most counters that any set has had on this thread.
    most: Cell<usize>,
    /// Number of the next node.
    next_node: Cell<u64>,
    /// What short records leave out.
    origin: Cell<Origin>,
    pub(crate) buffer: Buffer,
    choices: Choices,
    depth: Cell<usize>,
    /// How many calls of functions go on.
    calls_open: Cell<usize>,
    /// Of the last doacross loop.
    dimensions: Cell<u8>,
    membership: Membership,
    mutex_top: Cell<usize>,
    mutex_lost: Cell<usize>,
    /// The counters could not be read, or not all was in them: the next difference tells nothing.
    stale: Cell<bool>,
    lazily: Lazily,
    pub(crate) index: u32,
    root: Frame,
    /// What task allocation has cost since the last task was handed over.
    pub(crate) pending: Cost,
    /// What recording takes for itself at the moment ([`Thread::take_out`]).
    ours: Cost,
    work: [Work; MAX_WORK],
    mutexes: [Held; MAX_MUTEXES],
    /// Where only sums are kept: what calls of MPI handed over.
    messages: [messages::Sum; messages::MAX_PLACES],
    locks: Locks,
    pub(crate) shares: Shares,
    /// The frames that were entered, as far as there is room; and how many they are.
    entered: [Entered; REMEMBERED],
    /// Counters at the last boundary.
    last_counts: [Cell<u64>; MAX_COUNTERS],
    /// Of the first event set.
    counters: Counters,
    meter: Meter,
    /// What is left out, by region; null: nothing yet.
    tallies: Cell<*mut Tally>,
    /// What it knows of calling contexts; null: nothing yet.
    contexts: Cell<*mut Contexts>,
    /// Sums, where they are kept.
    sums: sums::Table,
    kept: detached::Kept,
    calls: Calls,
    /// Next in the list of the process.
    pub(crate) next: Cell<*const Thread>,
}

zeroed! {
    Thread {
        charging, here, creation, special, most, next_node, origin, choices, depth, calls_open, dimensions, membership, mutex_top,
        mutex_lost, stale, lazily, pending, ours, work, mutexes, messages, locks, shares, entered, last_counts, tallies, contexts,
        kept, calls, next,
    }
    written { index, counters, meter, buffer, root, sums }
}

impl Thread {
    /// A thread that starts recording now: its root is its current frame. `of_regions`: the counters of events that are counted
    /// per parallel region. Initialises `at` in place, as the whole is too
    /// large for a stack of unknown size.
    ///
    /// # Safety
    /// `at` comes from [`state::map`], and nobody else uses it.
    pub(crate) unsafe fn init<'a>(
        at: *mut Thread,
        index: u32,
        (counters, of_regions): (Counters, Counters),
        buffer: Buffer,
    ) -> &'a Thread {
        let node = u64::from(index + 1) << 40;
        let place = Place {
            parent: 0,
            step: Step::Root,
            index: 0,
            path: 0,
        };
        // SAFETY: the caller's promise. Zero bytes are values of all fields that are not written here (`zeroed!`).
        let thread = unsafe {
            (&raw mut (*at).index).write(index);
            (&raw mut (*at).counters).write(counters);
            Meter::init(&raw mut (*at).meter, of_regions);
            sums::Table::init(&raw mut (*at).sums);
            (&raw mut (*at).buffer).write(buffer);
            (&raw mut (*at).root).write(Frame::new(Construct::Program, NO_SITE, node, place, 0, 1));
            &*at
        };
        thread.watch_out();
        thread.choices.begin(&raw const thread.counters);
        thread.count_most();
        thread.look_for_samples();
        thread.look_for_sums();
        thread.here.stack.find();
        thread.next_node.set(node + 1);
        thread.no_creation();
        thread.membership.team.set(TeamPlace::OUTSIDE.word());
        thread.here.floor.set(usize::MAX);
        thread.find_innermost();
        thread.root.floor.set(usize::MAX);
        thread.here.frame.set(&raw const thread.root);
        thread.root.work_base.set(thread.work.as_ptr());
        thread.here.work_top.set(thread.work.as_ptr());
        thread.root.before.set(&raw const thread.root.cost);
        thread.charging.account.set(&raw const thread.root.cost);
        thread.turn(&raw const thread.root.cost);
        thread.charging.last.set(now());
        thread.read_counters(|_, _| ());
        thread.root.t0.set(thread.charging.last.get());
        thread
            .origin
            .set(Origin::new(index, thread.charging.last.get()));
        thread.write_node(node, Construct::Program, NO_SITE, place);
        thread.root.written.set(true);
        thread.set_quick(thread.is_plain());
        thread
    }

    /// Executes something so many times, outside of everything. The result are, per counter, the counts of what it opened, and
    /// those around it; `None` if not all was counted. There is no record of it: all is charged to the root. `one` gets the
    /// number of a node.
    pub(crate) fn try_out(
        &self,
        times: u64,
        one: impl Fn(u64),
    ) -> Option<[[u64; 2]; MAX_COUNTERS]> {
        let root = &self.root.cost;
        let own = || -> [u64; MAX_COUNTERS] { core::array::from_fn(|at| root.counts()[at].get()) };
        let (mark, node) = (self.buffer.mark(), self.new_node());
        self.charge();
        let (all, around) = (self.last_counts(), own());
        let (begin, own_ticks) = (self.charging.last.get(), root.ticks.get());
        (0..times).for_each(|_| one(node));
        self.charge();
        self.buffer.take_back(mark);
        root.ticks
            .set(own_ticks + (self.charging.last.get() - begin));
        let (all_after, around_after) = (self.last_counts(), own());
        let mut is_known = true;
        let result = core::array::from_fn(|at| {
            let all = all_after[at].wrapping_sub(all[at]);
            let of_root = around_after[at].wrapping_sub(around[at]);
            is_known &= at >= self.k() || around_after[at] != NOT_COUNTED;
            if around_after[at] != NOT_COUNTED {
                root.counts()[at].set(around[at].saturating_add(all));
            }
            [all.saturating_sub(of_root), of_root]
        });
        is_known.then_some(result)
    }

    /// Goes on where this thread's records were closed too early: ranks are counted on.
    pub(crate) fn follow(&self, before: &Thread) {
        self.root.follow(&before.root);
    }

    /// Number of counters that an account can have.
    #[inline(always)]
    pub(crate) fn k(&self) -> usize {
        self.most.get()
    }

    /// Whether there is nothing but the clock, and nothing is left out.
    #[inline(always)]
    fn is_plain(&self) -> bool {
        self.special.get() == 0
    }

    /// Whether there is more to a boundary than the clock.
    #[inline(always)]
    fn has_sets(&self) -> bool {
        self.special.get() & special::SETS != 0
    }

    /// Takes over how many counters the current set has.
    fn count_most(&self) {
        self.most
            .set(self.most.get().max(self.choices.counters().len()));
        if self.most.get() > 0 {
            self.be_special(special::SETS);
        }
    }

    fn be_special(&self, what: u8) {
        self.special.set(self.special.get() | what);
        self.set_quick(false);
    }

    /// Instances may be left out from now on, if that is wanted at all.
    pub(crate) fn look_for_samples(&self) {
        if sample::is_on() {
            self.be_special(special::SAMPLES);
            self.decide_on_reading();
        }
    }

    /// The current frame.
    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        // SAFETY: frames are left in the reverse order of entering, before their memory goes.
        unsafe { &*self.here.frame.get() }
    }

    /// Whether the thread is outside everything.
    pub(crate) fn is_idle(&self) -> bool {
        core::ptr::eq(self.here.frame.get(), &raw const self.root)
            && core::ptr::eq(self.charging.account.get(), &raw const self.root.cost)
            && core::ptr::eq(self.here.work_top.get(), self.work.as_ptr())
    }

    /// Innermost open work entry of the current frame.
    #[inline]
    pub(crate) fn work(&self) -> Option<&Work> {
        let top = self.here.work_top.get();
        if top > self.frame().work_base.get() {
            // SAFETY: between its beginning and what is open of [`Thread::work`].
            Some(unsafe { &*top.sub(1) })
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

    /// Ends the thread's recording: everything that is open is closed, up to the root.
    pub(crate) fn finish(&self) {
        if self.is_gone() {
            return;
        }
        self.begin_end();
        self.abandon();
        loop {
            let frame = self.frame();
            if let Some(called) = self.call_of(frame) {
                self.end_call(called);
                self.turn(called.frame.before.get());
                self.abandon();
                continue;
            }
            let last = core::ptr::eq(frame, &raw const self.root);
            self.leave(frame, frame.tid.get() as u64);
            if frame.construct.is_part() {
                self.end_part(frame);
            }
            if last {
                break;
            }
            self.abandon();
        }
        self.complete(true);
    }

    /// Before its frames are closed.
    fn begin_end(&self) {
        self.interrupt_creation();
        self.drain(&self.pending, &self.root.cost);
        self.forget_locks();
        self.tell_messages();
    }

    /// After its root has been left.
    fn complete(&self, trim: bool) {
        self.catch_up();
        self.tell_left_out();
        self.tell_all_parts();
        self.give_up();
        // In the midst of something it goes on, finds a place to charge, and writes nothing.
        self.here.frame.set(&raw const self.root);
        self.forget_calls();
        self.set_floor(usize::MAX);
        self.charging.account.set(&raw const self.root.cost);
        self.turn(&raw const self.root.cost);
        let mut counts = self.last_counts();
        self.counters.hide_torn(&mut counts);
        let counts = &counts[..self.counters.len()];
        self.buffer.finish(self.charging.last.get(), counts, trim);
    }

    /// What a probe is timing when the thread ends (a fork, a barrier in which a task exits) gets no interval: its time is the
    /// root's, so that the thread's intervals add up.
    fn abandon(&self) {
        self.charge();
        let (account, innermost) = (self.charging.account.get(), self.innermost_cost());
        let root = &raw const self.root.cost;
        if !core::ptr::eq(account, innermost) && !core::ptr::eq(account, root) {
            // SAFETY: the account being charged belongs to an open probe of this thread, which outlives what is finished.
            self.drain(unsafe { &*account }, &self.root.cost);
        }
        self.turn(innermost);
    }

    /// As [`Thread::finish`], by whoever has taken this thread, which is idle ([`Thread::close`]). It ends at this time, or
    /// where it has done something since.
    /// `trim`: its file is cut.
    pub(crate) fn finish_from_outside(&self, end: u64, trim: bool) {
        self.hand_over_counters();
        self.charging.watch.stop(); // it is another thread's
        self.begin_end();
        let end = end.max(self.last());
        self.charge();
        self.end_earlier(end);
        self.leave_charged(&self.root, self.root.tid.get() as u64, false);
        self.complete(trim);
    }
}

/// Time stamp counter.
#[inline(always)]
pub(crate) fn now() -> u64 {
    // SAFETY: every x86-64 has it.
    unsafe { _rdtsc() }
}
