//! A thread's record file: preallocated, mapped, and committed record by record.

use crate::syscall;
use core::cell::Cell;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};
use ompfuse_format::record::{HEADER_LEN, ThreadHeader};

/// Bytes that the file grows by. Blocks are reserved before they are mapped, so a store can't fail for want of space.
const CHUNK: usize = 256 << 10;

/// Room for a path (PATH_MAX of Linux).
const PATH_LEN: usize = 4096;

/// The mapped end of a record file.
#[derive(Debug)]
pub(crate) struct Buffer {
    fd: Cell<i32>,
    /// The file behind `fd`: the program may close that number, and open another file that gets it.
    identity: (u64, u64),
    /// Its absolute path, in a page of its own: memory from the heap that only our mappings lead to is a leak to tools that
    /// look for leaks.
    path: *mut u8,
    header: *mut ThreadHeader,
    chunk: Cell<*mut u8>,
    /// Offset of the next record in the chunk.
    at: Cell<usize>,
    /// File offset of the chunk.
    offset: Cell<u64>,
    /// No further record is taken.
    full: Cell<bool>,
}

impl Buffer {
    /// Maps the first part of an empty file; takes the descriptor. `None` (and the descriptor closed) without space.
    pub(crate) fn new(fd: i32, path: &CStr, header: ThreadHeader) -> Option<Buffer> {
        let mapped = || {
            if !syscall::allocate(fd, 0, (HEADER_LEN + CHUNK) as u64) {
                return None;
            }
            let head = syscall::map_file(fd, 0, HEADER_LEN)?;
            let chunk = syscall::map_file(fd, HEADER_LEN as u64, CHUNK)?;
            let bytes = path.to_bytes_with_nul();
            let copy = syscall::map_memory(PATH_LEN).filter(|_| bytes.len() <= PATH_LEN)?;
            // SAFETY: a fresh mapping of that length.
            unsafe { copy.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
            let identity = syscall::identity(fd)?;
            Some((identity, copy, head.cast::<ThreadHeader>(), chunk))
        };
        let Some((identity, copy, head, chunk)) = mapped() else {
            syscall::close(fd);
            return None;
        };
        // SAFETY: a page of our own, just mapped, large and aligned enough for the header.
        unsafe { head.write(header) };
        Some(Buffer {
            fd: Cell::new(fd),
            identity,
            path: copy,
            header: head,
            chunk: Cell::new(chunk),
            at: Cell::new(0),
            offset: Cell::new(HEADER_LEN as u64),
            full: Cell::new(false),
        })
    }

    /// Stores where the thread's totals begin.
    pub(crate) fn set_start(&self, tsc: u64, counts: &[u64]) {
        // SAFETY: the header stays mapped as long as self; its thread has just begun and is the only one to know it.
        unsafe {
            (&raw mut (*self.header).tsc_start).write(tsc);
            let start = &mut (*self.header).counts_start;
            start
                .iter_mut()
                .zip(counts)
                .for_each(|(slot, &count)| *slot = count);
        }
    }

    /// Writes one record of `len` bytes (a multiple of 8) through `fill`, which gets its first word, and commits it.
    /// Without space it is counted as lost.
    #[inline]
    pub(crate) fn record(&self, len: usize, fill: impl FnOnce(*mut u64)) {
        if self.at.get() + len > CHUNK && !self.grow() {
            self.lose();
            return;
        }
        let at = self.at.get();
        // SAFETY: at + len <= CHUNK was just checked, and the chunk is mapped.
        fill(unsafe { self.chunk.get().add(at) }.cast::<u64>());
        self.commit(at + len);
    }

    /// Publishes everything before `end` in the chunk. Release: the record's stores come first for whoever reads on.
    #[inline]
    fn commit(&self, end: usize) {
        self.at.set(end);
        let total = self.offset.get() - HEADER_LEN as u64 + end as u64;
        // SAFETY: the header stays mapped as long as self; the field is aligned.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).committed) }
            .store(total, Ordering::Release);
    }

    /// Maps the next chunk, after a filler that readers skip as a kind that they don't know.
    #[cold]
    #[inline(never)]
    fn grow(&self) -> bool {
        if self.full.get() {
            return false;
        }
        let next = self.offset.get() + CHUNK as u64;
        let reserve = |fd| {
            if !syscall::allocate(fd, next, CHUNK as u64) {
                return None;
            }
            syscall::map_file(fd, next, CHUNK)
        };
        let Some(chunk) = self.own_file().and_then(reserve) else {
            self.full.set(true);
            return false;
        };
        let rest = (CHUNK - self.at.get()) as u64;
        if rest > 0 {
            // SAFETY: rest > 0 and all lengths are multiples of 8: the word is inside the chunk.
            let word = unsafe { self.chunk.get().add(self.at.get()) }.cast::<u64>();
            // SAFETY: as above. The longest record is shorter than what the 16 bits of a length hold.
            unsafe { word.write(0xff | rest << 16) };
            self.commit(CHUNK);
        }
        // SAFETY: nobody refers to the old chunk: record() is the only user and is not inside fill.
        unsafe { syscall::unmap(self.chunk.get(), CHUNK) };
        self.chunk.set(chunk);
        self.at.set(0);
        self.offset.set(next);
        true
    }

    #[cold]
    #[inline(never)]
    pub(crate) fn lose(&self) {
        // SAFETY: as in commit.
        let lost = unsafe { AtomicU64::from_ptr(&raw mut (*self.header).lost) };
        lost.store(lost.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// Records lost so far.
    pub(crate) fn lost(&self) -> u64 {
        // SAFETY: as in commit.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.header).lost) }.load(Ordering::Relaxed)
    }

    /// Stores the totals and cuts the file to what is committed. The mapping stays, so a late record does no harm; it is
    /// removed with the process, or by [`Buffer::release`].
    pub(crate) fn finish(&self, tsc_end: u64, counts_end: &[u64]) {
        // SAFETY: the header stays mapped as long as self; only this thread (or the one that ends the process) writes it.
        unsafe {
            let end = &mut (*self.header).counts_end;
            end.iter_mut()
                .zip(counts_end)
                .for_each(|(slot, &count)| *slot = count);
            (&raw mut (*self.header).tsc_end).write(tsc_end);
        }
        self.full.set(true);
        // Stores beyond the new end would raise SIGBUS, hence no further record can fit.
        let end = self.offset.get() + self.at.get() as u64;
        self.at.set(CHUNK);
        if let Some(fd) = self.own_file() {
            syscall::truncate(fd, end);
        }
    }

    /// Unmaps everything and closes the file.
    ///
    /// # Safety
    /// `self` must not be used again.
    pub(crate) unsafe fn release(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            syscall::unmap(self.chunk.get(), CHUNK);
            syscall::unmap(self.header.cast(), HEADER_LEN);
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
        let path = unsafe { CStr::from_ptr(self.path.cast()) };
        let fd = syscall::move_up(syscall::open(path)?);
        if !is_ours(fd) {
            syscall::close(fd);
            return None;
        }
        self.fd.set(fd);
        Some(fd)
    }
}
