//! What a parallel region's executions add up to: who forks it has all its parts before them at the join, and adds them up.
//!
//! A thread that ends its part leaves what it has measured in a place of its own, in a list of the region. Behind its part it adds
//! what it executes there. The thread that forked reads the list when the runtime has joined the team: nobody adds to it then.
//! So the number of places is that of the parts whose region goes on.

use super::table::{Entry, Key};
use crate::syscall;
use crate::thread::{Place, Thread, now};
use core::cell::Cell;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::sums::{self, Kind, covered, execution, member};
use ompfuse_format::record::{IntervalHead, NO_SITE, TeamPlace};

/// A thread that waits so many times as long as it has done something before has done nothing worth the name.
const IDLE: u64 = 10;

/// Parts of a thread whose regions go on, or have ended and were not read yet; without a place the region's execution counts as
/// not measured.
const PARTS: usize = 30;

/// One thread's part of a region.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct Part {
    /// 1 from the part's end until it was read at the join.
    taken: AtomicU32,
    /// The thread's number in the process.
    thread: Cell<u32>,
    /// The region's node.
    node: Cell<u64>,
    begin: Cell<u64>,
    end: Cell<u64>,
    /// Begin of the thread's recording.
    first: Cell<u64>,
    /// Own ticks of what was executed behind the part, and the end of the last of it.
    tail: Cell<u64>,
    last: Cell<u64>,
    /// Parts: a thread may execute several teams of a league, one after the other.
    members: Cell<u64>,
    /// Next in the region's list.
    next: Cell<*const Part>,
}

/// A thread's places. They stay if the thread ends before its part is read, and are another thread's later.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Block {
    parts: [Part; PARTS],
    next: Cell<*mut Block>,
    /// Where the next free place may be.
    nth: Cell<usize>,
}

/// Blocks of threads that have ended.
static LEFT: AtomicPtr<Block> = AtomicPtr::new(core::ptr::null_mut());

/// How many outermost regions go on in the process, in the upper bits; and since when there is one.
static OPEN: AtomicU64 = AtomicU64::new(0);
const TIME: u32 = 54;
const TIME_MASK: u64 = (1 << TIME) - 1;

/// In the child of a fork: it is in no region that it will join.
pub(crate) fn after_fork() {
    OPEN.store(0, Ordering::Relaxed);
    LEFT.store(core::ptr::null_mut(), Ordering::Relaxed);
    super::roads::after_fork();
    super::calls::after_fork();
}

impl Part {
    /// Adds it to what its thread did in the region's executions. `last`: the end of the team's last work, where all parts are
    /// known. Between fork and join no moment is counted twice or not at all.
    fn add_to(&self, entry: Entry, head: &IntervalHead, last: Option<u64>, is_worker: bool) {
        let (fork, join) = (head.t0, head.t1.max(head.t0));
        let begin = self.begin.get().clamp(fork, join);
        let end = self.end.get().clamp(begin, join);
        entry.add(member::COUNT, 1);
        entry.add(member::STARTUP, begin - fork);
        entry.add(member::BODY, end - begin);
        if is_worker {
            let before = (self.begin.get()).saturating_sub(fork.max(self.first.get()));
            let after = head.t1.saturating_sub(self.end.get());
            entry.add(member::WORKED, 1);
            entry.add(
                member::WAITED,
                before + after.saturating_sub(self.tail.get()),
            );
            entry.set(member::LAST_JOIN, head.t1);
            entry.set(member::LAST_END, self.end.get() + self.tail.get());
        }
        if let Some(last) = last {
            let last = last.clamp(end, join);
            let task = self.tail.get().min(last - end);
            entry.add(member::MEASURED, 1);
            entry.add(member::TASK, task);
            entry.add(member::BARRIER, last - end - task);
            entry.add(member::SHUTDOWN, join - last);
        }
    }
}

/// What a region that is forked needs to add up its parts.
#[derive(Debug)]
pub(crate) struct TeamSums {
    parts: AtomicPtr<Part>,
    /// The highest rank of what the whole team meets so far.
    rank: AtomicI64,
    /// What the forking thread was behind of ([`Thread::add_behind`]).
    around: *const Part,
    /// Counted in [`OPEN`].
    is_open: Cell<bool>,
}

impl TeamSums {
    /// A region begins.
    #[inline(always)]
    pub(crate) fn new(thread: &Thread) -> TeamSums {
        TeamSums {
            parts: AtomicPtr::new(core::ptr::null_mut()),
            rank: AtomicI64::new(0),
            around: thread.sums.behind.get(),
            is_open: Cell::new(false),
        }
    }

    /// Whether no other thread of the team has told of something of this rank.
    pub(super) fn is_new_rank(&self, rank: i64) -> bool {
        rank > self.rank.load(Ordering::Relaxed)
            && rank > self.rank.fetch_max(rank, Ordering::Relaxed)
    }

    /// Before the region's fork. `around`: where its thread is ([`Thread::team_word`]).
    #[inline(always)]
    pub(crate) fn begin(&self, thread: &Thread, site: u32, around: u64) {
        if thread.keeps_sums() {
            self.begin_outermost(thread, site, around);
        }
    }

    #[inline(never)]
    fn begin_outermost(&self, thread: &Thread, site: u32, around: u64) {
        let is_inside = TeamPlace::from_word(around).is_some_and(|p| p.site != NO_SITE);
        if is_inside || thread.is_off(site) {
            return;
        }
        self.is_open.set(true);
        let now = now() & TIME_MASK;
        let enter = |open: u64| {
            Some(if open >> TIME == 0 {
                1 << TIME | now
            } else {
                open + (1 << TIME)
            })
        };
        let _ = OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, enter);
    }

    /// After the region's join, whose interval this is. `place`: the region's.
    #[inline(always)]
    pub(crate) fn end(&self, thread: &Thread, head: &IntervalHead, around: u64, place: &Place) {
        if thread.keeps_sums() {
            thread.sums.fork.set(place.road());
            self.add_up(thread, head, around);
        }
    }

    #[inline(never)]
    fn add_up(&self, thread: &Thread, head: &IntervalHead, around: u64) {
        thread.sums.behind.set(self.around);
        // The team has been joined: nobody adds to the list any more.
        let first = self.parts.load(Ordering::Acquire);
        self.parts.store(core::ptr::null_mut(), Ordering::Relaxed);
        let is_recorded = !thread.is_gone() && thread.is_on_record(head);
        if is_recorded {
            thread.add_execution(first, head, around);
        }
        for part in list(first) {
            part.taken.store(0, Ordering::Release); // from now on it is its thread's again
        }
        if self.is_open.replace(false) {
            let since = leave();
            if let (Some(since), true) = (since, is_recorded) {
                // The region that went on alone is known more exactly than its entry.
                let is_own = since >= head.t0.saturating_sub(NEAR) && since <= head.t0;
                let begin = if is_own { head.t0 } else { since };
                thread.add_covered(begin, head.t1);
            }
        }
    }
}

/// Ticks between a region's entry in [`OPEN`] and its fork, at most: the probe's own.
const NEAR: u64 = 1 << 16;

/// A region ends; since when there was one, if it was the last that went on.
fn leave() -> Option<u64> {
    let less = |open: u64| open.checked_sub(1 << TIME);
    let before = OPEN
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less)
        .ok()?;
    (before >> TIME == 1).then_some(before & TIME_MASK)
}

/// The parts from this one on.
fn list<'a>(first: *const Part) -> impl Iterator<Item = &'a Part> {
    // SAFETY: parts in a region's list stay where they are until the thread that reads them says that they are free.
    let mut next = unsafe { first.as_ref() };
    core::iter::from_fn(move || {
        let part = next?;
        // SAFETY: as above.
        next = unsafe { part.next.get().as_ref() };
        Some(part)
    })
}

impl Thread {
    /// The thread's part of the region in whose frame it is has ended.
    #[inline(never)]
    pub(super) fn end_of_part(&self, head: &IntervalHead) {
        let frame = self.frame();
        // SAFETY: the region ends later than its parts.
        let Some(team) = (unsafe { frame.team_sums.get().as_ref() }) else {
            return self.sums.behind.set(core::ptr::null());
        };
        // SAFETY: in a block of this thread.
        if let Some(before) = unsafe { self.sums.behind.get().as_ref() }
            && before.taken.load(Ordering::Relaxed) != 0
            && before.node.get() == frame.node
            && before.thread.get() == self.index
        {
            before.begin.set(before.begin.get().min(head.t0));
            before.end.set(head.t1);
            before.last.set(head.t1);
            before.members.set(before.members.get() + 1);
            return;
        }
        let part = self.free_part();
        let at = part.map_or(core::ptr::null(), core::ptr::from_ref);
        self.sums.behind.set(at);
        let Some(part) = part else { return };
        part.taken.store(1, Ordering::Relaxed);
        part.thread.set(self.index);
        part.node.set(frame.node);
        part.begin.set(head.t0);
        part.end.set(head.t1);
        part.first.set(self.root.t0.get());
        part.tail.set(0);
        part.last.set(head.t1);
        part.members.set(1);
        let mut first = team.parts.load(Ordering::Relaxed);
        loop {
            part.next.set(first);
            match team.parts.compare_exchange_weak(
                first,
                at.cast_mut(),
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }

    /// Adds what the thread has executed behind its part of a region, if it is there.
    #[inline(always)]
    pub(super) fn add_behind(&self, t0: u64, t1: u64, own: u64) {
        if self.membership.team.get() & TeamPlace::BEHIND != 0 {
            self.add_to_part(t0, t1, own);
        }
    }

    #[inline(never)]
    fn add_to_part(&self, t0: u64, t1: u64, own: u64) {
        // SAFETY: in a block of this thread.
        let Some(part) = (unsafe { self.sums.behind.get().as_ref() }) else {
            return;
        };
        if part.taken.load(Ordering::Relaxed) != 0 && t0 >= part.end.get() {
            part.tail.set(part.tail.get() + own);
            part.last.set(part.last.get().max(t1));
        }
    }

    fn free_part(&self) -> Option<&Part> {
        if self.sums.block.get().is_null() {
            self.sums.block.set(take_block());
        }
        // SAFETY: taken by this thread.
        let block = unsafe { self.sums.block.get().as_ref() }?;
        for _ in 0..PARTS {
            let nth = block.nth.get();
            block.nth.set(if nth + 1 == PARTS { 0 } else { nth + 1 });
            // Acquire: who has read it is done with it.
            let part = block.parts.get(nth)?;
            if part.taken.load(Ordering::Acquire) == 0 {
                block.nth.set(nth); // it is the nearest next time
                return Some(part);
            }
        }
        None
    }

    /// Adds a region's execution, as `fuse` does from records.
    fn add_execution(&self, first: *const Part, head: &IntervalHead, around: u64) {
        let key = Key {
            kind: Kind::Executions,
            construct: head.construct,
            site: head.site,
            team: u64::from(self.road_to(head)) << sums::ROAD,
            member: 0,
        };
        let Some(entry) = self.entry(key, || execution::WORDS) else {
            return;
        };
        let (mut members, mut threads, mut last) = (0, 0, 0);
        for part in list(first) {
            members += part.members.get();
            threads += 1;
            last = part.last.get().max(last);
        }
        let team = head.extent;
        let wall = head.t1.saturating_sub(head.t0);
        let is_complete = members > 0 && members >= team;
        entry.add(execution::COUNT, 1);
        entry.add(
            execution::NESTED,
            u64::from(around & TeamPlace::IN_PARALLEL != 0),
        );
        entry.add(execution::WALL, wall);
        // A league whose teams take turns binds fewer threads than it has teams.
        let bound = if is_complete { threads } else { team };
        entry.add(
            execution::TEAM_TICKS,
            wall.wrapping_mul(bound.clamp(1, 1 << 20)),
        );
        entry.most(execution::TEAM, team);
        let last = last.min(head.t1);
        if is_complete {
            entry.add(execution::MEASURED, 1);
            self.add_measured(first, head, last, entry);
        }
        for part in list(first) {
            let key = Key {
                kind: Kind::Member,
                member: u64::from(part.thread.get()),
                ..key
            };
            if let Some(entry) = self.entry(key, || member::WORDS) {
                let last = is_complete.then_some(last);
                part.add_to(entry, head, last, part.thread.get() != self.index);
            }
        }
    }

    fn add_measured(&self, first: *const Part, head: &IntervalHead, last: u64, entry: Entry) {
        let (mut limited, mut busy) = (0, 0);
        let (mut startup, mut imbalance, mut shutdown) = (0, 0, 0);
        for part in list(first) {
            let (begin, end, tail) = (part.begin.get(), part.end.get(), part.tail.get());
            let waited = last.saturating_sub(end).saturating_sub(tail);
            let done = end.saturating_sub(begin) + tail;
            match done.saturating_mul(IDLE) <= waited {
                true => limited += waited,
                false => busy += 1,
            }
            startup += begin.saturating_sub(head.t0);
            imbalance += waited;
            shutdown += head.t1.saturating_sub(last);
        }
        entry.add(execution::STARTUP, startup);
        entry.add(execution::IMBALANCE, imbalance);
        entry.add(execution::SHUTDOWN, shutdown);
        if busy == 1 {
            entry.add(execution::LIMITED, limited);
        }
    }

    /// From then to then at least one outermost region went on.
    fn add_covered(&self, begin: u64, end: u64) {
        let key = Key {
            kind: Kind::Covered,
            construct: Construct::Parallel,
            site: NO_SITE,
            team: 0,
            member: 0,
        };
        let Some(entry) = self.entry(key, || covered::WORDS) else {
            return;
        };
        entry.add(covered::TICKS, end.saturating_sub(begin));
        if entry.get(covered::BEGIN) == 0 {
            entry.set(covered::BEGIN, begin);
        }
        entry.most(covered::END, end);
    }
}

/// A block whose places are free; null without memory.
#[cold]
#[inline(never)]
fn take_block() -> *mut Block {
    // All of them: so nobody finds one of those that another thread is taking.
    let mut left = LEFT.swap(core::ptr::null_mut(), Ordering::Acquire);
    let mut found: *mut Block = core::ptr::null_mut();
    // SAFETY: the list is this thread's now.
    while let Some(block) = unsafe { left.as_ref() } {
        let next = block.next.get();
        let is_free = |part: &Part| part.taken.load(Ordering::Acquire) == 0;
        if found.is_null() && block.parts.iter().all(is_free) {
            found = left;
        } else {
            keep(left);
        }
        left = next;
    }
    if found.is_null() {
        found = syscall::map_memory(size_of::<Block>()).map_or(found, <*mut u8>::cast);
    }
    found
}

/// Keeps a block for another thread.
fn keep(block: *mut Block) {
    let mut first = LEFT.load(Ordering::Relaxed);
    loop {
        // SAFETY: a block that no other thread has.
        unsafe { (*block).next.set(first) };
        match LEFT.compare_exchange_weak(first, block, Ordering::Release, Ordering::Relaxed) {
            Ok(_) => return,
            Err(other) => first = other,
        }
    }
}

/// The thread ends whose block it is, if it has one.
pub(super) fn give_back(block: *mut Block) {
    if !block.is_null() {
        keep(block);
    }
}
