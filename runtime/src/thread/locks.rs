//! OpenMP locks, and mutexes, that a thread holds. Unlike mutexes of constructs they are released in any order, in other functions and
//! tasks, by other threads even: so they are kept apart from the frames, and found again by their address.

use super::{Cost, Thread};
use crate::locks;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::Construct;
use zerocopy::FromZeros;

/// Locks held at once by a thread of which we know since when; the oldest gives way.
const MAX_LOCKS: usize = 32;

/// Who took a lock last, by the lock's address: a lock that another thread took in between was not held until now.
/// Two locks may share a place, then the time that one was held is not told.
static OWNERS: [AtomicU64; OWNER_PLACES] = [const { AtomicU64::new(0) }; OWNER_PLACES];
const OWNER_PLACES: usize = 1024;

/// The locks that a thread holds, the oldest first.
#[derive(Debug, FromZeros)]
pub(super) struct Locks {
    top: Cell<usize>,
    held: [Lock; MAX_LOCKS],
}

/// A lock that is held.
#[derive(Debug, FromZeros)]
struct Lock {
    lock: Cell<u64>,
    /// [`crate::locks`]
    number: Cell<u32>,
    site: Cell<u32>,
    parent: Cell<u64>,
    /// Where it was taken ([`Thread::team_word`]).
    team: Cell<u64>,
    /// The road to it ([`Thread::road_here`]).
    road: Cell<u16>,
    t0: Cell<u64>,
    acquired: Cell<u64>,
    wait: Cell<u64>,
    cost: Cost,
}

fn place(lock: u64) -> &'static AtomicU64 {
    // Multiplication spreads addresses; the top bits are the best ones.
    let hash = lock.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
    &OWNERS[hash as usize % OWNER_PLACES]
}

impl Thread {
    /// The number of a lock (also [`UNNAMED_CRITICAL`](ompfuse_format::record::lock::UNNAMED_CRITICAL)), by its address.
    #[inline(always)]
    pub(crate) fn lock_number(&self, address: u64) -> u32 {
        locks::number(address, |lock| self.tell_lock(lock))
    }

    /// This thread's mark at a lock: addresses have 48 bits.
    fn owner(&self, lock: u64) -> u64 {
        lock << 16 | u64::from(self.index + 1) & 0xffff
    }

    /// A lock was taken at `site`; `cost` is what that took, since `t0`, of which `wait` was spent waiting.
    pub(crate) fn lock(&self, lock: u64, site: u32, t0: u64, wait: u64, cost: &Cost) {
        place(lock).store(self.owner(lock), Ordering::Relaxed);
        self.keep_lock(lock, site, t0, wait, cost);
    }

    /// The same of one that was waited for and not taken.
    pub(crate) fn wait_for_lock(&self, lock: u64, site: u32, t0: u64, wait: u64, cost: &Cost) {
        self.keep_lock(lock, site, t0, wait, cost);
        if let Some(newest) = self.locks.top.get().checked_sub(1) {
            self.forget_lock(newest);
        }
    }

    fn keep_lock(&self, lock: u64, site: u32, t0: u64, wait: u64, cost: &Cost) {
        if self.locks.top.get() == MAX_LOCKS {
            self.forget_lock(0);
        }
        let Some(held) = self.locks.held.get(self.locks.top.get()) else {
            return self.absorb(cost);
        };
        self.locks.top.set(self.locks.top.get() + 1);
        held.lock.set(lock);
        held.number.set(self.lock_number(lock));
        held.site.set(site);
        held.parent.set(self.here());
        held.team.set(self.team_word());
        held.road.set(self.road_here());
        held.t0.set(t0);
        held.acquired.set(self.charging.last.get());
        held.wait.set(wait);
        held.cost.clear();
        self.drain(cost, &held.cost);
    }

    /// A lock is about to be released: whether this thread was the last to take it.
    pub(crate) fn has_taken(&self, lock: u64) -> bool {
        let place = place(lock);
        let owner = place.load(Ordering::Relaxed);
        if owner == self.owner(lock) {
            return true;
        }
        if owner >> 16 == lock & (u64::MAX >> 16) {
            place.store(0, Ordering::Relaxed); // who takes it next may have no probe
        }
        false
    }

    /// A lock was released; `cost` is what that took, `own`: what [`Thread::has_taken`] said before.
    pub(crate) fn unlock(&self, lock: u64, own: bool, cost: &Cost) {
        let open = self.locks.held.get(..self.locks.top.get()).unwrap_or(&[]);
        let Some(at) = open.iter().rposition(|held| held.lock.get() == lock) else {
            return self.absorb(cost); // taken by another thread, or without probe
        };
        if !own {
            self.forget_lock(at);
            return self.absorb(cost);
        }
        let Some(held) = self.locks.held.get(at) else {
            return;
        };
        self.drain(cost, &held.cost);
        held.write(self, self.charging.last.get());
        self.remove_lock(at);
    }

    /// Writes what is known of a lock that nobody saw released: waiting for it.
    fn forget_lock(&self, at: usize) {
        if let Some(held) = self.locks.held.get(at) {
            held.write(self, held.acquired.get());
            self.remove_lock(at);
        }
    }

    /// At the end of the thread.
    pub(super) fn forget_locks(&self) {
        while self.locks.top.get() > 0 {
            self.forget_lock(0);
        }
    }

    fn remove_lock(&self, at: usize) {
        let top = self.locks.top.get() - 1;
        for to in at..top {
            if let (Some(from), Some(to)) = (self.locks.held.get(to + 1), self.locks.held.get(to)) {
                from.move_to(to, self);
            }
        }
        self.locks.top.set(top);
    }
}

impl Lock {
    fn write(&self, thread: &Thread, until: u64) {
        let write = || {
            thread.write_span(
                (Construct::Lock, self.site.get(), self.number.get()),
                self.parent.get(),
                (self.t0.get(), until),
                self.wait.get(),
                &self.cost,
            );
        };
        // Sums are of where it was taken.
        thread.add_on_road((self.team.get(), self.road.get()), write);
    }

    fn move_to(&self, to: &Lock, thread: &Thread) {
        to.lock.set(self.lock.get());
        to.number.set(self.number.get());
        to.site.set(self.site.get());
        to.parent.set(self.parent.get());
        to.team.set(self.team.get());
        to.road.set(self.road.get());
        to.t0.set(self.t0.get());
        to.acquired.set(self.acquired.get());
        to.wait.set(self.wait.get());
        to.cost.clear();
        thread.drain(&self.cost, &to.cost);
    }
}
