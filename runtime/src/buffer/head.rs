//! What the header of a thread's file says while the thread is recorded.

use super::{Buffer, LOG};
use crate::kernel::Schedule;
use crate::syscall;
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::record::{HEADER_LEN, THREAD_NAME};

impl Buffer {
    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&self) {
        // SAFETY: as in commit.
        let lost = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).lost) };
        lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Counts time that is in no record.
    pub(crate) fn leave_out(&self, ticks: u64) {
        // SAFETY: as in commit.
        let left_out = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).unrecorded_ticks) };
        left_out.store(left_out.load(Ordering::Relaxed) + ticks, Ordering::Relaxed);
    }

    /// Counts time that recording took for itself.
    pub(crate) fn take_out(&self, ticks: u64) {
        // SAFETY: as in commit.
        let ours = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).ours_ticks) };
        ours.store(ours.load(Ordering::Relaxed) + ticks, Ordering::Relaxed);
    }

    /// Says whether it is known which intervals were disturbed.
    pub(crate) fn set_marks(&self, known: bool) {
        // SAFETY: as in commit.
        let marks = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).has_marks) };
        marks.store(u64::from(known), Ordering::Relaxed);
    }

    /// Says what the kernel has told of the thread when recording begins on it.
    pub(crate) fn begin_schedule(&self, told: Option<Schedule>) {
        let (ran, queued) = told.map_or((0, 0), Schedule::one_more);
        // SAFETY: as in commit.
        unsafe {
            AtomicU64::from_ptr(&raw mut (*self.header).ran_start).store(ran, Ordering::Relaxed);
            let start = AtomicU64::from_ptr(&raw mut (*self.header).queued_start);
            start.store(queued, Ordering::Relaxed);
        }
    }

    /// Says it of its end. What it does behind that is not told.
    pub(crate) fn end_schedule(&self, told: impl FnOnce() -> Option<Schedule>) {
        // SAFETY: as in commit.
        let (at_ran, at_queued) = unsafe {
            (
                AtomicU64::from_ptr(&raw mut (*self.header).ran),
                AtomicU64::from_ptr(&raw mut (*self.header).queued),
            )
        };
        let is_told = at_queued.load(Ordering::Relaxed) != 0;
        if let Some((ran, queued)) = (!is_told).then(told).flatten().map(Schedule::one_more) {
            at_ran.store(ran, Ordering::Relaxed);
            at_queued.store(queued, Ordering::Relaxed);
        }
    }

    /// Says what the thread is called.
    pub(crate) fn set_name(&self, name: [u8; THREAD_NAME]) {
        // SAFETY: as in commit; it is read once the thread has ended, and the header's page stays in the file.
        unsafe { (&raw mut (*self.header).name).write(name) };
    }

    /// Says until when the file of a thread that has ended was completed.
    pub(crate) fn set_completed(&self, now: u64) {
        // SAFETY: as in commit; the header's page stays in the file when that is cut.
        unsafe {
            let end = (&raw const (*self.header).tsc_end).read();
            let took = now.saturating_sub(end);
            (&raw mut (*self.header).completed_ticks).write(took);
        }
    }

    /// Adds what a counter of the first set has counted and no interval has; [`NOT_COUNTED`]: nobody knows how much that is.
    pub(crate) fn unattribute(&self, counter: usize, count: u64) {
        // SAFETY: as in commit; the place is inside the header's array.
        unsafe {
            let all = &raw mut (*self.header).unattributed;
            if let Some(sum) = (*all).get(counter) {
                let sum = sum.saturating_add(count);
                (&raw mut (*all)[counter]).write(sum);
            }
        }
    }

    /// Says that counters are read for recorded execution units only.
    pub(crate) fn set_reads_for_units(&self) {
        // SAFETY: as in commit.
        unsafe { (&raw mut (*self.header).reads_for_units).write(1) };
    }

    /// Says that a table of sums is kept, which is empty.
    pub(crate) fn begin_sums(&self, mode: u64) {
        // SAFETY: as in commit.
        unsafe {
            (&raw mut (*self.header).sums_at).write(LOG);
            (&raw mut (*self.header).sums).write(mode);
        }
    }

    /// Room in the file for so many bytes more of sums, mapped; `None` without space, and where records are behind the table.
    #[cold]
    #[inline(never)]
    pub(crate) fn room_for_sums(&self, len: usize) -> Option<*mut u8> {
        if self.full.get() || self.flushed.get() > 0 {
            return None;
        }
        let (fd, at) = (self.own_file()?, self.log.get());
        if !syscall::allocate(fd, at, len as u64) {
            return None;
        }
        let mapped = syscall::map_file(fd, at, len)?;
        self.log.set(at + len as u64);
        self.set_stage(self.log.get() - HEADER_LEN as u64);
        Some(mapped)
    }

    /// Counts the bytes of sums.
    pub(crate) fn commit_sums(&self, len: usize) {
        // SAFETY: as in commit.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).sums_len) }
            .store(len as u64, Ordering::Release);
    }

    /// Where the sums end in the file; 0: there are none.
    pub(super) fn sums_end(&self) -> u64 {
        // SAFETY: as in commit.
        match unsafe { (&raw const (*self.header).sums_len).read() } {
            0 => 0,
            len => LOG + len,
        }
    }

    /// Says where the log begins.
    pub(super) fn set_stage(&self, len: u64) {
        // SAFETY: as in commit.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).stage) }.store(len, Ordering::Release);
    }

    /// The kernel's number of the thread.
    pub(crate) fn tid(&self) -> u32 {
        // SAFETY: written before the first record, and never again.
        unsafe { (*self.header).tid }
    }

    /// Whether it is the process's first thread.
    #[inline(always)]
    pub(crate) fn is_main(&self) -> bool {
        // SAFETY: as in `tid`.
        unsafe { (*self.header).tid == (*self.header).pid }
    }

    /// Records lost so far.
    pub(crate) fn lost(&self) -> u64 {
        // SAFETY: as in commit.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).lost) }.load(Ordering::Relaxed)
    }
}
