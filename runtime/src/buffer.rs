//! A thread's record file: its stage is mapped, filled record by record, and written to the end of the file when it is full.
//!
//! So the pages that a probe stores into are always the same ones, and present. A file that is mapped piece by piece costs a
//! page fault per page, which takes three times as long as writing the page.

mod head;
#[cfg(test)]
mod tests;

use crate::syscall;
use crate::undisturbed::uninterrupted;
use core::cell::Cell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use ompfuse_format::record::{HEADER_LEN, KIND_PAD, MAX_COUNTERS, ThreadHeader, short};

/// Bytes of the stage. Its blocks are reserved before it is mapped, so a store can't fail for want of space.
const STAGE: usize = 64 << 10;

/// Where the log begins in the file. It is written by whole stages: if these lie where the kernel's larger pages do, writing takes
/// a quarter less time. What lies between the stage and the log is not used.
const LOG: u64 = 128 << 10;

/// Bytes that are left in a stage: what is not used of it is filled up.
const PAD: usize = 16;

/// Bytes that the log grows by: reserved before they are written, and what is left of them is given back at the end. So a
/// disk that gets full has some space left for others, as the command that waits for the program.
const CHUNK: u64 = 256 << 10;

/// Most words of a short record without counts.
const LONGEST: usize = if short::LOOP_WORDS > short::INTERVAL_WORDS {
    short::LOOP_WORDS
} else {
    short::INTERVAL_WORDS
};

/// Room for a path (PATH_MAX of Linux).
const PATH_LEN: usize = 4096;

/// A record file.
#[derive(Debug)]
pub(crate) struct Buffer {
    fd: Cell<i32>,
    /// The file behind `fd`: the program may close that number, and open another file that gets it.
    identity: (u64, u64),
    /// Its absolute path, in a page of its own: memory from the heap that only our mappings lead to is a leak to tools that
    /// look for leaks.
    path: *mut u8,
    /// The mapped header, the stage behind it.
    header: *mut ThreadHeader,
    stage: *mut u8,
    /// Offset of the next record in the stage.
    at: Cell<usize>,
    /// Bytes in the log.
    flushed: Cell<u64>,
    /// Length of the log that is reserved.
    reserved: Cell<u64>,
    /// Where the log begins: behind the table of sums, where there is one.
    log: Cell<u64>,
    /// No further record is taken.
    full: Cell<bool>,
}

impl Buffer {
    /// Bytes between header and log.
    pub(crate) const STAGE: u64 = LOG - HEADER_LEN as u64;

    /// Any short record that begins before here fits into the stage.
    pub(crate) const QUICK: usize = STAGE - PAD - 8 * LONGEST + 1;

    /// Maps the first part of an empty file; takes the descriptor. `None` (and the descriptor closed) without space.
    pub(crate) fn new(fd: i32, path: &CStr, header: ThreadHeader) -> Option<Buffer> {
        let mapped = || {
            if !syscall::allocate(fd, 0, LOG) {
                return None;
            }
            let head = syscall::map_file(fd, 0, HEADER_LEN + STAGE)?;
            let bytes = path.to_bytes_with_nul();
            let copy = syscall::map_memory(PATH_LEN).filter(|_| bytes.len() <= PATH_LEN)?;
            // SAFETY: a fresh mapping of that length.
            unsafe { copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            let identity = syscall::identity(fd)?;
            Some((identity, copy, head))
        };
        let Some((identity, copy, head)) = mapped() else {
            syscall::close(fd);
            return None;
        };
        // SAFETY: a page of our own, just mapped, large and aligned enough for the header; the stage is behind it.
        let stage = unsafe {
            head.cast::<ThreadHeader>().write(header);
            head.add(HEADER_LEN)
        };
        Some(Buffer {
            fd: Cell::new(fd),
            identity,
            path: copy,
            header: head.cast(),
            stage,
            at: Cell::new(0),
            flushed: Cell::new(0),
            reserved: Cell::new(0),
            log: Cell::new(LOG),
            full: Cell::new(false),
        })
    }

    /// Stores where the thread's totals begin, and since when it has been prepared.
    pub(crate) fn set_start(&self, begun: u64, tsc: u64, counts: &[u64]) {
        // SAFETY: the header stays mapped as long as self; its thread has just begun and is the only one to know it.
        unsafe {
            (&raw mut (*self.header).tsc_start).write(tsc);
            (&raw mut (*self.header).prepared_ticks).write(tsc.saturating_sub(begun));
            let start = &mut (*self.header).counts_start;
            start
                .iter_mut()
                .zip(counts)
                .for_each(|(slot, &count)| *slot = count);
            (*self.header).unattributed = [0; MAX_COUNTERS];
        }
    }

    /// Whether a record of so many bytes fits into the stage as it is.
    #[inline(always)]
    pub(crate) fn has_room(&self, room: usize) -> bool {
        self.at.get() + room + PAD <= STAGE
    }

    /// Where a record of at most `room` bytes (a multiple of 8) can be stored, which [`Buffer::commit`] then counts. Without
    /// space it is counted as lost.
    #[inline(always)]
    pub(crate) fn room(&self, room: usize) -> Option<*mut u64> {
        if !self.has_room(room) && !self.flush(room) {
            self.lose();
            return None;
        }
        // SAFETY: at + room + PAD <= STAGE (no record is longer than the stage), and the stage is mapped.
        Some(unsafe { self.stage.add(self.at.get()) }.cast::<u64>())
    }

    /// As [`Buffer::room`] for a short record, if it begins before `end` (at most [`Buffer::QUICK`]).
    #[inline(always)]
    pub(crate) fn room_below(&self, end: usize) -> Option<*mut u64> {
        let at = self.at.get();
        if at >= end {
            return None;
        }
        // SAFETY: as in `room`.
        Some(unsafe { self.stage.add(at) }.cast::<u64>())
    }

    /// Counts the record of so many words that was stored at `out`, where [`Buffer::room`] said. False if a signal handler has stored
    /// a record there meanwhile, so that the two are mixed: neither is counted, and this one can be stored once more.
    #[inline(always)]
    #[must_use]
    pub(crate) fn commit(&self, out: *mut u64, words: usize) -> bool {
        let begin = out as usize - self.stage as usize;
        let at = begin + 8 * words;
        if !replace(&self.at, begin, at) {
            self.undo(begin);
            return false;
        }
        let committed = self.flushed.get() + at as u64;
        // Release: the record's stores come first for whoever reads on.
        // SAFETY: the header stays mapped as long as self; the field is aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).committed) }
            .store(committed, Ordering::Release);
        true
    }

    /// Takes back what a signal handler has stored from here on, where another record was about to come.
    #[cold]
    #[inline(never)]
    fn undo(&self, begin: usize) {
        self.lose();
        // Else the handler has emptied the stage, and its records are elsewhere.
        if begin < self.at.get() {
            self.take_back((self.flushed.get(), begin));
        }
    }

    /// Where the next record comes.
    pub(crate) fn mark(&self) -> (u64, usize) {
        (self.flushed.get(), self.at.get())
    }

    /// Takes back the records since a mark, if they are all in the stage.
    pub(crate) fn take_back(&self, (flushed, at): (u64, usize)) {
        if flushed == self.flushed.get() && at <= self.at.get() {
            self.at.set(at);
            // SAFETY: as in `commit`.
            unsafe { AtomicU64::from_ptr(&raw mut (*self.header).committed) }
                .store(flushed + at as u64, Ordering::Release);
        }
    }

    /// Makes room in the stage. No signal handler comes between, which would do the same.
    #[cold]
    #[inline(never)]
    fn flush(&self, room: usize) -> bool {
        uninterrupted(|| self.has_room(room) || self.store())
    }

    /// Writes the stage to the end of the log. What was committed is in the file at every moment.
    fn store(&self) -> bool {
        if self.full.get() {
            return false;
        }
        if self.at.get() > 0 && self.committed() == self.flushed.get() {
            // A signal handler has jumped out of the end of this function: all that is in the stage is in the log.
            self.empty();
            return true;
        }
        self.fill_up();
        let (len, flushed) = (self.at.get(), self.flushed.get());
        let write = |fd| {
            if flushed + len as u64 > self.reserved.get() {
                if !syscall::allocate(fd, self.log.get() + self.reserved.get(), CHUNK) {
                    return false;
                }
                self.reserved.set(self.reserved.get() + CHUNK);
            }
            // SAFETY: the stage is mapped and longer than that.
            unsafe { syscall::write_at(fd, self.stage, len, self.log.get() + flushed) }
        };
        if !self.own_file().is_some_and(write) {
            self.full.set(true); // the stage stays what it is
            return false;
        }
        self.flushed.set(flushed + len as u64);
        self.empty();
        true
    }

    /// Says that the stage is in the log.
    fn empty(&self) {
        // SAFETY: as in `commit`.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).flushed) }
            .store(self.flushed.get(), Ordering::Release);
        // The next records overwrite what was flushed: not before it is said to be.
        compiler_fence(Ordering::SeqCst);
        self.at.set(0);
    }

    /// Bytes of all records so far, those in the stage included.
    fn committed(&self) -> u64 {
        // SAFETY: as in `commit`.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).committed) }.load(Ordering::Relaxed)
    }

    /// Stores a record that fills the stage, and tells nothing.
    fn fill_up(&self) {
        let rest = STAGE - self.at.get();
        if rest >= PAD {
            // SAFETY: inside the stage, as `room` leaves so much.
            let pad = unsafe {
                let pad = self.stage.add(self.at.get()).cast::<u64>();
                pad.write(u64::from(KIND_PAD));
                pad.add(1).write(rest as u64);
                pad
            };
            let _ = self.commit(pad, rest / 8); // else the stage is not full any more
        }
    }

    /// Stores the totals and cuts the file to what is committed. The mapping stays, so a late record does no harm; it is
    /// removed with the process, or by [`Buffer::release`]. Without `trim` the file keeps its length.
    pub(crate) fn finish(&self, tsc_end: u64, counts_end: &[u64], trim: bool) {
        // SAFETY: the header stays mapped as long as self; only this thread (or the one that ends the process) writes it.
        unsafe {
            let end = &mut (*self.header).counts_end;
            end.iter_mut()
                .zip(counts_end)
                .for_each(|(slot, &count)| *slot = count);
            (&raw mut (*self.header).tsc_end).write(tsc_end);
        }
        if trim {
            let staged = (HEADER_LEN + self.at.get()) as u64;
            let end = match (self.flushed.get(), self.sums_end()) {
                // Nothing but the stage: from now on it is all the records.
                (0, 0) => {
                    self.set_stage(0);
                    staged
                }
                // And the table of sums behind it.
                (0, end) => {
                    self.set_stage(end - HEADER_LEN as u64);
                    end
                }
                (flushed, _) => self.log.get() + flushed,
            };
            if let Some(fd) = self.own_file() {
                syscall::truncate(fd, end);
            }
        }
        // Stores behind the new end would raise SIGBUS, hence no further record can fit.
        self.full.set(true);
        self.at.set(STAGE);
    }

    /// Unmaps everything and closes the file.
    ///
    /// # Safety
    /// `self` must not be used again.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            syscall::unmap(self.header.cast(), HEADER_LEN + STAGE);
            syscall::unmap(self.path, PATH_LEN);
        }
        if syscall::identity(self.fd.get()) == Some(self.identity) {
            syscall::close(self.fd.get());
        }
    }

    /// The file's descriptor; opened again if the program has closed it.
    fn own_file(&self) -> Option<i32> {
        let is_ours = |fd: i32| syscall::identity(fd) == Some(self.identity);
        if is_ours(self.fd.get()) {
            return Some(self.fd.get());
        }
        // SAFETY: `new` has put a string there, and the page stays mapped as long as self.
        let fd = unsafe { syscall::open(self.path) };
        let fd = syscall::move_up(fd?);
        if !is_ours(fd) {
            syscall::close(fd);
            return None;
        }
        self.fd.set(fd);
        Some(fd)
    }
}

/// Replaces a number, if it still is `old`, by one instruction: a signal handler comes before it or behind.
#[inline(always)]
fn replace(number: &Cell<usize>, old: usize, new: usize) -> bool {
    let is_done: u8;
    // SAFETY: the number is this thread's own; `cmpxchg` reads and writes nothing else, and what it finds goes to rax.
    unsafe {
        core::arch::asm!(
            "cmpxchg [{number}], {new}",
            "sete {is_done}",
            number = in(reg) number.as_ptr(),
            new = in(reg) new,
            is_done = lateout(reg_byte) is_done,
            inout("rax") old => _,
            options(nostack),
        );
    }
    is_done != 0
}
