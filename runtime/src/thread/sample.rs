//! One in N: what is executed very often need not be on record each time. What is left out is counted, its labels are those
//! that it would have had, and so are its children's.
//!
//! Which tasks, ranges and sections are on record is told by their labels, so these are the same ones in every run, whichever
//! thread executes them. Waits and services have no label: each thread records every N-th.

use super::{Choice, Cost, Place, Thread, special};
use crate::syscall;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::{self, LeftOut, TeamPlace};

/// One in so many is recorded everywhere; 1: all.
static ONE_IN: AtomicU32 = AtomicU32::new(1);
/// What takes fewer ticks is only counted; 0: nothing is.
static LEAST: AtomicU64 = AtomicU64::new(0);
/// Percentage of a region's own time that its probes may cost until fewer instances are recorded; 0: any.
static SHARE: AtomicU32 = AtomicU32::new(0);
/// What the probes of an instance cost, in ticks.
static COST: AtomicU64 = AtomicU64::new(0);

/// Instances whose mean decides.
const JUDGED: u32 = 256;
/// Fewest that are recorded: one in so many.
const MOST: u32 = 1 << 10;
/// Left-out instances of a region until they are told in a record.
const TOLD: u64 = 1 << 16;
/// Places for the regions of a thread; a power of two.
const PLACES: usize = 4096;
/// How many places are tried for a region; without one all of its instances are recorded.
const TRIES: usize = 8;

/// Whether anything may be left out.
static IS_ON: AtomicBool = AtomicBool::new(false);

/// What a process starts with.
pub(crate) fn prepare(one_in: u32, share: u32, least: u64) {
    ONE_IN.store(one_in.max(1), Ordering::Relaxed);
    SHARE.store(share, Ordering::Relaxed);
    LEAST.store(least, Ordering::Relaxed);
    IS_ON.store(one_in > 1 || share > 0 || least > 0, Ordering::Relaxed);
}

/// A boundary takes so many ticks: the probes of an instance are two.
pub(crate) fn set_boundary(ticks: u64) {
    COST.store(2 * ticks, Ordering::Relaxed);
}

/// Whether an execution unit with so many ticks may not be on record in the end, as it is too short.
#[inline(always)]
pub(super) fn may_turn_out_short(ticks: u64) -> bool {
    ticks < LEAST.load(Ordering::Relaxed)
}

#[inline(always)]
pub(super) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// A region on a thread, inside another one.
pub(super) struct Tally {
    /// Its construct's number plus 1, and its site; 0: the place is free.
    key: Cell<u64>,
    /// Where it is executed ([`Thread::team_word`]): a region may be in several others.
    team: Cell<u64>,
    one_in: Cell<u32>,
    /// Waits: how many are left out until the next one is recorded.
    next: Cell<u32>,
    /// Left out, and not told yet: instances and ticks.
    count: Cell<u64>,
    ticks: Cell<u64>,
    /// Some of them since they were short.
    short: Cell<bool>,
    /// Recorded, and not judged yet.
    judged: Cell<u32>,
    judged_ticks: Cell<u64>,
}

impl Place {
    /// See [`Thread::path`].
    pub(super) fn child(&self, site: u32, index: i64) -> u64 {
        let mixed = (self.path ^ u64::from(site) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29 ^ index as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ mixed >> 32
    }
}

impl Thread {
    /// Whether anything may be left out.
    #[inline(always)]
    fn may_leave_out(&self) -> bool {
        self.special.get() & special::SAMPLES != 0
    }

    /// Whether it may turn out at its end that an execution unit is not on record: then the nodes that others name are written.
    #[inline(always)]
    pub(super) fn may_be_short(&self) -> bool {
        self.may_leave_out() && LEAST.load(Ordering::Relaxed) > 0
    }

    /// What tells a child of the construct at this place from every other, in every run: told by its label. Nothing where
    /// nobody will ask.
    #[inline(always)]
    pub(crate) fn path(&self, place: &Place, site: u32, index: i64) -> u64 {
        if self.special.get() & (special::SAMPLES | special::SUMS) == 0 {
            return 0;
        }
        if self.keeps_sums() {
            return self.path_on_road(place, site, index);
        }
        Self::child_path(place, site, index)
    }

    /// As [`Thread::path`], of a construct that is opened next in the one at this place, on the stack of open ones.
    #[inline(always)]
    pub(crate) fn path_of_next(&self, place: &Place, site: u32, index: i64) -> u64 {
        match self.has_lazy_paths() {
            true => self.path_of_opened(place, site),
            false => self.path(place, site, index),
        }
    }

    /// Whether open constructs have no paths, but those are found when they are asked for.
    #[inline(always)]
    pub(super) fn has_lazy_paths(&self) -> bool {
        self.special.get() & (special::SAMPLES | special::SUMS) == special::SUMS
    }

    #[inline(never)]
    fn child_path(place: &Place, site: u32, index: i64) -> u64 {
        place.child(site, index)
    }

    /// Whether a task or range that begins here is left out, in addition to what was chosen.
    #[inline(always)]
    pub(super) fn sample(
        &self,
        choice: Choice,
        construct: Construct,
        site: u32,
        path: u64,
    ) -> Choice {
        if !self.may_leave_out() {
            return choice;
        }
        self.sample_by_label(choice, construct, site, path)
    }

    #[inline(never)]
    fn sample_by_label(
        &self,
        choice: Choice,
        construct: Construct,
        site: u32,
        path: u64,
    ) -> Choice {
        if choice.is_off() {
            return choice;
        }
        let Some(tally) = self.tally(construct, site) else {
            return choice;
        };
        // The upper half of the product is below 1 for one in so many.
        let part = (path >> 32).wrapping_mul(u64::from(tally.one_in.get())) >> 32;
        if part == 0 {
            return choice;
        }
        tally.count.set(tally.count.get() + 1);
        choice.left_out()
    }

    /// Whether a wait that has ended is left out.
    #[inline]
    pub(super) fn skips(&self, construct: Construct, site: u32, cost: &Cost) -> bool {
        self.may_leave_out()
            && construct != Construct::Cancel
            && self.skips_this(construct, site, cost)
    }

    #[inline(never)]
    fn skips_this(&self, construct: Construct, site: u32, cost: &Cost) -> bool {
        let Some(tally) = self.tally(construct, site) else {
            return false;
        };
        if self.is_short(construct, site, cost) {
            return true;
        }
        let Some(next) = tally.next.get().checked_sub(1) else {
            tally.next.set(tally.one_in.get() - 1);
            return false;
        };
        tally.next.set(next);
        tally.count.set(tally.count.get() + 1);
        self.add_left_out(construct, site, cost);
        true
    }

    /// Whether an execution unit or a wait that has ended is only counted, being shorter than what is wanted on record.
    #[inline]
    pub(super) fn is_short(&self, construct: Construct, site: u32, cost: &Cost) -> bool {
        self.may_leave_out()
            && cost.ticks.get() < LEAST.load(Ordering::Relaxed)
            && self.leave_out_short(construct, site, cost)
    }

    #[inline(never)]
    fn leave_out_short(&self, construct: Construct, site: u32, cost: &Cost) -> bool {
        let Some(tally) = self.tally(construct, site) else {
            return false;
        };
        tally.count.set(tally.count.get() + 1);
        tally.short.set(true);
        if self.reads_for_units() {
            self.give_up_reading(cost);
        }
        self.add_left_out(construct, site, cost);
        true
    }

    /// Counts the time of something that was left out.
    #[cold]
    #[inline(never)]
    pub(super) fn add_left_out(&self, construct: Construct, site: u32, cost: &Cost) {
        if self.is_gone() {
            return;
        }
        self.buffer.leave_out(cost.ticks.get());
        if let Some(tally) = self.tally(construct, site) {
            tally.ticks.set(tally.ticks.get() + cost.ticks.get());
            if tally.count.get() >= TOLD {
                self.tell(tally);
            }
        }
    }

    /// Counts the time of something that is switched off, if it was executed at the end of a region that is on record: there it
    /// would be taken for waiting.
    #[inline(never)]
    pub(super) fn add_off_behind(&self, cost: &Cost) {
        let place = TeamPlace::from_word(self.team_word());
        let behind = place.filter(|p| p.behind && p.site != record::NO_SITE);
        if let Some(tally) = behind.and_then(|p| self.tally(Construct::Program, p.site)) {
            tally.ticks.set(tally.ticks.get() + cost.ticks.get());
        }
    }

    /// Something is recorded: where its like is too short for its probes, fewer will be.
    #[inline]
    pub(super) fn judge(&self, construct: Construct, site: u32, ticks: u64) {
        if self.may_leave_out() && SHARE.load(Ordering::Relaxed) > 0 {
            self.judge_now(construct, site, ticks);
        }
    }

    #[inline(never)]
    fn judge_now(&self, construct: Construct, site: u32, ticks: u64) {
        let Some(tally) = self.tally(construct, site) else {
            return;
        };
        tally.judged.set(tally.judged.get() + 1);
        tally.judged_ticks.set(tally.judged_ticks.get() + ticks);
        if tally.judged.get() < JUDGED {
            return;
        }
        let (mean, share) = (
            tally.judged_ticks.get() / u64::from(JUDGED),
            SHARE.load(Ordering::Relaxed),
        );
        tally.judged.set(0);
        tally.judged_ticks.set(0);
        let allowed = mean * u64::from(share);
        let cost = COST.load(Ordering::Relaxed) * 100;
        while tally.one_in.get() < MOST && allowed * u64::from(tally.one_in.get()) < cost {
            tally.one_in.set(tally.one_in.get() * 2);
        }
    }

    /// The place of a region; a free one, if it has none yet.
    #[inline]
    fn tally(&self, construct: Construct, site: u32) -> Option<&Tally> {
        if self.tallies.get().is_null() {
            self.make_tallies();
        }
        let table = self.tallies.get();
        if table.is_null() {
            return None;
        }
        let key = (construct as u64 + 1) << 32 | u64::from(site);
        let team = self.team_word();
        let hash = (key ^ team.rotate_left(24)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        for nth in 0..TRIES {
            // SAFETY: inside the table, whose zeroed bytes are free places; only this thread has it.
            let place = unsafe { &*table.add((hash as usize + nth) % PLACES) };
            if place.key.get() == key && place.team.get() == team {
                return Some(place);
            }
            if place.key.get() == 0 {
                place.key.set(key);
                place.team.set(team);
                place.one_in.set(ONE_IN.load(Ordering::Relaxed));
                return Some(place);
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn make_tallies(&self) {
        if let Some(memory) = syscall::map_memory(PLACES * size_of::<Tally>()) {
            self.tallies.set(memory.cast());
        }
    }

    /// Tells all that was left out; at the end of the thread.
    pub(super) fn tell_left_out(&self) {
        let table = self.tallies.get();
        if table.is_null() {
            return;
        }
        for at in 0..PLACES {
            // SAFETY: as in `tally`.
            self.tell(unsafe { &*table.add(at) });
        }
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, tally: &Tally) {
        let key = tally.key.get();
        let (count, ticks) = (tally.count.take(), tally.ticks.take());
        let short = tally.short.take();
        let construct = Construct::from_number((key >> 32).wrapping_sub(1) as u8);
        let team = TeamPlace::from_word(tally.team.get());
        let Some((construct, team)) = construct.zip(team) else {
            return;
        };
        if key == 0 || count == 0 && ticks == 0 {
            return;
        }
        let left_out = LeftOut {
            construct,
            site: key as u32,
            count,
            ticks,
            one_in: tally.one_in.get(),
            throttled: tally.one_in.get() > ONE_IN.load(Ordering::Relaxed),
            short,
            team,
        };
        let Some(out) = self.buffer.room(LeftOut::LEN) else {
            return;
        };
        record::encode_left_out(&left_out, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, LeftOut::LEN / 8); // a lost record is counted
    }

    /// Gives the table back.
    pub(super) fn release_tallies(&self) {
        let table = self.tallies.replace(core::ptr::null_mut());
        if !table.is_null() {
            // SAFETY: nobody else knows it.
            unsafe { syscall::unmap(table.cast(), PLACES * size_of::<Tally>()) };
        }
    }
}
