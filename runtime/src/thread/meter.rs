//! What is known per outermost parallel region and thread: processor time, and the counts of events that need a system call.
//! Both are read where a thread's part of such a region begins and ends, so that an execution unit needs no call.
//!
//! Where parts are short only some of them are read: a region's parts on a thread earn by their time what readings cost, so that
//! reading takes a hundredth of it. Sums are kept in a table, and told as a record when some time has passed, and at the thread's end.
//!
//! Behind its part, in the barrier at the region's end, a thread executes tasks that are left. They belong to the region as well: counts
//! go on until the last of them that was read. Reading at a task's end is paid for likewise.
//!
//! What a nested region executes belongs to the outermost one: its own threads are charged to the thread of the outermost team
//! that has forked them.

use super::{Cost, Frame, Thread, now};
use crate::counters::Counters;
use crate::syscall;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use ompfuse_format::Construct;
use ompfuse_format::record::{self, MAX_COUNTERS, NOT_COUNTED, PartSum};

/// Ticks of a region's parts that pay for the two readings of one of them.
static PRICE: AtomicU64 = AtomicU64::new(0);
/// Nothing is read: a simulator's program has no processor time worth telling.
static IS_OFF: AtomicBool = AtomicBool::new(false);

/// How many times as long as its readings parts are.
const SHARE: u64 = 100;
/// Readings that can be earned in advance, by parts that are long.
const SAVED: u64 = 64;
/// Parts of a region until they are told in a record.
const TOLD: u64 = 1 << 16;
/// Ticks after which a region's parts are told: some milliseconds, so that little is missing where a process is killed.
const TOLD_TICKS: u64 = 1 << 24;
/// Places for the regions of a thread; a power of two.
const PLACES: usize = 512;
/// How many places are tried for a region; without one nothing is known of it.
const TRIES: usize = 8;

/// The constructs whose waiting threads may sleep: one bit each.
const WAITING: u64 = {
    let (mut bits, mut at) = (0, 0);
    while at < Construct::ALL.len() {
        let construct = Construct::ALL[at];
        assert!(
            (construct as u32) < u64::BITS,
            "too many constructs for a bit each: use a table"
        );
        if construct.is_wait() || construct.is_exclusive() {
            bits |= 1 << construct as u32;
        }
        at += 1;
    }
    bits
};

/// What the two readings of a part cost, in ticks.
pub(crate) fn set_cost(ticks: u64) {
    PRICE.store(SHARE * ticks, Ordering::Relaxed);
}

/// Has nothing read.
pub(crate) fn switch_off() {
    IS_OFF.store(true, Ordering::Relaxed);
}

/// An outermost parallel (or teams) region, and the number of the thread in its team.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outermost {
    pub(crate) construct: Construct,
    pub(crate) site: u32,
    pub(crate) member: u32,
}

/// A thread's meter.
#[derive(Debug)]
pub(super) struct Meter {
    /// Inside of a part, or of a task behind it.
    is_open: Cell<bool>,
    /// Behind a part: tasks that the thread executes are still the region's.
    is_behind: Cell<bool>,
    /// The last part is read.
    is_reading: Cell<bool>,
    at: Cell<Option<Outermost>>,
    /// Frames around the part.
    depth: Cell<usize>,
    /// Where its sums are; null if there is no place for them.
    sums: Cell<*const Sums>,
    /// Ticks in which the thread waited for others.
    pub(super) waited: Cell<u64>,
    /// Ticks of tasks behind the part since the last reading.
    unread: Cell<u64>,
    last: Reading,
    counters: Counters,
    table: Cell<*mut Sums>,
}

/// What was read at once.
#[derive(Debug)]
struct Reading {
    processor_ns: Cell<Option<u64>>,
    waited: Cell<u64>,
    is_counted: Cell<bool>,
    counts: [Cell<u64>; MAX_COUNTERS],
}

/// A region's parts on a thread, as far as they have not been told.
#[derive(Debug)]
struct Sums {
    /// The region's site plus 1 and the thread's number in its team; 0: the place is free.
    key: Cell<u64>,
    /// Ticks of parts that no reading has been paid with.
    earned: Cell<u64>,
    t0: Cell<u64>,
    t1: Cell<u64>,
    parts: Cell<u64>,
    read: Cell<u64>,
    ticks: Cell<u64>,
    read_ticks: Cell<u64>,
    processor_ns: Cell<u64>,
    wait_ticks: Cell<u64>,
    construct: Cell<Construct>,
    counts: [Cell<u64>; MAX_COUNTERS],
}

impl Reading {
    /// Keeps what was read; the processor's clock apart.
    fn replace(&self, is_counted: bool, values: &[u64; MAX_COUNTERS], waited: u64) {
        self.is_counted.set(is_counted);
        self.waited.set(waited);
        for (slot, &value) in self.counts.iter().zip(values) {
            slot.set(value);
        }
    }
}

impl Sums {
    /// Adds the time of a part, or of a task behind it. Returns its ticks.
    fn take_up(&self, t0: u64, t1: u64) -> u64 {
        if self.is_empty() {
            self.t0.set(t0);
        }
        self.t1.set(t1);
        let took = t1.saturating_sub(t0);
        self.ticks.set(self.ticks.get() + took);
        let most = SAVED * PRICE.load(Ordering::Relaxed);
        self.earned.set((self.earned.get() + took).min(most));
        took
    }

    /// Nothing was added since it was told.
    fn is_empty(&self) -> bool {
        self.parts.get() == 0 && self.ticks.get() == 0
    }
}

super::zeroed! {
    Meter {
        is_open, is_behind, is_reading, depth, sums, waited, unread, table,
    }
    written { at, last, counters }
}
super::zeroed! {
    Reading { waited, is_counted, counts }
    written { processor_ns }
}

impl Meter {
    /// Initialises the meter at this place, whose bytes are zero.
    ///
    /// # Safety
    /// `at` is valid, and nobody else uses it.
    pub(super) unsafe fn init(at: *mut Meter, counters: Counters) {
        // SAFETY: the caller's promise. Zero bytes are values of all other fields (`zeroed!`).
        unsafe {
            (&raw mut (*at).at).write(Cell::new(None));
            (&raw mut (*at).last.processor_ns).write(Cell::new(None));
            (&raw mut (*at).counters).write(counters);
        }
    }
}

impl Thread {
    /// The outermost region that this thread is in.
    #[inline(always)]
    pub(crate) fn outermost(&self) -> Option<Outermost> {
        match self.meter.is_open.get() && self.depth.get() > self.meter.depth.get() {
            true => self.meter.at.get(),
            false => None,
        }
    }

    /// Counts what a wait took, in which the thread may have slept.
    #[inline(always)]
    pub(super) fn count_wait(&self, construct: Construct, cost: &Cost) {
        let is_wait = WAITING >> (construct as u32) & 1;
        let ticks = cost.ticks.get() & is_wait.wrapping_neg();
        self.meter.waited.set(self.meter.waited.get() + ticks);
    }

    /// Before the thread enters its part of a region.
    #[inline(always)]
    pub(crate) fn begin_part(&self, outermost: Outermost) {
        if self.outermost().is_none() {
            self.begin_outermost(outermost);
        }
    }

    #[inline(never)]
    fn begin_outermost(&self, outermost: Outermost) {
        let meter = &self.meter;
        meter.at.set(Some(outermost));
        meter.depth.set(self.depth.get());
        meter.is_open.set(true);
        meter.is_behind.set(false);
        meter.is_reading.set(false);
        // What is switched off when it begins is not told.
        let is_on = !self.is_off(outermost.site);
        let sums = is_on.then(|| self.sums(outermost)).flatten();
        meter
            .sums
            .set(sums.map_or(core::ptr::null(), core::ptr::from_ref));
        let Some(sums) = sums else { return };
        let left = (sums.earned.get()).checked_sub(PRICE.load(Ordering::Relaxed));
        if let (Some(left), false) = (left, IS_OFF.load(Ordering::Relaxed)) {
            sums.earned.set(left);
            meter.is_reading.set(true);
            meter.unread.set(0);
            self.read_at_begin();
        }
    }

    /// After the thread has left its part of a region, which is in this frame.
    #[inline(always)]
    pub(crate) fn end_part(&self, frame: &Frame) {
        if self.meter.is_open.get() && self.depth.get() == self.meter.depth.get() {
            self.end_outermost(frame.t0.get());
        }
    }

    #[inline(never)]
    fn end_outermost(&self, t0: u64) {
        let meter = &self.meter;
        meter.is_open.set(false);
        // SAFETY: in the table, which stays until the thread's end.
        let Some(sums) = (unsafe { meter.sums.get().as_ref() }) else {
            return;
        };
        if self.is_gone() {
            return;
        }
        meter.is_behind.set(true);
        let took = sums.take_up(t0, self.last());
        sums.parts.set(sums.parts.get() + 1);
        if meter.is_reading.get() {
            sums.read.set(sums.read.get() + 1);
            self.read_at_end(sums, took);
        }
        self.tell_what_is_old(sums);
    }

    /// Before a task. Whether it is one behind the thread's part of a region: then [`Thread::end_behind`] comes after it.
    #[inline(always)]
    pub(crate) fn begin_behind(&self) -> bool {
        let meter = &self.meter;
        let is_behind = meter.is_behind.get() && self.depth.get() == meter.depth.get();
        if is_behind {
            meter.is_open.set(true);
        }
        is_behind
    }

    /// After a task behind a part, which began then.
    #[cold]
    #[inline(never)]
    pub(crate) fn end_behind(&self, t0: u64) {
        let meter = &self.meter;
        meter.is_open.set(false);
        // SAFETY: as in `end_outermost`.
        let sums = unsafe { meter.sums.get().as_ref() };
        let Some(sums) = sums.filter(|_| !self.is_gone()) else {
            return;
        };
        let took = sums.take_up(t0, self.last());
        if meter.is_reading.get() {
            let unread = meter.unread.get() + took;
            meter.unread.set(unread);
            let price = PRICE.load(Ordering::Relaxed) / 2;
            if let Some(left) = sums.earned.get().checked_sub(price) {
                sums.earned.set(left);
                meter.unread.set(0);
                self.read_at_end(sums, unread);
            }
        }
        self.tell_what_is_old(sums);
    }

    /// Tells the sums of a region if their oldest part is some milliseconds old.
    fn tell_what_is_old(&self, sums: &Sums) {
        let is_old = sums.t1.get().saturating_sub(sums.t0.get()) > TOLD_TICKS;
        if is_old || sums.parts.get() >= TOLD {
            self.tell_parts(sums);
        }
    }

    /// Reads the counters, and the processor's clock last.
    #[cold]
    #[inline(never)]
    fn read_at_begin(&self) {
        let Meter { last, counters, .. } = &self.meter;
        let mut values = [0; MAX_COUNTERS];
        let is_counted = counters.read(&mut values);
        last.replace(is_counted, &values, self.meter.waited.get());
        last.processor_ns.set(processor_ns());
    }

    /// Reads the processor's clock first, then the counters, and adds what came since the last reading. `took`: ticks of it.
    #[cold]
    #[inline(never)]
    fn read_at_end(&self, sums: &Sums, took: u64) {
        let Meter { last, counters, .. } = &self.meter;
        let now_ns = processor_ns();
        let passed = |end: Option<u64>, begin: Option<u64>| end?.checked_sub(begin?);
        let processor_ns = passed(now_ns, last.processor_ns.replace(now_ns)).unwrap_or(NOT_COUNTED);
        let mut values = [0; MAX_COUNTERS];
        let is_read = counters.read(&mut values);
        let is_counted = is_read && last.is_counted.get();
        let waited = self.meter.waited.get();
        let add = |sum: &Cell<u64>, more: u64| sum.set(sum.get().saturating_add(more));
        add(&sums.processor_ns, processor_ns);
        add(&sums.wait_ticks, waited.wrapping_sub(last.waited.get()));
        add(&sums.read_ticks, took);
        for (at, sum) in sums.counts.iter().enumerate().take(counters.len()) {
            let more = values[at].wrapping_sub(last.counts[at].get());
            add(sum, if is_counted { more } else { NOT_COUNTED });
        }
        last.replace(is_read, &values, waited);
    }

    /// The place of a region's sums; a free one, if it has none yet.
    #[inline]
    fn sums(&self, outermost: Outermost) -> Option<&Sums> {
        let Outermost { site, member, .. } = outermost;
        let key = u64::from(member) << 32 | u64::from(site.wrapping_add(1));
        // SAFETY: as in `end_outermost`.
        if let Some(last) = unsafe { self.meter.sums.get().as_ref() }
            && last.key.get() == key
        {
            return Some(last);
        }
        if self.meter.table.get().is_null() {
            self.make_sums();
        }
        let table = self.meter.table.get();
        if table.is_null() {
            return None;
        }
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48;
        for nth in 0..TRIES {
            // SAFETY: inside the table, whose zeroed bytes are free places; only this thread has it.
            let place = unsafe { &*table.add((hash as usize + nth) % PLACES) };
            if place.key.get() == 0 {
                place.key.set(key);
                place.earned.set(PRICE.load(Ordering::Relaxed)); // the first one is read
                place.construct.set(outermost.construct);
            }
            if place.key.get() == key {
                return Some(place);
            }
        }
        None
    }

    #[cold]
    #[inline(never)]
    fn make_sums(&self) {
        if let Some(memory) = syscall::map_memory(PLACES * size_of::<Sums>()) {
            self.meter.table.set(memory.cast());
        }
    }

    /// Tells what is known of all regions, at the thread's end. A part that has not ended is in it if the thread itself says so.
    pub(super) fn tell_all_parts(&self) {
        let table = self.meter.table.get();
        if table.is_null() {
            return;
        }
        for at in 0..PLACES {
            // SAFETY: as in `sums`.
            self.tell_parts(unsafe { &*table.add(at) });
        }
    }

    #[cold]
    #[inline(never)]
    fn tell_parts(&self, sums: &Sums) {
        if sums.is_empty() {
            return;
        }
        let key = sums.key.get();
        let sum = PartSum {
            construct: sums.construct.get(),
            site: (key as u32).wrapping_sub(1),
            member: (key >> 32) as u32,
            t0: sums.t0.get(),
            t1: sums.t1.get(),
            parts: sums.parts.take(),
            read: sums.read.take(),
            ticks: sums.ticks.take(),
            read_ticks: sums.read_ticks.take(),
            processor_ns: sums.processor_ns.take(),
            wait_ticks: sums.wait_ticks.take(),
            counts: record::Counts::default(),
        };
        // A thread whose counters could not be opened has none; what it has a part in has no counts then.
        let k = self.meter.counters.len();
        let counts = sums.counts.iter().take(k).map(Cell::take);
        if self.keeps_sums() {
            self.add_parts(&sum, sums.counts.iter().take(k).map(Cell::get));
            if self.keeps_sums_only() {
                counts.for_each(drop);
                return;
            }
        }
        let Some(out) = self.buffer.room(PartSum::LEN + 8 * k) else {
            return;
        };
        let words = record::encode_parts(&sum, counts, |at, word| {
            // SAFETY: the encoder writes as many words as the buffer gives.
            unsafe { out.add(at).write(word) };
        });
        let _ = self.buffer.commit(out, words); // a lost record is counted
    }

    /// What the two readings of a part cost, in ticks.
    pub(crate) fn try_reading(&self) -> u64 {
        let begin = now();
        let mut values = [0; MAX_COUNTERS];
        for _ in 0..2 {
            self.meter.counters.read(&mut values);
            core::hint::black_box((processor_ns(), &values));
        }
        now() - begin
    }

    /// Gives all back.
    pub(super) fn close_meter(&self) {
        self.meter.counters.close();
        self.meter.sums.set(core::ptr::null());
        let table = self.meter.table.replace(core::ptr::null_mut());
        if !table.is_null() {
            // SAFETY: nobody else knows it.
            unsafe { syscall::unmap(table.cast(), PLACES * size_of::<Sums>()) };
        }
    }
}

/// Processor time of the calling thread in nanoseconds, by a system call: no library may put a time of its own in its place.
fn processor_ns() -> Option<u64> {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let args = [
        libc::CLOCK_THREAD_CPUTIME_ID as usize,
        &raw mut t as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel fills the local variable.
    let result = unsafe { syscall::raw(libc::SYS_clock_gettime, args) };
    (result == 0).then(|| t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64)
}
