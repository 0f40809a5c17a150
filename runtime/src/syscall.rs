//! System calls without libc: no `errno`, no cancellation point, no interposition.

use crate::undisturbed::uninterrupted;
use core::arch::asm;
use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering};

/// Raw system call; a negative result is `-errno`.
///
/// # Safety
/// As the system call: pointers must be valid for what the kernel does with them.
#[inline(always)]
pub(crate) unsafe fn raw(number: libc::c_long, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention: rcx and r11 are lost, memory may be written as the call says.
    unsafe {
        asm!("syscall",
             inlateout("rax") number as isize => result,
             in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
             in("r10") args[3], in("r8") args[4], in("r9") args[5],
             lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

/// Why words could not be read.
pub(crate) enum Refusal {
    /// The descriptor is closed.
    Closed,
    /// Anything else.
    Other,
}

/// The kernel's monotonic clock, in nanoseconds. Not by the C library's function, in the place of which a preloaded library may put
/// one with a time of its own; only where that is all that is allowed.
pub(crate) fn monotonic_ns() -> u64 {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let args = [
        libc::CLOCK_MONOTONIC as usize,
        &raw mut t as usize,
        0,
        0,
        0,
        0,
    ];
    // SAFETY: the kernel, or the C library, fills the local variable.
    unsafe {
        if raw(libc::SYS_clock_gettime, args) != 0 {
            libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut t);
        }
    }
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// Reads so many words; a refusal if the kernel gives fewer, or none.
#[inline(always)]
pub(crate) fn read_words<const N: usize>(
    fd: i32,
    out: &mut MaybeUninit<[u64; N]>,
    wanted: usize,
) -> Result<&[u64], Refusal> {
    let args = [fd as usize, out.as_mut_ptr() as usize, 8 * N, 0, 0, 0];
    // SAFETY: the kernel writes at most the given length into the borrowed array.
    let read = unsafe { raw(libc::SYS_read, args) };
    if read == -(libc::EBADF as isize) {
        return Err(Refusal::Closed);
    }
    if wanted > N || read != (8 * wanted) as isize {
        return Err(Refusal::Other);
    }
    // SAFETY: the kernel has written so many words.
    Ok(unsafe { core::slice::from_raw_parts(out.as_ptr().cast(), wanted) })
}

/// Private anonymous memory, zeroed; `None` if there is none. The length is rounded up to pages by the kernel.
pub(crate) fn map_memory(len: usize) -> Option<*mut u8> {
    map_private(len, 0)
}

/// As [`map_memory`], and its pages are there at once: no page fault is counted for an execution unit.
pub(crate) fn map_present_memory(len: usize) -> Option<*mut u8> {
    map_private(len, libc::MAP_POPULATE)
}

fn map_private(len: usize, further: libc::c_int) -> Option<*mut u8> {
    let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | further) as usize;
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let at = unsafe { raw(libc::SYS_mmap, [0, len, prot, flags, usize::MAX, 0]) };
    (at > 0).then_some(at as *mut u8)
}

/// Has the child of a fork find zeros in these pages. Without that (before Linux 4.14) it finds what its parent had there.
pub(crate) fn wipe_on_fork(at: *mut u8, len: usize) {
    let advice = libc::MADV_WIPEONFORK as usize;
    // SAFETY: changes nothing in this process.
    unsafe { raw(libc::SYS_madvise, [at as usize, len, advice, 0, 0, 0]) };
}

/// Shared mapping of a part of a file.
pub(crate) fn map_file(fd: i32, offset: u64, len: usize) -> Option<*mut u8> {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    // SAFETY: as map_memory.
    let at = unsafe {
        raw(
            libc::SYS_mmap,
            [
                0,
                len,
                prot,
                libc::MAP_SHARED as usize,
                fd as usize,
                offset as usize,
            ],
        )
    };
    (at > 0).then_some(at as *mut u8)
}

/// Shared mapping of a file in the place of memory that is mapped already. False if the memory stays what it was.
///
/// # Safety
/// The memory is whole pages of our own, and nobody minds that their contents are the file's from now on.
pub(crate) unsafe fn map_over(fd: i32, offset: u64, at: *mut u8, len: usize) -> bool {
    let prot = (libc::PROT_READ | libc::PROT_WRITE) as usize;
    let flags = (libc::MAP_SHARED | libc::MAP_FIXED) as usize;
    let args = [at as usize, len, prot, flags, fd as usize, offset as usize];
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_mmap, args) == at as isize }
}

/// Read-only shared mapping of the first bytes of a file.
pub(crate) fn map_file_read_only(fd: i32, len: usize) -> Option<*mut u8> {
    let (prot, flags) = (libc::PROT_READ as usize, libc::MAP_SHARED as usize);
    // SAFETY: as map_memory.
    let at = unsafe { raw(libc::SYS_mmap, [0, len, prot, flags, fd as usize, 0]) };
    (at > 0).then_some(at as *mut u8)
}

/// Removes a mapping.
///
/// # Safety
/// Nothing may refer to it any more.
pub(crate) unsafe fn unmap(at: *mut u8, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_munmap, [at as usize, len, 0, 0, 0, 0]) };
}

/// Reserves blocks of a file that has nothing there yet, so that stores into a mapping of them can't fail. False if that is not to
/// be had.
pub(crate) fn allocate(fd: i32, offset: u64, len: u64) -> bool {
    match reserve(fd, 0, offset, len) {
        Ok(()) => true,
        // File systems without that call (ext2 and ext3, NFS before 4.2, FAT), and filters of system calls: what is written has blocks.
        Err(libc::EOPNOTSUPP | libc::ENOSYS | libc::EPERM) => write_zeros(fd, offset, len),
        Err(_) => false,
    }
}

/// Reserves blocks behind the end of a file, whose length stays: what is written there later finds room, unless there is none.
pub(crate) fn allocate_behind(fd: i32, len: u64) {
    let _ = reserve(fd, libc::FALLOC_FL_KEEP_SIZE, 0, len);
}

fn write_zeros(fd: i32, offset: u64, len: u64) -> bool {
    static ZEROS: [u8; 4096] = [0; 4096];
    (offset..offset + len).step_by(ZEROS.len()).all(|at| {
        let part = (offset + len - at).min(ZEROS.len() as u64) as usize;
        // SAFETY: the array is as long as that.
        unsafe { write_at(fd, ZEROS.as_ptr(), part, at) }
    })
}

/// The error is the kernel's number.
fn reserve(fd: i32, mode: libc::c_int, offset: u64, len: u64) -> Result<(), i32> {
    let args = [
        fd as usize,
        mode as usize,
        offset as usize,
        len as usize,
        0,
        0,
    ];
    if !may_have(offset + len) {
        return Err(libc::EFBIG);
    }
    // A signal of the program's says nothing of the disk; but nobody waits for ever.
    let mut results = (0..MAX_INTERRUPTED).map(|_| {
        // SAFETY: no memory is involved.
        unsafe { raw(libc::SYS_fallocate, args) }
    });
    match results.find(|&result| result != -(libc::EINTR as isize)) {
        Some(0) => Ok(()),
        other => Err(other.map_or(libc::EINTR, |error| -error as i32)),
    }
}

/// So often may a signal interrupt the kernel while it looks for blocks.
const MAX_INTERRUPTED: usize = 1000;

/// Whether a file may have so many bytes: beyond RLIMIT_FSIZE the kernel would send SIGXFSZ, which ends the program.
pub(crate) fn may_have(len: u64) -> bool {
    limit(libc::RLIMIT_FSIZE).is_none_or(|l| l.rlim_cur == libc::RLIM_INFINITY || len <= l.rlim_cur)
}

/// A limit of this process.
fn limit(of: libc::__rlimit_resource_t) -> Option<libc::rlimit> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let args = [0, of as usize, 0, &raw mut limit as usize, 0, 0];
    // SAFETY: the kernel writes one rlimit into the local variable.
    let result = unsafe { raw(libc::SYS_prlimit64, args) };
    (result == 0).then_some(limit)
}

/// Writes all of it, or says that it can't.
///
/// # Safety
/// `from` must be readable for `len` bytes.
pub(crate) unsafe fn write_at(fd: i32, from: *const u8, len: usize, offset: u64) -> bool {
    if !may_have(offset + len as u64) {
        return false;
    }
    let mut done = 0;
    while done < len {
        let args = [
            fd as usize,
            from.wrapping_add(done) as usize,
            len - done,
            offset as usize + done,
            0,
            0,
        ];
        // SAFETY: the kernel reads what the caller promises.
        match unsafe { raw(libc::SYS_pwrite64, args) } {
            written @ 1.. => done += written as usize,
            error if error == -(libc::EINTR as isize) => {}
            _ => return false,
        }
    }
    true
}

/// Cuts a file to `len` bytes.
pub(crate) fn truncate(fd: i32, len: u64) {
    // SAFETY: no memory is involved.
    unsafe { raw(libc::SYS_ftruncate, [fd as usize, len as usize, 0, 0, 0, 0]) };
}

/// Opens an existing file, no link, to read and write; `None` if that is not to be had.
///
/// # Safety
/// `path` must be a string that ends with 0: its length is not asked for, since the C library's `strlen` changes registers
/// that inline probes don't save.
pub(crate) unsafe fn open(path: *const u8) -> Option<i32> {
    let flags = (libc::O_RDWR | libc::O_NOFOLLOW | libc::O_CLOEXEC) as usize;
    // SAFETY: the kernel reads the string.
    let fd = unsafe { raw(libc::SYS_open, [path as usize, flags, 0, 0, 0, 0]) };
    i32::try_from(fd).ok().filter(|&fd| fd >= 0)
}

/// Makes a file for the owner only, which must not exist, to write; `None` if that is not to be had.
pub(crate) fn create(path: &CStr) -> Option<i32> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW | libc::O_CLOEXEC;
    let args = [path.as_ptr() as usize, flags as usize, 0o600, 0, 0, 0];
    // SAFETY: the kernel reads the string.
    let fd = unsafe { raw(libc::SYS_open, args) };
    i32::try_from(fd).ok().filter(|&fd| fd >= 0)
}

/// Writes what fits.
pub(crate) fn write(fd: i32, bytes: &[u8]) -> isize {
    let args = [fd as usize, bytes.as_ptr() as usize, bytes.len(), 0, 0, 0];
    // SAFETY: the kernel reads the slice.
    unsafe { raw(libc::SYS_write, args) }
}

/// Signals that a `write` may send to its thread: there is no reader, or a file may not grow.
const BY_WRITING: u64 = 1 << (libc::SIGPIPE - 1) | 1 << (libc::SIGXFSZ - 1);

/// Writes what fits, and no signal tells the program if nothing does.
pub(crate) fn write_quietly(fd: i32, bytes: &[u8]) {
    const LEN: usize = size_of::<u64>();
    uninterrupted(|| {
        let mut waiting = 0u64;
        let pending = [&raw mut waiting as usize, LEN, 0, 0, 0, 0];
        // SAFETY: the kernel writes a set of signals, a word.
        unsafe { raw(libc::SYS_rt_sigpending, pending) };
        if write(fd, bytes) >= 0 {
            return;
        }
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // Not one that was there before.
        let new = BY_WRITING & !waiting;
        let (set, time) = (&raw const new as usize, &raw const now as usize);
        // SAFETY: the kernel reads a set of signals and the time.
        unsafe { raw(libc::SYS_rt_sigtimedwait, [set, 0, time, LEN, 0, 0]) };
    });
}

/// Device and inode number of an open file; `None` if the descriptor is not open.
pub(crate) fn identity(fd: i32) -> Option<(u64, u64)> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    let at = status.as_mut_ptr() as usize;
    // SAFETY: the kernel writes one stat into the local variable.
    let result = unsafe { raw(libc::SYS_fstat, [fd as usize, at, 0, 0, 0, 0]) };
    // SAFETY: written by the kernel where it says so.
    (result == 0).then(|| unsafe {
        (
            status.assume_init_ref().st_dev,
            status.assume_init_ref().st_ino,
        )
    })
}

/// Closes a descriptor.
pub(crate) fn close(fd: i32) {
    // SAFETY: no memory is involved.
    unsafe { raw(libc::SYS_close, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// As [`moved_up`]; the old number if there is no room above.
pub(crate) fn move_up(fd: i32) -> i32 {
    moved_up(fd).unwrap_or(fd)
}

/// Moves a descriptor out of the way of the program, which may expect the lowest free numbers, and marks it
/// close-on-exec. Returns the new number; `None`: there is no room above, and it is where it was.
pub(crate) fn moved_up(fd: i32) -> Option<i32> {
    let limit = limit(libc::RLIMIT_NOFILE)?;
    let own = (limit.rlim_cur / 2).min(MOST_LOWER);
    let new = above_limit(fd, limit).or_else(|| duplicate(fd, own))?;
    close(fd);
    Some(new)
}

/// Numbers that are always left to the program. A fork copies the table of descriptors up to the last one.
const MOST_LOWER: u64 = 4096;

/// The same descriptor under the first free number from this one on.
fn duplicate(fd: i32, from: u64) -> Option<i32> {
    let command = libc::F_DUPFD_CLOEXEC as usize;
    let args = [fd as usize, command, from as usize, 0, 0, 0];
    // SAFETY: no memory is involved.
    let new = unsafe { raw(libc::SYS_fcntl, args) };
    i32::try_from(new).ok().filter(|&new| new >= 0)
}

/// Somebody has raised the limit.
static RAISED: AtomicBool = AtomicBool::new(false);

/// In the child of a fork: whoever had raised the limit isn't here.
pub(crate) fn after_fork() {
    RAISED.store(false, Ordering::Relaxed);
}

/// The same descriptor under a number that the program can't have: its soft limit is for new numbers only, so it is raised for
/// that moment. `None` if there is none between that limit and the hard one, or another thread is at it.
fn above_limit(fd: i32, limit: libc::rlimit) -> Option<i32> {
    let floor = limit.rlim_cur;
    if floor > MOST_LOWER || floor >= limit.rlim_max {
        return None;
    }
    for _ in 0..MAX_YIELDS {
        if !RAISED.swap(true, Ordering::Acquire) {
            // Asked again: what was read before may have been another thread's.
            let own = self::limit(libc::RLIMIT_NOFILE).filter(|own| own.rlim_cur == floor);
            let new = own.and_then(|own| {
                let raised = libc::rlimit {
                    rlim_cur: own.rlim_max.min(2 * MOST_LOWER),
                    ..own
                };
                set_limit(libc::RLIMIT_NOFILE, raised);
                let new = duplicate(fd, floor);
                set_limit(libc::RLIMIT_NOFILE, own);
                new
            });
            RAISED.store(false, Ordering::Release);
            return new;
        }
        yield_now();
    }
    None
}

/// How often a thread gives way to one that has raised the limit, which takes it some microseconds.
const MAX_YIELDS: u32 = 1000;

/// Sets a limit of this process; nothing happens where that isn't allowed.
fn set_limit(of: libc::__rlimit_resource_t, to: libc::rlimit) {
    let args = [0, of as usize, &raw const to as usize, 0, 0, 0];
    // SAFETY: the kernel reads one rlimit.
    unsafe { raw(libc::SYS_prlimit64, args) };
}

/// `ioctl` without memory.
pub(crate) fn control(fd: i32, request: usize, argument: usize) {
    // SAFETY: no memory is involved.
    unsafe { raw(libc::SYS_ioctl, [fd as usize, request, argument, 0, 0, 0]) };
}

/// The kernel's number of a perf event; `None` if the descriptor is closed, or something else by now.
pub(crate) fn event_id(fd: i32) -> Option<u64> {
    let mut id = 0u64;
    let request = perf_event_open_sys::bindings::ID as usize;
    // SAFETY: of a perf event the kernel writes its number into the local variable; others don't know the request.
    let result = unsafe {
        raw(
            libc::SYS_ioctl,
            [fd as usize, request, &raw mut id as usize, 0, 0, 0],
        )
    };
    (result == 0).then_some(id)
}

/// Lets other threads run.
pub(crate) fn yield_now() {
    // SAFETY: no memory is involved.
    unsafe { raw(libc::SYS_sched_yield, [0; 6]) };
}

/// Kernel's number of this thread.
pub(crate) fn thread_id() -> u32 {
    // SAFETY: no memory is involved.
    unsafe { raw(libc::SYS_gettid, [0; 6]) as u32 }
}

/// Makes pages read-only.
///
/// # Safety
/// Nobody may write to them any more.
pub(crate) unsafe fn protect(at: *const u8, len: usize) {
    let prot = libc::PROT_READ as usize;
    // SAFETY: the caller's promise.
    unsafe { raw(libc::SYS_mprotect, [at as usize, len, prot, 0, 0, 0]) };
}
