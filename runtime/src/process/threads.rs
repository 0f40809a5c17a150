//! The threads that record: their first probe and their end.

use super::{ACTIVE, LOST, PROCESS, THREADS_LOST, end, orphan};
use crate::buffer::Buffer;
use crate::counters::Counters;
use crate::files::create;
use crate::thread::{Thread, now, state};
use crate::undisturbed::{undisturbed, uninterrupted};
use crate::{heap, kernel, syscall, tls};
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use ompfuse_format::record::{self, MAX_COUNTERS, ThreadHeader};
use std::ffi::{CString, OsStr};
use std::os::fd::IntoRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// Threads that record, as a list.
pub(super) static THREADS: AtomicPtr<Thread> = AtomicPtr::new(core::ptr::null_mut());
/// Guards changes of the list: taken at a thread's first and last probe only.
static LIST_LOCK: AtomicBool = AtomicBool::new(false);
/// How many have recorded.
pub(super) static NEXT_INDEX: AtomicU32 = AtomicU32::new(0);

/// In the child of a fork: its one thread begins anew.
pub(super) fn after_fork() {
    LIST_LOCK.store(false, Ordering::Relaxed);
    THREADS.store(core::ptr::null_mut(), Ordering::Relaxed);
    NEXT_INDEX.store(0, Ordering::Relaxed);
}

/// This thread, if it records.
#[inline(always)]
pub(crate) fn current<'a>() -> Option<&'a Thread> {
    known().or_else(|| {
        if !may_begin() {
            return None;
        }
        begin_thread()
    })
}

/// This thread, if it records already.
#[inline(always)]
pub(crate) fn known<'a>() -> Option<&'a Thread> {
    let word = tls::get();
    if word <= tls::OFF {
        return None;
    }
    // SAFETY: set by begin_thread, and reset before the memory goes.
    let thread = unsafe { &*(word as *const Thread) };
    thread.wake().then_some(thread)
}

/// Whether this thread, which does not record, may begin to.
#[inline(always)]
pub(crate) fn may_begin() -> bool {
    tls::get() != tls::OFF && ACTIVE.load(Ordering::Relaxed)
}

/// Whether this is the process that records, and no child of it that was made by a system call of the program's own.
pub(super) fn is_own_process() -> bool {
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref() };
    process.is_some_and(|p| p.pid == std::process::id())
}

/// A thread's first probe.
#[cold]
#[inline(never)]
fn begin_thread<'a>() -> Option<&'a Thread> {
    undisturbed(begin)
}

fn begin<'a>() -> Option<&'a Thread> {
    let begun = now();
    let before = tls::get();
    tls::set(tls::OFF); // what follows may allocate, and so run probes of a patched allocator
    // SAFETY: errno is this thread's own variable.
    let errno = unsafe { *libc::__errno_location() };
    let thread = if is_own_process() {
        end::be_told();
        new_thread(begun).inspect(|thread| {
            if before > tls::OFF {
                // SAFETY: this thread's own, whose records were closed when the program began to exit; never freed.
                thread.follow(unsafe { &*(before as *const Thread) });
            }
        })
    } else {
        orphan::stop();
        None
    };
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
    match thread {
        Some(thread) => tls::set(thread as *const Thread as usize),
        None => {
            THREADS_LOST.fetch_add(1, Ordering::Relaxed);
        }
    }
    thread
}

/// `begun`: when that began.
fn new_thread<'a>(begun: u64) -> Option<&'a Thread> {
    // SAFETY: PROCESS is set before ACTIVE and never freed.
    let process = unsafe { PROCESS.load(Ordering::Acquire).as_ref()? };
    if !heap::has_room() {
        return None; // no allocation may fail from here on
    }
    let index = NEXT_INDEX.fetch_add(1, Ordering::Relaxed);
    let path = process
        .directory
        .join(format!("{}-{index}.rec", process.key));
    let file = create(&path).ok()?;
    let counters = Counters::open(&process.chosen, None);
    let of_regions = Counters::open(&process.of_regions, None);
    let mut values = [0; MAX_COUNTERS];
    counters.read(&mut values);
    let header = ThreadHeader {
        magic: record::MAGIC,
        version: record::VERSION,
        header_len: record::HEADER_LEN as u32,
        pid: std::process::id(),
        tid: syscall::thread_id(),
        index,
        counters: counters.len() as u32,
        tsc_start: 0,
        tsc_end: 0,
        committed: 0,
        lost: 0,
        counts_start: values,
        counts_end: [0; MAX_COUNTERS],
        unrecorded_ticks: 0,
        flushed: 0,
        stage: Buffer::STAGE,
        unattributed: [0; MAX_COUNTERS],
        reads_for_units: 0,
        sums: 0,
        sums_at: 0,
        sums_len: 0,
        prepared_ticks: 0,
        ours_ticks: 0,
        completed_ticks: 0,
        has_marks: 0,
        queued: 0,
        name: [0; record::THREAD_NAME],
        ran: 0,
        queued_start: 0,
        ran_start: 0,
    };
    let schedule = kernel::schedule(header.tid);
    let path = CString::new(path.into_os_string().into_vec()).ok()?;
    let Some(buffer) = Buffer::new(syscall::move_up(file.into_raw_fd()), &path, header) else {
        // It is empty, which would be damaged to who reads it.
        let _ = std::fs::remove_file(OsStr::from_bytes(path.to_bytes()));
        return None;
    };
    buffer.begin_schedule(schedule);
    let memory = state::map()?;
    // SAFETY: just mapped, not shared with anybody yet.
    let thread: &Thread = unsafe { Thread::init(memory, index, (counters, of_regions), buffer) };
    thread.set_start(begun);
    thread.make_contexts();
    with_list(|| {
        thread.next.set(THREADS.load(Ordering::Relaxed));
        THREADS.store(memory, Ordering::Relaxed);
    });
    // SAFETY: the key was created at the start; its value makes the destructor run when the thread ends.
    unsafe { libc::pthread_setspecific(process.pthread_key, memory.cast()) };
    Some(thread)
}

pub(super) fn with_list(change: impl FnOnce()) {
    // A signal handler that ends the process would wait for the lock that its own thread has.
    uninterrupted(|| {
        while LIST_LOCK
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            syscall::yield_now(); // whoever has it may be waiting for this processor
        }
        change();
        LIST_LOCK.store(false, Ordering::Release);
    });
}

/// Notes another thread's name, which it may have got at any time.
pub(super) fn name(thread: &Thread) {
    if let Some(name) = kernel::name(thread.buffer.tid()) {
        thread.buffer.set_name(name);
    }
}

/// Runs in a thread that ends.
pub(super) unsafe extern "C" fn thread_ends(memory: *mut c_void) {
    let memory = memory.cast::<Thread>();
    if tls::get() != memory as usize {
        return; // not this process's (fork), or finished already
    }
    tls::set(0); // another destructor may still run constructs: they make a new record file
    // SAFETY: set by new_thread for this thread, and not released yet.
    let thread = unsafe { &*memory };
    if thread.wake() {
        thread.recover(tls::stack_pointer());
        thread.finish();
        thread.unwatch();
        if let Some(name) = kernel::own_name() {
            thread.buffer.set_name(name);
        }
        thread.buffer.set_completed(now());
    }
    // Whoever is closing this thread has the lock until that is done.
    with_list(|| {
        LOST.fetch_add(thread.buffer.lost(), Ordering::Relaxed);
        let mut head = THREADS.load(Ordering::Relaxed).cast_const();
        if core::ptr::eq(head, memory) {
            THREADS.store(thread.next.get().cast_mut(), Ordering::Relaxed);
        }
        while !head.is_null() {
            // SAFETY: listed threads are alive.
            let other = unsafe { &*head };
            if core::ptr::eq(other.next.get(), memory) {
                other.next.set(thread.next.get());
            }
            head = other.next.get();
        }
    });
    thread.close_counters();
    // SAFETY: neither the list nor TLS leads here any more.
    unsafe {
        thread.buffer.release();
        state::unmap(memory);
    }
}
